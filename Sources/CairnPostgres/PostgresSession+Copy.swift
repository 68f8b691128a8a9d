import CairnRecords
import CairnServerCore

/// A store in PostgreSQL as the source of a copy.
extension PostgresSession: StoreCopyReader {
  func copyParts(_ body: (StoreCopyPart) throws -> Void) throws {
    let store = try query(
      "SELECT secret, last_key, last_credential, (SELECT max(position) FROM databases) FROM store WHERE id = 1")
    try body(
      .head(
        StoreCopyHead(
          secret: store.optionalBytes(0, 0), lastKey: store.integer(0, 1), lastCredential: store.integer(0, 2),
          lastPosition: store.integer(0, 3))))
    let users = try query(
      "SELECT key, name, record_name, created, bytes, quota, \(Self.profileColumns) FROM users ORDER BY key")
    for row in 0..<users.count {
      let user = Caller(key: users.integer(row, 0), name: users.text(row, 1), recordName: users.text(row, 2))
      let usage = StoredUsage(bytes: users.integer(row, 4), quota: users.optionalInteger(row, 5))
      try body(.user(user, created: users.integer(row, 3), usage))
      let profile = profile(users, row, from: 6)
      if profile != UserProfile() { try body(.profile(user: user.key, profile)) }
      try body(.visits(user: user.key, try devices(of: user.key), try usageByDay(of: user.key)))
    }
    let tokens = try query("SELECT hash, user_key, created FROM access_tokens")
    for row in 0..<tokens.count {
      try body(.token(hash: tokens.bytes(row, 0), user: tokens.integer(row, 1), created: tokens.integer(row, 2)))
    }
    for credential in try appCredentials() { try body(.credential(credential)) }
    try copySchema(body)
    try copyDatabases(body)
    let assets = try query("SELECT digest, size, keep_until, suspect FROM assets")
    for row in 0..<assets.count {
      let asset = AssetSummary(digest: assets.bytes(row, 0), size: assets.integer(row, 1))
      try body(.asset(asset, keepUntil: assets.integer(row, 2), isSuspect: assets.integer(row, 3) != 0))
    }
  }

  private func copySchema(_ body: (StoreCopyPart) throws -> Void) throws {
    let scopes = try query("SELECT container, environment FROM schema_versions")
    for row in 0..<scopes.count {
      let environment = try ServerEnvironment(copying: scopes.text(row, 1))
      for field in try schema(scopes.text(row, 0), environment) {
        try body(.schemaField(container: scopes.text(row, 0), environment, field))
      }
    }
  }

  private func copyDatabases(_ body: (StoreCopyPart) throws -> Void) throws {
    let rows = try query(
      """
      SELECT d.key, n.user_key, n.container, n.environment, n.kind, n.incarnation, d.position, d.epochs
      FROM databases d JOIN database_names n ON n.key = d.key ORDER BY d.key
      """)
    for row in 0..<rows.count {
      let environment = try ServerEnvironment(copying: rows.text(row, 3))
      let kind = try DatabaseKind(copying: rows.text(row, 4))
      let key = rows.integer(row, 0)
      try body(
        .database(
          StoreCopyDatabase(
            key: key, user: rows.integer(row, 1),
            scope: DatabaseScope(container: rows.text(row, 2), environment: environment, kind: kind),
            incarnation: rows.integer(row, 5), position: rows.integer(row, 6), epochs: Self.epochs(rows.bytes(row, 7))))
      )
      for subscription in try subscriptions(key) { try body(.subscription(database: key, subscription)) }
      for zone in try zones(key, after: -1, limit: .max) {
        try body(.zone(database: key, zone))
        if !zone.isDeleted { try copyContent(zone.key, body) }
      }
    }
  }

  private func copyContent(_ zone: Int64, _ body: (StoreCopyPart) throws -> Void) throws {
    try copyRecords(zone, body)
    let place = place(zone)
    let rows = try query(
      "SELECT source, field, target, kind FROM record_references WHERE database = $1 AND zone = $2", place)
    let references = try (0..<rows.count).map { row in
      StoredReference(
        source: rows.text(row, 0), field: rows.text(row, 1), target: rows.text(row, 2),
        kind: try StoredReference.Kind(copying: rows.integer(row, 3)))
    }
    if !references.isEmpty { try body(.references(zone: zone, references)) }
    let uses = try query("SELECT source, digest FROM asset_uses WHERE database = $1 AND zone = $2", place)
    if !uses.isEmpty {
      try body(
        .assetUses(
          zone: zone, (0..<uses.count).map { StoreCopyAssetUse(source: uses.text($0, 0), digest: uses.bytes($0, 1)) }))
    }
    try copyShares(zone, body)
  }
}

/// A store in PostgreSQL as the target of a copy. Zones get new keys, which nobody outside of the store knows.
extension PostgresSession: StoreCopyWriter {
  func isEmptyStore() throws -> Bool {
    try query("SELECT 1 FROM users UNION ALL SELECT 1 FROM database_names LIMIT 1").isEmpty
  }

  func beginCopy() throws {
    (copiedZones, copiedShares) = ([:], [:])
    // Whoever copies into the same store at the same time waits here, and then finds it filled.
    _ = try query("SELECT id FROM store WHERE id = 1 FOR UPDATE")
    guard try isEmptyStore() else { throw CloudError(.exists, "there is data in the target already") }
  }

  func putCopy(_ part: StoreCopyPart) throws {
    switch part {
    case .head(let head):
      try change(
        "UPDATE store SET secret = $1, last_key = $2, last_credential = $3 WHERE id = 1",
        [.optional(head.secret), .int(head.lastKey), .int(head.lastCredential)])
    case .user(let user, let created, let usage):
      try change(
        "INSERT INTO users (key, name, record_name, created, bytes, quota) VALUES ($1, $2, $3, $4, $5, $6)",
        [
          .int(user.key), .text(user.name), .text(user.recordName), .int(created), .int(usage.bytes),
          .optional(usage.quota),
        ])
    case .profile(let user, let profile): try setProfile(of: user, profile)
    case .visits(let user, let devices, let days):
      for device in devices { try put(device, of: user) }
      for day in days { try put(day, of: user) }
    case .token(let hash, let user, let created): try addToken(hash: hash, user: user, created: created)
    case .credential(let credential): try insert(credential)
    case .schemaField(let container, let environment, let field): try setSchemaField(container, environment, field)
    case .database(let database): try put(database)
    case .subscription(let database, let subscription): try putSubscription(database, subscription)
    case .zone(let database, let zone): try put(zone, database)
    case .records(let zone, let records):
      for record in records { try put(record, in: try copied(zone), replacing: nil) }
      try settle()
      work.records = [:]
    case .references(let zone, let references):
      for (source, all) in Dictionary(grouping: references, by: \.source) {
        try setReferences(try copied(zone), source: source, all)
      }
      try settle()
    case .assetUses(let zone, let uses):
      let zone = try copied(zone)
      try change(
        """
        INSERT INTO asset_uses (database, zone, source, digest)
        SELECT $1::bigint, $2::bigint, u.source, u.digest FROM unnest($3::bytea[], $4::bytea[]) AS u (source, digest)
        """,
        place(zone) + [.names(uses.map(\.source)), .byteses(uses.map(\.digest))])
    case .share(let share, let participants): try put(share, participants)
    case .shareEntries(let zone, let entries):
      for var entry in entries {
        guard let share = copiedShares[entry.share] else { throw StoreCopyPart.shareIsMissing }
        entry.share = share
        try putShareEntry(entry, in: try copied(zone))
      }
      try connection.flush()
    case .asset(let asset, let keepUntil, let isSuspect):
      try change(
        """
        INSERT INTO assets (digest, size, keep_until, suspect, upload) VALUES ($1, $2, $3, $4, NULL)
        ON CONFLICT (digest) DO UPDATE SET keep_until = excluded.keep_until, suspect = excluded.suspect
        """, [.bytes(asset.digest), .int(asset.size), .int(keepUntil), .int(isSuspect ? 1 : 0)])
    }
  }

  private func put(_ share: StoredShare, _ participants: [StoredParticipant]) throws {
    var new = share
    (new.key, new.zone) = (0, try copied(share.zone))
    let key = try putShare(new)
    copiedShares[share.key] = key
    try setParticipants(of: key, participants)
  }

  private func copied(_ zone: Int64) throws -> Int64 {
    guard let key = copiedZones[zone] else {
      throw StorageFailure("The copy has records of a zone that it does not have")
    }
    return key
  }

  private func put(_ database: StoreCopyDatabase) throws {
    let scope = database.scope
    try change(
      """
      INSERT INTO database_names (user_key, container, environment, kind, key, incarnation)
      VALUES ($1, $2, $3, $4, $5, $6)
      """,
      [
        .int(database.user), .text(scope.container), .text(scope.environment.rawValue), .text(scope.kind.rawValue),
        .int(database.key), .int(database.incarnation),
      ])
    try change(
      "INSERT INTO databases (key, position, epochs, last_zone) VALUES ($1, $2, $3, 0)",
      [.int(database.key), .int(database.position), .bytes(Self.bytes(database.epochs))])
  }

  private func put(_ zone: StoredZone, _ database: Int64) throws {
    let made = try addZone(database, name: zone.name, incarnation: zone.incarnation, position: zone.position)
    copiedZones[zone.key] = made.key
    try change(
      "UPDATE zones SET deleted = $3, pruned = $4, bytes = $5 WHERE database = $1 AND key = $2",
      [
        .int(database), .int(made.key), .int(zone.isDeleted ? 1 : 0), .int(zone.pruned), .int(zone.bytes),
      ])
  }
}
