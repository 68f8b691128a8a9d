import CairnRecords
import CairnServerCore
import Foundation
import Testing

@testable import CairnServer

/// Starting, stopping and administering a server on a data folder.
@Suite struct RunningTests {
  private func folder() -> String { NSTemporaryDirectory() + "cairn-server-\(UUID().uuidString)" }

  @Test("users are managed while a server runs; tokens work at once and end at once")
  func users() throws {
    let data = folder()
    defer { try? FileManager.default.removeItem(atPath: data) }
    let server = try RunningServer.start(data: data, listen: ListenAddress(port: 0))
    let users = try UserAdministration(data: data)
    let anna = try users.add("anna")
    #expect(try server.core.caller(tokenHash: WebAuthToken.hash(anna.token)) == anna.user)
    let second = try users.token(for: "anna")
    #expect(try server.core.caller(tokenHash: WebAuthToken.hash(second.token)) == anna.user)
    let third = try users.token(for: "anna", replacing: true)
    #expect(try server.core.caller(tokenHash: WebAuthToken.hash(anna.token)) == nil)
    #expect(try server.core.caller(tokenHash: WebAuthToken.hash(third.token)) == anna.user)
    #expect(throws: CloudError(.exists, "User 'anna' exists")) { try users.add("anna") }
    #expect(try users.list().map(\.name) == ["anna"])
    try users.remove("anna")
    #expect(try server.core.caller(tokenHash: WebAuthToken.hash(third.token)) == nil)
    #expect(throws: CloudError(.notFound, "There is no user 'anna'")) { try users.remove("anna") }
    users.close()
    server.stop()
  }

  @Test("a server that nobody holds any more, such as that of a test that failed, stops as if it were told to")
  func dropped() throws {
    let data = folder()
    defer { try? FileManager.default.removeItem(atPath: data) }
    func serve(_ port: UInt16 = 0) throws -> (port: UInt16, client: RawConnection) {
      let server = try RunningServer.start(data: data, listen: ListenAddress(port: port))
      let port = try #require(UInt16(server.url.split(separator: ":").last ?? ""))
      // Nothing else holds it, and it must not go before it has answered.
      defer { withExtendedLifetime(server) {} }
      let client = try RawConnection(port: port)
      try client.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try client.answer().status == 200)
      return (port, client)
    }
    let (port, client) = try serve()
    #expect(client.hasEnded)
    #expect(try serve(port).port == port)
  }

  @Test("the token is not in the data, only its hash")
  func tokenIsNotStored() throws {
    let data = folder()
    defer { try? FileManager.default.removeItem(atPath: data) }
    let users = try UserAdministration(data: data)
    let token = try users.add("anna").token
    users.close()
    let bytes = try Data(contentsOf: URL(fileURLWithPath: data + "/cairn.db"))
    #expect(bytes.range(of: Data(token.utf8)) == nil)
    #expect(bytes.range(of: Data(WebAuthToken.hash(token))) != nil)
  }

  @Test("SHA-256 is that of the standard")
  func hash() {
    let hex = WebAuthToken.hash("abc").map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    #expect(hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  @Test("a second server on the same folder, and a port in use, are refused with a remedy")
  func refusals() throws {
    let data = folder()
    defer { try? FileManager.default.removeItem(atPath: data) }
    let server = try RunningServer.start(data: data, listen: ListenAddress(port: 0))
    let port = try #require(UInt16(server.url.split(separator: ":").last ?? ""))
    do {
      _ = try RunningServer.start(data: data, listen: ListenAddress(port: 0))
      Issue.record("started twice on one folder")
    } catch { #expect(error.sentence == "another server runs on \(data), or a command works on it") }
    let other = folder()
    defer { try? FileManager.default.removeItem(atPath: other) }
    do {
      _ = try RunningServer.start(data: other, listen: ListenAddress(port: port))
      Issue.record("started twice on one port")
    } catch { #expect(error.description.contains("Address already in use")) }
    // A start that failed holds nothing.
    try RunningServer.start(data: other, listen: ListenAddress(port: 0)).stop()
    server.stop()
    try RunningServer.start(data: data, listen: ListenAddress(port: port)).stop()
  }

  @Test("a folder that cannot be used is one clear error")
  func unusableFolder() throws {
    let file = folder()
    _ = FileManager.default.createFile(atPath: file, contents: Data("x".utf8))
    defer { try? FileManager.default.removeItem(atPath: file) }
    do {
      _ = try RunningServer.start(data: file, listen: ListenAddress(port: 0))
      Issue.record("started on a file")
    } catch { #expect(error.description.contains("is a file, not a folder")) }
    do {
      _ = try DataDirectory(file + "/below")
      Issue.record("created a folder below a file")
    } catch { #expect(error.description.contains("can't be created")) }
  }

  @Test(
    "listen addresses",
    arguments: [
      ("8420", "127.0.0.1", 8420), ("0.0.0.0:80", "0.0.0.0", 80), ("[::1]:1", "::1", 1), (":5", "0.0.0.0", 5),
      ("localhost:0", "localhost", 0),
    ] as [(String, String, UInt16)])
  func addresses(_ text: String, _ host: String, _ port: UInt16) {
    #expect(ListenAddress(text) == ListenAddress(host: host, port: port))
  }

  @Test("what is no listen address", arguments: ["", "x", "host:", "host:70000", "1:2:x"])
  func noAddresses(_ text: String) { #expect(ListenAddress(text) == nil) }
}
