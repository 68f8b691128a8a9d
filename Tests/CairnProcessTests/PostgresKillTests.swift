import CairnTesting
import Foundation
import ProcessSupport
import StoreSupport
import Testing

/// Two servers on one PostgreSQL, and devices that sync with either, while both servers and PostgreSQL are killed.
@Suite struct PostgresKillTests {
  /// One of the servers, always under the same address.
  private final class Server {
    private let url: String
    private(set) var process: RunningProcess
    private var listen = "127.0.0.1:0"
    private(set) var address = ""

    init(_ url: String) throws {
      self.url = url
      process = try RunningProcess(Programs.cairn(), ["serve", "--postgres", url, "--listen", listen])
      address = try process.waitForLine("listening on ")
      listen = String(address.dropFirst("http://".count))
    }

    func killAndStart() throws {
      process.signal(SIGKILL)
      try process.waitUntilExit()
      process = try RunningProcess(Programs.cairn(), ["serve", "--postgres", url, "--listen", listen])
      _ = try process.waitForLine("listening on ")
    }

    func stop() throws {
      process.signal(SIGTERM)
      let result = try process.waitUntilExit()
      #expect(result.status == 0, "\(result)")
    }
  }

  private struct Device {
    var path: String
    var environment: [String: String]

    func run(_ words: [String]) throws -> RunningProcess.Result {
      try Programs.runCairn(words, environment: environment, limit: .seconds(600))
    }

    func start() throws -> RunningProcess {
      try RunningProcess(Programs.cairn(), ["sync", "--json", "--", path], environment: environment)
    }

    func sql(_ text: String) throws -> String {
      let result = try Programs.runSQL(".timeout 60000\n" + text, in: path)
      #expect(result.status == 0, "\(result.error)")
      return result.output
    }
  }

  @Test(
    "kill -9 of a server and of PostgreSQL during a sync of four devices: all converge, nothing is lost or twice",
    .timeLimit(.minutes(30)))
  func fourDevices() throws {
    let seed = UInt64(ProcessInfo.processInfo.environment["CAIRN_SEED"] ?? "5") ?? 5
    let random = SeededRandomness(seed: seed)
    let rows = ProcessWorld.isSoak ? 20_000 : 500
    let kills = ProcessWorld.isSoak ? 24 : 6
    let cluster = try PostgresCluster()
    let url = try cluster.makeDatabase()
    let folder = try TemporaryFolder()
    let added = try Programs.runCairn(["user", "add", "ada", "--postgres", url, "--json"])
    let token = try #require(try ProcessWorld.object(added.output)["token"] as? String)
    let servers = [try Server(url), try Server(url)]

    let devices = try (0..<4).map { number in
      let device = Device(
        path: folder.file("d\(number).db"),
        environment: ["XDG_CONFIG_HOME": folder.file("config\(number)"), "CAIRN_TOKEN": ""])
      _ = try device.sql(
        """
        PRAGMA journal_mode = WAL;
        CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, title TEXT, n INTEGER);
        WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < \(rows))
        INSERT INTO note SELECT 'd\(number)-' || x, 'title ' || x, x FROM c;
        """)
      let made = try device.run([
        "init", "--server", servers[number % 2].address, "--token", token, "--mode", number == 0 ? "create" : "merge",
        "--zone", "cairn", "--json", "--", device.path,
      ])
      #expect(made.status == 0, "\(made)")
      return device
    }

    var running = try devices.map { try $0.start() }
    for round in 0..<kills {
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32(50_000 + random.below(700_000)))
      switch round % 3 {
      case 0, 1: try servers[round % 2].killAndStart()
      default:
        try cluster.kill()
        try cluster.start()
      }
      for i in running.indices where !running[i].isRunning() { running[i] = try devices[i].start() }
    }
    for process in running { try process.waitUntilExit(limit: .seconds(600)) }
    try syncUntilQuiet(devices)

    let picture = try devices[0].sql("SELECT * FROM note ORDER BY id")
    for device in devices {
      #expect(
        try device.sql("SELECT count(*) FROM note; PRAGMA integrity_check") == "\(4 * rows)\nok\n", "seed \(seed)")
      #expect(try device.sql("SELECT * FROM note ORDER BY id") == picture, "seed \(seed)")
    }
    let names = try cluster.execute(
      "SELECT convert_from(name, 'UTF8') FROM cairn.records WHERE died IS NULL AND convert_from(type, 'UTF8') = 'note'",
      in: url)
    #expect(names.count == 4 * rows && Set(names).count == names.count, "seed \(seed)")
    for server in servers { try server.stop() }
  }

  private func syncUntilQuiet(_ devices: [Device]) throws {
    for _ in 0..<20 {
      var done = 0
      for device in devices {
        let result = try device.run(["sync", "--json", "--", device.path])
        #expect(result.status == 0 || result.status == 3, "\(result)")
        let report = try ProcessWorld.object(result.output)
        for key in ["saved", "deleted", "fetched", "removed", "pending"] { done += report[key] as? Int ?? 0 }
      }
      if done == 0 { return }
    }
    Issue.record("not quiet")
  }

  @Test("a PostgreSQL that is killed while it works for somebody starts again when that work has ended")
  func restart() throws {
    let cluster = try PostgresCluster()
    let work = try RunningProcess(
      Programs.path(of: "psql"), ["-c", "SELECT count(*) FROM generate_series(1, 20000000)", cluster.url("postgres")])
    // This question is one of the two that it finds.
    let question = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%20000000%' AND state = 'active'"
    #expect(try eventually { try cluster.execute(question).count == 2 })
    try cluster.kill()
    try cluster.start()
    #expect(try cluster.execute("SELECT 1") == ["1"])
    try work.waitUntilExit()
  }

  @Test("while PostgreSQL is away clients learn to wait, and nothing of where it is; the server's log has the reason")
  func away() throws {
    let cluster = try PostgresCluster()
    let url = try cluster.makeDatabase()
    let folder = try TemporaryFolder()
    let environment = ["XDG_CONFIG_HOME": folder.file("config"), "CAIRN_TOKEN": ""]
    let added = try Programs.runCairn(["user", "add", "ada", "--postgres", url, "--json"]).output
    let token = try #require(try ProcessWorld.object(added)["token"] as? String)
    let server = try RunningProcess(Programs.cairn(), ["serve", "--postgres", url, "--listen", "127.0.0.1:0"])
    let address = try server.waitForLine("listening on ")
    let file = folder.file("a.db")
    _ = try Programs.runSQL("CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL); INSERT INTO t VALUES ('x');", in: file)
    let made = try Programs.runCairn(
      ["init", file, "--server", address, "--token", token, "--mode", "create"], environment: environment)
    #expect(made.status == 0, "\(made)")
    try cluster.kill()
    let path = "/database/1/iCloud.cairn/production/private/zones/list?ckWebAuthToken="
    for word in [token, "forged"] {
      let body = try Programs.run("curl", ["-s", address + path + word]).output
      #expect(body.contains("TRY_AGAIN_LATER"), "\(body)")
      for part in ["connection", "socket", "SELECT"] { #expect(!body.contains(part), "\(body)") }
    }
    // Twice: the first meets the server, the second keeps to what that one was told.
    for _ in 0..<2 {
      let synced = try Programs.runCairn(["sync", file], environment: environment)
      #expect(synced.status == 3 && synced.output.contains("nothing done; 1 still pending"), "\(synced)")
      #expect(synced.output.contains("can't answer now") && synced.output.contains("run the command again"))
    }
    server.signal(SIGTERM)
    #expect(try server.waitUntilExit(limit: .seconds(30)).error.contains("can't be answered now: The store is away"))
  }

  @Test("users, tokens and keys are managed in PostgreSQL too, and a folder moves there and back")
  func administration() throws {
    let url = try PostgresCluster.shared().makeDatabase()
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    #expect(try Programs.runCairn(["user", "add", "ada", "--data", data]).status == 0)
    #expect(try Programs.runCairn(["server", "copy", "--from", data, "--to", url]).output.contains("copied 1 user, "))
    expectRefusal(try Programs.runCairn(["server", "copy", "--from", data, "--to", url]), 1, "empty")
    #expect(try Programs.runCairn(["user", "list", "--postgres", url]).output.contains("\nada  "))
    #expect(try Programs.runCairn(["user", "add", "bob", "--postgres", url]).status == 0)
    #expect(try Programs.runCairn(["server", "token", "add", "web", "--postgres", url]).status == 0)
    let back = folder.file("back")
    #expect(try Programs.runCairn(["server", "copy", "--from", url, "--to", back]).status == 0)
    #expect(try Programs.runCairn(["user", "list", "--data", back]).output.split(separator: "\n").count == 3)
    #expect(try Programs.runCairn(["server", "token", "list", "--data", back]).output.contains("\nweb "))
    expectRefusal(try Programs.runCairn(["server", "copy", "--from", folder.file("none"), "--to", url]), 1, "--from")
    // A server that goes on would be given what the copy lacks; two of them would answer for the same data.
    let server = try RunningProcess(Programs.cairn(), ["serve", "--postgres", url, "--listen", "127.0.0.1:0"])
    _ = try server.waitForLine("listening on ")
    let third = folder.file("third")
    expectRefusal(try Programs.runCairn(["server", "copy", "--from", url, "--to", third]), 1, "stop it")
    server.signal(SIGTERM)
    try server.waitUntilExit()
    #expect(try Programs.runCairn(["server", "copy", "--from", url, "--to", third]).status == 0)
    // A database without a store stays without one.
    let empty = try PostgresCluster.shared().makeDatabase()
    expectRefusal(try Programs.runCairn(["user", "list", "--postgres", empty]), 1, "no server's data")
    expectRefusal(
      try Programs.runCairn(["server", "copy", "--from", empty, "--to", folder.file("x")]), 1, "no server's data")
    // A copy that broke off leaves a folder that no server takes for an empty one.
    let broken = folder.file("broken")
    try FileManager.default.createDirectory(atPath: broken, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: broken + "/cairn.db.incoming"))
    expectRefusal(try Programs.runCairn(["serve", "--data", broken, "--listen", "127.0.0.1:0"]), 1, "not whole")
    #expect(try Programs.runCairn(["server", "copy", "--from", url, "--to", broken]).status == 0)
    #expect(try Programs.runCairn(["user", "list", "--data", broken]).output.split(separator: "\n").count == 3)
  }

  @Test("a store that can't be used is one sentence with a remedy, without the password")
  func refusals() throws {
    let cluster = try PostgresCluster.shared()
    _ = try? cluster.execute("CREATE ROLE barred LOGIN PASSWORD 'right'")
    for (address, word) in [
      ("postgres://u:secret1word@127.0.0.1:1/x", "reached"), (cluster.url("nowhere"), "no such database"),
      ("postgres://u:secret1word@[::1/x", "can't be read"), ("mysql://u:secret1word@h/x", "postgres://"),
      (cluster.url("postgres", user: "nobody_here"), "refuses the user"),
    ] {
      for command in [["serve", "--listen", "127.0.0.1:0"], ["user", "list"]] {
        let result = try Programs.runCairn(command + ["--postgres", address])
        expectRefusal(result, 1, word)
        #expect(!result.error.contains("secret1word"), "\(result)")
      }
    }
    expectRefusal(try Programs.runCairn(["serve"]), 2, "--data")
    expectRefusal(try Programs.runCairn(["serve", "--data", "x", "--postgres", "postgres://h/x"]), 2, "--postgres")
  }
}
