import CairnEngine
import CairnSQLite

/// The one file of the settings category: its data, its outbox, its staging and the engine's rows, so that all of them
/// take part in the same transactions (engine section 13).
final class SettingsFile: EngineStore {
  struct PowerCut: Error {}

  let connection: Connection
  /// From this transaction on every one fails at its end, as after a power cut; nil: none does.
  var diesAt: Int?
  private(set) var transactions = 0

  static let schema = """
    CREATE TABLE IF NOT EXISTS setting(
      scope TEXT, key TEXT, value TEXT CHECK(length(value) <= 40), clock INTEGER, PRIMARY KEY(scope, key));
    CREATE TABLE IF NOT EXISTS outbox(
      scope TEXT, key TEXT, kind TEXT, revision INTEGER, inFlight INTEGER DEFAULT 0, reason TEXT, retryAt INTEGER,
      needsUser INTEGER DEFAULT 0, PRIMARY KEY(scope, key));
    CREATE TABLE IF NOT EXISTS confirmed(
      scope TEXT, key TEXT, tag TEXT, isSeen INTEGER DEFAULT 1, PRIMARY KEY(scope, key));
    CREATE TABLE IF NOT EXISTS staged(
      id INTEGER PRIMARY KEY, scope TEXT, key TEXT, tag TEXT, value TEXT, clock INTEGER, isSealed INTEGER DEFAULT 0);
    CREATE TABLE IF NOT EXISTS parked(
      scope TEXT, key TEXT, tag TEXT, value TEXT, clock INTEGER, reason TEXT, tries INTEGER DEFAULT 1, retryAt INTEGER,
      PRIMARY KEY(scope, key));
    CREATE TABLE IF NOT EXISTS choice(name TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE IF NOT EXISTS engine(key TEXT PRIMARY KEY, value TEXT);
    """

  init(_ path: String = ":memory:") throws {
    connection = try Connection(path: path)
    for statement in Self.schema.split(separator: ";") where statement.contains("CREATE") {
      try connection.execute(String(statement))
    }
  }

  func loadState() throws -> [String: String] {
    var rows: [String: String] = [:]
    for row in try connection.rows("SELECT key, value FROM engine") { rows[row[0].string] = row[1].string }
    return rows
  }

  func readState(_ key: String) throws -> String? {
    try connection.scalar("SELECT value FROM engine WHERE key = ?", .text(key))?.string
  }

  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    if connection.isInTransaction { return try body() }
    return try connection.transaction(.immediate) {
      let result = try body()
      transactions += 1
      if let diesAt, transactions >= diesAt { throw PowerCut() }
      return result
    }
  }

  func writeState(_ delta: [String: String?]) throws {
    for (key, value) in delta {
      if let value {
        try connection.run("INSERT OR REPLACE INTO engine VALUES(?, ?)", .text(key), .text(value))
      } else {
        try connection.run("DELETE FROM engine WHERE key = ?", .text(key))
      }
    }
  }

  func count(_ sql: String) throws -> Int { Int(try connection.scalar(sql)?.number ?? 0) }
}

extension Value {
  var string: String { if case .text(let text) = self { text } else { "" } }
  var optionalString: String? { if case .text(let text) = self { text } else { nil } }
  var number: Int64? { if case .integer(let number) = self { number } else { nil } }

  init(_ text: String?) { self = text.map { .text($0) } ?? .null }
  init(_ number: Int64?) { self = number.map { .integer($0) } ?? .null }
}
