import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Entries of the log (tables 2, 3.1)")
struct LogEntryTests {
  private static let schema = """
    CREATE TABLE k(a, b, v, w, PRIMARY KEY (a, b));
    CREATE TABLE stamp(number INTEGER PRIMARY KEY, time TEXT);
    CREATE TRIGGER stamped AFTER INSERT ON k BEGIN INSERT INTO stamp(time) VALUES (strftime('%s%f', 'now')); END;
    """

  private func prepared(_ schema: String, base: String = "") throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, devices[0], devices[1])
  }

  /// The entries that are not folded yet, as the fold reads them.
  private func entries(_ device: Device) throws -> [LogEntry] {
    let file = try device.open().database.file
    let statement = try file.connection.prepare("SELECT * FROM cairn_log ORDER BY id")
    var entries: [LogEntry] = []
    while try statement.step() { if let entry = LogEntry(statement, file.catalog) { entries.append(entry) } }
    return entries
  }

  @Test("T4 an entry has table, generation, operation, keys old and new with class and bytes, and the changed columns")
  func content() throws {
    let (_, a, _) = try prepared("CREATE TABLE k(a, b, v, w, PRIMARY KEY (a, b))")
    let number = try #require(try a.scalar("SELECT number FROM cairn_table WHERE name = 'k'"))
    let keys: [Value] = [
      .integer(1), .real(1.5), .text("1"), .blob([0x31]), .text("a\0b"), .malformedText([0xff, 0x00, 0xfe]), .text(""),
      .blob([]), .integer(Int64.max),
    ]
    let program = try a.connection()
    for key in keys { try program.run("INSERT INTO k VALUES (?1, 'x', 1, 1)", key) }
    let inserts = try entries(a).filter { $0.operation == .insert && .integer(Int64($0.shape.table)) == number }
    #expect(inserts.map(\.key) == keys.map { [$0, .text("x")] })
    _ = try a.status()

    for key in keys { try program.run("UPDATE k SET w = 2 WHERE a IS ?1", key) }
    try program.execute("UPDATE k SET b = 'y', v = 3 WHERE a = 1 AND typeof(a) = 'integer'")
    try program.execute("DELETE FROM k WHERE a = 1.5")
    let changes = try entries(a)
    #expect(changes.prefix(keys.count).map(\.operation) == keys.map { _ in .update })
    #expect(changes.prefix(keys.count).map(\.key) == keys.map { [$0, .text("x")] })
    #expect(changes.prefix(keys.count).allSatisfy { $0.changedNames == ["w"] && $0.oldKey.isEmpty })
    let moved = try #require(changes.first { $0.operation == .rekey })
    #expect(moved.oldKey == [.integer(1), .text("x")] && moved.key == [.integer(1), .text("y")])
    #expect(Set(moved.changedNames) == ["b", "v"])
    let deleted = try #require(changes.last)
    #expect(deleted.operation == .delete && deleted.key == [.real(1.5), .text("x")])
  }

  @Test("T4 the time is that of the statement, exact to the millisecond")
  func exactTime() throws {
    let (_, a, _) = try prepared(Self.schema)
    for i in 1...200 { try a.sql("INSERT INTO k VALUES (\(i), 'x', 1, 1)") }
    // %s%f is seconds since 1970, then seconds of the minute with three decimals.
    let expected = try a.texts("SELECT time FROM stamp ORDER BY number").map { text -> Int64? in
      guard let dot = text.firstIndex(of: ".") else { return nil }
      let seconds = text[..<dot].dropLast(2)
      return Int64(seconds + text[text.index(after: dot)...])
    }
    let times = try entries(a).filter { $0.operation == .insert && $0.shape.keyCount == 2 }.map { $0.time as Int64? }
    #expect(times.count == 200 && times == expected)
  }

  @Test("T8 all rows of a statement have one time: its own, those of cascades, and those that REPLACE removes")
  func oneTime() throws {
    let (world, a, _) = try prepared(
      Schema.scenarios,
      base: """
        INSERT INTO lists(id) VALUES ('l1'), ('l2'); INSERT INTO items(id, list_id) VALUES ('i1', 'l1'), ('i2', 'l1');
        INSERT INTO covers VALUES ('l1', x'01'); INSERT INTO opt VALUES ('o', 'l1');
        INSERT INTO slots VALUES ('a', 1, ''), ('b', 2, '');
        """)
    try a.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      INSERT INTO tags SELECT 'tag' || i FROM n
      """)
    #expect(Set(try entries(a).map(\.time)).count == 1)
    try a.sync()
    #expect(Set(try world.clocks("tags:tag1").values) == Set(try world.clocks("tags:tag3000").values))

    try a.sql("DELETE FROM lists WHERE id = 'l1'")
    let cascade = try entries(a)
    #expect(cascade.count == 5 && Set(cascade.map(\.time)).count == 1)
    _ = try a.status()
    #expect(try a.scalar("SELECT count(DISTINCT deleted) FROM \(RecordView.sql) WHERE deleted NOT NULL") == .integer(1))
    try a.sync()

    try a.sql("INSERT OR REPLACE INTO slots VALUES ('c', 1, 'new')")
    #expect(Set(try entries(a).map(\.time)).count == 1)
    try world.expectConverged()
  }

  @Test("F9 an entry is read with the columns of the generation that wrote it, though the table has others since")
  func olderGeneration() throws {
    let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, first, second, third)"
    let (world, a, b) = try prepared(schema, base: "INSERT INTO t VALUES ('r', 1, 2, 3), ('s', 1, 2, 3)")
    a.restart()
    try a.sql("UPDATE t SET second = 20 WHERE id = 'r'", at: 10)
    // Another order of the columns, and one more: bit 2 of the old mask is now another column.
    try a.sql(
      """
      CREATE TABLE new(id TEXT PRIMARY KEY NOT NULL, extra, third, first, second);
      INSERT INTO new SELECT id, NULL, third, first, second FROM t; DROP TABLE t; ALTER TABLE new RENAME TO t
      """)
    try world.settle()
    let clocks = try world.clocks("t:r")
    #expect(clocks["second"] == 10 && clocks["first"] == 1 && clocks["third"] == 1)
    #expect(try b.picture("SELECT id, first, second, third FROM t") == ["r|1|20|3", "s|1|2|3"])
    #expect(try a.status().pending == 0)
  }
}

extension LogEntry {
  /// Wire names of the changed columns, of a table that has the columns of its triggers.
  fileprivate var changedNames: [String] { changed.map { shape.columns[$0] } }
}
