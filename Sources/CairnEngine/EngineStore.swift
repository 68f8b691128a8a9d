/// Where the engine keeps its state: keyed rows, so that a step writes as much as it changed, not the whole queue
/// (engine section 3).
///
/// A category that keeps its data in the same file takes part in the same transactions: then a change token commits
/// together with what it covers (DESIGN G3). Used on the engine's thread only.
public protocol EngineStore: AnyObject {
  /// Every stored row. Throws when the rows cannot be read: that is never "no state".
  func loadState() throws -> [String: String]

  /// The stored value of one key. Default: looks into ``loadState()``.
  func readState(_ key: String) throws -> String?

  /// Runs `body` in one durable transaction; nothing of it stays if it throws. Calls nest.
  func transaction<Result>(_ body: () throws -> Result) throws -> Result

  /// Sets the keys with a value and removes those with nil. Called inside ``transaction(_:)``.
  func writeState(_ delta: [String: String?]) throws
}

extension EngineStore {
  public func readState(_ key: String) throws -> String? { try loadState()[key] }
}
