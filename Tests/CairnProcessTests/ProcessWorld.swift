import Foundation
import ProcessSupport
import Testing

/// A real server with one user, and database files that sync with it through the built `cairn`.
///
/// Use it from one thread at a time.
final class ProcessWorld {
  /// Heavy versions of the tests run with `CAIRN_SOAK=1` (docs/guides/contributing.md).
  static let isSoak = ProcessInfo.processInfo.environment["CAIRN_SOAK"] == "1"

  let folder: TemporaryFolder
  let data: String
  private(set) var token: String
  private(set) var url = ""
  private(set) var server: RunningProcess
  private var listen = "127.0.0.1:0"
  private let serveWords: [String]

  /// - Parameters:
  ///   - data: the server's folder, where it is not to lie in the world's own.
  ///   - serve: more words for `cairn serve`.
  init(data: String? = nil, serve: [String] = []) throws {
    folder = try TemporaryFolder()
    self.data = data ?? folder.file("server")
    serveWords = serve
    server = try RunningProcess(Programs.cairn(), ["serve", "--data", self.data, "--listen", listen] + serve)
    token = ""
    url = try server.waitForLine("listening on ")
    listen = url.components(separatedBy: "://").last ?? ""
    token = try addUser("ada")
  }

  func addUser(_ name: String) throws -> String {
    let result = try run("user", "add", name, "--data", data, "--json")
    return try #require(try Self.object(result.output)["token"] as? String)
  }

  /// Makes a new token and ends the earlier ones.
  func replaceToken() throws {
    let result = try run("user", "token", "ada", "--data", data, "--replace", "--json")
    token = try #require(try Self.object(result.output)["token"] as? String)
  }

  // MARK: The server

  func stopServer(_ signal: Int32 = SIGKILL) throws {
    server.signal(signal)
    try server.waitUntilExit()
  }

  /// Starts it again under the same address.
  func startServer() throws {
    server = try RunningProcess(Programs.cairn(), ["serve", "--data", data, "--listen", listen] + serveWords)
    _ = try server.waitForLine("listening on ")
  }

  /// The records of rows that the server holds, by name; each name twice if it held one twice.
  func recordNames() throws -> [String] {
    try query(
      "SELECT name FROM record WHERE died IS NULL AND type <> 'cairn_table' ORDER BY name", in: data + "/cairn.db"
    )
    .split(separator: "\n").map(String.init)
  }

  // MARK: Programs

  /// The environment of every `cairn` here: tokens lie in the world's folder.
  var environment: [String: String] { ["XDG_CONFIG_HOME": folder.file("config"), "CAIRN_TOKEN": ""] }

  @discardableResult
  func run(
    _ arguments: String..., environment more: [String: String] = [:], limit: Duration = Patience.limit
  ) throws -> RunningProcess.Result {
    try run(arguments, environment: more, limit: limit)
  }

  @discardableResult
  func run(
    _ arguments: [String], environment more: [String: String] = [:], limit: Duration = Patience.limit
  ) throws -> RunningProcess.Result {
    try Programs.runCairn(arguments, environment: environment.merging(more) { $1 }, limit: limit)
  }

  func start(_ arguments: String...) throws -> RunningProcess {
    try RunningProcess(Programs.cairn(), arguments, environment: environment)
  }

  /// Runs SQL in the `sqlite3` shell and returns what it prints.
  @discardableResult
  func query(_ sql: String, in database: String) throws -> String {
    let result = try Programs.runSQL(".timeout 60000\n" + sql, in: database)
    #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
    return result.output
  }

  // MARK: Devices

  /// A database file made by the shell.
  func database(_ name: String, _ sql: String) throws -> String {
    let path = folder.file(name)
    try query(sql, in: path)
    return path
  }

  /// The words of `cairn init` for a file.
  func initWords(_ path: String, _ more: String..., url: String? = nil, token: String? = nil) -> [String] {
    ["init", "--server", url ?? self.url, "--token", token ?? self.token] + more + ["--json", "--", path]
  }

  /// Prepares a file, and expects that it works.
  @discardableResult
  func prepare(_ path: String, _ mode: String, zone: String = "cairn") throws -> [String: Any] {
    let result = try run(initWords(path, "--mode", mode, "--zone", zone))
    #expect(result.status == 0, "\(result)")
    return try Self.object(result.output)
  }

  /// Syncs a file, and expects that it works; returns its JSON.
  @discardableResult
  func sync(_ path: String, codes: [Int32] = [0]) throws -> [String: Any] {
    let result = try run("sync", "--json", "--", path)
    #expect(codes.contains(result.status), "\(result)")
    return try Self.object(result.output)
  }

  func status(_ path: String) throws -> [String: Any] {
    let result = try run("status", "--json", "--", path)
    #expect(result.status == 0, "\(result)")
    return try Self.object(result.output)
  }

  /// Syncs files in turn until a whole round does nothing.
  func syncUntilQuiet(_ paths: String..., rounds: Int = 12) throws {
    for _ in 0..<rounds {
      var done = 0
      for path in paths {
        let report = try sync(path, codes: [0, 3])
        for key in ["saved", "deleted", "fetched", "removed", "pending"] { done += report[key] as? Int ?? 0 }
      }
      if done == 0 { return }
    }
    Issue.record("not quiet after \(rounds) rounds")
  }

  /// Expects that SQLite finds nothing wrong with a file.
  func expectHealthy(_ path: String) throws {
    #expect(try query("PRAGMA integrity_check; PRAGMA foreign_key_check;", in: path) == "ok\n")
  }

  static func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }
}

/// Expects one line with a remedy on standard error, nothing on standard output, and an exit code.
func expectRefusal(
  _ result: RunningProcess.Result, _ code: Int32, _ words: String..., sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(result.status == code, "\(result)", sourceLocation: sourceLocation)
  #expect(result.output.isEmpty, "\(result)", sourceLocation: sourceLocation)
  let lines = result.error.split(separator: "\n")
  #expect(lines.count == 1 && result.error.hasPrefix("cairn: "), "\(result)", sourceLocation: sourceLocation)
  #expect(result.error.dropFirst("cairn: ".count).contains(": "), "\(result)", sourceLocation: sourceLocation)
  for mark in ["Fatal", "Error Domain", "NSCocoa", "0x", "Optional("] {
    #expect(!result.error.contains(mark), "\(result)", sourceLocation: sourceLocation)
  }
  for word in words { #expect(result.error.contains(word), "\(result)", sourceLocation: sourceLocation) }
}
