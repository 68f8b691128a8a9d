import Foundation
import ProcessSupport
import Testing

/// `cairn accounts` from outside: a server, profiles as devices, `kill -9`.
@Suite(.serialized) struct AccountsProcessTests {
  /// A server with two users, and folders that are devices.
  private final class World {
    let folder: TemporaryFolder
    private let server: RunningProcess
    let url: String
    private(set) var tokens: [String: String] = [:]
    static let secret = "correct horse battery"

    init(_ devices: String...) throws {
      folder = try TemporaryFolder()
      let data = folder.file("server")
      server = try RunningProcess(Programs.cairn(), ["serve", "--data", data, "--listen", "127.0.0.1:0"])
      url = try server.waitForLine("listening on ")
      for user in ["ada", "bob"] {
        let answer = try Programs.runCairn(["user", "add", user, "--data", data, "--json"])
        tokens[user] = try object(answer.output)["token"] as? String
      }
      for device in devices { try done("init", device, "--server", url, "--token", tokens["ada"] ?? "") }
    }

    var passphrase = ""
    var environment: [String: String] {
      ["XDG_CONFIG_HOME": folder.file("config"), "CAIRN_TOKEN": "", "CAIRN_PASSPHRASE": passphrase]
    }

    /// `cairn accounts COMMAND DEVICE …`
    func run(_ words: [String], input: String = "") throws -> RunningProcess.Result {
      let result = try Programs.runCairn(arguments(words), environment: environment, input: input)
      #expect(!(result.output + result.error).contains(Self.secret), "a secret was printed by \(words)")
      return result
    }

    func arguments(_ words: [String]) -> [String] {
      ["accounts", words[0], folder.file(words[1])] + words.dropFirst(2) + ["--json"]
    }

    @discardableResult
    func done(_ words: String..., input: String = "", status: Int32 = 0) throws -> [String: Any] {
      let result = try run(words, input: input)
      #expect(result.status == status, "\(words): \(result)")
      return result.output.isEmpty ? [:] : try object(result.output)
    }

    @discardableResult
    func add(_ device: String, _ user: String) throws -> String {
      let answer = try done(
        "add", device, "--instance", "https://x.example/", "--user", user, input: Self.secret + "\n")
      return try #require(answer["id"] as? String)
    }

    func list(_ device: String) throws -> [[String: Any]] {
      try done("list", device)["accounts"] as? [[String: Any]] ?? []
    }

    func ids(_ device: String) throws -> Set<String> { Set(try list(device).compactMap { $0["id"] as? String }) }

    func selected(_ device: String) throws -> [String] {
      try list(device).filter { $0["selected"] as? Bool == true }.compactMap { $0["id"] as? String }
    }

    func object(_ text: String) throws -> [String: Any] {
      try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    /// Every file below a folder that holds a text.
    func files(with text: String, below name: String) -> [String] {
      let root = folder.file(name)
      let found = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
      return found.filter { path in
        FileManager.default.contents(atPath: "\(root)/\(path)")?.range(of: Data(text.utf8)) != nil
      }
    }

    func query(_ sql: String, in path: String) throws -> String {
      try Programs.runSQL(sql, in: path).output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }

  @Test(
    "accounts.md A8, A25, A27: added on one device it is on all with one ID; removed on one it is gone on all, in both orders"
  )
  func addAndRemove() throws {
    let world = try World("a", "b", "c")
    for isEditorFirst in [false, true] {
      let id = try world.add("a", "ada")
      for device in ["a", "b", "c"] { try world.done("sync", device) }
      for device in ["a", "b", "c"] { #expect(try world.ids(device) == [id]) }
      try world.done("select", "c", id)
      try world.done("sync", "c")
      // b works on it offline while a deletes it.
      try world.done("edit", "b", id, "--label", "offline")
      try world.done("select", "b", "none")
      try world.done("select", "b", id)
      try world.done("remove", "a", id)
      for device in isEditorFirst ? ["b", "a"] : ["a", "b"] { try world.done("sync", device) }
      for device in ["c", "b", "a"] { try world.done("sync", device) }
      for device in ["a", "b", "c"] {
        #expect(try world.ids(device).isEmpty)
        #expect(try world.done("status", device)["pending"] as? Int == 0)
      }
    }
  }

  @Test("accounts.md A82: a choice made offline of a removed account changes nothing")
  func offlineChoice() throws {
    let world = try World("a", "b")
    let (kept, dead) = (try world.add("a", "kept"), try world.add("a", "dead"))
    try world.done("select", "a", kept)
    for device in ["a", "b"] { try world.done("sync", device) }
    try world.done("select", "b", dead)
    try world.done("remove", "a", dead)
    for device in ["a", "b", "a", "b"] { try world.done("sync", device) }
    #expect(try world.selected("a") == [kept])
    #expect(try world.selected("b") == [kept])
  }

  @Test("accounts.md A4, section 7: no secret is in an output, in the profile's facts, or on the server")
  func secrets() throws {
    let world = try World("a", "b")
    let id = try world.add("a", "ada")
    try world.done("sync", "a")
    try world.done("sync", "b")
    #expect(try world.list("a").first?["needsCredentials"] as? Bool == false)
    #expect(try world.list("b").first?["needsCredentials"] as? Bool == true)
    #expect(world.files(with: World.secret, below: "server").isEmpty)
    #expect(world.files(with: World.secret, below: "b").isEmpty)
    #expect(world.files(with: World.secret, below: "config").isEmpty)
    let encoded = Data(World.secret.utf8).base64EncodedString()
    #expect(world.files(with: encoded, below: "a").allSatisfy { $0.hasPrefix("credentials/") })
    let refused = try world.run(["add", "a", "--instance", "https://u:\(World.secret)@x.example", "--user", "u"])
    #expect(refused.status == 2)
    try world.done("remove", "a", id)
    #expect(world.files(with: encoded, below: "a").isEmpty)
  }

  @Test("accounts.md section 6: a passphrase encrypts the credentials; without it all goes on but what needs a secret")
  func encryption() throws {
    let world = try World("a")
    let id = try world.add("a", "ada")
    let encoded = Data(World.secret.utf8).base64EncodedString()
    #expect(world.files(with: encoded, below: "a").count == 1)
    #expect(try world.run(["encrypt", "a"]).status == 2)
    #expect(try world.done("encrypt", "a", input: "sesame\n")["encrypted"] as? Int == 1)
    #expect(world.files(with: encoded, below: "a").isEmpty && world.files(with: "sesame", below: "a").isEmpty)

    try world.done("sync", "a")
    #expect(try world.list("a").first?["needsCredentials"] is NSNull)
    let words = ["add", "a", "--instance", "https://x.example/", "--user", "eve"]
    let refused = try world.run(words, input: World.secret + "\n")
    #expect(refused.status == 1 && refused.error.contains("CAIRN_PASSPHRASE"), "\(refused)")
    #expect(try world.ids("a") == [id])

    world.passphrase = "wrong"
    let wrong = try world.run(["list", "a"])
    #expect(wrong.status == 1 && wrong.error.contains("passphrase is not the one"), "\(wrong)")
    world.passphrase = "sesame"
    #expect(try world.list("a").first?["needsCredentials"] as? Bool == false)
    try world.add("a", "eve")
    #expect(world.files(with: encoded, below: "a").isEmpty)
    #expect(try world.done("encrypt", "a")["encrypted"] as? Int == 0)
    try world.done("remove", "a", id)
    try world.done("sync", "a")
    #expect(try world.list("a").count == 1)
  }

  @Test("accounts.md A53, A65, S53: accounts of one identity are nowhere under another, and come back with it")
  func switching() throws {
    let world = try World("a")
    let id = try world.add("a", "adas-login")
    try world.done("sync", "a")
    try world.done("edit", "a", id, "--label", "unsent")
    try world.done("switch", "a", "--token", world.tokens["bob"] ?? "")
    #expect(try world.ids("a").isEmpty)
    let other = try world.add("a", "bobs-login")
    try world.done("sync", "a")
    let path = world.folder.file("server/cairn.db")
    let owners = try world.query("SELECT count(*) FROM record WHERE name LIKE 'account-%'", in: path)
    #expect(owners == "2")
    let profile = world.folder.file("a/accounts.sqlite")
    let bob = try #require(try world.done("status", "a")["identity"] as? String)
    #expect(
      try world.query(
        "SELECT count(*) FROM cairn_accounts WHERE scope = 'id:\(bob)' AND value LIKE '%adas-login%'", in: profile)
        == "0")
    try world.done("switch", "a", "--token", world.tokens["ada"] ?? "")
    #expect(try world.ids("a") == [id])
    try world.done("sync", "a")
    #expect(try world.list("a").first?["label"] as? String == "unsent")
    try world.done("switch", "a", "--token", world.tokens["bob"] ?? "")
    try world.done("sync", "a")
    #expect(try world.ids("a") == [other])
  }

  @Test("accounts.md A66, A44: local accounts are adopted once; switched off nothing is applied or sent")
  func adoptAndDisable() throws {
    let world = try World("b")
    try world.done("init", "a", "--server", world.url, "--local")
    let id = try world.add("a", "local")
    try world.done("sync", "a", status: 1)
    try world.done("switch", "a", "--token", world.tokens["ada"] ?? "")
    #expect(try world.ids("a").isEmpty)
    try world.done("adopt", "a", status: 1)
    try world.done("sync", "a")
    #expect(try world.done("adopt", "a")["adopted"] as? [String] == [id])
    try world.done("disable", "b")
    try world.done("sync", "a")
    try world.done("sync", "b", status: 3)
    #expect(try world.ids("b").isEmpty)
    #expect(try world.done("status", "b")["state"] as? String == "paused")
    try world.done("enable", "b")
    try world.done("sync", "b")
    #expect(try world.ids("b") == [id])
    #expect(try world.list("a").first?["needsCredentials"] as? Bool == false)
  }

  @Test("accounts.md A7, A18, A20: legacy logins are migrated once, with the file's flags untouched")
  func migrating() throws {
    let world = try World("a", "b")
    let x = "0a6e2c1e-0000-4000-8000-000000000001"
    let file = world.folder.file("old.json")
    let text = """
      {"version": 1, "instances": [{"id": "\(x)", "service": "s", "url": "https://old.example", "flag": true,
        "credential": {"userName": "ada", "secret": "\(World.secret)", "revision": "1"}}]}
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    try world.done("migrate", "a", "--legacy", file, status: 3)
    try world.done("sync", "a")
    #expect(try world.ids("a") == [x])
    #expect(try world.list("a").first?["migrated"] as? Bool == true)
    #expect(try world.list("a").first?["needsCredentials"] as? Bool == false)
    try world.done("sync", "b")
    #expect(try world.ids("b") == [x])
    try world.done("remove", "b", x)
    try world.done("sync", "b")
    try world.done("sync", "a")
    #expect(try world.done("migrate", "a")["migrated"] as? [String] == [])
    #expect(try world.ids("a").isEmpty)
    let left = try String(contentsOfFile: file, encoding: .utf8)
    #expect(left.contains("\"flag\":true") && !left.contains(World.secret))
    #expect(world.files(with: World.secret, below: "server").isEmpty)
  }

  @Test("accounts.md C11, C12, C14, S77: kill -9 at random moments loses nothing")
  func killed() throws {
    let world = try World("a", "b")
    var random = SystemRandomNumberGenerator()
    var users: Set<String> = []
    for round in 0..<12 {
      let words =
        round % 3 == 2
        ? ["sync", "a"] : ["add", "a", "--instance", "https://x.example", "--user", "user\(round)"]
      let process = try RunningProcess(
        Programs.cairn(), world.arguments(words), environment: world.environment, input: World.secret + "\n")
      // The moment is what is random here; nothing is waited for.
      usleep(UInt32.random(in: 0..<60_000, using: &random))
      process.signal(SIGKILL)
      let result = try process.waitUntilExit()
      let listed = try world.list("a").compactMap { $0["user"] as? String }
      if result.status == 0, words[0] == "add" { users.insert("user\(round)") }
      #expect(Set(listed).isSuperset(of: users), "round \(round): \(listed)")
      #expect(Set(listed).count == listed.count)
      users = Set(listed)
    }
    // What was cut off is completed by saying it again, under the same ID.
    let before = try world.ids("a")
    for user in users { try world.add("a", user) }
    #expect(try world.ids("a") == before)
    try world.done("sync", "a")
    try world.done("sync", "b")
    #expect(try world.ids("b") == before)
  }

  @Test("accounts.md section 7, DESIGN section 7: exit codes of what can't be done")
  func exitCodes() throws {
    let world = try World("a")
    try world.done("list", "nowhere", status: 1)
    try world.done("remove", "a", "no-id", status: 2)
    try world.done("remove", "a", "10000000-0000-4000-8000-000000000001", status: 1)
    try world.done("add", "a", "--instance", "https://x.example", "--user", "u", input: "", status: 2)
    try world.done("init", "a", "--server", world.url, "--token", world.tokens["bob"] ?? "", status: 1)
    try world.done("init", "b", "--server", "http://127.0.0.1:1", "--token", "t", status: 4)
    #expect(!FileManager.default.fileExists(atPath: world.folder.file("b/profile.json")))
    let status = try world.done("status", "a")
    #expect(Set(status.keys).isSuperset(of: ["pending", "parked", "lastSync", "identity", "state"]))
    let sync = try world.done("sync", "a")
    #expect(
      Set(sync.keys).isSuperset(of: ["saved", "deleted", "fetched", "removed", "conflicts", "parked", "quiet"]))
  }
}
