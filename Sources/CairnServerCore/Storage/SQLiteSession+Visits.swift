import CairnSQLite

/// Devices, usage by day, and what a user has.
extension SQLiteSession {
  func databases(of user: Int64) throws -> [OwnedDatabase] {
    try connection.rows(
      """
      SELECT key, incarnation, container, environment, kind FROM database WHERE user = ?
      ORDER BY container, environment, kind
      """, .integer(user)
    ).compactMap { row in
      DatabaseScope(stored: row[2].asText, row[3].asText, row[4].asText).map {
        OwnedDatabase(database: StoredDatabase(key: row[0].asInteger, incarnation: row[1].asInteger), scope: $0)
      }
    }
  }

  func typeCounts(_ zone: Int64) throws -> [StoredTypeCount] {
    try connection.rows(
      """
      SELECT type, sum(died IS NULL), sum(died IS NOT NULL) FROM record WHERE zone = ? GROUP BY type ORDER BY type
      """, .integer(zone)
    ).map { StoredTypeCount(type: $0[0].asText, live: $0[1].asInteger, deleted: $0[2].asInteger) }
  }

  func devices(of user: Int64) throws -> [StoredDevice] {
    try connection.rows(
      """
      SELECT name, container, first_seen, last_seen FROM device WHERE user = ? ORDER BY last_seen DESC, name
      """, .integer(user)
    ).map {
      StoredDevice(
        name: $0[0].asText, container: $0[1].asText, firstSeen: $0[2].asInteger, lastSeen: $0[3].asInteger)
    }
  }

  func usageByDay(of user: Int64) throws -> [StoredUsageDay] {
    try connection.rows("SELECT day, bytes FROM usage_day WHERE user = ? ORDER BY day", .integer(user))
      .map { StoredUsageDay(day: $0[0].asInteger, bytes: $0[1].asInteger) }
  }

  func noteVisit(of user: Int64, _ device: StoredDevice?, day: Int64) throws {
    // Out of the row of the user: one who has been removed meanwhile leaves nothing.
    try connection.run(
      """
      INSERT INTO usage_day (user, day, bytes) SELECT key, ?2, bytes FROM user WHERE key = ?1
      ON CONFLICT (user, day) DO UPDATE SET bytes = excluded.bytes
      """, .integer(user), .integer(day))
    try connection.run(
      """
      DELETE FROM usage_day WHERE user = ?1 AND day NOT IN (
        SELECT day FROM usage_day WHERE user = ?1 ORDER BY day DESC LIMIT ?2)
      """, .integer(user), .integer(Int64(VisitLimits.days)))
    guard let device else { return }
    try connection.run(
      """
      INSERT INTO device (user, name, container, first_seen, last_seen)
      SELECT key, ?2, ?3, ?4, ?5 FROM user WHERE key = ?1
      ON CONFLICT (user, name) DO UPDATE SET container = excluded.container, last_seen = excluded.last_seen
      """, .integer(user), .text(device.name), .text(device.container), .integer(device.firstSeen),
      .integer(device.lastSeen))
    try connection.run(
      """
      DELETE FROM device WHERE user = ?1 AND name NOT IN (
        SELECT name FROM device WHERE user = ?1 ORDER BY last_seen DESC, name LIMIT ?2)
      """, .integer(user), .integer(Int64(VisitLimits.devices)))
  }

  // MARK: Copies

  func put(_ device: StoredDevice, of user: Int64) throws {
    try connection.run(
      "INSERT INTO device (user, name, container, first_seen, last_seen) VALUES (?, ?, ?, ?, ?)", .integer(user),
      .text(device.name), .text(device.container), .integer(device.firstSeen), .integer(device.lastSeen))
  }

  func put(_ day: StoredUsageDay, of user: Int64) throws {
    try connection.run(
      "INSERT INTO usage_day (user, day, bytes) VALUES (?, ?, ?)", .integer(user), .integer(day.day),
      .integer(day.bytes))
  }
}
