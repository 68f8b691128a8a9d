import CairnEngine
import CairnTesting
import Synchronization

/// A device's clock: the world's, with a wall clock that may be wrong and may jump. Thread-safe.
final class DeviceClock: TimeSource {
  private let world: ManualClock
  private let skew = Mutex<Int64>(0)

  init(_ world: ManualClock) { self.world = world }

  var wallClock: Int64 { world.wallClock + skew.withLock { $0 } }
  var uptime: Int64 { world.uptime }

  /// How many ms the wall clock is ahead of the world's.
  func setSkew(_ milliseconds: Int64) { skew.withLock { $0 = milliseconds } }
}
