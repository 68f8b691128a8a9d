import CairnEngine
import CairnSQLite

/// The engine's keyed rows in the user's file, so that a change token commits with the rows that it covers (DESIGN G3).
final class FileEngineStore: EngineStore {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  func loadState() throws -> [String: String] { try file.settings.all(prefix: "engine/") }

  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    // What the tables do in it are transactions of their own, which see to the batch under way.
    try file.transaction(confirmsAttempts: true, body)
  }

  func writeState(_ delta: [String: String?]) throws {
    for (key, value) in delta.sorted(by: { $0.key < $1.key }) { try file.settings.set(key, value) }
  }
}
