import Synchronization

/// The open connections of a listener.
final class HTTPPeers: Sendable {
  private let open = Mutex<[ObjectIdentifier: HTTPConnection]>([:])

  var count: Int { open.withLock { $0.count } }

  func add(_ peer: HTTPConnection) { open.withLock { $0[ObjectIdentifier(peer)] = peer } }

  /// Called before the descriptor is closed.
  func remove(_ peer: HTTPConnection) { open.withLock { $0[ObjectIdentifier(peer)] = nil } }

  func cutOverdue(_ limits: HTTPLimits) {
    let now = MonotonicClock.now
    // Under the lock: no descriptor of an open connection is closed, and given to another, meanwhile.
    open.withLock { open in
      for peer in open.values where peer.isOverdue(limits, now: now) || peer.isAbandoned(now: now) { peer.cut() }
    }
  }
}
