import CairnRecords
import CairnServerCore

/// The writing half; called only inside a writer's transaction.
extension PostgresSession {
  // MARK: Users

  /// Keys of users, databases and shares are given out once, also after what had them is gone.
  func newKey() throws -> Int64 {
    directWrites += 1
    return try query("UPDATE store SET last_key = last_key + 1 WHERE id = 1 RETURNING last_key").integer(0, 0)
  }

  func addUser(name: String, recordName: String, created: Int64) throws -> Caller {
    let key = try newKey()
    try change(
      "INSERT INTO users (key, name, record_name, created, bytes, quota) VALUES ($1, $2, $3, $4, 0, NULL)",
      [.int(key), .text(name), .text(recordName), .int(created)])
    return Caller(key: key, name: name, recordName: recordName)
  }

  func removeUser(_ user: Int64) throws {
    // What the same job has done to others' databases.
    directWrites += 1
    try sendWork()
    let databases = try keys(of: user)
    for database in databases { try opened(database) }
    _ = try query("SELECT key FROM users WHERE key = $1 FOR UPDATE", [.int(user)])
    // No more can come now: who adds one takes the user's lock.
    guard try keys(of: user) == databases else { throw PostgresError.conflict }
    try checkHasNoShares(user)
    let all = PostgresValue.ints(databases)
    try changeLater(
      """
      INSERT INTO garbage (database, zone) SELECT database, key FROM zones WHERE database = ANY($1)
      ON CONFLICT (database, zone) DO NOTHING
      """, [all])
    try changeLater("DELETE FROM zones WHERE database = ANY($1)", [all])
    try changeLater("DELETE FROM subscriptions WHERE database = ANY($1)", [all])
    let names = PublicSubscriptionRange(of: user)
    try changeLater(
      "DELETE FROM subscriptions WHERE database = ANY($1) AND id >= $2 AND id < $3",
      [.ints(try keys(of: 0)), .name(names.first), .name(names.end)])
    try changeLater("DELETE FROM databases WHERE key = ANY($1)", [all])
    try changeLater("DELETE FROM database_names WHERE user_key = $1", [.int(user)])
    try changeLater("DELETE FROM couriers WHERE user_key = $1", [.int(user)])
    try changeLater("DELETE FROM devices WHERE user_key = $1", [.int(user)])
    try changeLater("DELETE FROM usage_days WHERE user_key = $1", [.int(user)])
    try removeTokens(of: user)
    try changeLater("DELETE FROM share_participants WHERE user_key = $1", [.int(user)])
    try change("DELETE FROM users WHERE key = $1", [.int(user)])
    work = PostgresWork()
  }

  private func keys(of user: Int64) throws -> [Int64] {
    let rows = try query("SELECT key FROM database_names WHERE user_key = $1 ORDER BY key", [.int(user)])
    return (0..<rows.count).map { rows.integer($0, 0) }
  }

  func addToken(hash: [UInt8], user: Int64, created: Int64) throws {
    try changeLater(
      "INSERT INTO access_tokens (hash, user_key, created) VALUES ($1, $2, $3)",
      [.bytes(hash), .int(user), .int(created)])
  }

  func removeTokens(of user: Int64) throws {
    try changeLater("DELETE FROM access_tokens WHERE user_key = $1", [.int(user)])
  }

  func replaceToken(hash: [UInt8], with next: [UInt8], created: Int64) throws -> Bool {
    try change(
      "UPDATE access_tokens SET hash = $1, created = $2 WHERE hash = $3",
      [.bytes(next), .int(created), .bytes(hash)]) > 0
  }

  // MARK: Databases and zones

  func addDatabase(_ user: Int64, _ scope: DatabaseScope, incarnation: Int64) throws -> StoredDatabase {
    // Public databases belong to nobody.
    if user > 0, try query("SELECT key FROM users WHERE key = $1 FOR UPDATE", [.int(user)]).isEmpty {
      throw CloudError(.authenticationFailed, "The user does not exist any more")
    }
    let key = try newKey()
    try changeLater(
      """
      INSERT INTO database_names (user_key, container, environment, kind, key, incarnation)
      VALUES ($1, $2, $3, $4, $5, $6)
      """,
      [
        .int(user), .text(scope.container), .text(scope.environment.rawValue), .text(scope.kind.rawValue), .int(key),
        .int(incarnation),
      ])
    try changeLater(
      "INSERT INTO databases (key, position, epochs, last_zone) VALUES ($1, 0, $2, 0)", [.int(key), .bytes([])])
    // It has its first epoch at once: a token may be made before anything is written, in a shared database.
    var opened = try opened(key)
    opened.isChanged = true
    work.databases[key] = opened
    return StoredDatabase(key: key, incarnation: incarnation)
  }

  func addZone(_ database: Int64, name: String, incarnation: Int64, position: Int64) throws -> StoredZone {
    var opened = try opened(database)
    guard opened.lastZone < 1 << PostgresTables.zoneBits - 1 else {
      throw CloudError(.badRequest, "No more zones can be made in this database")
    }
    opened.lastZone += 1
    opened.isChanged = true
    work.databases[database] = opened
    let key = database << PostgresTables.zoneBits | opened.lastZone
    try changeLater(
      """
      INSERT INTO zones (database, key, name, incarnation, position, deleted, pruned, bytes)
      VALUES ($1, $2, $3, $4, $5, 0, 0, 0)
      """, [.int(database), .int(key), .text(name), .int(incarnation), .int(position)])
    let zone = StoredZone(key: key, name: name, incarnation: incarnation, position: position)
    remember(zone, as: PostgresWork.ZoneName(database: database, name: name))
    return zone
  }

  func setZonePosition(_ zone: Int64, _ position: Int64) throws {
    work.puts[zone, default: PostgresWork.Puts()].position = position
    if let place = work.zoneNames[zone] { work.zones[place]??.position = position }
  }

  func markZoneDeleted(_ zone: Int64, position: Int64) throws {
    try settle()
    try changeLater(
      "INSERT INTO garbage (database, zone) VALUES ($1, $2) ON CONFLICT (database, zone) DO NOTHING", place(zone))
    try changeLater(
      "UPDATE zones SET deleted = 1, position = $3 WHERE database = $1 AND key = $2", place(zone) + [.int(position)])
    forget(zone)
  }

  func removeZone(_ zone: Int64) throws {
    try settle()
    try changeLater("DELETE FROM zones WHERE database = $1 AND key = $2", place(zone))
    forget(zone)
  }

  private func forget(_ zone: Int64) {
    if let place = work.zoneNames.removeValue(forKey: zone) { work.zones[place] = nil }
    work.records = work.records.filter { $0.key.zone != zone }
  }

  // MARK: Records

  func put(_ record: StoredRecord, in zone: Int64, replacing previous: Int64?) throws {
    var puts = work.puts.removeValue(forKey: zone) ?? PostgresWork.Puts()
    if let place = puts.places[record.name] {
      puts.records[place] = record
    } else {
      puts.places[record.name] = puts.records.count
      puts.records.append(record)
      if let previous { puts.replaced.append(previous) }
    }
    work.puts[zone] = puts
    work.records[PostgresWork.Name(zone: zone, name: record.name)] = record
  }

  func setReferences(_ zone: Int64, source: String, _ references: [StoredReference]) throws {
    work.puts[zone, default: PostgresWork.Puts()].references[source] = references
    work.referrers.removeAll()
  }

  /// Sends what waits, records first.
  func sendWork() throws {
    for (zone, puts) in work.puts.sorted(by: { $0.key < $1.key }) { try send(puts, zone) }
    for (zone, bytes) in work.zoneBytes.sorted(by: { $0.key < $1.key }) {
      try connection.send(
        "UPDATE zones SET bytes = bytes + $3 WHERE database = $1 AND key = $2", place(zone) + [.int(bytes)])
    }
    for (user, bytes) in work.userBytes.sorted(by: { $0.key < $1.key }) {
      try connection.send("UPDATE users SET bytes = bytes + $2 WHERE key = $1", [.int(user), .int(bytes)])
    }
    for (key, database) in work.databases.sorted(by: { $0.key < $1.key }) where database.isChanged {
      try connection.send(
        "UPDATE databases SET position = $2, epochs = $3, last_zone = $4 WHERE key = $1",
        [.int(key), .int(database.position), .bytes(Self.bytes(database.epochs.all)), .int(database.lastZone)])
      work.databases[key]?.isChanged = false
    }
    work.puts = [:]
    work.zoneBytes = [:]
    work.userBytes = [:]
  }

  private func send(_ puts: PostgresWork.Puts, _ zone: Int64) throws {
    let place = place(zone)
    if !puts.replaced.isEmpty {
      try connection.send(
        "DELETE FROM records WHERE database = $1 AND zone = $2 AND position = ANY($3)", place + [.ints(puts.replaced)])
    }
    try send(puts.records, place)
    if !puts.references.isEmpty {
      try connection.send(
        "DELETE FROM record_references WHERE database = $1 AND zone = $2 AND source = ANY($3)",
        place + [.names(puts.references.keys)])
      let references = puts.references.values.flatMap { $0 }
      if !references.isEmpty {
        try connection.send(
          """
          INSERT INTO record_references (database, zone, target, kind, source, field)
          SELECT DISTINCT $1::bigint, $2::bigint, r.target, r.kind, r.source, r.field
          FROM unnest($3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[]) AS r (target, kind, source, field)
          """,
          place + [
            .names(references.map(\.target)), .ints(references.map(\.kind.rawValue)), .names(references.map(\.source)),
            .names(references.map(\.field)),
          ])
      }
    }
    if let position = puts.position {
      try connection.send(
        "UPDATE zones SET position = $3 WHERE database = $1 AND key = $2", place + [.int(position)])
    }
  }

  private func send(_ records: [StoredRecord], _ place: [PostgresValue]) throws {
    guard !records.isEmpty else { return }
    try connection.send(
      """
      INSERT INTO records (database, zone, position, name, type, created, created_by, modified, modified_by, died, parent,
        flags, fields)
      SELECT $1::bigint, $2::bigint, r.position, r.name, r.type, r.created, r.created_by, r.modified, r.modified_by,
        r.died, r.parent, r.flags, r.fields
      FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::bytea[], $12::bigint[], $13::bytea[])
      AS r (position, name, type, created, created_by, modified, modified_by, died, parent, flags, fields)
      """,
      place + [
        .ints(records.map(\.position)), .names(records.map(\.name)), .names(records.map(\.type)),
        .ints(records.map(\.created)), .ints(records.map(\.createdBy)), .ints(records.map(\.modified)),
        .ints(records.map(\.modifiedBy)), .ints(records.map(\.died)),
        .byteses(records.map { $0.parent.map { Array($0.utf8) } }), .ints(records.map(\.flags)),
        .byteses(records.map(\.fields)),
      ])
  }

  // MARK: Schema

  func setSchemaField(_ container: String, _ environment: ServerEnvironment, _ field: StoredSchemaField) throws {
    let name = PostgresWork.SchemaName(container: container, environment: environment)
    let scope: [PostgresValue] = [.text(container), .text(environment.rawValue)]
    let found = try schemaVersion(container, environment)
    if work.schemas[name]?.version == work.schemas[name]?.found {
      // The types were judged by the version that was found: another one means that they have to be judged again.
      let next = Int64.random(in: 1...(.max))
      let changes =
        try found == 0
        ? change(
          """
          INSERT INTO schema_versions (container, environment, version) VALUES ($1, $2, $3)
          ON CONFLICT (container, environment) DO NOTHING
          """, scope + [.int(next)])
        : change(
          "UPDATE schema_versions SET version = $3 WHERE container = $1 AND environment = $2 AND version = $4",
          scope + [.int(next), .int(found)])
      guard changes == 1 else { throw PostgresError.conflict }
      work.schemas[name]?.version = next
    }
    try changeLater(
      """
      INSERT INTO schema_fields (container, environment, type, field, kind, firm, yielded)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (container, environment, type, field)
      DO UPDATE SET kind = excluded.kind, firm = excluded.firm, yielded = excluded.yielded
      """,
      scope + [
        .name(field.recordType), .name(field.field), .text(field.kind), .int(field.isFirm ? 1 : 0),
        .int(field.hasYielded ? 1 : 0),
      ])
  }
}
