import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// The HTTP layer, byte by byte.
@Suite struct HTTPTests {
  private func head(_ body: String, _ more: String = "") -> String {
    "POST \(Peer.path)records/modify?ckSession=a%2Bb%2Fc%3D%3D HTTP/1.1\r\nHost: x\r\n\(more)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  @Test("W1: a chunked body is accepted, however it is cut")
  func chunked() throws {
    let peer = try Peer(.loopback)
    let connection = try RawConnection(port: peer.port)
    let body =
      #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}]}"#
    try connection.send(
      "POST \(Peer.path)records/modify?ckSession=a%2Bb%2Fc%3D%3D HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for byte in body.utf8 { try connection.send("1\r\n\(Character(UnicodeScalar(byte)))\r\n") }
    try connection.send("0\r\n\r\n")
    let answer = try connection.answer()
    #expect(answer.status == 200)
    #expect(try peer.changes().names == ["a"])
  }

  @Test("many requests on one connection; answers come in order")
  func keepAlive() throws {
    let peer = try Peer(.loopback)
    let connection = try RawConnection(port: peer.port)
    for i in 0..<50 {
      let body =
        #"{"zoneID":{"zoneName":"Notes"},"desiredKeys":[],"operations":[{"operationType":"create","record":{"recordName":"r\#(i)","recordType":"Note"}}]}"#
      try connection.send(head(body))
      let answer = try connection.answer()
      #expect(String(decoding: answer.body, as: UTF8.self).contains("\"r\(i)\""))
    }
    #expect(try peer.changes().names.count == 50)
  }

  @Test(
    "bad HTTP is refused and stores nothing",
    arguments: [
      ("two lengths", "Host: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
      ("length and chunks", "Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      ("no host", "Content-Length: 2\r\n\r\n{}"), ("two hosts", "Host: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}"),
      ("length no number", "Host: x\r\nContent-Length: 0x5\r\n\r\nhello"),
      ("body too large", "Host: x\r\nContent-Length: 99999999999\r\n\r\n"),
      ("a blank before the colon", "Host: x\r\nContent-Length : 5\r\n\r\nhello"),
      ("a tab before the colon", "Host: x\r\nContent-Length\t: 5\r\n\r\nhello"),
      ("a continued length", "Host: x\r\nContent-Length:\r\n 5\r\n\r\nhello"),
      ("a blank before the chunks", "Host: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
      ("chunks of another name", "Host: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
      ("chunks and more", "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
      ("negative length", "Host: x\r\nContent-Length: -1\r\n\r\n"),
    ])
  func refused(_ name: String, _ rest: String) throws {
    let peer = try Peer(.loopback)
    let connection = try RawConnection(port: peer.port)
    try connection.send("POST \(Peer.path)zones/list?ckSession=a%2Bb%2Fc%3D%3D HTTP/1.1\r\n" + rest)
    // Either an answer of 4xx or a closed connection; never a success.
    let status = try? connection.answer().status
    #expect(status.map { (400..<500).contains($0) } ?? true, "\(name): \(status ?? 0)")
    #expect(try peer.get("zones/list").status == 200)
  }

  @Test("what follows a refused request on its connection is not read as another")
  func nothingSmuggled() throws {
    let peer = try Peer(.loopback)
    for head in [
      "Content-Length : 36", "Content-Length:\r\n 36", "Transfer-Encoding : chunked",
      "Content-Length: 1\r\nContent-Length: 2",
    ] {
      let connection = try RawConnection(port: peer.port)
      let hidden = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
      try connection.send(
        "POST \(Peer.path)zones/list?ckSession=a%2Bb%2Fc%3D%3D HTTP/1.1\r\nHost: x\r\n\(head)\r\n\r\n\(hidden)")
      #expect(try connection.answer().status == 400, "\(head)")
      #expect(throws: (any Error).self, "\(head)") { try connection.answer() }
    }
    #expect(try peer.call("POST", "/health", query: "").code == "BAD_REQUEST")
    #expect(try peer.call("{}GET", "/health", query: "").status == 400)
  }

  @Test("health, response headers and status of errors")
  func headers() throws {
    let peer = try Peer(.loopback)
    #expect(try peer.call("GET", "/health", query: "")["status"]?.string == "ok")
    let reply = try peer.post("zones/list")
    #expect(reply.headers["content-type"] == "application/json; charset=UTF-8")
    #expect(reply.headers["x-apple-request-uuid"]?.count == 36)
    #expect(try peer.post("zones/list").headers["x-apple-request-uuid"] != reply.headers["x-apple-request-uuid"])
  }

  @Test("concurrent connections: every save is stored once, pages miss nothing")
  func concurrent() throws {
    let peer = try Peer(.loopback)
    let port = peer.port
    let failures = Failures()
    DispatchQueue.concurrentPerform(iterations: 8) { worker in
      do {
        let connection = try RawConnection(port: port)
        for i in 0..<25 {
          let body =
            #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"create","record":{"recordName":"w\#(worker)-\#(i)","recordType":"Note"}}]}"#
          try connection.send(
            "POST \(Peer.path)records/modify?ckSession=a%2Bb%2Fc%3D%3D HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
          )
          let answer = try connection.answer()
          if answer.status != 200 || String(decoding: answer.body, as: UTF8.self).contains("serverErrorCode") {
            failures.add("\(worker)-\(i)")
          }
        }
      } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    #expect(Set(try peer.changes(query: "cairn=page%3D1000").names).count == 200)
  }

  @Test("a stop lets running requests finish and leaves no connection hanging")
  func stopping() throws {
    let peer = try Peer(.loopback)
    let idle = try RawConnection(port: peer.port)
    try idle.send(head("{}"))
    #expect(try idle.answer().status == 200)
    try peer.restart()
    #expect(throws: RawConnection.Failure.self) { try idle.answer() }
    #expect(try peer.changes().names == [])
  }

  private final class Failures: @unchecked Sendable {
    // `list` is guarded by `lock`.
    private let lock = NSLock()
    private var list: [String] = []
    func add(_ text: String) { lock.withLock { list.append(text) } }
    var all: [String] { lock.withLock { list } }
  }
}
