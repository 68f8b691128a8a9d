import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer

/// `cairn server` and `cairn user quota` beside a running server.
@Suite struct AppProcessTests {
  /// A running server with one user, and words for programs and requests.
  private final class Served {
    let folder: TemporaryFolder
    let data: String
    let user: String
    let process: RunningProcess
    let port: UInt16

    init() throws {
      folder = try TemporaryFolder()
      data = folder.file("data")
      let added = try Programs.runCairn(["user", "add", "anna", "--data", data, "--json"])
      user = try #require(try JSONValue(parsing: Array(added.output.utf8))["token"]?.string)
      process = try RunningProcess(Programs.cairn(), ["serve", "--data", data, "--listen", "127.0.0.1:0"])
      port = try #require(try process.waitForLine("listening on ").split(separator: ":").last.flatMap { UInt16($0) })
    }

    func cairn(_ words: String...) throws -> JSONValue {
      let result = try Programs.runCairn(words + ["--data", data, "--json"])
      #expect(result.status == 0, "\(words): \(result.error)")
      return result.output.isEmpty ? .null : try JSONValue(parsing: Array(result.output.utf8))
    }

    func call(_ path: String, _ query: String, _ body: String = "{}", headers: [String: String] = [:]) throws -> String
    {
      let connection = try RawConnection(port: port)
      var head = "POST /database/1/iCloud.test/production/\(path)?\(query) HTTP/1.1\r\nHost: x\r\n"
      for (name, value) in headers { head += "\(name): \(value)\r\n" }
      try connection.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
      return String(decoding: try connection.answer().body, as: UTF8.self)
    }

    func stop() throws {
      process.signal(SIGTERM)
      #expect(try process.waitUntilExit().status == 0)
    }
  }

  @Test("web-services W17: API tokens are administered while a server runs, and work at once")
  func tokens() throws {
    let served = try Served()
    let token = try #require(
      try served.cairn(
        "server", "token", "add", "web", "--switch", "listType=LIST", "--switch", "strictKeys", "--origin",
        "https://a.org")["token"]?.string)
    #expect(token.count == 64)
    let listed = try #require(try served.cairn("server", "token", "list").list("tokens").first)
    #expect(
      listed["name"]?.string == "web"
        && listed["switches"] == .array([.string("listType=LIST"), .string("strictKeys")]))
    #expect(!"\(listed)".contains(token))
    #expect(try served.call("public/zones/list", "ckAPIToken=\(token)").contains("_defaultZone"))
    #expect(
      !(try served.call("private/zones/list", "ckAPIToken=\(token)&ckWebAuthToken=\(served.user)").contains("atomic")))
    _ = try served.cairn("server", "token", "remove", "web")
    #expect(try served.call("public/zones/list", "ckAPIToken=\(token)").contains("AUTHENTICATION_FAILED"))
    try served.stop()
  }

  @Test("web-services W7: keys are administered while a server runs, and work at once")
  func keys() throws {
    let served = try Served()
    let file = served.folder.file("key.pem")
    let made = try served.cairn("server", "key", "add", "job", "--generate", file)
    let keyID = try #require(made["keyID"]?.string)
    let key = try #require(P256Key(pem: try String(contentsOfFile: file, encoding: .utf8)))
    #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
    let date = Date().formatted(Date.ISO8601FormatStyle())
    let path = "/database/1/iCloud.test/production/public/users/caller"
    let hash = Data(SHA256Hash.of(Array("{}".utf8))).base64EncodedString()
    let signature = try #require(key.signature(of: Array("\(date):\(hash):\(path)".utf8)))
    let headers = [
      "X-Apple-CloudKit-Request-KeyID": keyID, "X-Apple-CloudKit-Request-ISO8601Date": date,
      "X-Apple-CloudKit-Request-SignatureV1": Data(signature).base64EncodedString(),
    ]
    #expect(try served.call("public/users/caller", "", headers: headers).contains("_" + keyID.prefix(32)))
    // The same key by its public half, which openssl takes out of the pair.
    let taken = try Programs.run("openssl", ["pkey", "-in", file, "-pubout", "-out", served.folder.file("public.pem")])
    #expect(taken.status == 0)
    let again = try Programs.runCairn([
      "server", "key", "add", "second", served.folder.file("public.pem"), "--data", served.data,
    ])
    #expect(again.status == 1 && again.error.contains("'job'"))
    #expect(try served.cairn("server", "key", "list").list("keys").first?["keyID"]?.string == keyID)
    _ = try served.cairn("server", "key", "remove", "job")
    #expect(
      try served.cairn("server", "key", "add", "second", served.folder.file("public.pem"))["keyID"]?.string == keyID)
    try served.stop()
  }

  @Test("web-services W39: quotas are set while a server runs, and hold at once")
  func quotas() throws {
    let served = try Served()
    let save = #"{"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}]}"#
    #expect(try served.cairn("user", "quota", "anna", "1K")["quota"] == .integer(1_000))
    #expect(
      try served.call("private/records/modify", "ckWebAuthToken=\(served.user)", save).contains("recordChangeTag"))
    _ = try served.cairn("user", "quota", "anna", "150")
    #expect(
      try served.call("private/records/modify", "ckWebAuthToken=\(served.user)", save.replacing("\"a\"", with: "\"b\""))
        .contains(
          "QUOTA_EXCEEDED"))
    let usage = try #require(try served.cairn("user", "list").list("users").first)
    #expect(usage["bytes"] == .integer(100) && usage["quota"] == .integer(150))
    _ = try served.cairn("user", "quota", "anna", "none")
    #expect(
      try served.call("private/records/modify", "ckWebAuthToken=\(served.user)", save.replacing("\"a\"", with: "\"b\""))
        .contains(
          "recordChangeTag"))
    try served.stop()
  }

  @Test("what cairn server and cairn user quota refuse, each with a remedy and exit code 1 or 2")
  func appRefusals() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    #expect(try Programs.runCairn(["user", "add", "anna", "--data", data]).status == 0)
    _ = try Data("no key".utf8).write(to: URL(fileURLWithPath: folder.file("bad.pem")))
    for (words, status, part) in [
      (["server", "token", "add", "x", "--switch", "nothing"], 2, "listType=LIST"),
      (["server", "token", "add", "x", "--switch", "largeBodyHash"], 2, "server-to-server key"),
      (["server", "token", "add", "x", "--origin", "example.org"], 2, "https://HOST"),
      (["server", "token", "add", "x", "--container", "x"], 2, "iCloud."),
      (["server", "token", "remove", "x"], 1, "cairn server token list"),
      (["server", "key", "add", "x"], 2, "--generate"),
      (["server", "key", "add", "x", folder.file("none.pem")], 1, "can't be read"),
      (["server", "key", "add", "x", folder.file("bad.pem")], 1, "openssl"),
      (["server", "key", "add", "x", "--generate", folder.file("bad.pem")], 1, "does not exist"),
      (["user", "quota", "anna", "many"], 2, "none"), (["user", "quota", "berta", "1"], 1, "cairn user list"),
    ] as [([String], Int32, String)] {
      let result = try Programs.runCairn(words + ["--data", data])
      #expect(
        result.status == status && result.error.contains(part) && result.output == "", "\(words): \(result.error)")
    }
    #expect(try Programs.runCairn(["server", "key"]).error.contains("cairn server key add"))
  }
}
