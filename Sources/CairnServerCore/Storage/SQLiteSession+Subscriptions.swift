import CairnSQLite

/// Subscriptions: few rows per database, read when somebody listens.
extension SQLiteSession {
  func subscriptions(_ database: Int64) throws -> [StoredSubscription] {
    let statement = try connection.cached(
      "SELECT id, kind, zone, query, events, once, content FROM subscription WHERE database = ? ORDER BY id")
    defer { statement.reset() }
    try statement.bind(1, database)
    var found: [StoredSubscription] = []
    while try statement.step() {
      guard let kind = Subscription.Kind(rawValue: statement.text(1)) else { continue }
      let query = statement.blob(3)
      found.append(
        StoredSubscription(
          id: statement.text(0), kind: kind, zone: statement.optionalText(2), query: query.isEmpty ? nil : query,
          events: statement.integer(4), firesOnce: statement.integer(5) != 0, content: statement.blob(6)))
    }
    return found
  }

  func putSubscription(_ database: Int64, _ subscription: StoredSubscription) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO subscription (database, id, kind, zone, query, events, once, content)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .integer(database), .text(subscription.id), .text(subscription.kind.rawValue),
      subscription.zone.map { .text($0) } ?? .null, subscription.query.map { .blob($0) } ?? .null,
      .integer(subscription.events), .integer(subscription.firesOnce ? 1 : 0), .blob(subscription.content))
  }

  func removeSubscription(_ database: Int64, id: String) throws -> Bool {
    try connection.run("DELETE FROM subscription WHERE database = ? AND id = ?", .integer(database), .text(id))
    return connection.changes > 0
  }

  func removeSubscriptions(_ database: Int64, zone: String) throws {
    try connection.run("DELETE FROM subscription WHERE database = ? AND zone = ?", .integer(database), .text(zone))
  }
}
