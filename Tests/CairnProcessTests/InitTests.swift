import CairnTesting
import Foundation
import ProcessSupport
import Testing

/// `cairn init` and `cairn deinit` in every mode, interrupted, and twice at once.
@Suite struct InitTests {
  private static let many = """
    CREATE TABLE row(id INTEGER PRIMARY KEY, v);
    CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, v);
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) INSERT INTO row SELECT x, x FROM c;
    INSERT INTO note SELECT 'n' || id, v FROM row;
    """

  @Test("an init that was killed is finished by the next, whatever the moment", .timeLimit(.minutes(10)))
  func killed() throws {
    let random = SeededRandomness(seed: 5)
    let world = try ProcessWorld()
    let source = try world.database("source.db", Self.many)
    try world.prepare(source, "create", zone: "shared")
    try world.sync(source)
    for (index, mode) in ["create", "join", "merge", "create", "join", "merge"].enumerated() {
      let path = try world.database("\(index).db", Self.many + "INSERT INTO note VALUES ('local', 1);")
      let zone = mode == "create" ? "own\(index)" : "shared"
      let words = world.initWords(path, "--mode", mode, "--zone", zone)
      let process = try RunningProcess(Programs.cairn(), words, environment: world.environment)
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32(50_000 + random.below(700_000)))
      process.signal(SIGKILL)
      try process.waitUntilExit()
      try world.expectHealthy(path)
      let early = try world.run("sync", "--json", path)
      if early.status == 1 { expectRefusal(early, 1, "cairn init") }
      let again = try world.run(words)
      #expect(again.status == 0, "\(mode): \(again)")
      try world.syncUntilQuiet(path)
      let counts = try world.query("SELECT count(*) FROM row; SELECT count(*) FROM note;", in: path)
      #expect(counts == "3000\n\(mode == "join" && index < 3 ? 3_000 : 3_001)\n", "\(mode) \(index)")
      try world.expectHealthy(path)
    }
  }

  @Test("L14: of two inits at once one is refused or finds the file prepared; no row is taken up twice")
  func twoAtOnce() throws {
    let world = try ProcessWorld()
    let path = try world.database("a.db", Self.many)
    let words = world.initWords(path, "--mode", "create")
    let runs = try (0..<2).map { _ in try RunningProcess(Programs.cairn(), words, environment: world.environment) }
    let results = try runs.map { try $0.waitUntilExit() }
    #expect(results.contains { $0.status == 0 })
    for result in results where result.status != 0 { expectRefusal(result, 1, "by process") }
    #expect(try world.sync(path)["saved"] as? Int == 6_000)
  }

  @Test("L7: deinit leaves the schema and the rows as they were, byte for byte")
  func deinit_() throws {
    let world = try ProcessWorld()
    let path = try world.database(
      "a.db",
      """
      CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v, w AS (v || 'x')) STRICT;
      CREATE TABLE u(id INTEGER PRIMARY KEY AUTOINCREMENT, p REFERENCES t(id), q, UNIQUE (q));
      CREATE INDEX i ON u(p) WHERE q IS NOT NULL; CREATE VIEW s AS SELECT * FROM t;
      CREATE TRIGGER g AFTER INSERT ON u BEGIN UPDATE t SET v = 'seen' WHERE id = new.p; END;
      INSERT INTO u(id, q) VALUES (5, 1.5), (9, x'00');
      """.replacingOccurrences(of: "v, w AS (v || 'x')) STRICT", with: "v, w AS (v || 'x'))"))
    let before = try world.query(".dump", in: path)
    try world.prepare(path, "create")
    try world.sync(path)
    let result = try world.run("deinit", "--json", path)
    #expect(result.status == 0 && result.output == "{\"unsent\":0}\n")
    #expect(try world.query(".dump", in: path) == before)
    expectRefusal(try world.run("sync", path), 1, "cairn init")
  }

  @Test("L2, L3: join into a missing, an empty, a foreign and a filled file; L1, L6: refusals name the modes")
  func modes() throws {
    let world = try ProcessWorld()
    let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v);"
    let source = try world.database("source.db", schema + "INSERT INTO t VALUES ('a', 1), ('b', 2);")
    try world.prepare(source, "create")
    try world.sync(source)

    let missing = world.folder.file("missing.db")
    let empty = try world.database("empty.db", "")
    let foreign = try world.database("foreign.db", "CREATE TABLE other(x);")
    for path in [missing, empty] { try world.prepare(path, "join") }
    #expect(try world.run(world.initWords(foreign, "--mode", "join", "--table", "t")).status == 0)
    let filled = try world.database("filled.db", schema + "INSERT INTO t VALUES ('mine', 9);")
    let outcome = try world.prepare(filled, "join")
    let backup = try #require(outcome["backup"] as? String)
    #expect(try world.query("SELECT * FROM t;", in: backup) == "mine|9\n")
    for path in [missing, empty, foreign, filled] {
      try world.sync(path)
      #expect(try world.query("SELECT * FROM t ORDER BY id;", in: path) == "a|1\nb|2\n")
    }

    let undecided = try world.database("undecided.db", schema + "INSERT INTO t VALUES ('mine', 9);")
    expectRefusal(try world.run(world.initWords(undecided)), 1, "1 row", "2 records", "join", "merge", "create")
    expectRefusal(try world.run(world.initWords(undecided, "--mode", "create")), 1, "2 records", "--zone")
    #expect(try world.query("SELECT name FROM sqlite_master;", in: undecided) == "t\nsqlite_autoindex_t_1\n")
    expectRefusal(try world.run(world.initWords(world.folder.file("none.db"))), 1, "none.db")
  }

  @Test("TS178, TS179: merge by natural keys and by content; ambiguous integers are counted and asked about")
  func merges() throws {
    let world = try ProcessWorld()
    let schema = "CREATE TABLE l(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE n(id INTEGER PRIMARY KEY, t);"
    let source = try world.database(
      "source.db", schema + "INSERT INTO l VALUES ('l1', 'server'); INSERT INTO n VALUES (1, 'one'), (2, 'two');")
    try world.prepare(source, "create")
    try world.sync(source)
    let rows = "INSERT INTO l VALUES ('l1', 'here'), ('l2', 'new'); INSERT INTO n VALUES (1, 'one'), (2, 'TWO');"
    let b = try world.database("b.db", schema + rows)
    expectRefusal(
      try world.run(world.initWords(b, "--mode", "merge")), 1, "1 in n", "--match-integers", "--new-integers")
    #expect(try world.query("SELECT count(*) FROM sqlite_master WHERE name LIKE 'cairn%';", in: b) == "0\n")
    let c = try world.database("c.db", schema + rows)
    #expect(try world.run(world.initWords(b, "--mode", "merge", "--match-integers", "n")).status == 0)
    try world.syncUntilQuiet(b, source)
    #expect(
      try world.query("SELECT * FROM l ORDER BY id; SELECT t FROM n ORDER BY t;", in: source)
        == "l1|server\nl2|new\none\ntwo\n")
    #expect(try world.run(world.initWords(c, "--mode", "merge", "--new-integers", "n")).status == 0)
    try world.syncUntilQuiet(c, source, b)
    for path in [source, b, c] {
      #expect(
        try world.query("SELECT * FROM l ORDER BY id; SELECT t FROM n ORDER BY t;", in: path)
          == "l1|server\nl2|new\nTWO\none\ntwo\n")
    }
  }
}
