import CairnTesting
import Foundation
import ProcessSupport
import Testing

/// Other programs on the file while it is synced.
@Suite struct SharedFileTests {
  private static let schema = """
    PRAGMA journal_mode = %;
    CREATE TABLE tree(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree(id), name TEXT, n INTEGER);
    """
  private static func fill(_ rows: Int, journal: String) -> String {
    schema.replacingOccurrences(of: "%", with: journal) + """
      WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < \(rows))
      INSERT INTO tree SELECT x, nullif(x / 2, 0), 'row ' || x, x FROM c;
      """
  }
  private static let picture =
    "SELECT t.name, p.name, t.n FROM tree t LEFT JOIN tree p ON p.id = t.parent ORDER BY 1, 2, 3;"

  @Test(
    "G1, TS196: a sync that is stopped and continued again and again while another program writes loses nothing",
    .timeLimit(.minutes(10)), arguments: ["wal", "delete"])
  func stoppedAndContinued(journal: String) throws {
    let seed = UInt64(ProcessInfo.processInfo.environment["CAIRN_SEED"] ?? "5") ?? 5
    let random = SeededRandomness(seed: seed)
    let rows = ProcessWorld.isSoak ? 20_000 : 1_500
    let world = try ProcessWorld()
    let a = try world.database("a.db", Self.fill(rows, journal: journal))
    let b = world.folder.file("b.db")
    try world.prepare(a, "create")
    try world.prepare(b, "join")
    var sync = try world.start("sync", a)
    for round in 0..<(ProcessWorld.isSoak ? 60 : 12) {
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32(random.below(60_000)))
      sync.signal(SIGSTOP)
      // The stopped process may hold a lock: the writer then waits until it goes on.
      let writer = try RunningProcess(
        Programs.sqlite3(), ["-batch", "-bail", a],
        input: """
          .timeout 60000
          BEGIN IMMEDIATE; UPDATE tree SET n = n + 100000 WHERE id = \(1 + random.below(rows));
          INSERT INTO tree(parent, name, n) VALUES (1, 'new \(round)', \(round)); COMMIT;
          """)
      // How long it stands still is random too.
      usleep(UInt32(random.below(40_000)))
      sync.signal(SIGCONT)
      let result = try writer.waitUntilExit()
      #expect(result.status == 0 && result.error.isEmpty, "seed \(seed): \(result)")
      if !sync.isRunning() {
        let ended = try sync.waitUntilExit()
        #expect([0, 3].contains(ended.status), "seed \(seed): \(ended)")
        sync = try world.start("sync", round % 2 == 0 ? b : a)
      }
    }
    let ended = try sync.waitUntilExit()
    #expect([0, 3].contains(ended.status), "seed \(seed): \(ended)")
    try world.syncUntilQuiet(a, b)
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b), "seed \(seed)")
    let names = try world.recordNames()
    let count = try world.query("SELECT count(*) FROM tree;", in: a)
    #expect(Set(names).count == names.count && "\(names.count)\n" == count, "seed \(seed)")
    for path in [a, b] { try world.expectHealthy(path) }
  }

  @Test(
    "TS197: another program holds the write lock while a sync applies: it waits, and goes on",
    .timeLimit(.minutes(10)), arguments: ["wal", "delete"])
  func heldLock(journal: String) throws {
    let world = try ProcessWorld()
    let a = try world.database("a.db", Self.fill(300, journal: journal))
    let b = try world.database("b.db", Self.schema.replacingOccurrences(of: "%", with: journal))
    try world.prepare(a, "create")
    try world.sync(a)
    try world.prepare(b, "join")
    let holder = try RunningProcess(
      Programs.sqlite3(),
      [b, "BEGIN IMMEDIATE", "INSERT INTO tree(name) VALUES ('held')", ".shell echo holding; sleep 2", "COMMIT"])
    _ = try holder.waitForLine("holding")
    let report = try world.sync(b)
    #expect(report["fetched"] as? Int == 300)
    #expect(try holder.waitUntilExit().status == 0)
    try world.syncUntilQuiet(b, a)
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
    #expect(try world.query("SELECT count(*) FROM tree WHERE name = 'held';", in: a) == "1\n")
  }

  @Test("L14: watches of many files run side by side; more watches of one file are refused", .timeLimit(.minutes(10)))
  func manyWatches() throws {
    let world = try ProcessWorld()
    let files = try (0..<5).map { try world.database("f\($0).db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v);") }
    for (i, file) in files.enumerated() { try world.prepare(file, i == 0 ? "create" : "join") }
    let watches = try files.map { try world.start("sync", $0, "--watch") }
    for watch in watches { _ = try watch.waitForLine("in sync") }
    for _ in 0..<3 {
      expectRefusal(
        try world.run("sync", "--watch", files[0]), 1,
        "f0.db is being synced by process \(watches[0].processID)")
    }
    for (i, file) in files.enumerated() { try world.query("INSERT INTO t VALUES ('r\(i)', \(i));", in: file) }
    let hasArrived = try eventually {
      try files.allSatisfy {
        try world.query("SELECT group_concat(v) FROM (SELECT v FROM t ORDER BY id);", in: $0) == "0,1,2,3,4\n"
      }
    }
    #expect(hasArrived)
    for watch in watches { watch.signal(SIGTERM) }
    for watch in watches {
      let result = try watch.waitUntilExit()
      #expect(result.status == 0 && result.error.isEmpty, "\(result)")
    }
    for file in files { try world.expectHealthy(file) }
  }

  @Test("TS199: many rows from A to B: nothing is pending, both are equal", .timeLimit(.minutes(10)))
  func manyRows() throws {
    let rows = ProcessWorld.isSoak ? 100_000 : 4_000
    let world = try ProcessWorld()
    let a = try world.database("a.db", Self.fill(rows, journal: "wal"))
    let b = world.folder.file("b.db")
    try world.prepare(a, "create")
    #expect(try world.sync(a)["saved"] as? Int == rows)
    try world.prepare(b, "join")
    #expect(try world.sync(b)["fetched"] as? Int == rows)
    for path in [a, b] {
      let status = try world.status(path)
      #expect(status["pending"] as? Int == 0 && status["parked"] as? Int == 0)
    }
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
  }
}
