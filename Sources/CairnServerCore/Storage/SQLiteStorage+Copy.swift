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

  /// Whether everything that a store was given is a part of the history of another: then it is an earlier copy.
  ///
  /// The later one knows the epoch (web-services section 8) of the earlier one's newest position. Epochs without a
  /// position are forgotten by the next start, so they prove nothing; a store without records is an earlier copy of
  /// any.
  public static func isEarlierCopy(_ path: String, of other: String) throws -> Bool {
    func history(_ path: String) throws -> (epochs: [Epoch], position: Int64) {
      let connection = try Connection(path: path, mode: .readWrite)
      let epochs = try connection.rows("SELECT name, start FROM epoch ORDER BY number").map {
        Epoch(name: UInt32(truncatingIfNeeded: $0[0].asInteger), start: $0[1].asInteger)
      }
      return (epochs, try connection.scalar("SELECT position FROM store")?.asInteger ?? 0)
    }
    let (before, now) = (try history(path), try history(other))
    guard let last = before.epochs.last(where: { $0.start < before.position }) else { return true }
    return before.position <= now.position && now.epochs.contains(last)
  }

  /// Brings what the log of a store holds into its file, and removes the log. Nobody may work on the store.
  ///
  /// - Returns: false where the store is damaged; then nothing has changed.
  public static func settle(_ path: String) throws -> Bool {
    do {
      let connection = try Connection(path: path, mode: .readWrite)
      // Reading undoes what a transaction has left that broke off; the last connection that closes removes the log.
      _ = try connection.scalar("SELECT count(*) FROM sqlite_master")
      _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
      return true
    } catch {
      guard error.isDamage else { throw error }
      return false
    }
  }

  /// The format of a store where this version does not know it: a newer one has written it.
  public static func newerFormat(of path: String) throws -> Int64? {
    let format = try Connection(path: path, mode: .readWrite).scalar("PRAGMA user_version")?.asInteger ?? 0
    return format > SQLiteTables.format ? format : nil
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
