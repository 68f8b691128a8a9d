import CairnTesting
import Foundation
import ProcessSupport
import Testing

/// Large values between real processes (tables TS45, TS61, TS194).
@Suite struct AssetTests {
  private static let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, name TEXT, photo BLOB, story TEXT);"
  private static let picture =
    "SELECT id, name, hex(substr(photo, -40)), length(photo), length(story) FROM t ORDER BY 1;"

  /// Files of assets that the server keeps, and those that it receives.
  private func files(_ world: ProcessWorld) throws -> (kept: Int, incoming: Int) {
    let all = try FileManager.default.subpathsOfDirectory(atPath: world.data + "/assets")
      .filter { $0.contains("/") }
    let incoming = all.filter { $0.hasPrefix("incoming/") }.count
    return (all.count - incoming, incoming)
  }

  @Test("TS45, TS61, TS194: 5 MB values, connections cut, client and server killed", .timeLimit(.minutes(10)))
  func everythingBreaks() throws {
    let seed = UInt64(ProcessInfo.processInfo.environment["CAIRN_SEED"] ?? "5") ?? 5
    let random = SeededRandomness(seed: seed)
    let world = try ProcessWorld()
    let proxy = try CuttingProxy(to: world.url, seed: seed)
    defer { proxy.stop() }
    proxy.cut(percent: 0)
    let a = try world.database(
      "a.db",
      Self.schema + """
        INSERT INTO t VALUES ('big', 'one', randomblob(5000000), printf('%.*c', 5000000, 'x'));
        INSERT INTO t VALUES ('p1', 'p', randomblob(700000), NULL), ('p2', 'p', randomblob(700000), 'short'),
          ('p3', 'p', randomblob(100000), printf('%.*c', 90000, 'y'));
        """)
    let b = world.folder.file("b.db")
    #expect(try world.run(world.initWords(a, "--mode", "create", url: proxy.url)).status == 0)
    #expect(try world.run(world.initWords(b, "--mode", "join", url: proxy.url)).status == 0)
    for round in 0..<8 {
      proxy.cut(percent: round % 2 == 0 ? 40 : 0)
      let path = round % 3 == 2 ? b : a
      let process = try world.start("sync", path)
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32(100_000 + random.below(1_500_000)))
      if round % 4 == 1 {
        try world.stopServer()
        process.signal(SIGKILL)
        try process.waitUntilExit()
        try world.startServer()
      } else {
        process.signal(SIGKILL)
        try process.waitUntilExit()
      }
      try world.query(
        "UPDATE t SET name = 'r\(round)', photo = randomblob(\(300_000 + round)) WHERE id = 'p\(1 + round % 3)';",
        in: path)
      try world.expectHealthy(path)
    }
    proxy.cut(percent: 0)
    try world.syncUntilQuiet(a, b, rounds: 30)
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b), "seed \(seed)")
    #expect(try world.query("SELECT count(*) FROM t WHERE id LIKE 'big' AND length(photo) = 5000000;", in: b) == "1\n")
    #expect(try world.query("SELECT count(*) FROM cairn_asset;", in: b) == "0\n")
    // A restart removes what was half received, and nothing that is wanted.
    try world.stopServer()
    try world.startServer()
    #expect(try files(world).incoming == 0)
    let c = world.folder.file("c.db")
    try world.prepare(c, "join")
    try world.syncUntilQuiet(c)
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: c), "seed \(seed)")
  }

  @Test("the server's disk is full: the change stays pending, the error says why, and it goes on when there is room")
  func fullServer() throws {
    let disk = try SmallDisk(megabytes: 6)
    let world = try ProcessWorld(data: disk.file("server"))
    let a = try world.database(
      "a.db", Self.schema + "INSERT INTO t VALUES ('k', 'one', randomblob(9000000), NULL), ('l', 'two', NULL, NULL);")
    try world.prepare(a, "create")
    let first = try world.run("sync", "--json", "--", a)
    #expect([3, 4].contains(first.status), "\(first)")
    #expect(try world.status(a)["pending"] as? Int ?? 0 > 0)
    #expect(try world.run("log", a).output.contains("The server's disk is full"))
    #expect(world.server.isRunning() && world.server.error.contains("disk is full"))
    #expect(try files(world).incoming == 0)
    try disk.resize(megabytes: 60)
    // The server has said how long to wait.
    let limit = ContinuousClock.now + .seconds(30)
    while try world.status(a)["pending"] as? Int != 0, ContinuousClock.now < limit {
      try world.sync(a, codes: [0, 3])
    }
    #expect(try world.status(a)["pending"] as? Int == 0)
    let b = world.folder.file("b.db")
    try world.prepare(b, "join")
    try world.syncUntilQuiet(b)
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
  }
}
