import Foundation
import ProcessSupport
import Testing

/// Disks that are full or read-only.
@Suite(.enabled(if: SmallDisk.obstacle == nil, "a small disk can't be mounted here"))
struct DiskTests {
  private static let rows = 6_000
  private static let fill = """
    CREATE TABLE t(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES t(id), name TEXT);
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < \(rows))
    INSERT INTO t SELECT x, nullif(x / 2, 0), 'row ' || x || hex(randomblob(60)) FROM c;
    """

  @Test("the database's disk is full: exit 1, one sentence with a remedy, file unharmed, works when there is room")
  func fullForTheDatabase() throws {
    let world = try ProcessWorld()
    let source = try world.database("a.db", Self.fill)
    try world.prepare(source, "create")
    try world.sync(source)
    let disk = try SmallDisk(megabytes: 1)
    let path = disk.file("b.db")
    try world.prepare(path, "join")
    let result = try world.run("sync", path)
    #expect(result.status == 1 && result.error.split(separator: "\n").count == 1, "\(result)")
    #expect(result.error.contains("full") && result.error.contains("free some space"), "\(result)")
    try world.expectHealthy(path)
    #expect(try world.run("status", path).status == 0)
    try disk.resize(megabytes: 40)
    try world.syncUntilQuiet(path)
    #expect(
      try world.query("SELECT name FROM t ORDER BY 1;", in: path)
        == world.query("SELECT name FROM t ORDER BY 1;", in: source))
    try world.expectHealthy(path)

    // A file that can't take capture is left as it was.
    let other = disk.file("c.db")
    try world.query(Self.fill, in: other)
    let before = try world.query(".dump", in: other)
    try disk.fill()
    for mode in ["create", "join", "merge"] {
      expectRefusal(
        try world.run(world.initWords(other, "--mode", mode, "--zone", mode == "create" ? "z" : "cairn")), 1, "full",
        "free some space")
    }
    expectRefusal(try world.run("deinit", path), 1, "full", "free some space")
    try disk.free()
    #expect(try world.query(".dump", in: other) == before)
    try world.prepare(other, "create", zone: "z")
    #expect(try world.sync(other)["saved"] as? Int == Self.rows)
  }

  @Test("the server's disk is full: everything stays pending, nothing is stored twice, goes on when there is room")
  func fullForTheServer() throws {
    let disk = try SmallDisk(megabytes: 2)
    let world = try ProcessWorld(data: disk.file("server"))
    let path = try world.database("a.db", Self.fill)
    try world.prepare(path, "create")
    let report = try world.sync(path, codes: [3])
    #expect((report["pending"] as? Int ?? 0) > 0)
    #expect(world.server.isRunning() && world.server.error.contains("full"))
    try world.expectHealthy(path)
    try disk.resize(megabytes: 60)
    try world.syncUntilQuiet(path)
    #expect(try world.recordNames().count == Self.rows)
    let b = world.folder.file("b.db")
    try world.prepare(b, "join")
    try world.syncUntilQuiet(b)
    #expect(try world.query("SELECT count(*) FROM t;", in: b) == "\(Self.rows)\n")
    try world.stopServer(SIGTERM)
    try world.expectHealthy(world.data + "/cairn.db")
  }

  @Test("a watch says that the disk is full and goes on when there is room", .timeLimit(.minutes(10)))
  func watching() throws {
    let world = try ProcessWorld()
    let disk = try SmallDisk(megabytes: 2)
    let path = try {
      let path = disk.file("w.db"); try world.query("CREATE TABLE t(id INTEGER PRIMARY KEY, v);", in: path); return path
    }()
    let other = world.folder.file("o.db")
    try world.prepare(path, "create")
    try world.prepare(other, "join")
    let watch = try world.start("sync", path, "--watch")
    _ = try watch.waitForLine("in sync")
    try disk.fill()
    try world.query("INSERT INTO t(v) SELECT hex(randomblob(500)) FROM pragma_table_info('cairn_record');", in: other)
    try world.sync(other)
    let hasSpoken = eventually { watch.output.contains("full") || !watch.isRunning() }
    #expect(hasSpoken && watch.isRunning(), "\(watch.output) \(watch.error)")
    try disk.free()
    let hasArrived = try eventually {
      try world.query("SELECT count(*) FROM t;", in: path) == world.query("SELECT count(*) FROM t;", in: other)
    }
    #expect(hasArrived, "\(watch.output) \(watch.error)")
    watch.signal(SIGTERM)
    #expect(try watch.waitUntilExit().status == 0)
    try world.expectHealthy(path)
  }

  @Test("a read-only disk: reports work; every other command names the file and the remedy; nothing changes")
  func readOnly() throws {
    let world = try ProcessWorld()
    let disk = try SmallDisk(megabytes: 8)
    let path = disk.file("a.db")
    try world.query("CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a');", in: path)
    try world.prepare(path, "create")
    try disk.setReadOnly(true)
    #expect(try world.status(path)["pending"] as? Int == 1)
    for words in [["parked"], ["log"]] { #expect(try world.run(words + ["--json", path]).status == 0) }
    for words in [["sync"], ["parked", "--retry"], ["deinit"], ["doctor"], ["sync", "--watch"]] {
      expectRefusal(try world.run(words + ["--json", path]), 1, "a.db", "writable")
    }
    expectRefusal(try world.run(world.initWords(disk.file("new.db"), "--mode", "join")), 1, "new.db", "writ")
    try disk.setReadOnly(false)
    #expect(try world.sync(path)["saved"] as? Int == 1)
  }
}
