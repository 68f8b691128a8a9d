import CairnSQLite

/// A store in SQLite as the source of a copy.
extension SQLiteSession: StoreCopyReader {
  func copyParts(_ body: (StoreCopyPart) throws -> Void) throws {
    let position = try currentPosition()
    try body(
      .head(
        StoreCopyHead(
          secret: try assetSecret(), lastKey: max(try lastKey("user"), try lastKey("database")),
          lastCredential: try lastKey("app_credential"), lastPosition: position)))
    for row in try connection.rows("SELECT key, name, record_name, created, bytes, quota FROM user ORDER BY key") {
      let user = Caller(key: row[0].asInteger, name: row[1].asText, recordName: row[2].asText)
      let quota: Int64? = if case .integer(let quota) = row[5] { quota } else { nil }
      try body(.user(user, created: row[3].asInteger, StoredUsage(bytes: row[4].asInteger, quota: quota)))
      let profile = try profile(of: user.key)
      if profile != UserProfile() { try body(.profile(user: user.key, profile)) }
      try body(.visits(user: user.key, try devices(of: user.key), try usageByDay(of: user.key)))
    }
    for row in try connection.rows("SELECT hash, user, created FROM access_token") {
      try body(.token(hash: row[0].asBytes, user: row[1].asInteger, created: row[2].asInteger))
    }
    for credential in try appCredentials() { try body(.credential(credential)) }
    try copySchema(body)
    let databases = try connection.rows(
      "SELECT key, user, container, environment, kind, incarnation FROM database ORDER BY key")
    for row in databases {
      let scope = DatabaseScope(
        container: row[2].asText, environment: try ServerEnvironment(copying: row[3].asText),
        kind: try DatabaseKind(copying: row[4].asText))
      let database = StoreCopyDatabase(
        key: row[0].asInteger, user: row[1].asInteger, scope: scope, incarnation: row[5].asInteger, position: position,
        epochs: try epochs(row[0].asInteger))
      try body(.database(database))
      for subscription in try subscriptions(database.key) {
        try body(.subscription(database: database.key, subscription))
      }
      for zone in try zones(database.key, after: -1, limit: .max) {
        try body(.zone(database: database.key, zone))
        if !zone.isDeleted { try copyContent(zone.key, body) }
      }
    }
    for row in try connection.rows("SELECT digest, size, keep_until, suspect FROM asset") {
      let asset = AssetSummary(digest: row[0].asBytes, size: row[1].asInteger)
      try body(.asset(asset, keepUntil: row[2].asInteger, isSuspect: row[3].asInteger != 0))
    }
  }

  private func lastKey(_ table: String) throws -> Int64 {
    try connection.scalar("SELECT seq FROM sqlite_sequence WHERE name = ?", .text(table))?.asInteger ?? 0
  }

  private func copySchema(_ body: (StoreCopyPart) throws -> Void) throws {
    for row in try connection.rows("SELECT DISTINCT container, environment FROM schema_field") {
      let environment = try ServerEnvironment(copying: row[1].asText)
      for field in try schema(row[0].asText, environment) {
        try body(.schemaField(container: row[0].asText, environment, field))
      }
    }
  }

  private func copyContent(_ zone: Int64, _ body: (StoreCopyPart) throws -> Void) throws {
    try copyRecords(zone, body)
    let references = try connection.rows(
      "SELECT source, field, target, kind FROM reference WHERE zone = ?", .integer(zone)
    ).map { row in
      StoredReference(
        source: row[0].asText, field: row[1].asText, target: row[2].asText,
        kind: try StoredReference.Kind(copying: row[3].asInteger))
    }
    if !references.isEmpty { try body(.references(zone: zone, references)) }
    let uses = try connection.rows("SELECT source, digest FROM asset_use WHERE zone = ?", .integer(zone))
      .map { StoreCopyAssetUse(source: $0[0].asText, digest: $0[1].asBytes) }
    if !uses.isEmpty { try body(.assetUses(zone: zone, uses)) }
    try copyShares(zone, body)
  }
}

/// A store in SQLite as the target of a copy.
extension SQLiteSession: StoreCopyWriter {
  func isEmptyStore() throws -> Bool {
    try connection.scalar("SELECT 1 FROM user UNION ALL SELECT 1 FROM database LIMIT 1") == nil
  }

  func beginCopy() throws { copiedShares = [:] }

  func putCopy(_ part: StoreCopyPart) throws {
    switch part {
    case .head(let head): try put(head)
    case .user(let user, let created, let usage):
      try connection.run(
        "INSERT INTO user (key, name, record_name, created, bytes, quota) VALUES (?, ?, ?, ?, ?, ?)",
        .integer(user.key), .text(user.name), .text(user.recordName), .integer(created), .integer(usage.bytes),
        usage.quota.map { .integer($0) } ?? .null)
    case .profile(let user, let profile): try setProfile(of: user, profile)
    case .visits(let user, let devices, let days):
      for device in devices { try put(device, of: user) }
      for day in days { try put(day, of: user) }
    case .token(let hash, let user, let created): try addToken(hash: hash, user: user, created: created)
    case .credential(let credential):
      try addAppCredential(credential)
      try connection.run(
        "UPDATE app_credential SET number = ? WHERE id = ?", .integer(credential.number), .blob(credential.id))
    case .schemaField(let container, let environment, let field): try setSchemaField(container, environment, field)
    case .database(let database): try put(database)
    case .subscription(let database, let subscription): try putSubscription(database, subscription)
    case .zone(let database, let zone):
      try connection.run(
        """
        INSERT INTO zone (key, database, name, incarnation, position, deleted, pruned, bytes)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """, .integer(zone.key), .integer(database), .text(zone.name), .integer(zone.incarnation),
        .integer(zone.position), .integer(zone.isDeleted ? 1 : 0), .integer(zone.pruned), .integer(zone.bytes))
    case .records(let zone, let records): for record in records { try put(record, in: zone, replacing: nil) }
    case .references(let zone, let references):
      for (source, all) in Dictionary(grouping: references, by: \.source) {
        try setReferences(zone, source: source, all)
      }
    case .assetUses(let zone, let uses):
      for (source, all) in Dictionary(grouping: uses, by: \.source) {
        try setAssetUses(zone, source: source, Set(all.map(\.digest)))
      }
    case .share(let share, let participants):
      var new = share
      new.key = 0
      let key = try putShare(new)
      copiedShares[share.key] = key
      try setParticipants(of: key, participants)
    case .shareEntries(let zone, let entries):
      for var entry in entries {
        guard let share = copiedShares[entry.share] else { throw StoreCopyPart.shareIsMissing }
        entry.share = share
        try putShareEntry(entry, in: zone)
      }
    case .asset(let asset, let keepUntil, let isSuspect):
      try connection.run(
        "INSERT OR REPLACE INTO asset (digest, size, keep_until, suspect) VALUES (?, ?, ?, ?)", .blob(asset.digest),
        .integer(asset.size), .integer(keepUntil), .integer(isSuspect ? 1 : 0))
    }
  }

  private func put(_ head: StoreCopyHead) throws {
    position = head.lastPosition
    if let secret = head.secret { try setAssetSecret(secret) }
    for (table, last) in [("user", head.lastKey), ("database", head.lastKey), ("app_credential", head.lastCredential)] {
      try connection.run("DELETE FROM sqlite_sequence WHERE name = ?", .text(table))
      try connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", .text(table), .integer(last))
    }
  }

  /// The database brings its epochs along. One more begins where its history ends: between there and the first position
  /// of this store there is none that a token may name.
  private func put(_ database: StoreCopyDatabase) throws {
    let scope = database.scope
    try connection.run(
      "INSERT INTO database (key, user, container, environment, kind, incarnation) VALUES (?, ?, ?, ?, ?, ?)",
      .integer(database.key), .integer(database.user), .text(scope.container), .text(scope.environment.rawValue),
      .text(scope.kind.rawValue), .integer(database.incarnation))
    let epochs = Epochs(database.epochs).beginning(StoreCopy.epochName(database), at: database.position)
    for epoch in epochs.all {
      try connection.run(
        "INSERT INTO database_epoch (database, name, start) VALUES (?, ?, ?)", .integer(database.key),
        .integer(Int64(epoch.name)), .integer(epoch.start))
    }
  }
}

extension StoreCopy {
  /// Of the epoch that nobody writes in; one that a database does not have.
  static func epochName(_ database: StoreCopyDatabase) -> UInt32 {
    var name = UInt32(truncatingIfNeeded: database.incarnation) >> 1
    while database.epochs.contains(where: { $0.name == name }) { name = (name &+ 1) & (.max >> 1) }
    return name
  }
}

extension Value {
  /// The bytes of a column that is declared so; empty for anything else.
  fileprivate var asBytes: [UInt8] { if case .blob(let value) = self { value } else { [] } }
}
