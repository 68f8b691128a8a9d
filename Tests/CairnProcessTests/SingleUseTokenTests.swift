import Foundation
import ProcessSupport
import Testing

/// Servers whose tokens serve one request each, and devices that keep what replaces them.
@Suite struct SingleUseTokenTests {
  private let world: ProcessWorld

  init() throws { world = try ProcessWorld(serve: ["--single-use-tokens"]) }

  /// A device with a configuration folder, and so a token, of its own.
  private func device(_ name: String, _ mode: String) throws -> (path: String, environment: [String: String]) {
    let path = try world.database("\(name).db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v);")
    let environment = ["XDG_CONFIG_HOME": world.folder.file("config-\(name)")]
    let more = try ProcessWorld.object(world.run("user", "token", "ada", "--data", world.data, "--json").output)
    let token = try #require(more["token"] as? String)
    let made = try world.run(world.initWords(path, "--mode", mode, token: token), environment: environment)
    #expect(made.status == 0, "\(made)")
    return (path, environment)
  }

  @Test("web-services section 3: every token is stored in place of the used one; init, sync, doctor and a watch go on")
  func goesOn() throws {
    let a = try device("a", "create")
    let b = try device("b", "join")
    try world.query("INSERT INTO t VALUES ('1', 'one');", in: a.path)
    for device in [a, b, a, b] {
      let result = try world.run("sync", "--json", device.path, environment: device.environment)
      #expect(result.status == 0, "\(result)")
    }
    #expect(try world.query("SELECT v FROM t;", in: b.path) == "one\n")
    #expect(try world.run("doctor", "--repair", a.path, environment: a.environment).status == 0)

    let watch = try RunningProcess(
      Programs.cairn(), ["sync", "--watch", a.path], environment: world.environment.merging(a.environment) { $1 })
    _ = try watch.waitForLine("in sync")
    try world.query("INSERT INTO t VALUES ('2', 'two');", in: b.path)
    #expect(try world.run("sync", "--json", b.path, environment: b.environment).status == 0)
    #expect(try eventually { try world.query("SELECT v FROM t WHERE id = '2';", in: a.path) == "two\n" })
    watch.signal(SIGTERM)
    #expect(try watch.waitUntilExit().status == 0)
    #expect(try world.run("sync", "--json", a.path, environment: a.environment).status == 0)
  }

  @Test("an init that is refused keeps the token that replaced the given one: the next needs none")
  func refusedInit() throws {
    let a = try device("a", "create")
    #expect(try world.run("sync", "--json", a.path, environment: a.environment).status == 0)
    let path = try world.database(
      "c.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('x', 1);")
    let environment = ["XDG_CONFIG_HOME": world.folder.file("config-c")]
    expectRefusal(try world.run(world.initWords(path), environment: environment), 1, "--mode merge")
    let words = ["init", "--server", world.url, "--mode", "merge", "--json", path]
    let made = try world.run(words, environment: environment)
    #expect(made.status == 0, "\(made)")
    #expect(try world.run("sync", "--json", path, environment: environment).status == 0)
  }

  @Test("accounts keep the token that replaces the used one too")
  func accounts() throws {
    let profile = world.folder.file("phone")
    let made = try world.run("accounts", "init", profile, "--server", world.url, "--token", world.token)
    #expect(made.status == 0, "\(made)")
    for _ in 0..<2 {
      let result = try world.run("accounts", "sync", profile)
      #expect(result.status == 0, "\(result)")
    }
  }
}
