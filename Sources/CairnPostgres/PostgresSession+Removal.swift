import CairnRecords
import CairnServerCore

/// Removing what is not wanted any more, a bounded number of rows at a time. Several processes may do it at once.
extension PostgresSession {
  func removeGarbage(limit: Int) throws -> Bool {
    let first = try query("SELECT database, zone FROM garbage ORDER BY database, zone LIMIT 1 FOR UPDATE")
    // Somebody else may have finished the first one while its lock was waited for.
    guard !first.isEmpty else { return try hasGarbage() }
    let place: [PostgresValue] = [.int(first.integer(0, 0)), .int(first.integer(0, 1))]
    let removed = try change(
      """
      DELETE FROM records WHERE database = $1 AND zone = $2 AND position IN (
        SELECT position FROM records WHERE database = $1 AND zone = $2 ORDER BY position LIMIT $3)
      """, place + [.int(Int64(limit))])
    if removed == limit { return true }
    try changeLater("DELETE FROM record_references WHERE database = $1 AND zone = $2", place)
    try changeLater(
      """
      UPDATE assets SET suspect = 1
      WHERE digest IN (SELECT digest FROM asset_uses WHERE database = $1 AND zone = $2)
      """, place)
    try changeLater("DELETE FROM asset_uses WHERE database = $1 AND zone = $2", place)
    try changeLater("DELETE FROM garbage WHERE database = $1 AND zone = $2", place)
    return try hasGarbage()
  }

  private func hasGarbage() throws -> Bool { try !query("SELECT 1 FROM garbage LIMIT 1").isEmpty }

  func pruneTombstones(before time: Int64, limit: Int) throws -> Bool {
    if try pruneRecords(before: time, limit: limit) { return true }
    return try pruneShareEntries(before: time, limit: limit)
  }

  /// Of one database at a time, whose lock it takes.
  private func pruneRecords(before time: Int64, limit: Int) throws -> Bool {
    let rows = try query(
      "SELECT database, zone, position FROM records WHERE died < $1 ORDER BY died LIMIT $2",
      [.int(time), .int(Int64(limit))])
    guard !rows.isEmpty else { return false }
    let database = rows.integer(0, 0)
    do { try opened(database) } catch is DatabaseIsGone {
      // Its user was removed: what is left of it is garbage.
    }
    let own = (0..<rows.count).filter { rows.integer($0, 0) == database }
    for (zone, places) in Dictionary(grouping: own, by: { rows.integer($0, 1) }).sorted(by: { $0.key < $1.key }) {
      directWrites += 1
      let removed = try query(
        """
        DELETE FROM records WHERE database = $1 AND zone = $2 AND position = ANY($3) AND died < $4 RETURNING position
        """,
        [.int(database), .int(zone), .ints(places.map { rows.integer($0, 2) }), .int(time)])
      let newest = (0..<removed.count).map { removed.integer($0, 0) }.max() ?? 0
      try changeLater(
        "UPDATE zones SET pruned = $3 WHERE database = $1 AND key = $2 AND pruned < $3",
        [.int(database), .int(zone), .int(newest)])
    }
    work.zones = [:]
    work.records = [:]
    return rows.count == limit || own.count < rows.count
  }
}
