import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation
import Testing

@Suite("Rules of sending (tables 3.3)")
struct SendRuleTests {
  private func two(_ base: String, schema: String = Schema.scenarios) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, devices[0], devices[1])
  }

  @Test("U1 TS196 what is sent of a record is one state of it, unfolded edits included; a later edit goes next")
  func oneState() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', '1', '1')")
    try a.sql("UPDATE lists SET title = '2', color = '2'", at: 10)
    a.meanwhile { try $0.sql("UPDATE lists SET title = '3', color = '3'", at: 20) }
    try a.sync()
    let saves = a.operations("lists:l1").map(\.record)
    #expect(saves.map { $0.fields["title"] ?? nil } == [.string("2"), .string("3")])
    #expect(saves.map { $0.fields["color"] ?? nil } == [.string("2"), .string("3")])
    for (save, seconds) in zip(saves, [10, 20]) {
      guard case .string(let clocks)? = save.fields["cairn_clocks"] else { continue }
      #expect(clocks.contains("\(World.start + Int64(seconds) * 1_000)"))
    }
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|3|3"])
  }

  @Test("U1 3.2 rows of a large batch are edited, deleted and put back while it is under way")
  func largeBatch() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('r005', 'base', NULL), ('r140', 'base', NULL)")
    let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)"
    try a.sql(
      "\(numbers) INSERT OR IGNORE INTO lists SELECT printf('r%03d', i), 'new', i FROM n; UPDATE lists SET color = 'a'",
      at: 10)
    a.meanwhile {
      try $0.sql(
        """
        UPDATE lists SET title = 'edited' WHERE id LIKE '%3'; DELETE FROM lists WHERE id LIKE '%5';
        INSERT INTO lists VALUES ('r015', 'back', NULL), ('r015b', 'between', NULL)
        """, at: 20)
    }
    try a.sync()
    try world.expectQuiet()
    let rows = try a.picture("SELECT * FROM lists ORDER BY id")
    #expect(try rows.count == 137 && b.picture("SELECT * FROM lists ORDER BY id") == rows)
    #expect(try a.picture("SELECT DISTINCT title, color FROM lists WHERE id LIKE '%3'") == ["edited|a"])
    #expect(try a.scalar("SELECT count(*) FROM cairn_record WHERE pending > 0") == .integer(0))
    #expect(try world.serverNames().filter { $0.hasPrefix("lists:") }.count == 137)
  }

  @Test("U3 a delete goes with the tag that is known and its own clock; one that meets a newer version is refused")
  func conditionalDelete() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'x', NULL), ('l2', 'y', NULL)")
    let tags = try world.serverRecords().mapValues(\.changeTag)
    try b.sql("UPDATE lists SET title = 'later' WHERE id = 'l2'", at: 40)
    try b.sync()
    try a.sql("DELETE FROM lists", at: 30)
    try a.sync(.sendOnly)
    let deletes = a.cloud.sentOperations.filter(\.kind.isDelete)
    #expect(Set(deletes.prefix(2).map(\.record.id.name)) == ["lists:l1", "lists:l2"])
    for delete in deletes.prefix(2) {
      #expect(delete.kind == .delete && delete.record.changeTag == tags[delete.record.id.name] ?? nil)
      #expect(delete.deleteTime == World.start + 30_000)
    }
    try world.expectQuiet()
    #expect(try a.picture("SELECT * FROM lists") == ["l2|later|∅"])
  }

  @Test("F7 U6 of three rows one has never been in a batch: its delete is not sent, those of the rows beside it are")
  func neverTaken() throws {
    let (world, a, _) = try two(
      "", schema: "CREATE TABLE n(id INTEGER PRIMARY KEY); CREATE TABLE x(id TEXT PRIMARY KEY NOT NULL, n REFERENCES n)"
    )
    try a.sql("PRAGMA foreign_keys = OFF; INSERT INTO x VALUES ('a', NULL), ('b', 99), ('c', NULL)", at: 10)
    a.failModify(.lostAnswer)
    try a.sync(.sendOnly)
    #expect(try world.serverNames() == ["x:a", "x:c"])
    _ = a.sentSinceLastAsked()
    a.restart()
    try a.sql("DELETE FROM x", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete x:a", "delete x:c"])
    try world.expectQuiet()
  }

  @Test("U3 a record whose first save was never answered is deleted without condition")
  func unconditionalDelete() throws {
    let (world, a, b) = try two("")
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL)", at: 10)
    a.failModify(.lostAnswer)
    try a.sync(.sendOnly)
    #expect(try world.serverNames() == ["lists:l1"])
    _ = a.sentSinceLastAsked()
    try a.sql("DELETE FROM lists", at: 20)
    world.clock.advance(seconds: 60)
    try a.sync(.sendOnly)
    let delete = try #require(a.operations("lists:l1").first)
    #expect(delete.kind.isDelete && delete.record.changeTag == nil)
    try world.expectQuiet()
    #expect(try world.serverNames() == [] && b.rows("SELECT * FROM lists").isEmpty)
  }

  @Test(
    "U4 U6 a child's delete is refused and its parent's is not: nothing is lost or comes back by itself",
    arguments: ["items", "kept"])
  func refusedChild(table: String) throws {
    let (world, a, b) = try two(
      "INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO \(table)(id, list_id) VALUES ('c', 'l1')")
    world.alterations.refuse {
      $0.record.id.name == "\(table):c" && $0.kind.isDelete ? CloudError(.accessDenied, "no") : nil
    }
    try a.sql("DELETE FROM \(table); DELETE FROM lists", at: 30)
    try a.sync()
    #expect(a.sentSinceLastAsked().prefix(2) == ["delete \(table):c", "delete lists:l1"])
    #expect(try a.status().reasons.map(\.reason) == [.permission])
    try b.sync()
    try a.sync()
    #expect(try a.rows("SELECT * FROM \(table)").isEmpty)
    world.alterations.refuse(nil)
    try world.expectQuiet()
    #expect(try b.rows("SELECT * FROM \(table)").isEmpty)
    // A row that RESTRICT holds its parent for keeps it on the other device, until the delete goes through (M12).
    #expect(try a.picture("SELECT id FROM lists") == (table == "kept" ? ["l1"] : []))
  }

  @Test(
    "U7 a first upload that fails leaves the record New: the next save is a create with all fields",
    arguments: [
      FaultInjector.Fault.lostRequest, .throttled(retryAfter: 1), .quotaExceeded,
      .error(CloudError(.accessDenied, "no")), .error(CloudError(.internalError, "oops")),
    ])
  func failedFirstUpload(_ fault: FaultInjector.Fault) throws {
    let (world, a, b) = try two("", schema: Schema.lists)
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', 'red')", at: 10)
    a.failModify(fault)
    try a.sync(.sendOnly)
    #expect(try a.state("l1").hasPrefix("New"))
    _ = a.sentSinceLastAsked()
    try a.sql("UPDATE lists SET title = 'y'", at: 20)
    a.restart()
    #expect(try a.state("l1").hasPrefix("New"))
    world.clock.advance(seconds: 7_200)
    try a.sync()
    let save = try #require(a.operations("lists:l1").last)
    #expect(save.kind == .create && save.record.changeTag == nil)
    #expect(save.record.fields["title"] == .string("y") && save.record.fields["color"] == .string("red"))
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|y|red"])
  }

  @Test("U8 rows that were there before are taken up in batches: no user trigger fires, all have the time of init")
  func takeUp() throws {
    let world = try World(entriesPerRequest: 2_000)
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE fired(what);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO t SELECT 'r' || i, i FROM n;
        CREATE TRIGGER i AFTER INSERT ON t BEGIN INSERT INTO fired VALUES ('insert'); END;
        CREATE TRIGGER u AFTER UPDATE ON t BEGIN INSERT INTO fired VALUES ('update'); END;
        CREATE TRIGGER d AFTER DELETE ON t BEGIN INSERT INTO fired VALUES ('delete'); END;
        """)
    world.clock.advance(seconds: 70)
    let (commits, failure) = CommitBorders.dying(at: .max, in: world.folder) { () throws in
      try a.prepare(.create, tables: ["t"])
    }
    #expect(failure == nil)
    #expect(commits >= 3)
    #expect(try a.scalar("SELECT count(*) FROM fired") == .integer(0))
    #expect(try a.status().pending == 5_000)
    #expect(try a.scalar("SELECT count(DISTINCT clock) FROM \(RecordView.sql)") == .integer(1))
    try a.sync()
    #expect(try world.serverNames().count == 5_000)
    #expect(try world.clocks("t:r1") == ["id": 70, "v": 70] && world.clocks("t:r5000") == ["id": 70, "v": 70])
    #expect(try a.scalar("SELECT count(*) FROM fired") == .integer(0))
  }

  @Test("TS53 a file with a note is a reference on the server, and no integer")
  func reference() throws {
    let (world, a, b) = try two("INSERT INTO notes(id, title) VALUES (41, 'other'), (42, 'mine')")
    try a.sql("INSERT INTO files VALUES (7, 42, 'f')", at: 10)
    try a.sync()
    let records = try world.serverRecords()
    let file = try #require(records.values.first { $0.type == "files" })
    let note = try #require(records.values.first { $0.fields["title"] == .string("mine") })
    guard case .reference(let reference)? = file.fields["note_id"] else {
      Issue.record("note_id is \(String(describing: file.fields["note_id"]))")
      return
    }
    #expect(reference.recordName == note.id.name)
    #expect(!file.fields.contains { $0.value == .int64(42) })
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM files JOIN notes ON notes.id = note_id") == ["mine"])
  }

  @Test("TS5 a generated column is neither sent nor applied; what a foreign client set stays on the server")
  func generatedColumn() throws {
    let (world, a, b) = try two(
      "INSERT INTO t VALUES ('r', 2)",
      schema: """
        CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, twice AS (n * 2), thrice AS (n * 3) STORED)
        """)
    #expect(try world.serverRecords()["t:r"]?.fields["twice"] == nil)
    let cloud = try world.server.cloud(user: world.user)
    var record = try #require(try world.serverRecords()["t:r"])
    record.fields = ["twice": .string("foreign"), "thrice": .string("foreign")]
    for case .failed(_, let error) in try cloud.modify(
      in: world.zone, [RecordOperation(.update, record)], atomic: false)
    {
      Issue.record("\(error)")
    }
    try world.expectConverged()
    try a.sql("UPDATE t SET n = 5", at: 10)
    _ = a.sentSinceLastAsked()
    try a.sync()
    let save = try #require(a.operations("t:r").first)
    #expect(!save.record.fields.contains { $0.name == "twice" || $0.name == "thrice" })
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["r|5|10|15"])
    let fields = try #require(try world.serverRecords()["t:r"]?.fields)
    #expect(fields["twice"] == .string("foreign") && fields["thrice"] == .string("foreign"))
    let clocks = try world.clocks("t:r")
    #expect(clocks["id"] == 1 && clocks["n"] == 10)
  }

  @Test("TS192 U6 a row that can't be read waits with its reason, the others are sent; sent once it is readable")
  func unreadableRow() throws {
    let world = try World()
    let a = try world.device("A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v)", journal: "DELETE")
    try a.prepare(.create)
    try a.sync()
    try a.sql("INSERT INTO t VALUES ('a', 'x'), ('bad', hex(zeroblob(20000))), ('c', 'y')", at: 10)
    #expect(try a.status().pending == 3)
    a.restart()
    let page = try #require(
      a.scalar("SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'overflow' ORDER BY path LIMIT 1")?
        .integerForTests)
    let size = try #require(a.scalar("PRAGMA page_size")?.integerForTests)
    var good: [UInt8] = []
    try a.reconnect { good = try overwrite(a.path, at: (page - 1) * size, [0x7f, 0xff, 0xff, 0xff]) }
    let report = try a.sync()
    #expect(report.result.failure == nil, "\(String(describing: report.result.failure))")
    #expect(try world.serverNames() == ["t:a", "t:c"])
    let status = try a.status()
    #expect(status.pending == 1 && status.reasons.map(\.reason) == [.internal])
    a.restart()
    try a.reconnect { _ = try overwrite(a.path, at: (page - 1) * size, good) }
    try a.sync()
    #expect(try world.serverNames() == ["t:a", "t:bad", "t:c"])
    try world.expectConverged()
  }

  /// Writes bytes into a file and returns those that stood there.
  private func overwrite(_ path: String, at offset: Int64, _ bytes: [UInt8]) throws -> [UInt8] {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? file.close() }
    try file.seek(toOffset: UInt64(offset))
    let before = try file.read(upToCount: bytes.count) ?? Data()
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: Data(bytes))
    return Array(before)
  }
}
