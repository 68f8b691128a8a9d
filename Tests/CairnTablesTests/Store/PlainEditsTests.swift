import CairnSQLite
import Testing

@testable import CairnTables

/// Edits of many plain records by one statement; that they are folded right is told by ``SortedStretchTests``.
@Suite("F3 edits of plain records (tables 3.1)")
struct PlainEditsTests {
  private static let late: Int64 = 4_000_000_000_000
  private let world: World
  private let device: Device
  private let database: SyncedDatabase

  init() throws {
    world = try World()
    device = try world.device(
      "A",
      schema: """
        CREATE TABLE named(id TEXT PRIMARY KEY NOT NULL, a, b);
        CREATE TABLE counted(id INTEGER PRIMARY KEY, a, b, c);
        """)
    try device.prepare(.create)
    try device.sql(
      """
      WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 999)
      INSERT INTO named SELECT printf('k%04d', i), i, i FROM n;
      INSERT INTO counted SELECT a, a, a, a FROM named;
      """)
    try device.sync()
    device.restart()
    database = try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness)
  }

  private func plan(_ name: String) throws -> TablePlan {
    try #require(database.file.catalog.plans.first { $0.name == name })
  }

  /// Edits of the column `a` at a time after all others.
  private func edits(_ table: String, _ numbers: [Int]) throws -> PlainEdits {
    let plan = try plan(table)
    let column = try #require(plan.columns.firstIndex { $0.name == "a" })
    return PlainEdits(
      plan: plan,
      edits: numbers.map { number in
        let digits = String(number)
        let text = "k" + String(repeating: "0", count: 4 - digits.count) + digits
        return PlainEdits.Edit(
          key: table == "named" ? .text(text) : .integer(Int64(number)), time: Self.late,
          columns: [column])
      })
  }

  private func edit(_ table: String, _ numbers: [Int], _ file: FileContext? = nil) throws -> [Bool]? {
    let file = file ?? database.file
    let edits = try edits(table, numbers)
    return try file.transaction { try file.records.edit(edits) }
  }

  @Test(
    "edits of neighbours are stored, of keys with many others between them are not looked for",
    arguments: [
      "named", "counted",
    ])
  func density(_ table: String) throws {
    #expect(try edit(table, Array(100..<164)) == Array(repeating: true, count: 64))
    #expect(try edit(table, Array(stride(from: 200, to: 260, by: 2))) == Array(repeating: true, count: 30))
    #expect(try edit(table, Array(stride(from: 300, to: 940, by: 10))) == nil)
    #expect(try edit(table, []) == nil)
    #expect(try database.file.records.pending(.save, table: plan(table).number, after: nil, limit: 1_000).count == 94)
    let edited = try #require(try database.file.records.find(plan(table).number, key: edits(table, [100]).edits[0].key))
    #expect(edited.revision == 2 && edited.tag != nil && edited.dirty == .some(["a"]))
    #expect(edited.clocks.columns.count { $0 == Self.late } == 1)
  }

  @Test("records that are not plain are left to be folded as they come")
  func others() throws {
    let conditions = [
      "pending = 1, rest = '{\"dirty\":\"b\"}'", "rest = '{\"cut\":5}'", "shape = NULL, clock = NULL",
      "state = state | 1",
      "state = state | \(StateBits.parked)", "state = state | \(StateBits.dead)", "tag = NULL",
      "tag = \(TagCoding.room)", "clock = -1", "clock = 1 << 61", "clock = 'x'", "shape = 7",
    ]
    for (i, condition) in conditions.enumerated() {
      try device.sql("UPDATE cairn_record SET \(condition) WHERE key = 'k\(String(String(10_010 + i).dropFirst()))'")
    }
    let count = conditions.count
    let before = try device.picture(
      "SELECT * FROM cairn_record WHERE key BETWEEN 'k0010' AND 'k\(String(10_009 + count).dropFirst())'")
    let stored = try edit("named", Array(9...(10 + count)))
    #expect(stored == [true] + Array(repeating: false, count: count) + [true])
    #expect(
      try device.picture(
        "SELECT * FROM cairn_record WHERE key BETWEEN 'k0010' AND 'k\(String(10_009 + count).dropFirst())'") == before)
  }

  @Test("the flag of a record that was in a batch, and that of one to be replaced, stay")
  func flags() throws {
    try device.sql("UPDATE cairn_record SET state = state | 12 WHERE key = 'k0001'")
    #expect(try edit("named", [0, 1, 2]) == [true, true, true])
    let record = try #require(try database.file.records.find(plan("named").number, key: .text("k0001")))
    #expect(record.flags == [.attempted, .replaces] && record.revision == 2 && record.pending == .save)
  }

  @Test("of two contexts on one connection each folds its own edits, and neither those of the other")
  func twoContexts() throws {
    let other = try SchemaUpkeep.open(database.file.connection, time: device.time, randomness: device.randomness)
    #expect(try edit("named", [1, 2, 3]) == [true, true, true])
    #expect(try edit("named", [4, 5, 6], other) == [true, true, true])
    // SQLite asks the one that was made last.
    #expect(try edit("named", [7, 8, 9]) == [false, false, false])
    #expect(try edit("named", [7, 8, 9], other) == [true, true, true])
    #expect(try database.file.records.pending(.save, table: plan("named").number, after: nil, limit: 100).count == 9)
  }
}
