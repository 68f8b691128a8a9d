/// Milliseconds since 1970 at which a field was last edited, bumped past the clock that it replaced (DESIGN G4).
public typealias FieldClock = Int64

extension FieldClock {
  /// The greatest clock that a record may carry (tables 1.4): 2^53 − 1.
  public static let greatest: FieldClock = (1 << 53) - 1

  /// The clock of an edit of a field that has this one. It stays within what other devices can read: after
  /// ``greatest`` comes ``greatest`` again, and then values decide.
  public var next: FieldClock { self < FieldClock.greatest ? self + 1 : FieldClock.greatest }

  /// Whether a record with this clock can be read (tables 1.4).
  public var isValidClock: Bool { self >= 0 && self <= FieldClock.greatest }
}
