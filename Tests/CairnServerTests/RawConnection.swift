import Foundation
import ProcessSupport

#if canImport(Glibc)
  import Glibc
#endif

/// A TCP connection that sends exactly what a test says, and reads HTTP answers.
final class RawConnection {
  struct Failure: Error { var what: String }

  private let descriptor: Int32
  private var buffer: [UInt8] = []

  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else { throw Failure(what: "connect") }
    // A server that does not answer fails the test instead of holding it.
    var limit = timeval(tv_sec: Patience.seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure(what: "send") }
      sent += count
    }
  }

  /// Says that nothing more comes from here.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Whether the server has ended the connection. What it sends stays to be read.
  var hasEnded: Bool {
    var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&waited, 1, 0) > 0 else { return false }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK)) <= 0
  }

  /// The next answer: status, headers with names in lower case, body.
  func answer() throws -> (status: Int, headers: [String: String], body: [UInt8]) {
    let end = try read { self.headerEnd() }
    let lines = String(decoding: buffer[..<(end - 4)], as: UTF8.self).components(separatedBy: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    let length = headers["content-length"].flatMap { Int($0) } ?? 0
    _ = try read { self.buffer.count >= end + length ? end + length : nil }
    let body = Array(buffer[end..<end + length])
    buffer.removeFirst(end + length)
    let words = (lines.first ?? "").split(separator: " ")
    return (words.count > 1 ? Int(words[1]) ?? 0 : 0, headers, body)
  }

  private func headerEnd() -> Int? {
    guard buffer.count >= 4 else { return nil }
    for i in 0...(buffer.count - 4) where Array(buffer[i..<i + 4]) == [13, 10, 13, 10] { return i + 4 }
    return nil
  }

  /// Reads until `found` gives something.
  private func read(_ found: () -> Int?) throws -> Int {
    while true {
      if let place = found() { return place }
      var chunk = [UInt8](repeating: 0, count: 65_536)
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 else { throw Failure(what: "the connection ended") }
      buffer += chunk[..<count]
    }
  }
}
