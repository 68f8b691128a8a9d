import Synchronization

/// Counts account changes, resets and rebuilds (engine C11). Shared by the sessions of one store; thread-safe.
///
/// A session takes the number when it is made and looks again after every wait and before every durable write. Where it
/// differs, the session writes nothing and ends: A → B → A is a difference too.
public final class EngineGeneration: Sendable {
  private let number = Mutex<Int64>(0)

  public init() {}

  public var current: Int64 { number.withLock { $0 } }

  /// From now on, sessions made before write nothing. From any thread.
  public func raise() { number.withLock { $0 += 1 } }
}
