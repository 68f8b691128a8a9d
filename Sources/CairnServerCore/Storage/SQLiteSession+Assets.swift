import CairnSQLite

/// Which assets are kept, and which records have them.
///
/// Invariant: an asset that a live record has, or whose time has not come, has a row, and its bytes are there. An asset
/// that may have become unused is `suspect`; only those are looked at for removal.
extension SQLiteSession {
  func assetSecret() throws -> [UInt8]? {
    guard case .blob(let secret)? = try connection.scalar("SELECT value FROM secret LIMIT 1") else { return nil }
    return secret
  }

  func setAssetSecret(_ secret: [UInt8]) throws {
    try connection.run("INSERT INTO secret (value) VALUES (?)", .blob(secret))
  }

  func asset(_ digest: [UInt8]) throws -> AssetSummary? {
    try connection.scalar("SELECT size FROM asset WHERE digest = ?", .blob(digest)).map {
      AssetSummary(digest: digest, size: $0.asInteger)
    }
  }

  func isAssetInUse(_ digest: [UInt8], user: Int64) throws -> Bool {
    try connection.scalar(
      """
      SELECT 1 FROM asset_use JOIN zone ON zone.key = asset_use.zone JOIN database ON database.key = zone.database
      WHERE asset_use.digest = ? AND zone.deleted = 0 AND database.user = ? LIMIT 1
      """, .blob(digest), .integer(user)) != nil
  }

  func keepAsset(_ asset: AssetSummary, until time: Int64) throws {
    try connection.run(
      """
      INSERT INTO asset (digest, size, keep_until, suspect) VALUES (?1, ?2, ?3, 1)
      ON CONFLICT (digest) DO UPDATE SET keep_until = max(keep_until, ?3), suspect = 1
      """, .blob(asset.digest), .integer(asset.size), .integer(time))
  }

  func setAssetUses(_ zone: Int64, source: String, _ digests: Set<[UInt8]>) throws {
    let before = try connection.rows(
      "SELECT digest FROM asset_use WHERE zone = ? AND source = ?", .integer(zone), .text(source))
    for row in before {
      guard case .blob(let digest)? = row.first, !digests.contains(digest) else { continue }
      try connection.run(
        "DELETE FROM asset_use WHERE zone = ? AND source = ? AND digest = ?", .integer(zone), .text(source),
        .blob(digest))
      try connection.run("UPDATE asset SET suspect = 1 WHERE digest = ?", .blob(digest))
    }
    for digest in digests {
      try connection.run(
        "INSERT OR IGNORE INTO asset_use (zone, source, digest) VALUES (?, ?, ?)", .integer(zone), .text(source),
        .blob(digest))
    }
  }

  /// All records of a zone are gone.
  func releaseAssets(of zone: Value) throws {
    try connection.run(
      "UPDATE asset SET suspect = 1 WHERE digest IN (SELECT digest FROM asset_use WHERE zone = ?)", zone)
    try connection.run("DELETE FROM asset_use WHERE zone = ?", zone)
  }

  func unusedAssets(before time: Int64, limit: Int) throws -> [[UInt8]] {
    let suspects = try connection.rows(
      """
      SELECT digest, EXISTS (SELECT 1 FROM asset_use WHERE asset_use.digest = asset.digest) FROM asset
      WHERE suspect = 1 AND keep_until < ? LIMIT ?
      """, .integer(time), .integer(Int64(limit)))
    var unused: [[UInt8]] = []
    for row in suspects {
      guard case .blob(let digest)? = row.first else { continue }
      if row[1].asInteger == 0 {
        unused.append(digest)
      } else {
        try connection.run("UPDATE asset SET suspect = 0 WHERE digest = ?", .blob(digest))
      }
    }
    return unused
  }

  func forgetAsset(_ digest: [UInt8]) throws {
    try connection.run("DELETE FROM asset WHERE digest = ?", .blob(digest))
  }
}
