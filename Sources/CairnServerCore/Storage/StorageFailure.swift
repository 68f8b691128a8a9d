/// A store that cannot do what it was asked to.
public struct StorageFailure: Error, Hashable, Sendable, CustomStringConvertible {
  public var reason: String
  /// Whether the same call may succeed later.
  public var isTemporary: Bool

  public init(_ reason: String, isTemporary: Bool = false) {
    self.reason = reason
    self.isTemporary = isTemporary
  }

  /// Nothing can be stored until somebody has made room.
  public static let diskFull = StorageFailure(
    "The server's disk is full: its operator has to make room", isTemporary: true)

  public var description: String { reason }
}
