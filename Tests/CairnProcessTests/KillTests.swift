import CairnTesting
import Foundation
import ProcessSupport
import Testing

/// kill -9 of the client and of the server at random moments.
@Suite struct KillTests {
  private static let schema = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE tree(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree(id), name TEXT, n INTEGER);
    CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, title TEXT, n INTEGER);
    """
  private static let picture = """
    SELECT t.name, p.name, t.n FROM tree t LEFT JOIN tree p ON p.id = t.parent ORDER BY 1, 2, 3;
    SELECT * FROM note ORDER BY id;
    """

  @Test("TS194: nothing is lost and nothing stored twice, also when edits go on", .timeLimit(.minutes(10)))
  func clientAndServer() throws {
    let seed = UInt64(ProcessInfo.processInfo.environment["CAIRN_SEED"] ?? "11") ?? 11
    let random = SeededRandomness(seed: seed)
    let rows = ProcessWorld.isSoak ? 20_000 : 3_000
    let kills = ProcessWorld.isSoak ? 100 : 15
    let world = try ProcessWorld()
    let a = try world.database(
      "a.db",
      Self.schema + """
        WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < \(rows))
        INSERT INTO tree SELECT x, nullif(x / 2, 0), 'row ' || x, x FROM c;
        INSERT INTO note SELECT 'n' || id, name, n FROM tree WHERE id <= \(rows / 4);
        """)
    let b = world.folder.file("b.db")
    try world.prepare(a, "create")
    try world.prepare(b, "join")

    var added = 0
    for _ in 0..<kills {
      let path = random.chance(percent: 50) ? a : b
      let process = try world.start("sync", path)
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32(20_000 + random.below(600_000)))
      if random.chance(percent: 30) {
        try world.stopServer()
        process.signal(SIGKILL)
        try process.waitUntilExit()
        try world.startServer()
      } else {
        process.signal(SIGKILL)
        try process.waitUntilExit()
      }
      added += 1
      try world.query(
        """
        UPDATE tree SET n = n + 100000 WHERE id = \(1 + random.below(rows));
        INSERT INTO note VALUES ('new\(added)', 'added', \(added));
        """, in: path)
      try world.expectHealthy(path)
    }
    try world.syncUntilQuiet(a, b)

    for path in [a, b] {
      try world.expectHealthy(path)
      let counts = try world.query("SELECT count(*) FROM tree; SELECT count(*) FROM note;", in: path)
      #expect(counts == "\(rows)\n\(rows / 4 + added)\n", "seed \(seed)")
      let status = try world.status(path)
      #expect(status["pending"] as? Int == 0 && status["parked"] as? Int == 0, "seed \(seed): \(status)")
    }
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b), "seed \(seed)")
    let names = try world.recordNames()
    #expect(names.filter { $0.hasPrefix("tree:") }.count == rows, "seed \(seed)")
    #expect(names.filter { $0.hasPrefix("note:") }.count == rows / 4 + added, "seed \(seed)")
    #expect(Set(names).count == names.count)
    try world.stopServer(SIGTERM)
    try world.expectHealthy(world.data + "/cairn.db")
  }
}
