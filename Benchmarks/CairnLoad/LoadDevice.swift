import Cairn
import CairnClient
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting

/// One device: a prepared file, a program that edits it, and its engine. Used from one thread.
final class LoadDevice {
  let path: String
  let counted: CountedCloud
  private let faults: FaultInjector
  private let sync: DatabaseSync
  private let program: Connection
  private let random: SeededRandomness
  private var edits = 0

  static let schema = """
    CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, body TEXT, count INTEGER, price REAL)
    """

  init(path: String, token: String, seed: UInt64, faultPercent: Int) throws {
    self.path = path
    random = SeededRandomness(seed: seed)
    program = try Connection(path: path)
    var made: (CountedCloud, FaultInjector)?
    sync = try DatabaseSync(path: path) { place in
      let counted = CountedCloud(
        WebServicesDatabase(
          ServiceOptions(
            server: try ServerURL(parsing: place.server), container: place.container,
            environment: ServiceOptions.Environment(rawValue: place.environment) ?? .production, token: token)))
      let faults = FaultInjector(counted, seed: seed &+ 1, keepsLog: false)
      made = (counted, faults)
      return faults
    }
    guard let made else { throw LoadFailure("\(path) was opened without a client") }
    (counted, faults) = made
    faults.setRates(
      FaultInjector.Rates(lostRequest: faultPercent, lostAnswer: faultPercent, temporary: faultPercent))
  }

  func heal() { faults.heal() }

  /// One to twenty edits in one transaction: inserts, updates of one or several columns, deletes and reinserts.
  func edit() throws {
    try program.transaction {
      for _ in 0..<(1 + random.below(20)) {
        edits += 1
        let id = Value.text("item-\(random.below(600))")
        switch random.below(10) {
        case 0..<3:
          try program.run(
            "INSERT OR REPLACE INTO item VALUES (?1, ?2, ?3, ?4, ?5)", id, .text("title \(edits)"),
            .text(String(repeating: "words of a body ", count: 1 + random.below(20))), .integer(Int64(edits)),
            .real(Double(edits) / 8))
        case 3..<6: try program.run("UPDATE item SET count = ?2 WHERE id = ?1", id, .integer(Int64(edits)))
        case 6..<8:
          try program.run("UPDATE item SET title = ?2, price = ?3 WHERE id = ?1", id, .text("\(edits)"), .real(0.5))
        default: try program.run("DELETE FROM item WHERE id = ?1", id)
        }
      }
    }
  }

  func run() throws -> SyncReport { try sync.sync() }

  /// What the table holds, as one text.
  func contents() throws -> String {
    try program.rows("SELECT * FROM item ORDER BY id").map { "\($0)" }.joined(separator: "\n")
  }
}

/// What can't go on, in one sentence.
struct LoadFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}
