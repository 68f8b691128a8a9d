import CairnSQLite

/// What a file knows about its place in the world: `cairn_setting`, keyed text.
struct FileSettings {
  enum Key: String {
    case server, container, environment, zone, user, selection
    /// Set while rows that were there before `init` are taken up (tables U8).
    case takeUp
    /// SQLite's counter of schema changes when capture was last looked at. Another value than at its open tells an
    /// engine that another program has renewed capture (``FileContext/isOutdated()``).
    case schemaVersion
    /// Set while a fetch without token is under way.
    case snapshot
    /// ms since 1970 of the last sync that did everything.
    case lastSync
    /// How the last sync ended, unless `ready`.
    case condition
    /// An answer of the user that no engine has taken yet.
    case answer
    /// What most change tags end in (``TagCoding``).
    case tagEnding
    /// How far a stretch of the log is folded (``FoldMark``).
    case foldMark
    /// Records that travel in a batch (``AttemptedRange``).
    case attempted
  }

  let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  func get(_ key: Key) throws(SQLiteError) -> String? { try get(key.rawValue) }

  func get(_ key: String) throws(SQLiteError) -> String? {
    let statement = try connection.cached("SELECT value FROM cairn_setting WHERE key = ?1")
    defer { statement.reset() }
    try statement.bind(1, key)
    return try statement.step() ? statement.text(0) : nil
  }

  func set(_ key: Key, _ value: String?) throws(SQLiteError) { try set(key.rawValue, value) }

  func set(_ key: String, _ value: String?) throws(SQLiteError) {
    if let value {
      try connection.run(
        "INSERT INTO cairn_setting(key, value) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2", .text(key),
        .text(value))
    } else {
      try connection.run("DELETE FROM cairn_setting WHERE key = ?1", .text(key))
    }
  }

  /// Every row whose key begins with `prefix`.
  func all(prefix: String) throws(SQLiteError) -> [String: String] {
    var rows: [String: String] = [:]
    for row in try connection.rows(
      "SELECT key, value FROM cairn_setting WHERE key >= ?1 AND key < ?2", .text(prefix), .text(prefix + "\u{10FFFF}"))
    {
      if let key = row[0].text, let value = row[1].text { rows[key] = value }
    }
    return rows
  }
}
