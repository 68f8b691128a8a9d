import CairnSQLite

extension SQLiteStorage {
  /// Copies a store while a server works on it: one snapshot, compact, in a file that is new or empty.
  public static func copy(_ path: String, to target: String) throws {
    let connection = try Connection(path: path, mode: .readWrite)
    try connection.run("VACUUM INTO ?", .text(target))
  }

  /// What is wrong with a store that nobody works on; nil when it is sound.
  public static func damage(in path: String) throws -> String? {
    let connection = try Connection(path: path, mode: .readWrite)
    let found = try connection.scalar("PRAGMA quick_check(1)")?.asText ?? ""
    return found == "ok" ? nil : found
  }

  /// The assets that a store wants.
  public static func assets(in path: String) throws -> [AssetSummary] {
    let connection = try Connection(path: path, mode: .readWrite)
    return try connection.rows("SELECT digest, size FROM asset ORDER BY digest").compactMap { row in
      guard case .blob(let digest)? = row.first else { return nil }
      return AssetSummary(digest: digest, size: row[1].asInteger)
    }
  }
}
