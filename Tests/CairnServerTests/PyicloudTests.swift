import CairnWire
import Foundation
import ProcessSupport
import Testing

/// The Python that scripts/pyicloud makes ready; nil where it has not.
private enum Pyicloud {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
  static let python: String? = [root + "/.build/pyicloud/bin/python"].first(where: FileManager.default.isExecutableFile)
}

/// pyicloud's own client against a served folder, over TLS: Tests/Conformance/pyicloud_strict.py.
@Suite(.enabled(if: Pyicloud.python != nil, "there is no pyicloud: run scripts/pyicloud"))
struct PyicloudTests {
  /// A server with one user, and the words that the script wants.
  private final class Served {
    let folder: TemporaryFolder
    let process: RunningProcess
    let url: String
    let user: String
    let certificate: String

    init(_ more: [String] = []) throws {
      folder = try TemporaryFolder()
      let data = folder.file("data")
      certificate = folder.file("server.crt")
      let made = try Programs.run(
        "openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder.file("server.key"), "-out",
          certificate,
        ])
      #expect(made.status == 0, "\(made.error)")
      let added = try Programs.runCairn(["user", "add", "anna", "--data", data, "--json"])
      user = try #require(try JSONValue(parsing: Array(added.output.utf8))["token"]?.string)
      process = try RunningProcess(
        Programs.cairn(),
        [
          "serve", "--data", data, "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key",
          folder.file("server.key"),
        ] + more)
      url = try process.waitForLine("listening on ")
    }

    func app(_ name: String, _ more: String...) throws -> String {
      let made = try Programs.runCairn(
        ["server", "token", "add", name, "--data", folder.file("data"), "--json"] + more)
      return try #require(try JSONValue(parsing: Array(made.output.utf8))["token"]?.string)
    }

    func run(_ mode: String, app: String) throws -> RunningProcess.Result {
      try RunningProcess(
        Pyicloud.python ?? "",
        [Pyicloud.root + "/Tests/Conformance/pyicloud_strict.py", mode, url, certificate, app, user]
      ).waitUntilExit(limit: .seconds(580))
    }

    func stop() throws {
      process.signal(SIGTERM)
      #expect(try process.waitUntilExit().status == 0)
    }
  }

  @Test(
    "web-services W43: a strict run over zones, records of all types, conflicts, queries, changes, tombstones and assets (W2, W10, W13, W19–W22, W25, W26, W29–W33)",
    .timeLimit(.minutes(10)))
  func strict() throws {
    let served = try Served()
    let result = try served.run("strict", app: served.app("strict", "--switch", "strictKeys"))
    #expect(result.status == 0 && result.output.hasSuffix("all passed\n"), "\(result.output)\(result.error)")
    // What is strict about it: without the switch it stumbles over the first key that it does not know.
    let lax = try served.run("strict", app: served.app("lax"))
    #expect(lax.status == 1 && lax.error.contains("validation failed"), "\(lax.output)\(lax.error)")
    try served.stop()
  }

  @Test("web-services W40: too many requests raise rate-limited, with the time to wait", .timeLimit(.minutes(10)))
  func throttle() throws {
    let served = try Served(["--rate", "1"])
    let result = try served.run("throttle", app: served.app("strict", "--switch", "strictKeys"))
    #expect(result.status == 0 && result.output.hasSuffix("all passed\n"), "\(result.output)\(result.error)")
    try served.stop()
  }
}
