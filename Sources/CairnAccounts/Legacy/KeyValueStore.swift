/// Why values of the key-value store changed.
public enum KeyValueChange: Hashable, Sendable {
  case server, initial
  /// Another user signed in: the values may be that user's (accounts.md A23).
  case accountChange
  case other
}

/// What older releases left: instances and the flag of a login. There is no setter, so that the flag is never written
/// (accounts.md A17).
public protocol KeyValueStore: Sendable {
  /// The host's instance list with flags. Blocks at most for a file.
  func legacyInstances() -> [LegacyInstance]

  /// Changes made elsewhere.
  func changes() -> AsyncStream<KeyValueChange>
}

/// For apps without older releases.
public struct NoLegacy: KeyValueStore {
  public init() {}
  public func legacyInstances() -> [LegacyInstance] { [] }
  public func changes() -> AsyncStream<KeyValueChange> { AsyncStream { $0.finish() } }
}
