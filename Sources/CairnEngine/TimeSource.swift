/// The clocks that the engine reads. Injected, so that tests and the simulation set them (DESIGN G9).
public protocol TimeSource: Sendable {
  /// Wall clock, milliseconds since 1970. May jump.
  var wallClock: Int64 { get }
  /// Milliseconds since an arbitrary start. Never jumps.
  var uptime: Int64 { get }
  /// Leaves locks and processor to others between two pieces of long work. Clocks that are set by hand do not wait.
  func pause(milliseconds: Int)
}

extension TimeSource {
  public func pause(milliseconds: Int) {}
}

/// The source of jitter and of new record names. Injected like the clocks.
public protocol Randomness: AnyObject, Sendable {
  func next() -> UInt64
}
