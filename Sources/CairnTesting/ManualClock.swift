import CairnEngine
import CairnServerCore
import Synchronization

/// A clock that stands until a test moves it. Serves devices and the server. Thread-safe.
public final class ManualClock: TimeSource, ServerClock {
  private struct State {
    var wallClock: Int64
    var uptime: Int64 = 0
  }

  private let state: Mutex<State>

  /// - Parameter wallClock: the first reading, ms since 1970.
  public init(wallClock: Int64 = 1_700_000_000_000) { state = Mutex(State(wallClock: wallClock)) }

  public var wallClock: Int64 { state.withLock { $0.wallClock } }
  public var uptime: Int64 { state.withLock { $0.uptime } }
  public var now: Int64 { wallClock }

  /// Lets time pass: both readings grow by `milliseconds`.
  public func advance(milliseconds: Int64) {
    state.withLock {
      $0.wallClock += milliseconds
      $0.uptime += milliseconds
    }
  }

  /// Lets time pass.
  public func advance(seconds: Int64) { advance(milliseconds: seconds * 1000) }

  /// Sets the wall clock, as a user or a time server does. Uptime goes on unmoved.
  public func setWallClock(_ milliseconds: Int64) { state.withLock { $0.wallClock = milliseconds } }

  /// The same clock as a device with a wrong wall clock reads it; moves along.
  public func skewed(byMilliseconds skew: Int64) -> any TimeSource { SkewedClock(clock: self, skew: skew) }

  private struct SkewedClock: TimeSource {
    let clock: ManualClock
    let skew: Int64
    var wallClock: Int64 { clock.wallClock + skew }
    var uptime: Int64 { clock.uptime }
  }
}
