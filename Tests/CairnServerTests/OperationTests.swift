import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer

/// What operators see and set: metrics, the request log, limits, the end.
@Suite struct OperationTests {
  /// A server with one user on a loopback socket.
  private final class Served {
    let server: RunningServer
    let port: UInt16
    let lines = Lines()

    init(_ change: (inout HTTPSettings) -> Void = { _ in }) throws {
      let storage = try SQLiteStorage.inMemory()
      let users = UserDirectory(storage: storage)
      _ = try users.add("anna")
      try users.addToken(hash: WebAuthToken.hash("SECRETTOKEN"), for: "anna")
      var http = HTTPSettings()
      http.writeLog = { [lines] in lines.add($0) }
      change(&http)
      server = try RunningServer.start(storage: storage, listen: ListenAddress(port: 0), http: http)
      port = try #require(UInt16(server.url.split(separator: ":").last ?? ""))
    }

    func post(_ operation: String, _ body: String, query: String = "ckWebAuthToken=SECRETTOKEN") throws -> RawConnection
    {
      let connection = try RawConnection(port: port)
      try connection.send(
        "POST /database/1/iCloud.test/production/private/\(operation)?\(query) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      )
      return connection
    }
  }

  private final class Lines: @unchecked Sendable {
    // `bytes` is guarded by `lock`.
    private let lock = NSLock()
    private var bytes: [UInt8] = []
    func add(_ more: [UInt8]) { lock.withLock { bytes += more } }
    var text: String { lock.withLock { String(decoding: bytes, as: UTF8.self) } }
  }

  private static let save =
    #"{"operations":[{"operationType":"forceReplace","record":{"recordName":"SECRETNAME","recordType":"SECRETTYPE","fields":{"SECRETFIELD":{"value":"SECRETVALUE"}}}}]}"#

  @Test("clients that wait for changes cost no thread each, however many they are")
  func manyWait() throws {
    let count = 1_500
    try OpenFiles.allow(connections: 2 * count)
    let storage = try SQLiteStorage.inMemory()
    let users = UserDirectory(storage: storage)
    var settings = ServerSettings()
    settings.waitingPolls = count
    // None ends before all are there, however slow the machine is.
    settings.pollHold = 600_000
    var http = HTTPSettings()
    http.connections = count + 100
    let server = try RunningServer.start(
      storage: storage, listen: ListenAddress(port: 0), settings: settings, http: http)
    defer { server.stop() }
    let port = try #require(UInt16(server.url.split(separator: ":").last ?? ""))
    let threads = try Self.threads()
    var waiting: [RawConnection] = []
    for number in 0..<count {
      // A user has a hundred addresses.
      let name = "user\(number / 100)"
      if number % 100 == 0 {
        _ = try users.add(name)
        try users.addToken(hash: WebAuthToken.hash(name), for: name)
      }
      let connection = try RawConnection(port: port)
      let path = "/database/1/iCloud.test/production/private/tokens/create?ckWebAuthToken=\(name)"
      let body = #"{"apnsEnvironment":"production"}"#
      try connection.send("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      let address = try #require(JSONValue(parsing: connection.answer().body)["webcourierURL"]?.string)
      let start = try #require(address.firstRange(of: "/courier/"))
      try connection.send("GET \(address[start.lowerBound...]) HTTP/1.1\r\nHost: x\r\n\r\n")
      waiting.append(connection)
    }
    let allWait = eventually { server.core.notifications.waiting == count }
    try #require(allWait, "\(server.core.notifications.waiting) of \(count) wait")
    // Others run beside this test: their threads are allowed for.
    #expect(try Self.threads() < threads + count / 10)
    #expect(waiting.allSatisfy { !$0.hasEnded })
  }

  private static func threads() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
  }

  @Test("the request log has a line per answer, and nothing secret of any request")
  func requestLog() throws {
    let served = try Served { $0.logsRequests = true }
    #expect(try served.post("records/modify", Self.save).answer().status == 200)
    #expect(
      try served.post("records/modify", "{SECRETBODY", query: "ckWebAuthToken=SECRETTOKEN&x=SECRETQUERY").answer()
        .status == 400)
    #expect(try served.post("records/SECRETPATH", "").answer().status == 404)
    #expect(
      try served.post("zones/list", "", query: "ckWebAuthToken=SECRETWRONG&ckAPIToken=SECRETAPP").answer().status == 401
    )
    for path in [
      "/asset/SECRETTICKET", "/courier/SECRETCOURIER", "/asset-upload/SECRETUPLOAD", "/SECRETPATH?SECRETQUERY",
    ] {
      let connection = try RawConnection(port: served.port)
      try connection.send(
        "GET \(path) HTTP/1.1\r\nHost: SECRETHOST\r\nX-Y: SECRETHEADER\r\nUser-Agent: SECRETAGENT\r\n\r\n")
      #expect((400..<500).contains(try connection.answer().status))
    }
    let refused = try RawConnection(port: served.port)
    try refused.send("SECRETMETHOD /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
    _ = try? refused.answer()
    served.server.stop()
    let text = served.lines.text
    #expect(!text.contains("SECRET"), "\(text)")
    let lines = try text.split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    #expect(lines.count == 9)
    let first = try #require(lines.first)
    #expect(
      first["operation"]?.string == "records/modify" && first["status"] == .integer(200)
        && first["remote"]?.string == "127.0.0.1")
    #expect(first["user"]?.string?.hasPrefix("_") == true && first["container"]?.string == "iCloud.test")
    #expect(lines[1]["code"]?.string == "BAD_REQUEST" && lines[3]["code"]?.string == "AUTHENTICATION_FAILED")
    #expect(Set(lines.compactMap { $0["uuid"]?.string }).count == 9)
  }

  @Test("metrics count answers by operation and code, on an address of their own")
  func metrics() throws {
    let served = try Served { $0.metrics = ListenAddress(port: 0) }
    for _ in 0..<3 { #expect(try served.post("records/modify", Self.save).answer().status == 200) }
    #expect(try served.post("records/modify", "{").answer().status == 400)
    let url = try #require(served.server.metricsURL)
    let port = try #require(UInt16(url.split(separator: ":").last?.prefix { $0 != "/" } ?? ""))
    func get(_ path: String, port: UInt16) throws -> (Int, String) {
      let connection = try RawConnection(port: port)
      try connection.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
      let answer = try connection.answer()
      return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }
    let (status, text) = try get("/metrics", port: port)
    #expect(status == 200)
    #expect(text.contains(#"cairn_requests_total{operation="records/modify",status="200",code=""} 3"#))
    #expect(text.contains(#"cairn_requests_total{operation="records/modify",status="400",code="BAD_REQUEST"} 1"#))
    #expect(text.contains(#"cairn_request_duration_seconds_bucket{operation="records/modify",le="+Inf"} 4"#))
    #expect(text.contains(#"cairn_request_duration_seconds_count{operation="records/modify"} 4"#))
    for name in [
      "cairn_waiting_polls 0", "cairn_queued_writes 0", "cairn_connections ", "process_resident_memory_bytes ",
    ] {
      #expect(text.contains("\n\(name)"), "\(name)")
    }
    // Every line is a comment or a name with a number, as Prometheus reads it.
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      #expect(Double(line.split(separator: " ").last ?? "") != nil, "\(line)")
    }
    #expect(try get("/health", port: port) == (200, #"{"status":"ok"}"#))
    #expect(try get("/health", port: served.port).0 == 200)
    // Not where clients come in, and nothing else where metrics are.
    #expect(try get("/metrics", port: served.port).0 == 404)
    #expect(
      try get("/database/1/iCloud.test/production/private/zones/list?ckWebAuthToken=SECRETTOKEN", port: port).0 == 404)
    served.server.stop()
  }

  @Test("histograms sum up, and every duration has its place")
  func histogram() {
    let metrics = ServerMetrics()
    for seconds in [0.0005, 0.001, 0.2, 100] { metrics.count("x", status: 200, code: nil, seconds: seconds) }
    let text = metrics.text([])
    for (bound, count) in [("0.001", 2), ("0.1", 2), ("0.25", 3), ("60.0", 3), ("+Inf", 4)] {
      #expect(
        text.contains(#"cairn_request_duration_seconds_bucket{operation="x",le="\#(bound)"} \#(count)"#), "\(bound)")
    }
  }

  @Test("requests that trickle in are cut off, whatever part comes slowly; others go on", .timeLimit(.minutes(10)))
  func slowRequests() throws {
    let served = try Served { $0.requestSeconds = 3 }
    let path = "/database/1/iCloud.test/production/private/zones/list?ckWebAuthToken=SECRETTOKEN"
    // What each begins with, and what trickles in after it: a header, a body, a body in chunks.
    var open = try [
      ("\r\n", "X-A: b\r\n"), ("\r\nContent-Length: 100000\r\n\r\n", " "),
      ("\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"),
    ].map { start, piece -> (RawConnection, String) in
      let connection = try RawConnection(port: served.port)
      try connection.send("POST \(path) HTTP/1.1\r\nHost: x" + start)
      return (connection, piece)
    }
    var next = ContinuousClock.now
    let areCutOff = eventually {
      guard ContinuousClock.now >= next else { return false }
      // So slowly that it is not the size of anything that ends them.
      next = ContinuousClock.now + .milliseconds(100)
      open.removeAll { connection, piece in
        do { try connection.send(piece) } catch { return true }
        return connection.hasEnded
      }
      return open.isEmpty
    }
    #expect(areCutOff, "\(open.map { $0.1 }) trickle on")
    #expect(try served.post("zones/list", "{}").answer().status == 200)
    served.server.stop()
  }

  @Test("clients that go in the middle of a request keep nobody out", .timeLimit(.minutes(10)))
  func abandoned() throws {
    // Their time is not over before the test is.
    let served = try Served { $0.requestSeconds = 600 }
    let start = ContinuousClock.now
    for _ in 0..<3 {
      // As many as there may be, gone before anything is whole.
      for _ in 0..<1_100 {
        let connection = try RawConnection(port: served.port)
        try connection.send("POST /database/1/iCloud.test/production/private/zones/list HTTP/1.1\r\nHost: x\r\n")
      }
      #expect(try served.post("zones/list", "{}").answer().status == 200)
    }
    // A connection that nobody looks at goes after a minute: three times that is what there would be to wait for.
    let time = ContinuousClock.now - start
    #expect(time < .seconds(150), "\(time)")
    // A client that has said all that it has to say, and waits for the answer, is none of these.
    let half = try served.post("zones/list", "{}")
    half.endSending()
    #expect(try half.answer().status == 200)
    served.server.stop()
  }

  @Test("a connection that is answered late is not cut off: a poll may wait", .timeLimit(.minutes(10)))
  func patience() throws {
    let served = try Served { $0.requestSeconds = 2 }
    let made = try served.post("tokens/create", "{}").answer().body
    let url = try #require(try JSONValue(parsing: made)["webcourierURL"]?.string)
    let token = try #require(url.split(separator: "/").last)
    let poll = try RawConnection(port: served.port)
    try poll.send("GET /courier/\(token) HTTP/1.1\r\nHost: x\r\n\r\n")
    let subscription =
      #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"all","subscriptionType":"database"}}]}"#
    #expect(try served.post("subscriptions/modify", subscription).answer().status == 200)
    // Begun later than the poll, and cut off: the time of both is over.
    let silent = try RawConnection(port: served.port)
    try silent.send("POST /database/1/iCloud.test/production/private/zones/list HTTP/1.1\r\nHost: x\r\n")
    #expect(eventually { silent.hasEnded })
    #expect(!poll.hasEnded)
    #expect(try served.post("records/modify", Self.save).answer().status == 200)
    #expect(try poll.answer().status == 200)
    served.server.stop()
  }

  @Test("an address has no more connections than it may", .timeLimit(.minutes(10)))
  func connectionsPerAddress() throws {
    let served = try Served { $0.connectionsPerAddress = 3 }
    var open: [RawConnection] = []
    for _ in 0..<3 {
      let connection = try served.post("zones/list", "{}")
      #expect(try connection.answer().status == 200)
      open.append(connection)
    }
    #expect(throws: RawConnection.Failure.self) { try served.post("zones/list", "{}").answer() }
    open.removeAll()
    // The places are free again once the server has noticed.
    #expect(eventually { (try? served.post("zones/list", "{}").answer().status) == 200 })
    served.server.stop()
  }

  @Test("a stop answers the request that is under way, and polls that wait", .timeLimit(.minutes(10)))
  func gracefulStop() throws {
    let served = try Served()
    let made = try served.post("tokens/create", "{}").answer().body
    let token = try #require(try JSONValue(parsing: made)["webcourierURL"]?.string?.split(separator: "/").last)
    let poll = try RawConnection(port: served.port)
    try poll.send("GET /courier/\(token) HTTP/1.1\r\nHost: x\r\n\r\n")
    // Half of a request is there when the stop begins; the other half comes while it waits.
    let half = try RawConnection(port: served.port)
    let body = Self.save
    try half.send(
      "POST /database/1/iCloud.test/production/private/records/modify?ckWebAuthToken=SECRETTOKEN HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
    )
    // The server has seen the request.
    #expect(try half.answer().status == 100)
    try half.send(String(body.prefix(20)))
    #expect(eventually { served.server.core.notifications.waiting == 1 })
    let stopped = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [server = served.server] in
      server.stop()
      stopped.signal()
    }
    let news = try poll.answer()
    #expect(news.status == 503 && String(decoding: news.body, as: UTF8.self).contains("TRY_AGAIN_LATER"))
    try half.send(String(body.dropFirst(20)))
    let answer = try half.answer()
    #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self).contains("recordChangeTag"))
    #expect(stopped.wait(timeout: .now() + .seconds(Patience.seconds)) == .success)
    #expect(throws: RawConnection.Failure.self) { try served.post("zones/list", "{}").answer() }
  }
}
