import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import Foundation
import FuzzSupport
import Testing

/// A file whose metadata was damaged: a sync says what is wrong or goes on, but it ends, and the database stays sound.
@Suite("Damaged files") struct StateFuzzTests {
  private static let schema =
    Schema.lists + """
      CREATE TABLE files(id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes ON DELETE SET NULL ON UPDATE CASCADE,
        name);
      """

  /// A file with confirmed, changed, deleted, reinserted and parked records, a log that was not folded, and mapped
  /// ones.
  private static func template() throws -> (world: World, device: CairnTablesTests.Device, bytes: Data) {
    let world = try World()
    let d = try world.devices(
      ["A", "B"], schema: schema,
      base: """
        INSERT INTO lists VALUES ('l1', 'one', NULL), ('l2', 'two', 'red'); INSERT INTO items(id, list_id) VALUES ('i1', 'l1');
        INSERT INTO notes VALUES (1, 'n', 'b'), (2, 'm', NULL); INSERT INTO files VALUES (7, 1, 'f');
        INSERT INTO slots VALUES ('s1', 1, 'x')
        """)
    try d[1].sql("INSERT INTO slots VALUES ('s2', 2, 'y'); UPDATE notes SET body = 'B' WHERE id = 2", at: 20)
    try d[1].sync()
    // A foreign key of another program parks; so does a key that is taken by a check of this device alone.
    try d[0].sql("DELETE FROM lists WHERE id = 'l2'; INSERT INTO lists VALUES ('l2', 'again', NULL)", at: 30)
    try d[0].sql(
      "UPDATE items SET title = 't'; DELETE FROM notes WHERE id = 1; INSERT INTO notes VALUES (5, 'new', '')", at: 31)
    _ = try d[0].status()
    try d[0].sql("UPDATE lists SET color = 'late' WHERE id = 'l1'; INSERT INTO files VALUES (8, 5, 'g')", at: 32)
    d[0].restart()
    _ = try d[0].rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return (world, d[0], try Data(contentsOf: URL(fileURLWithPath: d[0].path)))
  }

  private static let columns: [(table: String, column: String)] = [
    ("cairn_setting", "value"), ("cairn_setting", "key"), ("cairn_table", "memory"), ("cairn_table", "live"),
    ("cairn_table", "name"), ("cairn_record", "tbl"), ("cairn_record", "key"), ("cairn_record", "name"),
    ("cairn_record", "pending"), ("cairn_record", "state"), ("cairn_record", "tag"), ("cairn_record", "clock"),
    ("cairn_record", "shape"), ("cairn_record", "rest"), ("cairn_prefix", "tbl"), ("cairn_prefix", "prefix"),
    ("cairn_prefix", "clock"), ("cairn_inbox", "body"), ("cairn_inbox", "stage"), ("cairn_inbox", "reason"),
    ("cairn_inbox", "tbl"), ("cairn_inbox", "retry"), ("cairn_log", "event"), ("cairn_log", "time"),
    ("cairn_log", "v1"),
    ("cairn_log", "v2"), ("cairn_state", "version"), ("cairn_state", "applying"),
  ]

  private struct Damage {
    var column: (table: String, column: String)
    var row: Int
    /// Damages what is there, or takes the place of it.
    var seed: UInt64
  }

  private static func damage(_ value: Value, _ seed: UInt64) -> Value {
    var mutator = Mutator(seed: seed)
    if mutator.index(4) == 0 {
      return mutator.one(of: [
        .null, .integer(.min), .integer(.max), .real(.infinity), .text(""), .blob([]), .integer(-1),
      ])
    }
    switch value {
    case .integer(let number):
      let other = Int64(mutator.one(of: Mutator.extremes)) ?? number
      return .integer(mutator.one(of: [number ^ 1 << Int64(mutator.index(64)), other, number &+ 1, -number]))
    case .text(let text): return .text(mutator.mutant(of: text))
    case .blob(let bytes): return .blob(mutator.mutant(of: bytes))
    case .real(let number): return .real(mutator.one(of: [-number, .nan, 1e300, -.infinity, number * 2, 0]))
    case .null, .malformedText:
      return .text(
        mutator.mutant(
          of: mutator.one(of: [#"{"cut":5,"clocks":"9 a","dirty":"a b","retry":1}"#, #"{"edit":"9 a b"}"#])))
    }
  }

  @Test("file-format.md: one or two damaged cells of any of Cairn's tables", .timeLimit(.minutes(10)))
  func cells() throws {
    try Fuzz.run("metadata", count: 60) { mutator in
      (0...mutator.index(2)).map { _ in
        Damage(column: mutator.one(of: Self.columns), row: mutator.index(40), seed: mutator.next())
      }
    } _: { damages in
      // A server of its own each time: what a damaged device sends must not come back to the next one.
      let (world, device, bytes) = try Self.template()
      let path = world.folder.appendingPathComponent("damaged.db").path
      for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) }
      try bytes.write(to: URL(fileURLWithPath: path))
      guard try Self.spoil(path, damages) else { return }
      let before = try Self.rows(path)
      do {
        let sync = try DatabaseSync(path: path, time: device.time, randomness: device.randomness) { _ in
          try world.server.cloud(user: world.user)
        }
        for _ in 0..<2 { _ = try sync.sync(SyncRequest()) }
      } catch { try Fuzz.demand(!"\(error)".isEmpty, "an error without words") }
      let file = try Connection(path: path, mode: .readWrite)
      try Fuzz.demand(try file.scalar("PRAGMA integrity_check") == .text("ok"), "the database is broken")
      // Nobody deleted anything that this device does not know of: no row may go (DESIGN G7).
      let gone = before.subtracting(try Self.rows(path)).sorted()
      try Fuzz.demand(gone.isEmpty, "rows are gone: \(gone)")
    }
  }

  /// The keys of all rows.
  private static func rows(_ path: String) throws -> Set<String> {
    let file = try Connection(path: path, mode: .readWrite)
    var keys: Set<String> = []
    for (table, key) in [("lists", "id"), ("items", "id"), ("notes", "id"), ("files", "id"), ("slots", "id")] {
      for row in try file.rows("SELECT \(key) FROM \(table)") { keys.insert("\(table) \(row[0])") }
    }
    return keys
  }

  /// What a sync says of a file on which a statement was run, the file, and the world that holds its folder.
  private static func outcome(_ statement: String) throws -> (message: String, file: Connection, world: World) {
    let (world, device, bytes) = try template()
    let path = world.folder.appendingPathComponent("damaged.db").path
    try bytes.write(to: URL(fileURLWithPath: path))
    try Connection(path: path, mode: .readWrite).execute(statement)
    var message = ""
    do {
      let sync = try DatabaseSync(path: path, time: device.time, randomness: device.randomness) { _ in
        try world.server.cloud(user: world.user)
      }
      message = try sync.sync(SyncRequest()).result.failure.map { "\($0)" } ?? ""
    } catch { message = "\(error)" }
    return (message, try Connection(path: path, mode: .readWrite), world)
  }

  @Test(
    "file-format.md: numbers that no Cairn writes are told as damage",
    arguments: [
      "UPDATE cairn_record SET tag = -5, pending = 1 WHERE typeof(tag) = 'integer'",
      "UPDATE cairn_record SET tag = 9223372036854775807, pending = 1 WHERE typeof(tag) = 'integer'",
      "UPDATE cairn_record SET clock = 9223372036854775807, pending = 1 WHERE clock IS NOT NULL",
      #"UPDATE cairn_record SET pending = 1, rest = '{"life":9223372036854775807}'"#,
      #"UPDATE cairn_record SET pending = 1, rest = '{"cut":-1}'"#, "UPDATE cairn_record SET pending = 1, shape = -1",
      #"UPDATE cairn_table SET memory = json_set(memory, '$.number', -1)"#,
      #"UPDATE cairn_table SET memory = json_set(memory, '$.number', 9223372036854775807)"#,
    ])
  func impossible(statement: String) throws {
    #expect(try Self.outcome(statement).message != "")
  }

  @Test("file-format.md: log entries of no table and at no time are passed over")
  func impossibleEntries() throws {
    let outcome = try Self.outcome(
      "UPDATE cairn_log SET time = 1e300; INSERT INTO cairn_log(event, time) VALUES (-32768, 'x'), (NULL, NULL)")
    let left = try withExtendedLifetime(outcome.world) { try outcome.file.scalar("SELECT count(*) FROM cairn_log") }
    #expect(outcome.message == "")
    #expect(left == .integer(0))
  }

  /// False where the schema forbids the damage.
  private static func spoil(_ path: String, _ damages: [Damage]) throws -> Bool {
    let file = try Connection(path: path, mode: .readWrite)
    var isDamaged = false
    for damage in damages {
      let (table, column) = damage.column
      let values = try file.rows("SELECT \(column) FROM \(table)")
      guard !values.isEmpty else { continue }
      let old = values[damage.row % values.count][0]
      do {
        try file.run("UPDATE \(table) SET \(column) = ?2 WHERE \(column) IS ?1", old, Self.damage(old, damage.seed))
        isDamaged = true
      } catch { continue }
    }
    return isDamaged
  }
}
