import CairnEngine
import Foundation

/// The clocks of the machine.
public struct SystemTime: TimeSource {
  public init() {}

  public var wallClock: Int64 { Int64((Date().timeIntervalSince1970 * 1_000).rounded(.down)) }

  public var uptime: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

  public func pause(milliseconds: Int) { Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000) }
}

/// The machine's source of random numbers.
public final class SystemRandomness: Randomness {
  public init() {}

  public func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
