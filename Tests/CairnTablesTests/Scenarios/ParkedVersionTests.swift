import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import Testing

@Suite("Parked versions: parents that come later, constraints, edits on top (tables 8.8, 8.9)")
struct ParkedVersionTests {
  private func pair(_ base: String = "", schema: String = Schema.scenarios) throws -> (World, Device, Device) {
    let world = try World()
    let d = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, d[0], d[1])
  }

  /// Pages come to the devices without the records of these names.
  private func hide(_ names: String..., in world: World) {
    world.alterations.set { page in
      var page = page
      page.records.removeAll { names.contains($0.id.name) }
      return page
    }
  }

  private func retry(_ device: Device) throws {
    device.restart()
    try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness).retryParked(
      now: device.time.wallClock)
  }

  // MARK: Parents

  @Test(
    "TS125 M8 a child is parked missingParent over a restart, and comes with its parent; its later edit is sent",
    arguments: [false, true])
  func parentLater(childAgain: Bool) throws {
    let (world, a, b) = try pair()
    try b.sql("INSERT INTO lists(id) VALUES ('l1'); INSERT INTO items(id, list_id, title) VALUES ('i1', 'l1', 'x')")
    try b.sync()
    hide("lists:l1", in: world)
    try a.sync()
    #expect(try a.parked().map(\.reason) == [.missingParent])
    a.restart()
    try a.sync()
    #expect(try a.parked().map(\.record) == ["items:i1"] && a.rows("SELECT * FROM items").isEmpty)
    world.alterations.set(nil)
    try b.sql("UPDATE lists SET title = 'there'", at: 10)
    if childAgain { try b.sql("UPDATE items SET title = 'newer'", at: 11) }
    try b.sync()
    try a.sync()
    #expect(try a.parked().isEmpty)
    #expect(try a.picture("SELECT title FROM items") == [childAgain ? "newer" : "x"])
    try a.sql("UPDATE items SET done = 1", at: 20)
    try world.expectConverged()
    #expect(try b.picture("SELECT title, done FROM items") == [childAgain ? "newer|1" : "x|1"])
  }

  @Test("TS126 a chain of which the middle is missing: what is deleted remotely leaves the inbox")
  func chain() throws {
    let (world, a, b) = try pair(
      schema: """
        CREATE TABLE a(id TEXT PRIMARY KEY NOT NULL); CREATE TABLE b(id TEXT PRIMARY KEY NOT NULL, a REFERENCES a);
        CREATE TABLE c(id TEXT PRIMARY KEY NOT NULL, b REFERENCES b);
        """)
    try b.sql("INSERT INTO a VALUES ('1'); INSERT INTO b VALUES ('2', '1'); INSERT INTO c VALUES ('3', '2')")
    try b.sync()
    hide("b:2", in: world)
    try a.sync()
    #expect(try a.parked().map(\.record) == ["c:3"])
    world.alterations.set(nil)
    try b.sql("DELETE FROM c; DELETE FROM b", at: 10)
    try b.sync()
    try a.sync()
    #expect(try a.parked().isEmpty)
    try world.expectConverged()
    #expect(try a.picture("SELECT id FROM a UNION SELECT id FROM b UNION SELECT id FROM c") == ["1"])
    #expect(try world.serverNames() == ["a:1"])
  }

  @Test("TS127 an item that was moved to a list not here keeps its list, and is moved when the list comes")
  func movedToMissing() throws {
    let (world, a, b) = try pair(
      "INSERT INTO lists(id) VALUES ('l1'); INSERT INTO items(id, list_id, title) VALUES ('i1', 'l1', 'x')")
    try b.sql("INSERT INTO lists(id) VALUES ('l2'); UPDATE items SET list_id = 'l2', title = 'y'", at: 10)
    try b.sync()
    hide("lists:l2", in: world)
    try a.sync()
    #expect(try a.picture("SELECT list_id, title FROM items") == ["l1|x"])
    #expect(try a.parked().map(\.reason) == [.missingParent])
    world.alterations.set(nil)
    try b.sql("UPDATE lists SET title = 'there' WHERE id = 'l2'", at: 20)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT list_id, title FROM items") == ["l2|y"])
    try world.expectConverged()
  }

  @Test("TS137 an item of no list: the statement fails, nothing is captured")
  func orphanRefused() throws {
    let (world, a, _) = try pair()
    #expect(throws: SQLiteError.self) { try a.sql("INSERT INTO items(id, list_id) VALUES ('i1', 'nowhere')") }
    #expect(try a.scalar("SELECT count(*) FROM cairn_log") == .integer(0))
    #expect(try a.status().pending == 0)
    try world.expectConverged()
    #expect(try world.serverNames() == [])
  }

  @Test("TS139 a record with the key only is inserted; every other column has its default", arguments: [true, false])
  func keyOnly(hasClocks: Bool) throws {
    let (world, a, _) = try pair(schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n DEFAULT 7, v)")
    var record = Record(id: RecordID(name: "t:k", zone: world.zone), type: "t", fields: ["id": .string("k")])
    if hasClocks {
      record.fields.set("cairn_clocks", .string("{\"\(World.start)\":[\"id\"]}"))
      record.fields.set("cairn_life", .int64(World.start))
      record.fields.set("cairn_format", .int64(1))
    }
    let outcomes = try world.server.cloud(user: world.user).modify(
      in: world.zone, [RecordOperation(.create, record)], atomic: false)
    for case .failed(_, let error) in outcomes { Issue.record("\(error)") }
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM t") == ["k|7|∅"])
    try a.sql("UPDATE t SET v = 1", at: 100)
    try world.expectConverged()
  }

  // MARK: M13

  @Test(
    "M13 a list deleted here and not sent yet, that a fetched item keeps: the delete is dropped, the list is looked up",
    arguments: ["items", "kept"])
  func keptParent(child: String) throws {
    let (world, a, b) = try pair(
      """
      INSERT INTO lists VALUES ('l1', 'x', 'red'), ('l2', 'y', NULL); INSERT INTO items(id, list_id) VALUES
        ('old', 'l1'), ('other', 'l2')
      """)
    try a.sql("DELETE FROM lists WHERE id = 'l1'", at: 30)
    try b.sql("INSERT INTO \(child)(id, list_id) VALUES ('new', 'l1')", at: child == "items" ? 60 : 10)
    try b.sync()
    // B never syncs again: only the server has the list.
    try a.sync(.fetchOnly)
    #expect(try a.picture("SELECT * FROM lists") == ["l1|x|red", "l2|y|∅"])
    #expect(try a.picture("SELECT id, list_id FROM \(child) WHERE list_id = 'l1'") == ["new|l1"])
    #expect(try a.parked().isEmpty)
    try a.sync()
    #expect(try a.status().pending == 0)
    #expect(try world.serverNames().contains("lists:l1") && !world.serverNames().contains("items:old"))
    let events = try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness).events(limit: 100)
    #expect(
      events.contains { $0.kind == "merged" && $0.record == "lists:l1" && $0.detail.hasPrefix("the delete made") })
    try world.expectConverged()
    #expect(try b.rows("SELECT * FROM items WHERE id = 'old'").isEmpty)
  }

  @Test("M13 an older child of the set dies with the list all the same, in any order", arguments: [false, true])
  func olderSibling(reversed: Bool) throws {
    let (world, a, b) = try pair("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try a.sql("DELETE FROM lists", at: 30)
    let names = reversed ? ["i2", "i1"] : ["i1", "i2"]
    try b.sql("INSERT INTO items(id, list_id) VALUES ('\(names[0])', 'l1')", at: 10)
    try b.sql("INSERT INTO items(id, list_id) VALUES ('\(names[1])', 'l1')", at: 60)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT id FROM items") == [names[1]])
    try world.expectConverged()
    #expect(try b.picture("SELECT id FROM items JOIN lists USING (id) UNION SELECT id FROM items") == [names[1]])
    #expect(try b.picture("SELECT * FROM lists") == ["l1|x|red"])
  }

  @Test("M13 the look-up fails: the child waits, and the list comes with the next sync, also after a restart")
  func lookUpFails() throws {
    let (world, a, b) = try pair("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try a.sql("DELETE FROM lists", at: 30)
    try b.sql("INSERT INTO items(id, list_id) VALUES ('i', 'l1')", at: 60)
    try b.sync()
    a.cloud.fail(.lostRequest) { if case .lookup = $0 { true } else { false } }
    try a.sync()
    #expect(try a.parked().map(\.record) == ["items:i"] && a.rows("SELECT * FROM lists").isEmpty)
    #expect(try world.serverNames().contains("lists:l1"))
    a.restart()
    try a.sync()
    #expect(try a.parked().isEmpty && a.picture("SELECT * FROM lists") == ["l1|x|red"])
    try world.expectConverged()
  }

  @Test("M13 the list is gone from the server too: the child waits until a device that has it brings it back")
  func goneEverywhere() throws {
    let world = try World()
    let d = try world.devices(["A", "B", "C"], base: "INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try d[0].sql("DELETE FROM lists", at: 30)
    try d[2].sql("DELETE FROM lists", at: 31)
    try d[1].sql("INSERT INTO items(id, list_id) VALUES ('i', 'l1')", at: 60)
    try d[1].sync()
    try d[2].sync(.sendOnly)
    try d[0].sync()
    #expect(try d[0].rows("SELECT * FROM lists").isEmpty || d[0].picture("SELECT * FROM lists") == ["l1|x|red"])
    try world.expectConverged()
    #expect(try d[0].picture("SELECT l.title, i.id FROM items i JOIN lists l ON l.id = list_id") == ["x|i"])
  }

  // MARK: M15

  @Test("M15 M12 rows that change by the actions of an applied delete are sent, at the time of the delete")
  func actionsAreSent() throws {
    let (world, a, b) = try pair(
      """
      INSERT INTO lists(id) VALUES ('l1'), ('inbox'); INSERT INTO items(id, list_id) VALUES ('i1', 'l1');
      INSERT INTO covers VALUES ('l1', x'01'); INSERT INTO opt VALUES ('o', 'l1'); INSERT INTO dflt VALUES ('d', 'l1');
      """)
    // A deletes the list alone: what refers to it stays there, and nothing of it is sent from there.
    try a.sql("PRAGMA foreign_keys = OFF; DELETE FROM lists WHERE id = 'l1'; PRAGMA foreign_keys = ON", at: 30)
    try a.sync(.sendOnly)
    #expect(a.sentSinceLastAsked() == ["delete lists:l1"])
    try b.sync()
    let sent = b.cloud.sentOperations
    #expect(
      Set(b.sentSinceLastAsked()) == ["delete items:i1", "delete covers:~flists%3Al1", "save opt:o", "save dflt:d"])
    #expect(sent.filter(\.kind.isDelete).allSatisfy { $0.deleteTime == World.start + 30_000 })
    #expect(try world.clocks("opt:o") == ["id": 1, "list_id": 30])
    #expect(try world.clocks("dflt:d") == ["id": 1, "list_id": 30])
    try world.expectConverged()
    #expect(try a.picture("SELECT id, list_id FROM opt UNION SELECT * FROM dflt") == ["d|inbox", "o|∅"])
    #expect(try a.rows("SELECT * FROM items").isEmpty && a.rows("SELECT * FROM covers").isEmpty)
  }

  // MARK: Constraints

  @Test(
    "V6 a constraint that only one device has parks records there only, with its reason",
    arguments: [
      ("n NOT NULL", "", "NULL", ParkedReason.notNull), ("n CHECK (n < 5)", "", "9", .check),
      ("n UNIQUE", "", "1", .unique), ("n INTEGER", "STRICT", "'word'", .type),
    ])
  func ownConstraint(_ strict: (String, String, String, ParkedReason)) throws {
    let world = try World()
    let column = strict.1.isEmpty ? "n" : "n INTEGER"
    let a = try world.device("A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(column))")
    let b = try world.device("B", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(column))")
    let c = try world.device("C", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(strict.0)) \(strict.1)")
    try a.prepare(.create)
    try b.prepare(.join)
    try c.prepare(.join)
    try a.sql("INSERT INTO t VALUES ('good', 1)", at: 10)
    try a.sql("INSERT INTO t VALUES ('odd', \(strict.2))", at: 20)
    try world.settle()
    #expect(try c.parked().map(\.reason) == [strict.3] && c.parked().map(\.record) == ["t:odd"])
    #expect(try c.picture("SELECT id FROM t") == ["good"])
    for device in [a, b] {
      #expect(try device.parked().isEmpty && device.picture("SELECT id FROM t") == ["good", "odd"])
    }
    #expect(try world.devices.allSatisfy { try $0.status().pending == 0 })
    try b.sql("UPDATE t SET n = 3 WHERE id = 'odd'", at: 30)
    try world.expectConverged()
    #expect(try c.picture("SELECT * FROM t") == ["good|1", "odd|3"])
  }

  @Test("TS146 a NOT NULL column that is not on the record: parked notNull; applied when a later version has it")
  func notNullLater() throws {
    let world = try World()
    let a = try world.device("A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n NOT NULL)")
    let b = try world.device("B", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL)")
    try a.prepare(.create)
    try a.sync()
    try b.prepare(.join)
    try b.sync()
    try b.sql("INSERT INTO t VALUES ('x')", at: 10)
    try b.sync()
    try a.sync()
    #expect(try a.parked().map(\.reason) == [.notNull] && a.rows("SELECT * FROM t").isEmpty)
    b.restart()
    try b.sql("ALTER TABLE t ADD COLUMN n; UPDATE t SET n = 5", at: 20)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM t") == ["x|5"])
  }

  @Test(
    "TS148 a parked record follows the remote versions, and leaves the inbox with a remote delete",
    arguments: [true, false])
  func followed(isDeleted: Bool) throws {
    let (world, a, b) = try pair(schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, other)")
    try b.sql("CREATE TRIGGER no BEFORE INSERT ON t WHEN NEW.n > 5 BEGIN SELECT RAISE(ABORT, 'no'); END")
    try a.sql("INSERT INTO t VALUES ('r', 9, 'first')", at: 10)
    try a.sync()
    try b.sync()
    #expect(try b.parked().map(\.reason) == [.trigger])
    try a.sql(isDeleted ? "DELETE FROM t" : "UPDATE t SET other = 'second'", at: 20)
    try a.sync()
    try b.sync()
    if isDeleted {
      #expect(try b.parked().isEmpty)
    } else {
      #expect(try b.parked().map(\.record) == ["t:r"])
      try b.sql("DROP TRIGGER no")
      try retry(b)
    }
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == (isDeleted ? [] : ["r|9|second"]))
  }

  @Test("TS149 M9 a local edit of a row whose newer version is parked is sent on that base: both edits live")
  func editOnParked() throws {
    let (world, a, b) = try pair(
      "INSERT INTO t VALUES ('r', 1, 'o')", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, other)")
    try b.sql("CREATE TRIGGER no BEFORE UPDATE ON t WHEN NEW.n = 9 BEGIN SELECT RAISE(ABORT, 'no'); END")
    try a.sql("UPDATE t SET n = 9", at: 10)
    try a.sync()
    let tag = try #require(world.serverRecords()["t:r"]?.changeTag)
    try b.sync()
    #expect(try b.parked().map(\.record) == ["t:r"] && b.picture("SELECT * FROM t") == ["r|1|o"])
    _ = b.sentSinceLastAsked()
    try b.sql("UPDATE t SET other = 'local'", at: 20)
    try b.sync()
    let save = try #require(b.operations("t:r").first)
    #expect(save.kind == .update && save.record.changeTag == tag && save.record.fields["n"] == nil)
    try a.sync()
    #expect(try a.picture("SELECT * FROM t") == ["r|9|local"])
    try b.sql("DROP TRIGGER no")
    try retry(b)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["r|9|local"])
  }
}
