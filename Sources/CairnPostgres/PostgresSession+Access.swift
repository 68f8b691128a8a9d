import CairnRecords
import CairnServerCore

/// Usage, credentials of apps, subscriptions and addresses for notifications.
extension PostgresSession {
  // MARK: Usage

  /// A writer takes the lock of the user: what was judged by the quota stays true.
  func usage(of user: Int64) throws -> StoredUsage {
    if let known = work.usages[user] { return known }
    var usage = StoredUsage(bytes: 0, quota: nil)
    if user > 0 {
      let rows = try query(
        "SELECT bytes, quota FROM users WHERE key = $1\(isWriter ? " FOR UPDATE" : "")", [.int(user)])
      if !rows.isEmpty { usage = StoredUsage(bytes: rows.integer(0, 0), quota: rows.optionalInteger(0, 1)) }
    }
    usage.bytes += work.userBytes[user] ?? 0
    work.usages[user] = usage
    return usage
  }

  func setQuota(of user: Int64, _ bytes: Int64?) throws {
    try change("UPDATE users SET quota = $2 WHERE key = $1", [.int(user), .optional(bytes)])
    work.usages[user] = nil
  }

  func addUsage(_ bytes: Int64, user: Int64, zone: Int64) throws {
    work.zoneBytes[zone, default: 0] += bytes
    if let place = work.zoneNames[zone] { work.zones[place]??.bytes += bytes }
    guard user > 0 else { return }
    work.userBytes[user, default: 0] += bytes
    work.usages[user]?.bytes += bytes
  }

  // MARK: Credentials

  private static let credentialColumns = """
    SELECT number, kind, id, name, container, public_key, switches, origins, created FROM app_credentials
    """

  func appCredential(id: [UInt8]) throws -> AppCredential? {
    let rows = try query("\(Self.credentialColumns) WHERE id = $1", [.bytes(id)])
    return credentials(rows).first
  }

  func appCredentials() throws -> [AppCredential] {
    credentials(try query(Self.credentialColumns)).sorted {
      ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name)
    }
  }

  private func credentials(_ rows: PostgresRows) -> [AppCredential] {
    (0..<rows.count).compactMap { row in
      guard let kind = AppCredential.Kind(rawValue: rows.text(row, 1)) else { return nil }
      return AppCredential(
        number: rows.integer(row, 0), kind: kind, id: rows.bytes(row, 2), name: rows.text(row, 3),
        container: rows.optionalText(row, 4), publicKey: rows.bytes(row, 5),
        switches: AppCredential.switches(stored: rows.text(row, 6)),
        origins: AppCredential.origins(stored: rows.text(row, 7)), created: rows.integer(row, 8))
    }
  }

  func addAppCredential(_ credential: AppCredential) throws {
    let number = try query(
      "UPDATE store SET last_credential = last_credential + 1 WHERE id = 1 RETURNING last_credential"
    ).integer(0, 0)
    var credential = credential
    credential.number = number
    try insert(credential)
  }

  func insert(_ credential: AppCredential) throws {
    try change(
      """
      INSERT INTO app_credentials (number, kind, id, name, container, public_key, switches, origins, created)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      """,
      [
        .int(credential.number), .text(credential.kind.rawValue), .bytes(credential.id), .text(credential.name),
        credential.container.map { .text($0) } ?? .null, .bytes(credential.publicKey),
        .text(credential.storedSwitches), .text(credential.storedOrigins), .int(credential.created),
      ])
  }

  func removeAppCredential(id: [UInt8]) throws {
    try change("DELETE FROM app_credentials WHERE id = $1", [.bytes(id)])
  }

  // MARK: Subscriptions

  func subscriptions(_ database: Int64) throws -> [StoredSubscription] {
    if isWriter { try opened(database) }
    let rows = try query(
      "SELECT id, kind, zone, query, events, once, content FROM subscriptions WHERE database = $1 ORDER BY id",
      [.int(database)])
    return (0..<rows.count).compactMap { row in
      guard let kind = Subscription.Kind(rawValue: rows.text(row, 1)) else { return nil }
      return StoredSubscription(
        id: rows.text(row, 0), kind: kind, zone: rows.optionalText(row, 2), query: rows.optionalBytes(row, 3),
        events: rows.integer(row, 4), firesOnce: rows.integer(row, 5) != 0, content: rows.bytes(row, 6))
    }
  }

  func putSubscription(_ database: Int64, _ subscription: StoredSubscription) throws {
    try changeLater(
      """
      INSERT INTO subscriptions (database, id, kind, zone, query, events, once, content)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (database, id) DO UPDATE SET kind = excluded.kind, zone = excluded.zone, query = excluded.query,
        events = excluded.events, once = excluded.once, content = excluded.content
      """,
      [
        .int(database), .name(subscription.id), .text(subscription.kind.rawValue),
        subscription.zone.map { .text($0) } ?? .null, .optional(subscription.query), .int(subscription.events),
        .int(subscription.firesOnce ? 1 : 0), .bytes(subscription.content),
      ])
  }

  func removeSubscription(_ database: Int64, id: String) throws -> Bool {
    try change("DELETE FROM subscriptions WHERE database = $1 AND id = $2", [.int(database), .name(id)]) > 0
  }

  func removeSubscriptions(_ database: Int64, zone: String) throws {
    try changeLater("DELETE FROM subscriptions WHERE database = $1 AND zone = $2", [.int(database), .text(zone)])
  }

  // MARK: Addresses

  private static let courierColumns = "SELECT token, user_key, client, apps, used FROM couriers"

  func couriers() throws -> [StoredCourier] { couriers(try query(Self.courierColumns)) }

  func courier(_ token: String) throws -> StoredCourier? {
    couriers(try query("\(Self.courierColumns) WHERE token = $1", [.text(token)])).first
  }

  private func couriers(_ rows: PostgresRows) -> [StoredCourier] {
    (0..<rows.count).map { row in
      let words = rows.text(row, 3).split(separator: " ").map { String($0) }
      let apps = stride(from: 0, to: words.count - 1, by: 2).compactMap { at in
        ServerEnvironment(rawValue: words[at]).map { StoredCourier.App(container: words[at + 1], environment: $0) }
      }
      return StoredCourier(
        token: rows.text(row, 0), user: rows.integer(row, 1), clientID: rows.optionalText(row, 2), apps: apps,
        used: rows.integer(row, 4))
    }
  }

  func putCourier(_ courier: StoredCourier) throws {
    let apps = courier.apps.flatMap { [$0.environment.rawValue, $0.container] }.joined(separator: " ")
    try changeLater(
      """
      INSERT INTO couriers (token, user_key, client, apps, used) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (token) DO UPDATE SET client = excluded.client, apps = excluded.apps, used = excluded.used
      """,
      [
        .text(courier.token), .int(courier.user), courier.clientID.map { .text($0) } ?? .null, .text(apps),
        .int(courier.used),
      ])
  }

  func removeCourier(_ token: String) throws {
    try changeLater("DELETE FROM couriers WHERE token = $1", [.text(token)])
  }

  func removeCouriers(before time: Int64) throws {
    try changeLater("DELETE FROM couriers WHERE used < $1", [.int(time)])
  }
}
