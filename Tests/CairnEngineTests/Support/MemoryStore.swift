import CairnEngine

/// State that rolls back with the store's transactions.
protocol Rollbackable: AnyObject {
  func mark() -> () -> Void
}

/// A store in memory whose transactions roll back, and fail on demand. What it holds is what survives a crash.
final class MemoryStore: EngineStore {
  struct Busy: Error {}

  private(set) var rows: [String: String] = [:]
  var members: [any Rollbackable] = []
  private(set) var bytesWritten = 0
  /// The next transactions that fail at their end.
  var failures = 0
  /// From this transaction on every one fails, before or after its work: the process is dead.
  var diesAt: Int?
  private(set) var transactions = 0
  /// Which delta fails at its commit.
  var failsOn: ((StateDelta) -> Bool)?
  private var depth = 0

  func loadState() throws -> [String: String] { rows }

  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    let before = rows
    let undo = members.map { $0.mark() }
    depth += 1
    defer { depth -= 1 }
    do {
      let result = try body()
      if depth == 1 {
        transactions += 1
        if let diesAt, transactions >= diesAt { throw Busy() }
      }
      if depth == 1 && failures > 0 {
        failures -= 1
        throw Busy()
      }
      return result
    } catch {
      rows = before
      undo.forEach { $0() }
      throw error
    }
  }

  func writeState(_ delta: [String: String?]) throws {
    if failsOn?(delta) == true { throw Busy() }
    for (key, value) in delta {
      rows[key] = value
      bytesWritten += key.utf8.count + (value?.utf8.count ?? 0)
    }
  }
}
