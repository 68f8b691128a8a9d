import CairnEngine
import CairnServerCore
import Synchronization

/// SplitMix64: the same seed gives the same numbers. Thread-safe; the order of callers decides who gets which.
public final class SeededRandomness: Randomness, ServerRandomness {
  private let state: Mutex<UInt64>

  public init(seed: UInt64) { state = Mutex(seed) }

  public func next() -> UInt64 {
    state.withLock { state in
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
      return z ^ z >> 31
    }
  }

  /// A number from 0 to `bound` − 1.
  public func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  /// True in `percent` of 100 calls.
  public func chance(percent: Int) -> Bool { below(100) < percent }
}
