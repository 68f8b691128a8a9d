import CairnRecords
import CairnSQLite

/// The writing half; called only inside the writer's transaction.
extension SQLiteSession {
  // MARK: Store

  /// One counter for all databases.
  func takePosition(_ database: Int64) throws -> Int64 {
    let next = try currentPosition() + 1
    position = next
    return next
  }

  /// Writes the position that the open transaction has reached.
  func savePosition() throws {
    guard let position else { return }
    try connection.run("UPDATE store SET position = ?1 WHERE position <> ?1", .integer(position))
  }

  func beginEpoch(_ name: UInt32) throws {
    let epochs = Epochs(try storeEpochs()).beginning(name, at: try currentPosition())
    try connection.run("DELETE FROM epoch")
    for epoch in epochs.all {
      try connection.run(
        "INSERT INTO epoch (name, start) VALUES (?, ?)", .integer(Int64(epoch.name)), .integer(epoch.start))
    }
  }

  // MARK: Users

  func addUser(name: String, recordName: String, created: Int64) throws -> Caller {
    try connection.run(
      "INSERT INTO user (name, record_name, created) VALUES (?, ?, ?)", .text(name), .text(recordName),
      .integer(created))
    return Caller(key: connection.lastInsertRowID, name: name, recordName: recordName)
  }

  func removeUser(_ user: Int64) throws {
    let zones = "SELECT zone.key FROM zone JOIN database ON database.key = zone.database WHERE database.user = ?"
    try connection.run("INSERT OR IGNORE INTO garbage \(zones)", .integer(user))
    try connection.run("DELETE FROM zone WHERE key IN (\(zones))", .integer(user))
    try connection.run(
      "DELETE FROM subscription WHERE database IN (SELECT key FROM database WHERE user = ?)", .integer(user))
    let names = PublicSubscriptionRange(of: user)
    try connection.run(
      """
      DELETE FROM subscription WHERE database IN (SELECT key FROM database WHERE user = 0) AND id >= ? AND id < ?
      """, .text(names.first), .text(names.end))
    try connection.run(
      "DELETE FROM database_epoch WHERE database IN (SELECT key FROM database WHERE user = ?)", .integer(user))
    try connection.run("DELETE FROM database WHERE user = ?", .integer(user))
    try connection.run("DELETE FROM device WHERE user = ?", .integer(user))
    try connection.run("DELETE FROM usage_day WHERE user = ?", .integer(user))
    try removeTokens(of: user)
    try connection.run("DELETE FROM user WHERE key = ?", .integer(user))
  }

  func addToken(hash: [UInt8], user: Int64, created: Int64) throws {
    try connection.run(
      "INSERT INTO access_token (hash, user, created) VALUES (?, ?, ?)", .blob(hash), .integer(user),
      .integer(created))
  }

  func removeTokens(of user: Int64) throws {
    try connection.run("DELETE FROM access_token WHERE user = ?", .integer(user))
  }

  func replaceToken(hash: [UInt8], with next: [UInt8], created: Int64) throws -> Bool {
    try connection.run(
      "UPDATE access_token SET hash = ?, created = ? WHERE hash = ?", .blob(next), .integer(created), .blob(hash))
    return connection.changes > 0
  }

  // MARK: Databases and zones

  func addDatabase(_ user: Int64, _ scope: DatabaseScope, incarnation: Int64) throws -> StoredDatabase {
    try connection.run(
      "INSERT INTO database (user, container, environment, kind, incarnation) VALUES (?, ?, ?, ?, ?)",
      .integer(user), .text(scope.container), .text(scope.environment.rawValue), .text(scope.kind.rawValue),
      .integer(incarnation))
    return StoredDatabase(key: connection.lastInsertRowID, incarnation: incarnation)
  }

  func addZone(_ database: Int64, name: String, incarnation: Int64, position: Int64) throws -> StoredZone {
    try connection.run(
      "INSERT INTO zone (database, name, incarnation, position) VALUES (?, ?, ?, ?)", .integer(database), .text(name),
      .integer(incarnation), .integer(position))
    return StoredZone(key: connection.lastInsertRowID, name: name, incarnation: incarnation, position: position)
  }

  func setZonePosition(_ zone: Int64, _ position: Int64) throws {
    try connection.run("UPDATE zone SET position = ? WHERE key = ?", .integer(position), .integer(zone))
  }

  func markZoneDeleted(_ zone: Int64, position: Int64) throws {
    try connection.run("INSERT OR IGNORE INTO garbage VALUES (?)", .integer(zone))
    try connection.run("UPDATE zone SET deleted = 1, position = ? WHERE key = ?", .integer(position), .integer(zone))
  }

  func removeZone(_ zone: Int64) throws {
    try connection.run("DELETE FROM zone WHERE key = ?", .integer(zone))
  }

  func removeGarbage(limit: Int) throws -> Bool {
    guard let zone = try connection.scalar("SELECT zone FROM garbage LIMIT 1") else { return false }
    try connection.run(
      """
      DELETE FROM record WHERE zone = ?1 AND position IN (
        SELECT position FROM record WHERE zone = ?1 ORDER BY position LIMIT ?2)
      """, zone, .integer(Int64(limit)))
    if connection.changes == limit { return true }
    try connection.run("DELETE FROM reference WHERE zone = ?", zone)
    try releaseAssets(of: zone)
    try connection.run("DELETE FROM garbage WHERE zone = ?", zone)
    return try connection.scalar("SELECT 1 FROM garbage LIMIT 1") != nil
  }

  // MARK: Records

  func put(_ record: StoredRecord, in zone: Int64, replacing previous: Int64?) throws {
    let statement =
      try previous == nil
      ? hot(.insertRecord) {
        """
        INSERT INTO record (zone, position, name, type, created, created_by, modified, modified_by, died, parent,
          has_references, fields)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        """
      }
      : hot(.updateRecord) {
        """
        UPDATE record SET position = ?2, name = ?3, type = ?4, created = ?5, created_by = ?6, modified = ?7,
          modified_by = ?8, died = ?9, parent = ?10, has_references = ?11, fields = ?12
        WHERE zone = ?1 AND position = ?13
        """
      }
    try statement.bind(1, zone)
    try statement.bind(2, record.position)
    try statement.bind(3, record.name)
    try statement.bind(4, record.type)
    try statement.bind(5, record.created)
    try statement.bind(6, record.createdBy)
    try statement.bind(7, record.modified)
    try statement.bind(8, record.modifiedBy)
    if let died = record.died { try statement.bind(9, died) }
    if let parent = record.parent { try statement.bind(10, parent) }
    try statement.bind(11, record.flags)
    try statement.bind(12, record.fields)
    if let previous { try statement.bind(13, previous) }
    try statement.run()
  }

  func setReferences(_ zone: Int64, source: String, _ references: [StoredReference]) throws {
    try connection.run("DELETE FROM reference WHERE zone = ? AND source = ?", .integer(zone), .text(source))
    for reference in references {
      try connection.run(
        "INSERT OR IGNORE INTO reference (zone, target, kind, source, field) VALUES (?, ?, ?, ?, ?)", .integer(zone),
        .text(reference.target), .integer(reference.kind.rawValue), .text(source), .text(reference.field))
    }
  }

  func pruneTombstones(before time: Int64, limit: Int) throws -> Bool {
    let rows = try connection.rows(
      "SELECT zone, position FROM record WHERE died < ? ORDER BY died LIMIT ?", .integer(time), .integer(Int64(limit)))
    for row in rows {
      try connection.run("DELETE FROM record WHERE zone = ? AND position = ?", row[0], row[1])
      try connection.run("UPDATE zone SET pruned = max(pruned, ?) WHERE key = ?", row[1], row[0])
    }
    let isMore = try pruneShareEntries(before: time, limit: limit)
    return isMore || rows.count == limit
  }

  // MARK: Schema

  func setSchemaField(_ container: String, _ environment: ServerEnvironment, _ field: StoredSchemaField) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO schema_field (container, environment, type, field, kind, firm, yielded)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """,
      .text(container), .text(environment.rawValue), .text(field.recordType), .text(field.field), .text(field.kind),
      .integer(field.isFirm ? 1 : 0), .integer(field.hasYielded ? 1 : 0))
  }
}
