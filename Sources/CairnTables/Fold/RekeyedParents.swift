import CairnRecords
import CairnSQLite

/// Changes of mapped integers in the log. SQLite logs the children that follow (ON UPDATE CASCADE) before the parent,
/// so a child's entry is understood only with the parent's at hand (tables F5, T19).
struct RekeyedParents {
  private struct Change: Hashable {
    var table: Int
    var new: Int64
    var time: FieldClock
  }

  private var previous: [Change: Int64] = [:]

  var isEmpty: Bool { previous.isEmpty }

  /// The integer that stood for the same record before the statement at `time` made it `new`.
  func previous(_ table: Int, _ new: Int64, at time: FieldClock) -> Int64? {
    previous[Change(table: table, new: new, time: time)]
  }

  static func read(_ file: FileContext) throws -> RekeyedParents {
    var result = RekeyedParents()
    let parents = Set(
      file.catalog.plans.flatMap(\.foreignKeys).filter { $0.onUpdate == .cascade }.map(\.parent))
    let events = parents.sorted().compactMap { number -> Int? in
      guard let plan = file.catalog.plan(number), plan.keyKind == .mapped else { return nil }
      return LogLayout.event(table: number, generation: file.catalog.currentGeneration(number), .rekey)
    }
    guard !events.isEmpty else { return result }
    let list = events.map(String.init).joined(separator: ", ")
    let statement = try file.connection.cached("SELECT * FROM cairn_log WHERE event IN (\(list)) ORDER BY id")
    while try statement.step() {
      guard let entry = LogEntry(statement, file.catalog), case .integer(let new)? = entry.key.first,
        case .integer(let old)? = entry.oldKey.first
      else { continue }
      result.previous[Change(table: entry.shape.table, new: new, time: entry.time)] = old
    }
    return result
  }
}
