import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// One connection of a listener, and since when it has been waited for.
///
/// libmicrohttpd closes a connection that sends nothing for a while; one that sends a byte now and then it would keep
/// for ever. So whole requests have a deadline too:
///
/// ```
/// waiting ──request line──▶ receiving ──last byte──▶ working ──answered──▶ waiting
/// ```
final class HTTPConnection: Sendable {
  private enum Phase { case waiting, receiving, working }

  private struct State {
    var phase = Phase.waiting
    var since = MonotonicClock.now
    var received = 0
    var lastBytes = MonotonicClock.now
  }

  let descriptor: Int32
  /// Of the peer, as a number; of a proxy where one stands in front.
  let address: String
  private let state = Mutex(State())

  init(descriptor: Int32, address: UnsafePointer<sockaddr>?) {
    self.descriptor = descriptor
    self.address = address.map(HTTPConnection.text) ?? ""
  }

  /// A request line has come.
  func beginRequest() { enter(.receiving) }
  func receive(_ bytes: Int) {
    let now = MonotonicClock.now
    state.withLock { state in
      state.received += bytes
      state.lastBytes = now
    }
  }
  /// The request is there; how long the answer takes is not the client's fault.
  func endReceiving() { enter(.working) }
  func endRequest() { enter(.waiting) }

  private func enter(_ phase: Phase) { state.withLock { $0 = State(phase: phase) } }

  /// Whether the client has taken longer than it may.
  func isOverdue(_ limits: HTTPLimits, now: UInt64) -> Bool {
    let (phase, since, received) = state.withLock { ($0.phase, $0.since, $0.received) }
    let seconds = now > since ? Double(now - since) / 1_000_000_000 : 0
    switch phase {
    case .working: return false
    // Idle, and then a request line.
    case .waiting: return seconds > Double(limits.idleSeconds) + limits.requestSeconds
    case .receiving: return seconds > limits.requestSeconds + Double(received) / limits.slowestBytesPerSecond
    }
  }

  /// Whether the client has gone and nothing of it is left to read, while a request of it is waited for.
  ///
  /// libmicrohttpd looks no more when the last bytes and the end came together: it would keep the connection until its
  /// time is up, and a thousand of them would keep everybody else out.
  func isAbandoned(now: UInt64) -> Bool {
    let (phase, lastBytes) = state.withLock { ($0.phase, $0.lastBytes) }
    // What has just come may still be on its way to the handler.
    guard phase != .working, now > lastBytes + 1_000_000_000 else { return false }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
  }

  /// Whether the client has closed its side. The caller sees to it that the descriptor is still this connection's.
  var hasLeft: Bool {
    #if canImport(Glibc)
      // POLLRDHUP, also behind bytes that nobody has read, such as the goodbye of TLS.
      var state = pollfd(fd: descriptor, events: 0x2000, revents: 0)
      return poll(&state, 1, 0) > 0
    #else
      var byte: UInt8 = 0
      return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
    #endif
  }

  /// Ends the connection as if the client had. The caller sees to it that the descriptor is still this connection's.
  func cut() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  private static func text(_ address: UnsafePointer<sockaddr>) -> String {
    let length =
      Int32(address.pointee.sa_family) == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    var name = [CChar](repeating: 0, count: 64)
    let code = getnameinfo(address, socklen_t(length), &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
    guard code == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
