import CairnEngine
import CairnRecords
import Foundation
import Testing

@testable import CairnClient

/// Errors that the engine must tell apart (engine section 10), and what a request looks like.
@Suite("Client and broken networks")
struct BrokenNetworkTests {
  static let token = "se+cr/et=="
  static let caller = #"{"users":[{"userRecordName":"_u"}],"userRecordName":"_u"}"#
  static let zone = ZoneID(name: "Z")

  func database(_ responder: TinyResponder) throws -> WebServicesDatabase {
    try database(port: responder.port)
  }

  func database(port: Int) throws -> WebServicesDatabase {
    WebServicesDatabase(
      ServiceOptions(server: try ServerURL(parsing: "http://127.0.0.1:\(port)"), token: Self.token))
  }

  /// The error of a call against one scripted action.
  func failure(_ action: TinyResponder.Action) throws -> CloudError {
    let responder = try TinyResponder([action])
    defer { responder.stop() }
    let database = try database(responder)
    let error = try #require(throws: CloudError.self) { try database.currentUser() }
    #expect(!error.reason.contains(Self.token) && !error.reason.contains("se%2Bcr"), "\(error)")
    return error
  }

  @Test("nobody listens: networkUnavailable")
  func closedPort() throws {
    let responder = try TinyResponder([])
    responder.stop()
    // The port is free again once the listener is closed, which the accept loop does.
    let database = try database(port: responder.port)
    var error: CloudError?
    for _ in 0..<100 where error?.code != .networkUnavailable {
      error = #expect(throws: CloudError.self) { try database.currentUser() }
    }
    #expect(error?.code == .networkUnavailable)
  }

  @Test("an unknown host: networkUnavailable, and the reason names it")
  func unknownHost() throws {
    let options = ServiceOptions(server: try ServerURL(parsing: "http://no-such-host.invalid"), token: Self.token)
    let error = #expect(throws: CloudError.self) { try WebServicesDatabase(options).currentUser() }
    #expect(error?.code == .networkUnavailable)
    #expect(error?.reason.contains("no-such-host.invalid") == true)
  }

  @Test(
    "answer cut at any place: serverResponseLost",
    arguments: [
      "", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"users\":",
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"use", "HTTP/1.1 200 OK\r\n\r\n{\"users\":[{\"userR",
    ])
  func cutAnswer(text: String) throws {
    #expect(try failure(.cut(text)).code == .serverResponseLost)
  }

  @Test("connection ends while a large request is sent: networkFailure")
  func cutRequest() throws {
    let responder = try TinyResponder([.answer(200, body: Self.caller), .endAfter(5000), .endAfter(5000)])
    defer { responder.stop() }
    let database = try database(responder)
    _ = try database.currentUser()
    let bytes = [UInt8](repeating: 7, count: 20_000_000)
    let record = Record(id: RecordID(name: "r", zone: Self.zone), type: "T", fields: ["b": .bytes(bytes)])
    let error = #expect(throws: CloudError.self) {
      try database.modify(in: Self.zone, [RecordOperation(.create, record)], atomic: false)
    }
    #expect(error?.code == .networkFailure, "\(String(describing: error))")
  }

  @Test(
    "what is no such server says so",
    arguments: [
      (200, "<html>Welcome to nginx</html>"), (404, "<html>Not Found</html>"), (200, ""), (403, "go away"), (400, "{}"),
      (404, "[]"), (200, "\u{0}\u{1}"),
    ])
  func garbage(status: Int, body: String) throws {
    let error = try failure(.answer(status, headers: ["Content-Type: text/html"], body: body))
    #expect(error.code == .undecodableAnswer)
    #expect(error.reason.contains("does not answer like a Cairn or CloudKit server"), "\(error)")
  }

  @Test("garbage instead of HTTP is no success")
  func notHTTP() throws {
    let error = try failure(.cut("SSH-2.0-OpenSSH_9.2\r\n"))
    #expect([.undecodableAnswer, .serverResponseLost].contains(error.code), "\(error)")
  }

  @Test(
    "statuses without an error code (tables section 7: 5xx counts as offline)",
    arguments: [
      (500, CloudError.Code.serverResponseLost), (502, .serverResponseLost), (504, .serverResponseLost),
      (503, .networkFailure), (429, .throttled), (401, .authenticationFailed), (421, .authenticationRequired),
      (413, .limitExceeded), (407, .networkUnavailable),
    ])
  func statuses(status: Int, code: CloudError.Code) throws {
    #expect(try failure(.answer(status, body: "<html>")).code == code)
  }

  @Test("error codes win over statuses; unknown ones are INTERNAL_ERROR; the larger retryAfter counts")
  func codes() throws {
    let body = #"{"uuid":"1","serverErrorCode":"THROTTLED","reason":"slow","retryAfter":3}"#
    let throttled = try failure(.answer(429, headers: ["Retry-After: 7"], body: body))
    #expect(throttled.code == .throttled && throttled.retryAfter == 7)
    let longer = try failure(.answer(429, headers: ["Retry-After: 2"], body: body))
    #expect(longer.retryAfter == 3)
    let unknown = try failure(.answer(500, body: #"{"serverErrorCode":"SOMETHING_NEW","reason":"x"}"#))
    #expect(unknown.code == .internalError && unknown.reason.contains("SOMETHING_NEW"))
    let signIn = try failure(
      .answer(421, body: #"{"serverErrorCode":"AUTHENTICATION_REQUIRED","redirectURL":"https://s/1"}"#))
    #expect(signIn.code == .authenticationRequired && signIn.redirectURL == "https://s/1")
  }

  @Test("redirects are not followed, and their query is not shown")
  func redirect() throws {
    let other = try TinyResponder([.answer(200, body: Self.caller)])
    defer { other.stop() }
    let place = "http://127.0.0.1:\(other.port)/x?ckWebAuthToken=se%2Bcr%2Fet%3D%3D"
    let error = try failure(.answer(302, headers: ["Location: \(place)"], body: ""))
    #expect(error.code == .undecodableAnswer && error.reason.contains("redirects to http://127.0.0.1"))
    #expect(other.requests.isEmpty)
  }

  @Test("a silent server is given up after the stall time: serverResponseLost")
  func stall() throws {
    let responder = try TinyResponder([.silence])
    defer { responder.stop() }
    let transport = CurlTransport(caFile: nil, acceptsGzip: false, stallTimeout: 1)
    let options = ServiceOptions(server: try ServerURL(parsing: "http://127.0.0.1:\(responder.port)"), token: "t")
    let error = #expect(throws: CloudError.self) {
      try WebServicesDatabase(options, transport: transport).currentUser()
    }
    #expect(error?.code == .serverResponseLost)
  }

  @Test("cancel ends a waiting call at once, and every later one")
  func cancel() throws {
    let responder = try TinyResponder([.silence])
    defer { responder.stop() }
    let database = try database(responder)
    Thread.detachNewThread {
      responder.waitForRequest()
      database.cancel()
    }
    let clock = ContinuousClock()
    let start = clock.now
    let error = #expect(throws: CloudError.self) { try database.currentUser() }
    #expect(error?.code == .cancelled)
    // Long before the silence is given up.
    #expect(clock.now - start < .seconds(20))
    let later = #expect(throws: CloudError.self) { try database.currentUser() }
    #expect(later?.code == .cancelled)
  }
}
