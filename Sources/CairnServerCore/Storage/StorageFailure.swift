/// A store that cannot do what it was asked to.
public struct StorageFailure: Error, Hashable, Sendable, CustomStringConvertible {
  public var reason: String
  /// Whether the same call may succeed later.
  public var isTemporary: Bool

  public init(_ reason: String, isTemporary: Bool = false) {
    self.reason = reason
    self.isTemporary = isTemporary
  }

  public var description: String { reason }
}
