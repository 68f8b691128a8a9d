import CairnRecords
import Synchronization

/// Remembers which signatures have been used for writes, as long as their dates are good. In memory: a restart forgets.
///
/// A signature is known by the number `r` that its maker drew, so that another spelling of it is the same signature. It
/// is looked at only after it has been found good, so nobody but the holders of keys can fill the memory.
final class ReplayGuard: Sendable {
  private struct State {
    /// By key and `r`, the time from which on the date is too old, in ms.
    var used: [[UInt8]: Int64] = [:]
    var nextSweep: Int64 = .min
  }

  private let state = Mutex(State())
  private let capacity: Int

  /// - Parameter capacity: signatures that are remembered at once; 200,000 are 160 writes in each second of 20 minutes.
  init(capacity: Int = 200_000) { self.capacity = capacity }

  /// Notes a use.
  ///
  /// - Throws: `authenticationFailed` when it is not the first, `throttled` when there is no room to note it.
  func use(key: [UInt8], nonce: [UInt8], now: Int64) throws(CloudError) {
    let life = 2 * SignedRequest.window
    let outcome: CloudError? = state.withLock { state in
      if now >= state.nextSweep || state.used.count >= capacity {
        state.used = state.used.filter { $0.value > now }
        state.nextSweep = now + 60_000
      }
      let name = Array(key.prefix(16)) + nonce
      if let end = state.used[name], end > now {
        return CloudError(.authenticationFailed, "The signature has been used: sign every request anew")
      }
      guard state.used.count < capacity else {
        return CloudError(.throttled, "Too many signed requests", retryAfter: 60)
      }
      state.used[name] = now + life
      return nil
    }
    if let outcome { throw outcome }
  }
}
