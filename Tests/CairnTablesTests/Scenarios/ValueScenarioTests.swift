import CairnRecords
import CairnSQLite
import Testing

@Suite("Names, keys and values (tables 8.3)")
struct ValueScenarioTests {
  @Test("TS43 values of a typeless column arrive with class and bytes")
  func exactValues() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v)")
    try devices[0].sql(
      """
      INSERT INTO t VALUES ('a', 9007199254740993), ('b', -9007199254740993), ('c', 9223372036854775807),
        ('d', -9223372036854775807 - 1), ('e', 0.1), ('f', 9e999), ('g', -9e999), ('h', ''), ('i', x''), ('j', NULL),
        ('k', 'a' || char(0) || 'b'), ('l', CAST(x'ff61' AS TEXT)), ('m', '😀e' || char(769)), ('n', 1), ('o', 1.0), ('p', '1')
      """, at: 10)
    try world.expectConverged()
    let query = "SELECT id, typeof(v), hex(v), quote(v) FROM t ORDER BY id"
    #expect(try devices[1].picture(query) == devices[0].picture(query))
    #expect(try devices[1].rows("SELECT v FROM t ORDER BY id") == devices[0].rows("SELECT v FROM t ORDER BY id"))
    #expect(try devices[1].scalar("SELECT typeof(v) FROM t WHERE id = 'o'") == .text("real"))
  }

  @Test("TS44 NaN is NULL on both")
  func notANumber() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], base: "INSERT INTO lists VALUES ('l1', 'x', NULL)")
    let program = try devices[0].connection()
    try program.run("UPDATE lists SET title = ?", .real(.nan))
    try world.expectConverged()
    for device in devices { #expect(try device.scalar("SELECT typeof(title) FROM lists") == .text("null")) }
  }

  @Test("TS47 columns with odd names arrive in the right columns; wire names as in 1.3")
  func oddColumns() throws {
    let names = ["recordID", "_id", "größe", "first name", "1st", "tax_x", "parent", "c_note"]
    let world = try World()
    let quoted = names.map { "\"\($0)\"" }.joined(separator: ", ")
    let devices = try world.devices(
      ["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(quoted))",
      base: "INSERT INTO t VALUES ('k', 1, 2, 3, 4, 5, 6, 7, 8)")
    try devices[0].sql("UPDATE t SET \"größe\" = 30", at: 10)
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT \(quoted) FROM t") == ["1|2|30|4|5|6|7|8"])
    #expect(
      try Set(world.clocks("t:k").keys) == [
        "c__id", "c_1st", "c_c_note", "c_parent", "c_recordid", "first_x20name", "gr_xc3_xb6_xc3_x9fe", "id",
        "tax_x5fx",
      ])
  }

  @Test("TS48 tables with odd names")
  func oddTables() throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"],
      schema: """
        CREATE TABLE "my:täble"(id TEXT PRIMARY KEY NOT NULL, "select");
        CREATE TABLE "order"("group" INTEGER PRIMARY KEY, "a""b" UNIQUE)
        """,
      base: "INSERT INTO \"my:täble\" VALUES ('k', 1); INSERT INTO \"order\" VALUES (1, 'x')")
    try devices[0].sql("UPDATE \"my:täble\" SET \"select\" = 2; REPLACE INTO \"order\" VALUES (2, 'x')", at: 10)
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT * FROM \"my:täble\"") == ["k|2"])
    #expect(try devices[1].picture("SELECT \"a\"\"b\" FROM \"order\"") == ["x"])
  }

  @Test("TS49 an explicit NULL beats an older value; a field that an older schema never set takes the default")
  func nullAndDefault() throws {
    let world = try World()
    let a = try world.device("A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v)")
    let b = try world.device("B", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v, w DEFAULT 7)")
    try a.prepare(.create)
    try a.sql("INSERT INTO t VALUES ('k', 1)", at: 1)
    try a.sync()
    try b.prepare(.join)
    try b.sync()
    try a.sql("UPDATE t SET v = NULL", at: 10)
    try a.sync()
    try b.sync()
    #expect(try b.picture("SELECT * FROM t") == ["k|∅|7"])
    #expect(try b.status().pending == 0)
  }

  @Test("TS50 long keys and keys of odd characters each are a row of their own")
  func oddKeys() throws {
    let long = String(repeating: "x", count: 299)
    let keys = [long + "a", long + "b", "a:b", "a%b", "~a", "a~", "a,b", "a b", "_a", "", "é", "e\u{301}", "A", "a"]
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: "CREATE TABLE t(k TEXT PRIMARY KEY NOT NULL, v)")
    let program = try devices[0].connection()
    for (i, key) in keys.enumerated() {
      try program.run("INSERT INTO t VALUES (?, ?)", .text(key), .integer(Int64(i)))
    }
    try world.expectConverged()
    #expect(try world.serverRecords().count == keys.count)
    #expect(try devices[1].scalar("SELECT count(*) FROM t") == .integer(Int64(keys.count)))
    try program.run("UPDATE t SET v = 'new' WHERE k = ?", .text(long + "b"))
    try program.run("DELETE FROM t WHERE k = ?", .text(long + "a"))
    try program.run("UPDATE t SET v = 'nfd' WHERE k = ?", .text("e\u{301}"))
    try program.run("DELETE FROM t WHERE k = ?", .text("é"))
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT k, v FROM t") == devices[0].picture("SELECT k, v FROM t"))
    #expect(try world.serverRecords().count == keys.count - 2)
  }

  @Test("TS51 one tag in two spellings: one row, the later spelling")
  func spelling() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"])
    try devices[0].sql("INSERT INTO tags VALUES ('Red')", at: 10)
    try devices[1].sql("INSERT INTO tags VALUES ('red')", at: 20)
    try world.expectConverged()
    for device in devices { #expect(try device.picture("SELECT * FROM tags") == ["red"]) }
    #expect(try world.serverNames() == ["tags:red"])
  }

  @Test("T18 a key spelled otherwise under NOCASE is an edit of the same record")
  func respelled() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], base: "INSERT INTO tags VALUES ('red')")
    try devices[0].sql("UPDATE tags SET name = 'RED'", at: 10)
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT * FROM tags") == ["RED"])
    #expect(try world.clocks("tags:red") == ["name": 10])
  }

  @Test("1.2 names that are hashed: of a table with a long name, of short keys that are escaped, of hashed parents")
  func hashedNames() throws {
    let long = String(repeating: "t", count: 150)
    let world = try World()
    let d = try world.devices(
      ["A", "B"],
      schema: """
        CREATE TABLE \(long)(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE "сотрудники_отделов"(id TEXT PRIMARY KEY NOT NULL, v);
        CREATE TABLE p(id TEXT PRIMARY KEY NOT NULL, v);
        CREATE TABLE lk(p TEXT NOT NULL REFERENCES p, n INTEGER NOT NULL, v, PRIMARY KEY (p, n));
        CREATE TABLE \(long)m(id INTEGER PRIMARY KEY, v);
        CREATE TABLE pair(a INTEGER NOT NULL REFERENCES \(long)m, b INTEGER NOT NULL REFERENCES \(long)m, v, PRIMARY KEY (a, b))
        """)
    let percent = String(repeating: "%", count: 35)
    let parent = String(repeating: "p", count: 300)
    try d[0].sql(
      """
      INSERT INTO \(long) VALUES ('k\(percent)', 1), ('plain', 1);
      INSERT INTO "сотрудники_отделов" VALUES ('двадцатьбуквключаабв', 1);
      INSERT INTO p VALUES ('\(parent)', 1), ('short', 1); INSERT INTO lk VALUES ('\(parent)', 5, 1), ('short', 5, 1);
      INSERT INTO \(long)m VALUES (1, 1), (2, 1); INSERT INTO pair VALUES (1, 2, 1), (2, 2, 1)
      """, at: 10)
    try world.expectConverged()
    #expect(try d[1].parked().isEmpty)
    try d[1].sql(
      """
      UPDATE \(long) SET v = 2; UPDATE "сотрудники_отделов" SET v = 2; UPDATE lk SET v = 2; UPDATE pair SET v = 2;
      DELETE FROM \(long) WHERE id = 'plain'
      """, at: 20)
    try world.expectConverged()
    for table in [long, "сотрудники_отделов", "lk", "pair"] {
      #expect(try d[0].picture("SELECT DISTINCT v FROM \"\(table)\"") == ["2"], "\(table)")
    }
    try d[0].sql("DELETE FROM lk; DELETE FROM pair; DELETE FROM \(long)", at: 30)
    try world.expectConverged()
    #expect(try d[1].scalar("SELECT (SELECT count(*) FROM lk) + (SELECT count(*) FROM pair)") == .integer(0))
  }

  @Test(
    "1.2 two rows under two spellings of one NOCASE parent have one name: one is synced, the other waits, and syncs go on"
  )
  func twoSpellings() throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B"],
      schema: """
        CREATE TABLE p(id TEXT PRIMARY KEY NOT NULL COLLATE NOCASE);
        CREATE TABLE lk(p TEXT NOT NULL REFERENCES p, n INTEGER NOT NULL, v, PRIMARY KEY (p, n))
        """)
    try d[0].sql(
      "INSERT INTO p VALUES ('k22'); INSERT INTO lk VALUES ('k22', 5, 'a'), ('K22', 5, 'b'), ('k22', 6, 'c')", at: 10)
    for _ in 0..<3 {
      #expect(try d[0].sync().result.failure == nil)
      #expect(try d[1].sync().result.failure == nil)
    }
    #expect(
      try d[0].scalar("SELECT count(*) FROM lk") == .integer(3) && d[1].scalar("SELECT count(*) FROM lk") == .integer(2)
    )
    let reasons = try d[0].status().reasons.map(\.reason)
    #expect(reasons == [.rejected])
  }
}
