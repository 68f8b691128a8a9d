/// The present, as the state machine sees it: it reads no clock and no random source itself (engine section 1).
public struct Moment: Hashable, Sendable {
  /// Wall clock, milliseconds since 1970. May jump.
  public var wall: Int64
  /// Milliseconds since an arbitrary start. Never jumps.
  public var uptime: Int64
  /// Fresh random bits, for jitter.
  public var random: UInt64

  public init(wall: Int64, uptime: Int64, random: UInt64) {
    self.wall = wall
    self.uptime = uptime
    self.random = random
  }

  /// A fraction in 0..<1, made of ``random``.
  var fraction: Double { Double(random >> 11) / Double(1 << 53) }
}
