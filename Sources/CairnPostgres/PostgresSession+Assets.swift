import CairnRecords
import CairnServerCore

/// Which assets are kept, and which records have them.
///
/// Invariant: whoever makes a record have an asset, keeps it or removes it holds the lock of its row in `assets`.
extension PostgresSession {
  func assetSecret() throws -> [UInt8]? {
    try query("SELECT secret FROM store WHERE id = 1").optionalBytes(0, 0)
  }

  func setAssetSecret(_ secret: [UInt8]) throws {
    let changes = try change("UPDATE store SET secret = $1 WHERE id = 1 AND secret IS NULL", [.bytes(secret)])
    // Another process has made one since this job looked.
    guard changes == 1 else { throw PostgresError.conflict }
  }

  func asset(_ digest: [UInt8]) throws -> AssetSummary? {
    let rows = try query("SELECT size FROM assets WHERE digest = $1", [.bytes(digest)])
    return rows.isEmpty ? nil : AssetSummary(digest: digest, size: rows.integer(0, 0))
  }

  func isAssetInUse(_ digest: [UInt8], user: Int64) throws -> Bool {
    try !query(
      """
      SELECT 1 FROM asset_uses u JOIN zones z ON z.database = u.database AND z.key = u.zone
      JOIN database_names d ON d.key = u.database
      WHERE u.digest = $1 AND z.deleted = 0 AND d.user_key = $2 LIMIT 1
      """, [.bytes(digest), .int(user)]
    ).isEmpty
  }

  func keepAsset(_ asset: AssetSummary, until time: Int64) throws {
    try change(
      """
      INSERT INTO assets (digest, size, keep_until, suspect, upload) VALUES ($1, $2, $3, 1, NULL)
      ON CONFLICT (digest) DO UPDATE SET suspect = 1,
        keep_until = CASE WHEN assets.keep_until > excluded.keep_until THEN assets.keep_until ELSE excluded.keep_until END
      """, [.bytes(asset.digest), .int(asset.size), .int(time)])
  }

  func setAssetUses(_ zone: Int64, source: String, _ digests: Set<[UInt8]>) throws {
    let place = place(zone) + [.name(source)]
    let rows = try query(
      "SELECT digest FROM asset_uses WHERE database = $1 AND zone = $2 AND source = $3", place)
    let before = Set((0..<rows.count).map { rows.bytes($0, 0) })
    let gone = before.subtracting(digests)
    let new = digests.subtracting(before)
    guard !gone.isEmpty || !new.isEmpty else { return }
    let touched = PostgresValue.byteses(gone.union(new).sorted { $0.lexicographicallyPrecedes($1) })
    let kept = try query("SELECT digest FROM assets WHERE digest = ANY($1) ORDER BY digest FOR UPDATE", [touched])
    let present = Set((0..<kept.count).map { kept.bytes($0, 0) })
    // It was removed since its receipt was checked: the check has to be made again.
    guard new.isSubset(of: present) else { throw PostgresError.conflict }
    if !gone.isEmpty {
      try changeLater(
        "DELETE FROM asset_uses WHERE database = $1 AND zone = $2 AND source = $3 AND digest = ANY($4)",
        place + [.byteses(Array(gone))])
      try changeLater("UPDATE assets SET suspect = 1 WHERE digest = ANY($1)", [.byteses(Array(gone))])
    }
    if !new.isEmpty {
      try changeLater(
        """
        INSERT INTO asset_uses (database, zone, source, digest)
        SELECT $1::bigint, $2::bigint, $3::bytea, d.digest FROM unnest($4::bytea[]) AS d (digest)
        """, place + [.byteses(Array(new))])
    }
  }

  func unusedAssets(before time: Int64, limit: Int) throws -> [[UInt8]] {
    directWrites += 1
    let rows = try query(
      "SELECT digest FROM assets WHERE suspect = 1 AND keep_until < $1 ORDER BY digest LIMIT $2 FOR UPDATE",
      [.int(time), .int(Int64(limit))])
    guard !rows.isEmpty else { return [] }
    let suspects = (0..<rows.count).map { rows.bytes($0, 0) }
    let uses = try query("SELECT DISTINCT digest FROM asset_uses WHERE digest = ANY($1)", [.byteses(suspects)])
    let used = Set((0..<uses.count).map { uses.bytes($0, 0) })
    if !used.isEmpty {
      try changeLater("UPDATE assets SET suspect = 0 WHERE digest = ANY($1)", [.byteses(Array(used))])
    }
    return suspects.filter { !used.contains($0) }
  }

  func forgetAsset(_ digest: [UInt8]) throws {
    try changeLater(
      "DELETE FROM asset_chunks WHERE upload IN (SELECT upload FROM assets WHERE digest = $1)", [.bytes(digest)])
    try changeLater("DELETE FROM assets WHERE digest = $1", [.bytes(digest)])
  }

  /// Makes the chunks of an upload the bytes of an asset, or removes them where it has bytes already.
  func setUpload(_ upload: [UInt8], of asset: AssetSummary) throws {
    try change(
      """
      INSERT INTO assets (digest, size, keep_until, suspect, upload) VALUES ($1, $2, 0, 1, $3)
      ON CONFLICT (digest) DO UPDATE SET upload = coalesce(assets.upload, excluded.upload)
      """, [.bytes(asset.digest), .int(asset.size), .bytes(upload)])
    try changeLater(
      """
      DELETE FROM asset_chunks WHERE upload = $1
      AND NOT EXISTS (SELECT 1 FROM assets WHERE digest = $2 AND upload = $1)
      """, [.bytes(upload), .bytes(asset.digest)])
  }
}
