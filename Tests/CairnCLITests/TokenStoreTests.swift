import Foundation
import Testing

@testable import CairnCLI

/// DESIGN section 7: where the token is kept and found.
@Suite struct TokenStoreTests {
  private func withStore(_ body: (TokenStore, _ base: String) throws -> Void) throws {
    let base = NSTemporaryDirectory() + "cairn-tokens-\(UUID())"
    defer { try? FileManager.default.removeItem(atPath: base) }
    try body(TokenStore(environment: ["XDG_CONFIG_HOME": base]), base)
  }

  private func mode(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber).intValue
  }

  @Test func tokensAreKeptByServerAndIdentity() throws {
    try withStore { store, _ in
      #expect(try store.token(server: "http://h:1", identity: "a") == nil)
      try store.store("t1", server: "http://h:1", identity: "a")
      try store.store("t2", server: "http://h:1", identity: "b")
      try store.store("t3", server: "http://h:2", identity: "a")
      try store.store("t4", server: "HTTP://H:1/", identity: "a")
      #expect(try store.token(server: "http://h:1", identity: "a") == "t4")
      #expect(try store.token(server: "http://h:1/", identity: "b") == "t2")
      #expect(try store.identities(server: "http://h:1").sorted() == ["a", "b"])
      try store.remove(server: "http://h:1", identity: "a")
      #expect(try store.token(server: "http://h:1", identity: "a") == nil)
      #expect(try store.token(server: "http://h:2", identity: "a") == "t3")
    }
  }

  @Test func onlyTheUserCanReadThem() throws {
    try withStore { store, base in
      let old = umask(0)
      defer { umask(old) }
      try store.store("t", server: "http://h", identity: "a")
      #expect(try mode(store.directory) == 0o700)
      #expect(try mode(store.path) == 0o600)
      #expect(chmod(store.path, 0o644) == 0)
      try store.store("t", server: "http://h", identity: "b")
      #expect(try mode(store.path) == 0o600)
      #expect(try FileManager.default.contentsOfDirectory(atPath: base + "/cairn") == ["credentials.json"])
    }
  }

  @Test(arguments: ["", "{", "[]", #"{"version":1}"#, "\u{0}\u{1}", #"{"version":1,"credentials":[{"server":3}]}"#])
  func aMalformedFileIsNamedAndKept(text: String) throws {
    try withStore { store, _ in
      try FileManager.default.createDirectory(atPath: store.directory, withIntermediateDirectories: true)
      try Data(text.utf8).write(to: URL(fileURLWithPath: store.path))
      let expected = CommandError(
        .failed, "\(store.path) is not a credentials file of cairn",
        remedy: "repair or move it away, and give the token again with cairn init DB --token T")
      #expect(throws: expected) { try store.token(server: "http://h", identity: "a") }
      #expect(throws: expected) { try store.store("t", server: "http://h", identity: "a") }
      #expect(try String(contentsOfFile: store.path, encoding: .utf8) == text)
    }
  }

  @Test func aNewerFileIsNotOverwritten() throws {
    try withStore { store, _ in
      try FileManager.default.createDirectory(atPath: store.directory, withIntermediateDirectories: true)
      try Data(#"{"version":2,"credentials":[]}"#.utf8).write(to: URL(fileURLWithPath: store.path))
      #expect(
        throws: CommandError(.failed, "\(store.path) was written by a newer cairn (version 2)", remedy: "update cairn")
      ) {
        try store.store("t", server: "http://h", identity: "a")
      }
    }
  }

  @Test func writersAtTheSameTimeDontLoseTokens() async throws {
    let base = NSTemporaryDirectory() + "cairn-tokens-\(UUID())"
    defer { try? FileManager.default.removeItem(atPath: base) }
    let store = TokenStore(directory: base)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        group.addTask { try store.store("t\(number)", server: "http://h", identity: "\(number)") }
      }
      try await group.waitForAll()
    }
    #expect(try store.identities(server: "http://h").count == 16)
  }

  @Test func theFolderFollowsTheEnvironment() {
    #expect(TokenStore(environment: ["HOME": "/home/a"]).directory == "/home/a/.config/cairn")
    #expect(TokenStore(environment: ["HOME": "/home/a", "XDG_CONFIG_HOME": ""]).directory == "/home/a/.config/cairn")
    #expect(
      TokenStore(environment: ["HOME": "/home/a", "XDG_CONFIG_HOME": "rel"]).directory == "/home/a/.config/cairn")
    #expect(TokenStore(environment: ["XDG_CONFIG_HOME": "/x"]).directory == "/x/cairn")
  }

  @Test func theCommandLineComesBeforeTheEnvironment() {
    var line = CommandLineHarness()
    line.variables["CAIRN_TOKEN"] = "fromEnvironment"
    line.input = [" fromInput\r\n"]
    #expect(line.run("echo", "a.db", "--json").answer.contains(#""token":"fromEnvironment""#))
    #expect(line.run("echo", "a.db", "--json", "--token", "given").answer.contains(#""token":"given""#))
    #expect(line.run("echo", "a.db", "--json", "--token", "-").answer.contains(#""token":"fromInput""#))
    line.input = []
    #expect(line.run("echo", "a.db", "--json", "--token", "-").code == .usage)
    #expect(
      line.run("echo", "a.db", "--json", "--token", "a\r\nX: b").messages
        == "cairn: the token is empty or has spaces in it: give it as cairn user token prints it\n")
  }

  @Test func theEnvironmentOverridesTheStoredToken() throws {
    try withStore { store, base in
      try store.store("stored", server: "http://h", identity: "a")
      func token(_ variables: [String: String]) throws -> String {
        let sink = MemorySink()
        let context = CommandContext(
          output: Output(json: false, answer: sink, messages: sink),
          environment: variables.merging(["XDG_CONFIG_HOME": base]) { one, _ in one }, interruption: Interruption(),
          readInput: { nil })
        return try context.token(Arguments(), server: "http://h", identity: "a")
      }
      #expect(try token([:]) == "stored")
      #expect(try token(["CAIRN_TOKEN": "other"]) == "other")
    }
  }
}
