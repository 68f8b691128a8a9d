import Foundation
import ProcessSupport
import Testing

/// Files, names and schemas that few have.
@Suite struct OddDatabaseTests {
  private static let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('a', 1);"

  /// A second device that takes the zone.
  private func join(_ world: ProcessWorld, _ name: String, _ zone: String) throws -> String {
    let path = world.folder.file(name)
    try world.prepare(path, "join", zone: zone)
    try world.sync(path, codes: [0, 3])
    return path
  }

  @Test("files with odd names, relative paths and symbolic links")
  func fileNames() throws {
    let world = try ProcessWorld()
    for (index, name) in ["with space.db", "ünï—😀.db", "-x.db", "a'b\".db", "100%?#.db", "file:x.db"].enumerated() {
      let path = world.folder.file(name)
      // The shell reads a name that begins with file: as a URI.
      let plain = world.folder.file("plain\(index).db")
      try world.query(Self.schema, in: plain)
      try FileManager.default.moveItem(atPath: plain, toPath: path)
      try world.prepare(path, "create", zone: "z\(index)")
      #expect(try world.sync(path)["saved"] as? Int == 1)
    }
    let link = world.folder.file("link.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "with space.db")
    #expect(try world.sync(link)["quiet"] as? Bool == true)
    let watch = try world.start("sync", link, "--watch")
    _ = try watch.waitForLine("in sync")
    expectRefusal(try world.run("sync", world.folder.file("with space.db")), 1, "by process \(watch.processID)")
    expectRefusal(try world.run("sync", "-x.db"), 2, "./-x.db")
  }

  @Test("TS48, TS50: tables named with quotes, keywords and unicode; keys of 300 bytes; rows edited on both sides")
  func namesAndKeys() throws {
    let world = try ProcessWorld()
    let long = String(repeating: "k", count: 299)
    let a = try world.database(
      "a.db",
      """
      CREATE TABLE "täb'le"(id INTEGER PRIMARY KEY, "x""y" TEXT);
      CREATE TABLE "order"("group" INTEGER PRIMARY KEY, "where" REFERENCES "order"("group"));
      CREATE TABLE "a:b%"(id BLOB PRIMARY KEY NOT NULL); CREATE TABLE k(id TEXT PRIMARY KEY NOT NULL, v);
      INSERT INTO "täb'le" VALUES (1, 'q'); INSERT INTO "order" VALUES (1, 1), (2, 1); INSERT INTO "a:b%" VALUES (x'00ff');
      INSERT INTO k VALUES ('', 0), ('\(long):', 1), ('\(long)%', 2), ('\(long)~', 3), ('\(long),', 4), ('_', 5);
      """)
    try world.prepare(a, "create")
    #expect(try world.sync(a)["saved"] as? Int == 10)
    let b = try join(world, "b.db", "cairn")
    try world.query(
      "UPDATE k SET v = 9 WHERE id = '\(long):'; DELETE FROM k WHERE id = '\(long)%'; INSERT INTO k VALUES ('\(long)x', 1);",
      in: a)
    try world.query(
      """
      DELETE FROM k WHERE id = '\(long)~'; INSERT INTO k VALUES ('\(long)~', 7); INSERT INTO k VALUES ('\(long)x', 2);
      """, in: b)
    try world.syncUntilQuiet(a, b)
    let picture =
      "SELECT * FROM k ORDER BY id; SELECT * FROM \"täb'le\"; SELECT * FROM \"order\"; SELECT hex(id) FROM \"a:b%\";"
    #expect(try world.query(picture, in: a) == world.query(picture, in: b))
    #expect(try world.query("SELECT sum(v) FROM k;", in: a) == "27\n")
    for path in [a, b] {
      let status = try world.status(path)
      #expect(status["pending"] as? Int == 0 && status["parked"] as? Int == 0, "\(status)")
    }
  }

  @Test("TS66: rows that point nowhere; no rows; no tables; WAL files left behind; a reader that does not end")
  func states() throws {
    let world = try ProcessWorld()
    let a = try world.database(
      "a.db",
      """
      CREATE TABLE p(id TEXT PRIMARY KEY NOT NULL); CREATE TABLE c(id TEXT PRIMARY KEY NOT NULL, p REFERENCES p(id));
      INSERT INTO c VALUES ('c1', 'nowhere'); INSERT INTO p VALUES ('p1'); INSERT INTO c VALUES ('c2', 'p1');
      """)
    try world.prepare(a, "create")
    #expect(try world.sync(a)["saved"] as? Int == 3)
    let b = try join(world, "b.db", "cairn")
    #expect(try world.query("SELECT * FROM c;", in: b) == "c2|p1\n")
    #expect(try world.run("parked", b).output.contains("missingParent"))

    for (name, sql) in [("empty.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL);"), ("none.db", "")] {
      let path = try world.database(name, sql)
      try world.prepare(path, "create", zone: name)
      #expect(try world.sync(path)["quiet"] as? Bool == true)
    }

    let copy = world.folder.file("copy.db")
    let wal = try world.database("wal.db", "PRAGMA journal_mode = WAL;" + Self.schema)
    let reader = try RunningProcess(
      Programs.sqlite3(),
      [wal, "INSERT INTO t VALUES ('w', 2)", "BEGIN", "SELECT * FROM t", ".shell echo ready; exec sleep 20"])
    _ = try reader.waitForLine("ready")
    for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: wal + suffix, toPath: copy + suffix) }
    try world.prepare(wal, "create", zone: "wal")
    #expect(try world.sync(wal)["saved"] as? Int == 2)
    #expect(try world.run("deinit", wal).status == 0)
    reader.signal(SIGKILL)
    try world.prepare(copy, "create", zone: "copy")
    #expect(try world.sync(copy)["saved"] as? Int == 2)
  }

  @Test("U9: a table of 1,000 columns")
  func wide() throws {
    let world = try ProcessWorld()
    let columns = (1..<1_000).map { "c\($0)" }.joined(separator: ", ")
    let a = try world.database(
      "a.db",
      "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(columns)); INSERT INTO t(id, c1, c999) VALUES ('a', 1, 2);")
    try world.prepare(a, "create")
    try world.sync(a)
    let b = try join(world, "b.db", "cairn")
    try world.query("UPDATE t SET c500 = 'x', c999 = NULL;", in: b)
    try world.syncUntilQuiet(b, a)
    #expect(try world.query("SELECT * FROM t;", in: a) == world.query("SELECT * FROM t;", in: b))
  }
}
