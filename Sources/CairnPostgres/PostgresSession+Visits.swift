import CairnRecords
import CairnServerCore

/// Devices, usage by day, and what a user has.
extension PostgresSession {
  func databases(of user: Int64) throws -> [OwnedDatabase] {
    let rows = try query(
      "SELECT key, incarnation, container, environment, kind FROM database_names WHERE user_key = $1", [.int(user)])
    let found = (0..<rows.count).compactMap { row in
      DatabaseScope(stored: rows.text(row, 2), rows.text(row, 3), rows.text(row, 4)).map {
        OwnedDatabase(
          database: StoredDatabase(key: rows.integer(row, 0), incarnation: rows.integer(row, 1)), scope: $0)
      }
    }
    // The order of texts in the server is the operator's choice.
    return found.sorted {
      ($0.scope.container, $0.scope.environment.rawValue, $0.scope.kind.rawValue)
        < ($1.scope.container, $1.scope.environment.rawValue, $1.scope.kind.rawValue)
    }
  }

  func typeCounts(_ zone: Int64) throws -> [StoredTypeCount] {
    let rows = try query(
      """
      SELECT type, count(*) - count(died), count(died) FROM records WHERE database = $1 AND zone = $2
      GROUP BY type ORDER BY type
      """, [.int(Self.database(ofZone: zone)), .int(zone)])
    return (0..<rows.count).map {
      StoredTypeCount(type: rows.text($0, 0), live: rows.integer($0, 1), deleted: rows.integer($0, 2))
    }
  }

  func devices(of user: Int64) throws -> [StoredDevice] {
    let rows = try query(
      "SELECT name, container, first_seen, last_seen FROM devices WHERE user_key = $1", [.int(user)])
    return (0..<rows.count).map {
      StoredDevice(
        name: rows.text($0, 0), container: rows.text($0, 1), firstSeen: rows.integer($0, 2),
        lastSeen: rows.integer($0, 3))
    }.sorted { ($1.lastSeen, $0.name) < ($0.lastSeen, $1.name) }
  }

  func usageByDay(of user: Int64) throws -> [StoredUsageDay] {
    let rows = try query("SELECT day, bytes FROM usage_days WHERE user_key = $1 ORDER BY day", [.int(user)])
    return (0..<rows.count).map { StoredUsageDay(day: rows.integer($0, 0), bytes: rows.integer($0, 1)) }
  }

  func noteVisit(of user: Int64, _ device: StoredDevice?, day: Int64) throws {
    try settle()
    // Out of the row of the user, which is locked: one who has been removed meanwhile leaves nothing.
    let found = try query("SELECT bytes FROM users WHERE key = $1 FOR UPDATE", [.int(user)])
    guard !found.isEmpty else { return }
    try put(StoredUsageDay(day: day, bytes: found.integer(0, 0)), of: user)
    try change(
      """
      DELETE FROM usage_days WHERE user_key = $1 AND day NOT IN (
        SELECT day FROM usage_days WHERE user_key = $1 ORDER BY day DESC LIMIT $2)
      """, [.int(user), .int(Int64(VisitLimits.days))])
    guard let device else { return }
    try put(device, of: user)
    try change(
      """
      DELETE FROM devices WHERE user_key = $1 AND name NOT IN (
        SELECT name FROM devices WHERE user_key = $1 ORDER BY last_seen DESC LIMIT $2)
      """, [.int(user), .int(Int64(VisitLimits.devices))])
  }

  /// A device that is there keeps its first time.
  func put(_ device: StoredDevice, of user: Int64) throws {
    try change(
      """
      INSERT INTO devices (user_key, name, container, first_seen, last_seen) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (user_key, name) DO UPDATE SET container = excluded.container, last_seen = excluded.last_seen
      """,
      [
        .int(user), .text(device.name), .text(device.container), .int(device.firstSeen), .int(device.lastSeen),
      ])
  }

  func put(_ day: StoredUsageDay, of user: Int64) throws {
    try change(
      """
      INSERT INTO usage_days (user_key, day, bytes) VALUES ($1, $2, $3)
      ON CONFLICT (user_key, day) DO UPDATE SET bytes = excluded.bytes
      """, [.int(user), .int(day.day), .int(day.bytes)])
  }
}
