import CSQLite
import CairnRecords
import CairnSQLite
import Testing

@Suite("Capture of programs, triggers and large tables (tables 8.2)")
struct CaptureProgramsTests {
  private func two(_ base: String, schema: String = Schema.scenarios) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, devices[0], devices[1])
  }

  @Test("TS27 T22 a trigger that sets updated_at of the edited row: both fields are sent")
  func triggerOnSameRow() throws {
    let (world, a, b) = try two(
      "INSERT INTO t VALUES ('k', 'x', 0)",
      schema: """
        CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v, updated_at);
        CREATE TRIGGER touch AFTER UPDATE OF v ON t WHEN (SELECT applying FROM cairn_state) = 0
          BEGIN UPDATE t SET updated_at = updated_at + 1 WHERE id = NEW.id; END
        """.replacing("(SELECT applying FROM cairn_state) = 0", with: "NEW.updated_at = OLD.updated_at"))
    try a.sql("UPDATE t SET v = 'y'", at: 10)
    try a.sync()
    #expect(try world.serverRecords()["t:k"]?.fields["v"] == .string("y"))
    #expect(try a.picture("SELECT * FROM t") == ["k|y|1"])
    #expect(try world.clocks("t:k")["updated_at"] ?? 0 >= 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT v FROM t") == ["y"])
  }

  @Test("TS28 T3 a trigger that tests `applying` counts local edits only")
  func applyingTest() throws {
    let schema = """
      CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE counts(n); INSERT INTO counts VALUES (0)
      """
    let world = try World()
    let devices = try ["A", "B"].map { try world.device($0, schema: schema) }
    for (i, device) in devices.enumerated() {
      try device.prepare(i == 0 ? .create : .join, exclude: ["counts"])
      try device.sql(
        """
        CREATE TRIGGER count AFTER INSERT ON t WHEN (SELECT applying FROM cairn_state) = 0
          BEGIN UPDATE counts SET n = n + 1; END
        """)
    }
    try devices[0].sql("INSERT INTO t VALUES ('a', 1), ('b', 2)", at: 10)
    try world.expectConverged()
    #expect(try devices[0].scalar("SELECT n FROM counts") == .integer(2))
    #expect(try devices[1].scalar("SELECT n FROM counts") == .integer(0))
    #expect(try devices[1].scalar("SELECT count(*) FROM t") == .integer(2))
  }

  @Test("TS29 T24 a write through ATTACH is captured in the attached file")
  func attached() throws {
    let (world, a, b) = try two("")
    let other = try Connection(path: ":memory:", mode: .create)
    try other.execute("ATTACH '\(a.path)' AS other; INSERT INTO other.lists VALUES ('l1', 'x', NULL)")
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|x|∅"])
  }

  @Test("TS30 T24 two programs that write in turn")
  func twoPrograms() throws {
    let (world, a, b) = try two("")
    let other = try a.connection()
    for i in 0..<20 {
      try a.sql("INSERT INTO lists VALUES ('a\(i)', NULL, NULL)")
      try other.execute("INSERT INTO lists VALUES ('b\(i)', NULL, NULL)")
      if i % 5 == 0 { try a.sync() }
    }
    try world.expectConverged()
    #expect(try b.scalar("SELECT count(*) FROM lists") == .integer(40))
  }

  @Test("TS31 nothing of an open transaction is sent before its COMMIT, all after")
  func openTransaction() throws {
    let (world, a, b) = try two("")
    let other = try a.connection()
    try other.execute("BEGIN IMMEDIATE; INSERT INTO lists VALUES ('l1', 'x', NULL), ('l2', 'y', NULL)")
    let blocked = try Connection(path: a.path, busyTimeout: 0)
    #expect(throws: SQLiteError.self) { try blocked.execute("BEGIN IMMEDIATE") }
    #expect(try world.serverNames() == [])
    try other.execute("COMMIT")
    try world.expectConverged()
    #expect(try b.scalar("SELECT count(*) FROM lists") == .integer(2))
  }

  @Test("TS32 T6 of 130 columns exactly the changed ones move")
  func manyColumns() throws {
    let columns = (1...130).map { "c\($0)" }
    let (world, a, b) = try two(
      "INSERT INTO t(id) VALUES ('k')",
      schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(columns.joined(separator: ", ")))")
    try a.sql("UPDATE t SET c1 = 1, c63 = 2, c64 = 3, c65 = 4, c130 = 5", at: 10)
    try world.expectConverged()
    let moved = try world.clocks("t:k").filter { $0.value == 10 }.keys.sorted()
    #expect(moved == ["c1", "c130", "c63", "c64", "c65"])
    #expect(try b.picture("SELECT c1, c63, c64, c65, c130, c2 FROM t") == ["1|2|3|4|5|∅"])
    // REPLACE sees the same columns.
    try a.sql("REPLACE INTO t(id, c1, c63, c64, c65, c129, c130) VALUES ('k', 1, 2, 3, 9, 6, 5)", at: 20)
    try world.expectConverged()
    #expect(try world.clocks("t:k").filter { $0.value == 20 }.keys.sorted() == ["c129", "c65"])
  }

  @Test("TS33 T31 a BLOB that is written in place after an UPDATE to zeroblob")
  func incrementalBlob() throws {
    let (world, a, b) = try two(
      "INSERT INTO lists VALUES ('l1', NULL, NULL); INSERT INTO covers VALUES ('l1', x'01')")
    let program = try a.connection()
    try program.execute("BEGIN; UPDATE covers SET image = zeroblob(9)")
    var blob: OpaquePointer?
    #expect(sqlite3_blob_open(program.handle, "main", "covers", "image", 1, 1, &blob) == SQLITE_OK)
    let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    #expect(sqlite3_blob_write(blob, bytes, 9, 0) == SQLITE_OK)
    sqlite3_blob_close(blob)
    try program.execute("COMMIT")
    try world.expectConverged()
    #expect(try b.scalar("SELECT image FROM covers") == .blob(bytes))
  }

  @Test("TS38 T9 T25 VACUUM after deletes, then an edit: the right record is pending, and only that")
  func vacuum() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'a', NULL), ('l2', 'b', NULL), ('l3', 'c', NULL)")
    try a.sql("DELETE FROM lists WHERE id = 'l1'", at: 10)
    try a.sync()
    _ = a.sentSinceLastAsked()
    try a.sql("VACUUM; REINDEX")
    #expect(try a.status().pending == 0)
    try a.sql("UPDATE lists SET title = 'C' WHERE id = 'l3'", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:l3"])
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM lists") == ["l2|b", "l3|C"])
  }

  @Test("TS39 T18 T21 a tag renamed: red and its link gone, rot and its link there")
  func renamedTag() throws {
    let (world, a, b) = try two(
      """
      INSERT INTO lists VALUES ('l1', NULL, NULL); INSERT INTO items(id, list_id) VALUES ('i1', 'l1');
      INSERT INTO tags VALUES ('red'); INSERT INTO item_tags VALUES ('i1', 'red')
      """)
    try a.sql("UPDATE tags SET name = 'rot'", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM item_tags") == ["i1|rot"])
    #expect(try b.picture("SELECT * FROM tags") == ["rot"])
    #expect(try world.serverRecords().count == 4)
  }

  @Test("TS40 one transaction a → b → a: one save, all fields at the last time")
  func thereAndBack() throws {
    let (world, a, _) = try two("INSERT INTO lists VALUES ('a', 'x', NULL)")
    try a.sql("BEGIN; UPDATE lists SET id = 'b'; UPDATE lists SET id = 'a'; COMMIT", at: 10)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:a"])
    #expect(Set(try world.clocks("lists:a").values).count == 1)
    #expect(try world.clocks("lists:a")["title"] ?? 0 >= 10)
    try world.expectConverged()
  }

  @Test("TS41 F4 an edit away and back is an edit")
  func awayAndBack() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', 'w', NULL)")
    try a.sql("UPDATE lists SET title = 'x'", at: 10)
    try a.sql("UPDATE lists SET title = 'y'", at: 20)
    try b.sql("UPDATE lists SET title = 'z'", at: 25)
    try b.sync()
    try a.sql("UPDATE lists SET title = 'x'", at: 30)
    try world.expectConverged()
    #expect(try b.scalar("SELECT title FROM lists") == .text("x"))
  }

  @Test("TS42 T23 UPDATE OR FAIL that stops midway: the earlier rows are captured")
  func orFail() throws {
    let (world, a, b) = try two("INSERT INTO slots VALUES ('a', 1, ''), ('b', 5, ''), ('c', 6, '')")
    #expect(throws: SQLiteError.self) { try a.sql("UPDATE OR FAIL slots SET pos = CASE id WHEN 'a' THEN 2 ELSE 6 END") }
    try world.expectConverged()
    #expect(try b.picture("SELECT id, pos FROM slots") == ["a|2", "b|5", "c|6"])
  }
}
