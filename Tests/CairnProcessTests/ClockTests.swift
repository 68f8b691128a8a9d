import Foundation
import ProcessSupport
import Testing

/// The library that gives a program another clock.
enum FakeTime {
  static let library: String? = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
  ].first(where: FileManager.default.fileExists)
}

/// Devices whose clocks are wrong, or change, with libfaketime.
@Suite(.enabled(if: FakeTime.library != nil, "libfaketime is not installed: apt-get install libfaketime"))
struct ClockTests {
  /// The environment of a program whose clock is off by so many days.
  private func clock(_ days: Int) -> [String: String] {
    [
      "LD_PRELOAD": FakeTime.library ?? "", "FAKETIME": "\(days < 0 ? "" : "+")\(days)d",
      "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    ]
  }

  private func write(_ sql: String, _ path: String, days: Int) throws {
    let result = try RunningProcess(Programs.sqlite3(), [path, sql], environment: clock(days)).waitUntilExit()
    #expect(result.status == 0, "\(result)")
  }

  @Test(
    "G4, TS76, TS77: an edit made after seeing another wins, whatever the clocks say; clocks that jump lose nothing",
    .timeLimit(.minutes(10)), arguments: [365, -365])
  func offByAYear(days: Int) throws {
    let world = try ProcessWorld()
    let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v, w);"
    let a = try world.database("a.db", schema + "INSERT INTO t VALUES ('k', 'start', 0), ('d', 'start', 0);")
    let b = world.folder.file("b.db")
    try world.prepare(a, "create")
    try world.sync(a)
    try world.prepare(b, "join")
    try world.sync(b)
    func sync(_ path: String, _ days: Int) throws {
      // The library changes the environment of the process that it is loaded into first, which moves the arguments that
      // Swift looks for beside it: env takes that on itself.
      let result = try RunningProcess(
        "/usr/bin/env", [Programs.cairn(), "sync", path],
        environment: world.environment.merging(clock(days)) { $1 }
      ).waitUntilExit()
      #expect(result.status == 0, "\(result)")
    }
    // A's clock is wrong, B's is right; each sees the other's edit before it makes its own.
    for round in 1...3 {
      try write("UPDATE t SET v = 'a\(round)' WHERE id = 'k';", a, days: days)
      try sync(a, days)
      try sync(b, 0)
      #expect(try world.query("SELECT v FROM t WHERE id = 'k';", in: b) == "a\(round)\n")
      try write("UPDATE t SET v = 'b\(round)', w = \(round) WHERE id = 'k';", b, days: 0)
      try sync(b, 0)
      try sync(a, days)
      #expect(try world.query("SELECT v FROM t WHERE id = 'k';", in: a) == "b\(round)\n")
    }
    // Deleted after seeing, inserted again after seeing.
    try write("UPDATE t SET v = 'late' WHERE id = 'd';", days > 0 ? a : b, days: days > 0 ? days : 0)
    try sync(a, days)
    try sync(b, 0)
    try sync(a, days)
    try write("DELETE FROM t WHERE id = 'd';", days > 0 ? b : a, days: days > 0 ? 0 : days)
    try sync(b, 0)
    try sync(a, days)
    try sync(b, 0)
    for path in [a, b] { #expect(try world.query("SELECT count(*) FROM t WHERE id = 'd';", in: path) == "0\n") }
    // The clock jumps between writing and syncing, back and forth.
    for (round, jump) in [days, 0, -days, 0].enumerated() {
      try write(
        "INSERT INTO t VALUES ('j\(round)', \(round), 0); UPDATE t SET w = \(100 + round) WHERE id = 'k';", a,
        days: jump)
      try sync(a, -jump)
    }
    try world.syncUntilQuiet(a, b)
    #expect(
      try world.query("SELECT * FROM t ORDER BY id;", in: a) == world.query("SELECT * FROM t ORDER BY id;", in: b))
    #expect(try world.query("SELECT w FROM t WHERE id = 'k'; SELECT count(*) FROM t;", in: b) == "103\n5\n")
  }

  @Test(
    "G4: a watch goes on when its clock is set forwards and back, also when that happens while it waits for the server",
    .timeLimit(.minutes(10)))
  func changedWhileWatching() throws {
    let world = try ProcessWorld()
    let a = try world.database("a.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v);")
    let b = world.folder.file("b.db")
    try world.prepare(a, "create")
    try world.prepare(b, "join")
    let setting = world.folder.file("time")
    func set(_ days: Int) throws {
      try "\(days < 0 ? "" : "+")\(days)d".write(toFile: setting, atomically: false, encoding: .utf8)
    }
    try set(0)
    let faked = [
      "LD_PRELOAD": FakeTime.library ?? "", "FAKETIME_TIMESTAMP_FILE": setting, "FAKETIME_NO_CACHE": "1",
      "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    ]
    let watch = try RunningProcess(
      "/usr/bin/env", [Programs.cairn(), "sync", a, "--watch"], environment: world.environment.merging(faked) { $1 })
    _ = try watch.waitForLine("in sync")
    func arrives(_ id: String) throws {
      let hasArrived = try eventually {
        try world.sync(b)
        return try world.query("SELECT count(*) FROM t WHERE id = '\(id)';", in: b) == "1\n"
      }
      #expect(hasArrived, "\(id): \(watch.output) \(watch.error)")
    }
    for (round, days) in [3, -3, 0].enumerated() {
      try set(days)
      try world.query("INSERT INTO t VALUES ('\(round)', \(round));", in: a)
      try arrives("\(round)")
    }
    let ahead = try world.query(
      "SELECT max(time) / 1000 - strftime('%s', 'now') > 2 * 86400 FROM cairn_outcome;", in: a)
    #expect(ahead == "1\n", "the clock was not changed")
    // Back while it waits for a time that it will reach in days.
    try set(3)
    try world.stopServer()
    try world.query("INSERT INTO t VALUES ('away', 1);", in: a)
    _ = try watch.waitForLine("the server can't be reached")
    try set(0)
    try world.startServer()
    try arrives("away")
    watch.signal(SIGTERM)
    #expect(try watch.waitUntilExit().status == 0)
    try world.expectHealthy(a)
  }
}
