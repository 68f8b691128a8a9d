import CairnRecords
import CairnSQLite
import Testing

@Suite("Capture (tables 8.2)")
struct CaptureScenarioTests {
  private func two(_ base: String) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], base: base)
    return (world, devices[0], devices[1])
  }

  @Test("TS11 insert, update, delete, sync after each: the server follows")
  func follows() throws {
    let (world, a, _) = try two("")
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL)", at: 10)
    try a.sync()
    #expect(try world.serverNames() == ["lists:l1"])
    try a.sql("UPDATE lists SET title = 'y'", at: 20)
    try a.sync()
    #expect(try world.serverRecords()["lists:l1"]?.fields["title"] == .string("y"))
    try a.sql("DELETE FROM lists", at: 30)
    try a.sync()
    #expect(try world.serverNames() == [])
    try world.expectConverged()
  }

  @Test("TS12 ROLLBACK and ROLLBACK TO leave nothing pending")
  func rollbacks() throws {
    let (world, a, _) = try two("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try a.sql("BEGIN; INSERT INTO lists VALUES ('l2', 'y', NULL); ROLLBACK")
    try a.sql("BEGIN; SAVEPOINT s; UPDATE lists SET title = 'z'; ROLLBACK TO s; COMMIT")
    #expect(try a.status().pending == 0)
    try world.expectConverged()
  }

  @Test("TS13 an UPDATE that changes nothing is not logged")
  func nothingChanged() throws {
    let (_, a, _) = try two("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try a.sql("UPDATE lists SET title = title")
    #expect(try a.scalar("SELECT count(*) FROM cairn_log") == .integer(0))
  }

  @Test("TS14 TS15 T5 a change of case under NOCASE and of storage class reach B")
  func bytesAndClasses() throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n TEXT COLLATE NOCASE, v)",
      base: "INSERT INTO t VALUES ('k', 'abc', 1)")
    try devices[0].sql("UPDATE t SET n = 'ABC'", at: 10)
    try world.settle()
    #expect(try devices[1].scalar("SELECT n FROM t") == .text("ABC"))
    try devices[0].sql("UPDATE t SET v = 1.0", at: 20)
    try world.expectConverged()
    #expect(try devices[1].scalar("SELECT v FROM t") == .real(1))
    #expect(try world.clocks("t:k") == ["id": 1, "n": 10, "v": 20])
  }

  @Test("TS16 an upsert moves the clock of the columns that it changes only")
  func upsert() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try b.sql("UPDATE lists SET title = 'B'", at: 10)
    try b.sync()
    try a.sql("INSERT INTO lists VALUES ('l1', 'q', 'blue') ON CONFLICT(id) DO UPDATE SET color = 'blue'", at: 20)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|B|blue"])
    #expect(try world.clocks("lists:l1") == ["id": 1, "title": 10, "color": 20])
  }

  @Test(
    "TS17 TS18 DO NOTHING, OR IGNORE and REPLACE with equal values leave nothing pending", arguments: [false, true])
  func skipped(recursive: Bool) throws {
    let (_, a, _) = try two("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try a.sql("INSERT INTO lists VALUES ('l1', 'y', NULL) ON CONFLICT DO NOTHING")
    try a.sql("INSERT OR IGNORE INTO lists VALUES ('l1', 'y', NULL)")
    try a.sql("REPLACE INTO lists VALUES ('l1', 'x', 'red')")
    #expect(try a.status().pending == 0)
  }

  @Test("TS19 T14 REPLACE edits the columns that differ", arguments: [false, true])
  func replace(recursive: Bool) throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'x', 'red'); INSERT INTO notes VALUES (7, 'n', 'b')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try b.sql("UPDATE lists SET color = 'blue'; UPDATE notes SET body = 'B'", at: 10)
    try b.sync()
    try a.sql("REPLACE INTO lists VALUES ('l1', 'y', 'red'); REPLACE INTO notes VALUES (7, 'm', 'b')", at: 20)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|y|blue"])
    #expect(try a.picture("SELECT title, body FROM notes") == ["m|B"])
    #expect(try world.clocks("lists:l1") == ["id": 1, "title": 20, "color": 10])
    #expect(try world.serverRecords().count == 2)
  }

  @Test("T14 T20 OR IGNORE, DELETE and INSERT in one millisecond is a reinsert", arguments: [false, true])
  func ignoreDeleteInsert(recursive: Bool) throws {
    let (world, a, _) = try two("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try a.sql(
      """
      BEGIN; INSERT OR IGNORE INTO lists VALUES ('l1', 'y', 'red'); DELETE FROM lists;
      INSERT INTO lists VALUES ('l1', 'y', 'red'); COMMIT
      """, at: 10)
    try world.expectConverged()
    #expect(try world.clocks("lists:l1") == ["id": 10.001, "title": 10.001, "color": 10.001])
  }

  @Test("TS20 T15 a row that REPLACE removes through a unique column is deleted everywhere", arguments: [false, true])
  func removedByUnique(recursive: Bool) throws {
    let (world, a, b) = try two("INSERT INTO slots VALUES ('a', 1, 'A'), ('b', 2, 'B')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try a.sql("INSERT OR REPLACE INTO slots VALUES ('c', 1, 'C')", at: 10)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete slots:a", "save slots:c"])
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM slots") == ["b|2|B", "c|1|C"])
  }

  @Test("TS21 T16 UPDATE OR REPLACE onto a key edits the record of that key", arguments: [false, true])
  func updateOrReplace(recursive: Bool) throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'x', 'red'), ('l2', 'y', 'red')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try a.sql("UPDATE OR REPLACE lists SET id = 'l2' WHERE id = 'l1'", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists") == ["l2|x|red"])
    #expect(try world.clocks("lists:l2") == ["id": 1, "title": 10, "color": 1])
  }

  @Test("TS22 T15 a unique index on an expression, partial", arguments: [false, true])
  func expressionIndex(recursive: Bool) throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"],
      schema: """
        CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, a, ok, g AS (a || ok)); CREATE UNIQUE INDEX ti ON t(lower(a)) WHERE ok = 1
        """,
      base: "INSERT INTO t VALUES ('hit', 'X', 1), ('off', 'x', 0), ('other', 'y', 1)")
    try devices[0].sql("PRAGMA recursive_triggers = \(recursive)")
    try devices[0].sql("INSERT OR REPLACE INTO t VALUES ('new', 'x', 1)", at: 10)
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT id FROM t") == ["new", "off", "other"])
    #expect(try world.serverNames() == ["t:new", "t:off", "t:other"])
  }

  @Test("TS23 T12 DELETE without WHERE of 1,000 rows")
  func deleteAll() throws {
    let (world, a, b) = try two(
      "INSERT INTO lists SELECT 'l' || value, 't', NULL FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 1000) SELECT value FROM n)"
    )
    try a.sql("DELETE FROM lists", at: 10)
    #expect(try a.sync().counts.deleted == 1_000)
    try world.expectConverged()
    #expect(try b.rows("SELECT * FROM lists").isEmpty)
  }

  @Test("TS24 T21 actions of foreign keys are captured, all at one clock")
  func cascade() throws {
    let (world, a, b) = try two(
      """
      INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO items(id, list_id) VALUES ('i1', 'l1'), ('i2', 'l1');
      INSERT INTO covers VALUES ('l1', x'01'); INSERT INTO opt VALUES ('o1', 'l1')
      """)
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    let deletes = a.cloud.sentOperations.filter(\.kind.isDelete)
    #expect(deletes.map(\.record.id.name).sorted() == ["covers:~flists%3Al1", "items:i1", "items:i2", "lists:l1"])
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM opt") == ["o1|∅"])
    #expect(try world.clocks("opt:o1") == ["id": 1, "list_id": 10])
  }

  @Test("TS25 REPLACE of a list with items: SQLite deletes the items, the list is edited", arguments: [false, true])
  func replaceParent(recursive: Bool) throws {
    let (world, a, b) = try two(
      "INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO items(id, list_id) VALUES ('i1', 'l1')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    try a.sql("REPLACE INTO lists VALUES ('l1', 'y', NULL)", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|y|∅"])
    #expect(try b.rows("SELECT * FROM items").isEmpty)
    #expect(try world.clocks("lists:l1") == ["id": 1, "title": 10, "color": 1])
  }

  @Test("TS26 a list deleted without foreign keys: B cascades and A follows")
  func withoutForeignKeys() throws {
    let (world, a, b) = try two(
      "INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO items(id, list_id) VALUES ('i1', 'l1')")
    try a.sql("PRAGMA foreign_keys = OFF")
    try a.sql("DELETE FROM lists", at: 10)
    try world.expectConverged()
    #expect(try a.rows("SELECT * FROM items").isEmpty)
    #expect(try b.rows("SELECT * FROM items").isEmpty)
    #expect(try world.serverNames() == [])
  }
}
