/// When and by which device a field or register was written: time, then writer; greater wins (accounts.md section 2).
public struct Stamp: Hashable, Sendable, Comparable {
  /// Ticks of one millisecond since 1970, raised past what was seen before (accounts.md A34).
  public var time: Int64
  /// The writer ID of the device.
  public var writer: String

  public init(time: Int64, writer: String) {
    self.time = time
    self.writer = writer
  }

  /// What a field without a stamp has.
  static let zero = Stamp(time: 0, writer: "")

  public static func < (a: Stamp, b: Stamp) -> Bool {
    a.time != b.time ? a.time < b.time : Array(a.writer.utf8).lexicographicallyPrecedes(Array(b.writer.utf8))
  }
}

/// The rule that new stamps follow (accounts.md A34).
///
/// Invariants:
/// 1. A received time is never altered by the local clock.
/// 2. `formatCeiling - clockCeiling` holds at least 2^32 ticks, so that a choice made after one with a clock at the
///    ceiling can still be greater.
public enum StampClock {
  /// The local clock counts as at most this, ms since 1970.
  public static let clockCeiling: Int64 = 1 << 52
  /// A record with a greater time is parked alike on every device.
  public static let formatCeiling: Int64 = (1 << 53) - 1

  /// The time of a new write: after everything seen, and no earlier than now.
  public static func time(now: Int64, newestSeen: Int64) -> Int64 {
    min(max(0, min(now, clockCeiling), min(newestSeen, formatCeiling) + 1), formatCeiling)
  }

  static func isValid(_ time: Int64) -> Bool { (0...formatCeiling).contains(time) }
}
