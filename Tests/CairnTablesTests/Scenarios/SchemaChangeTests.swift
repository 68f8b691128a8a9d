import CairnRecords
import CairnSQLite
import CairnTables
import Testing

@Suite("Schema changes while no engine runs (tables T26–T30, 8.2)")
struct SchemaChangeTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      base: """
        INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue'), ('l3', 'three', 'green');
        INSERT INTO notes VALUES (1, 'n', 'b'), (2, 'm', 'c'); INSERT INTO files VALUES (1, 1, 'f');
        """)
    a.restart()
    b.restart()
  }

  private let rebuild = """
    BEGIN; CREATE TABLE new(id TEXT PRIMARY KEY NOT NULL, title, color);
    INSERT INTO new SELECT * FROM lists; DROP TABLE lists; ALTER TABLE new RENAME TO lists; COMMIT
    """

  private func database(_ device: Device) throws -> SyncedDatabase {
    try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness)
  }

  private func clocks(_ name: String) throws -> String? {
    guard case .string(let text)? = try world.serverRecords()[name]?.fields["cairn_clocks"] else { return nil }
    return text
  }

  @Test("TS34 T26 an added column's default is no edit; another value counts as set at clock 1")
  func addColumn() throws {
    try a.sql("ALTER TABLE lists ADD COLUMN c DEFAULT 7; UPDATE lists SET c = 8 WHERE id = 'l2'")
    #expect(try a.status().pending == 1)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:l2"])
    #expect(try clocks("lists:l2")?.contains("\"1\":[\"c\"]") == true)
    try b.sql("ALTER TABLE lists ADD COLUMN c DEFAULT 7; UPDATE lists SET c = 9 WHERE id = 'l1'")
    try b.sync()
    try world.expectConverged()
    #expect(try b.picture("SELECT id, c FROM lists") == ["l1|9", "l2|8", "l3|7"])
    #expect(try a.picture("SELECT id, c FROM lists") == ["l1|9", "l2|8", "l3|7"])
  }

  @Test("T26 the back-fill of a migration never beats what a user typed elsewhere")
  func backFill() throws {
    try b.sql("ALTER TABLE lists ADD COLUMN c")
    try b.sync()
    try b.sql("UPDATE lists SET c = 'typed' WHERE id = 'l1'", at: 10)
    try b.sync()
    try a.sql("ALTER TABLE lists ADD COLUMN c; UPDATE lists SET c = 'filled'")
    try world.expectConverged()
    #expect(try a.picture("SELECT id, c FROM lists") == ["l1|typed", "l2|filled", "l3|filled"])
  }

  @Test("TS35 T27 renamed columns and tables keep their names on the wire; nothing is sent again")
  func renames() throws {
    try a.sql(
      """
      ALTER TABLE lists RENAME COLUMN title TO name; ALTER TABLE lists RENAME TO lijsten;
      UPDATE lijsten SET name = 'eins' WHERE id = 'l1'
      """)
    #expect(try a.status().pending == 1)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:l1"])
    #expect(try world.serverRecords()["lists:l1"]?.fields["title"] == .string("eins"))
    try b.sql("UPDATE lists SET title = 'zwei' WHERE id = 'l2'", at: 10)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT * FROM lijsten") == b.picture("SELECT * FROM lists"))
    #expect(try a.picture("SELECT id, name FROM lijsten") == ["l1|eins", "l2|zwei", "l3|three"])
  }

  @Test("TS36 T28 V3 SQLite refuses to drop a column; alter drops it, and deletes no value elsewhere")
  func dropColumn() throws {
    #expect {
      try a.sql("ALTER TABLE lists DROP COLUMN color")
    } throws: {
      "\($0)".contains("cairn_")
    }
    try database(a).alter("ALTER TABLE lists DROP COLUMN color")
    #expect(try a.status().pending == 0)
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 10)
    try a.sync()
    try b.sync()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|eins|red", "l2|two|blue", "l3|three|green"])
    #expect(try a.picture("SELECT * FROM lists") == ["l1|eins", "l2|two", "l3|three"])
    #expect(try world.serverRecords()["lists:l1"]?.fields["color"] == .string("red"))
    #expect(try a.status().pending == 0 && a.parked().isEmpty)
  }

  @Test("V2 V3 a column that was dropped and comes back has its values again, also those edited elsewhere meanwhile")
  func dropAndAdd() throws {
    try database(a).alter("ALTER TABLE lists DROP COLUMN color")
    try a.sync()
    try b.sql("UPDATE lists SET color = 'pink' WHERE id = 'l2'; UPDATE lists SET color = NULL WHERE id = 'l3'", at: 10)
    try b.sync()
    try a.sync()
    a.restart()
    try a.sql("ALTER TABLE lists ADD COLUMN color DEFAULT 'none'")
    #expect(try a.status().pending == 0)
    #expect(try a.picture("SELECT * FROM lists") == ["l1|one|red", "l2|two|pink", "l3|three|∅"])
    try world.expectConverged()
  }

  @Test("TS37 T29 a rebuilt table: the rows written meanwhile are sent, nothing is deleted, capture is back")
  func rebuilt() throws {
    try a.sql(rebuild.replacing("COMMIT", with: "UPDATE lists SET title = 'eins' WHERE id = 'l1'; COMMIT"))
    try a.sql("INSERT INTO lists VALUES ('l4', 'four', 'black')")
    world.clock.advance(seconds: 30)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["save lists:l1", "save lists:l4"])
    try a.sql("UPDATE lists SET title = 'zwei' WHERE id = 'l2'", at: 40)
    #expect(try a.status().pending == 1)
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM lists") == ["l1|eins", "l2|zwei", "l3|three", "l4|four"])
    #expect(try database(a).examine().isEmpty)
  }

  @Test("T29 an edit made in the gap stands against an equal clock, and loses to a later edit")
  func gapAgainstLaterEdits() throws {
    try a.sql(
      rebuild.replacing("COMMIT", with: "UPDATE lists SET title = 'aaa', color = 'aaa' WHERE id <> 'l3'; COMMIT"))
    try b.sql("UPDATE lists SET title = 'later' WHERE id = 'l1'", at: 500)
    try b.sync()
    world.clock.advance(seconds: 30)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|later|aaa", "l2|aaa|aaa", "l3|three|green"])
  }

  @Test("T29 T30 rows that were removed in a gap are missing, not deleted; they stay so until the user has decided")
  func missingRows() throws {
    try a.sql(rebuild.replacing("COMMIT", with: "DELETE FROM lists WHERE id < 'l3'; COMMIT"))
    let report = try a.sync()
    #expect(report.state == "schema" && a.sentSinceLastAsked().isEmpty)
    #expect(try a.sync().state == "schema")
    #expect(try a.picture("SELECT id FROM lists") == ["l3"])
    let condition = try database(a).lastCondition()
    #expect(condition.name == "schema" && condition.question?.contains("2 of lists") == true)
    a.restart()
    let opened = try database(a)
    let findings = try opened.examine()
    #expect(findings.map(\.kind) == [.missingRows] && findings[0].count == 2)
    #expect(try opened.repair(findings, cloud: a.cloud).allSatisfy(\.isRepaired))
    #expect(try a.picture("SELECT * FROM lists") == ["l1|one|red", "l2|two|blue", "l3|three|green"])
    #expect(try a.sync().state == "ready")
    try world.expectConverged()
  }

  @Test("T29 deleteMissing deletes them everywhere")
  func deleteMissing() throws {
    for trigger in try a.texts("SELECT name FROM sqlite_master WHERE type = 'trigger'") {
      try a.sql("DROP TRIGGER IF EXISTS \(trigger)")
    }
    try a.sql("DELETE FROM lists WHERE id = 'l1'; DELETE FROM notes WHERE id = 2")
    try a.sync()
    #expect(try b.sync().counts.removed == 0)
    a.restart()
    #expect(try database(a).deleteMissing() == 2)
    #expect(try a.sync().state == "ready")
    try world.expectConverged()
    #expect(try b.picture("SELECT id FROM lists") == ["l2", "l3"] && b.picture("SELECT id FROM notes") == ["1"])
  }

  @Test("T30 a dropped table is suspended: nothing of it is deleted; it goes on when it is back")
  func droppedTable() throws {
    try a.sql("PRAGMA foreign_keys = OFF; DROP TABLE lists")
    try b.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 10)
    try b.sync()
    let report = try a.sync()
    #expect(report.state == "schema" && a.sentSinceLastAsked().isEmpty)
    #expect(try b.sync().counts.removed == 0)
    a.restart()
    try a.sql("CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title, color)")
    try a.sync()
    a.restart()
    let opened = try database(a)
    #expect(try opened.repair(opened.examine(), cloud: a.cloud).allSatisfy(\.isRepaired))
    try a.sync()
    try world.expectConverged()
    #expect(try a.picture("SELECT id, title FROM lists") == ["l1|eins", "l2|two", "l3|three"])
  }

  @Test("T30 a changed primary key suspends the table")
  func changedKey() throws {
    try a.sql(
      """
      PRAGMA foreign_keys = OFF; CREATE TABLE new(id, title PRIMARY KEY NOT NULL, color);
      INSERT INTO new SELECT * FROM lists; DROP TABLE lists; ALTER TABLE new RENAME TO lists; DELETE FROM lists
      """)
    #expect(try a.sync().state == "schema")
    #expect(a.sentSinceLastAsked().isEmpty)
    #expect(try database(a).examine().contains { $0.kind == .suspendedTable && $0.table == "lists" })
    #expect(try b.sync().counts.removed == 0)
    #expect(try world.serverRecords()["lists:l1"] != nil)
  }

  @Test("T15 a unique index that is added later is captured too")
  func newUniqueIndex() throws {
    try a.sql("CREATE UNIQUE INDEX titles ON lists(title)")
    #expect(try a.status().pending == 0)
    try a.sql("INSERT OR REPLACE INTO lists VALUES ('l9', 'one', 'x')", at: 10)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete lists:l1", "save lists:l9"])
  }

  @Test("TS170 V7 a column that became INTEGER: values pass the new affinity, and that is no edit")
  func changedType() throws {
    try a.sql("UPDATE lists SET color = '5' WHERE id = 'l1'", at: 5)
    try world.expectConverged()
    _ = a.sentSinceLastAsked()
    a.restart()
    try a.sql(rebuild.replacing("title, color)", with: "title, color INTEGER)"))
    try a.sync()
    #expect(try a.scalar("SELECT color FROM lists WHERE id = 'l1'") == .integer(5))
    #expect(a.sentSinceLastAsked().isEmpty)
    #expect(try a.status().pending == 0)
    try b.sql("UPDATE lists SET color = '6' WHERE id = 'l2'", at: 10)
    try b.sync()
    try a.sync()
    #expect(try a.scalar("SELECT color FROM lists WHERE id = 'l2'") == .integer(6))
    #expect(try a.status().pending == 0)
  }
}
