import Foundation
import Synchronization

/// A responder that breaks in the ways that networks do. It speaks no protocol: each request gets the next scripted
/// action. What servers do is tested against the real one.
final class TinyResponder: Sendable {
  enum Action: Sendable {
    /// A whole answer; the connection stays open.
    case answer(Int, headers: [String] = [], body: String)
    case bytes([UInt8])
    /// These bytes, then the connection ends.
    case cut(String)
    /// The connection ends after so many bytes of the request.
    case endAfter(Int)
    /// Nothing, until the responder stops.
    case silence
  }

  struct Request: Sendable {
    var head: String
    var body: [UInt8]
  }

  private struct State {
    var script: [Action]
    var requests: [Request] = []
    var connections: [Int32] = []
    var isStopped = false
    var isClosed = false
  }

  private let listener: Int32
  let port: Int
  private let arrivals = DispatchSemaphore(value: 0)
  private let state: Mutex<State>

  init(_ script: [Action]) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(listener, generic, length) == 0 && listen(listener, 16) == 0
          && getsockname(listener, generic, &length) == 0
      }
    }
    guard bound else { throw POSIXError(.EADDRNOTAVAIL) }
    port = Int(UInt16(bigEndian: address.sin_port))
    state = Mutex(State(script: script))
    Thread.detachNewThread { [self] in acceptLoop() }
  }

  /// Blocks until a request has come that no earlier call has waited for.
  func waitForRequest() { arrivals.wait() }

  var requests: [Request] { state.withLock { $0.requests } }
  var connectionCount: Int { state.withLock { $0.connections.count } }

  func stop() {
    let open = state.withLock { state in
      state.isStopped = true
      // Under the lock: once it is closed, its number may be another's.
      if !state.isClosed { shutdown(listener, Int32(SHUT_RDWR)) }
      return state.connections
    }
    for connection in open { shutdown(connection, Int32(SHUT_RDWR)) }
  }

  private func acceptLoop() {
    while true {
      let connection = accept(listener, nil, nil)
      guard connection >= 0, !state.withLock({ $0.isStopped }) else {
        state.withLock { state in
          state.isClosed = true
          close(listener)
        }
        return
      }
      state.withLock { $0.connections.append(connection) }
      Thread.detachNewThread { [self] in
        serve(connection)
        shutdown(connection, Int32(SHUT_RDWR))
      }
    }
  }

  private func serve(_ connection: Int32) {
    while true {
      let action = state.withLock { $0.script.first }
      if case .endAfter(let count) = action {
        state.withLock { _ = $0.script.removeFirst() }
        var chunk = [UInt8](repeating: 0, count: max(count, 1))
        if count > 0 { _ = recv(connection, &chunk, count, Int32(MSG_WAITALL)) }
        return
      }
      guard let request = readRequest(connection) else { return }
      let next = state.withLock { state -> Action in
        state.requests.append(request)
        return state.script.isEmpty ? .silence : state.script.removeFirst()
      }
      arrivals.signal()
      switch next {
      case .answer(let status, let headers, let body):
        let lines = ["HTTP/1.1 \(status) X", "Content-Length: \(body.utf8.count)"] + headers
        write(connection, Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
      case .bytes(let bytes): write(connection, bytes)
      case .cut(let text):
        write(connection, Array(text.utf8))
        return
      case .endAfter: return
      case .silence:
        // Returns when the other side, or stop(), ends the connection.
        var byte: UInt8 = 0
        _ = recv(connection, &byte, 1, 0)
        return
      }
    }
  }

  private func write(_ connection: Int32, _ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        send(connection, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  private func readRequest(_ connection: Int32) -> Request? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    let end = Array("\r\n\r\n".utf8)
    while true {
      if let headEnd = bytes.firstRange(of: end) {
        let head = String(decoding: bytes[..<headEnd.lowerBound], as: UTF8.self)
        let length =
          head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
          .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
        if bytes.count - headEnd.upperBound >= length {
          return Request(head: head, body: Array(bytes[headEnd.upperBound...].prefix(length)))
        }
      }
      let count = recv(connection, &chunk, chunk.count, 0)
      guard count > 0 else { return nil }
      bytes += chunk[..<count]
    }
  }
}
