import CairnTesting
import Foundation
import Synchronization

/// Passes connections on to a server, and cuts some of them after a random number of bytes in either direction.
///
/// Its threads end with its listening socket, in ``stop()``.
final class CuttingProxy: Sendable {
  /// Where it listens.
  let url: String
  private let listener: Int32
  private let target: UInt16
  private let random: SeededRandomness
  private let percent = Mutex(100)
  private let cuts = Mutex(0)

  /// Connections that were cut.
  var cutCount: Int { cuts.withLock { $0 } }

  init(to url: String, seed: UInt64) throws {
    random = SeededRandomness(seed: seed)
    target = UInt16(url.split(separator: ":").last ?? "") ?? 0
    let listener = socket(AF_INET, Self.stream, 0)
    self.listener = listener
    var address = Self.loopback(port: 0)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) == 0 }
    }
    guard isBound, listen(listener, 64) == 0 else { throw CocoaError(.fileReadUnknown) }
    var length = size
    _ = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) }
    }
    self.url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
    Thread { [self] in accept() }.start()
  }

  #if canImport(Glibc)
    private static let stream = Int32(SOCK_STREAM.rawValue)
  #else
    private static let stream = SOCK_STREAM
  #endif

  /// How many of 100 connections are cut from now on.
  func cut(percent: Int) { self.percent.withLock { $0 = percent } }

  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  private static func loopback(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }

  private func accept() {
    while true {
      let client = Foundation.accept(listener, nil, nil)
      guard client >= 0 else { return }
      serve(client)
    }
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Self.stream, 0)
    var address = Self.loopback(port: target)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else {
      close(client)
      close(server)
      return
    }
    let pair = SocketPair(client, server)
    let isCut = random.chance(percent: percent.withLock { $0 })
    // Small ones hit headers, large ones bodies.
    let budget = isCut ? 1 << random.below(18) + random.below(200) : Int.max
    let isUp = random.chance(percent: 50)
    Thread { [self] in pump(pair, client, server, isUp ? budget : Int.max) }.start()
    Thread { [self] in pump(pair, server, client, isUp ? Int.max : budget) }.start()
  }

  private func pump(_ pair: SocketPair, _ from: Int32, _ to: Int32, _ budget: Int) {
    var left = budget
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while left > 0 {
      let count = recv(from, &buffer, min(buffer.count, left), 0)
      guard count > 0 else { break }
      left -= count
      var sent = 0
      while sent < count {
        let written = buffer.withUnsafeBytes { send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL)) }
        guard written > 0 else { return pair.end() }
        sent += written
      }
    }
    if left == 0 { cuts.withLock { $0 += 1 } }
    pair.end()
  }
}

/// Two sockets that end together and are closed when both directions are done.
private final class SocketPair: Sendable {
  private let sockets: [Int32]
  private let ended = Mutex(0)

  init(_ first: Int32, _ second: Int32) { sockets = [first, second] }

  func end() {
    for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    let isLast = ended.withLock { ended in
      ended += 1
      return ended == 2
    }
    if isLast { for socket in sockets { close(socket) } }
  }
}
