import CairnRecords
import CairnServerCore

/// The reading half.
extension PostgresSession {
  // MARK: Users

  private static let userColumns = "SELECT u.key, u.name, u.record_name FROM users u"

  func user(named name: String) throws -> Caller? { try callers("WHERE u.name = $1", [.text(name)]).first }

  func user(key: Int64) throws -> Caller? { try callers("WHERE u.key = $1", [.int(key)]).first }

  func user(tokenHash: [UInt8]) throws -> Caller? {
    try callers("JOIN access_tokens t ON t.user_key = u.key WHERE t.hash = $1", [.bytes(tokenHash)]).first
  }

  func user(recordName: String) throws -> Caller? {
    // What no text of PostgreSQL holds is no user's name.
    guard !recordName.utf8.contains(0) else { return nil }
    return try callers("WHERE u.record_name = $1", [.text(recordName)]).first
  }

  func user(email: String) throws -> Caller? { try callers("WHERE u.email = $1", [.name(email)]).first }

  func users() throws -> [Caller] {
    try callers("", []).sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  private func callers(_ condition: String, _ values: [PostgresValue]) throws -> [Caller] {
    let rows = try query("\(Self.userColumns) \(condition)", values)
    return (0..<rows.count).map {
      Caller(key: rows.integer($0, 0), name: rows.text($0, 1), recordName: rows.text($0, 2))
    }
  }

  // MARK: Databases and zones

  func database(_ user: Int64, _ scope: DatabaseScope) throws -> StoredDatabase? {
    let rows = try query(
      """
      SELECT key, incarnation FROM database_names
      WHERE user_key = $1 AND container = $2 AND environment = $3 AND kind = $4
      """, [.int(user), .text(scope.container), .text(scope.environment.rawValue), .text(scope.kind.rawValue)])
    return rows.isEmpty ? nil : StoredDatabase(key: rows.integer(0, 0), incarnation: rows.integer(0, 1))
  }

  private static let zoneColumns = """
    SELECT key, name, incarnation, position, deleted, pruned, bytes,
      EXISTS (SELECT 1 FROM shares WHERE shares.zone = zones.key) FROM zones
    """

  func zone(_ database: Int64, named name: String) throws -> StoredZone? {
    let place = PostgresWork.ZoneName(database: database, name: name)
    if let known = work.zones[place] { return known }
    if isWriter { try opened(database) } else { try lookUp(database) }
    let rows = try query("\(Self.zoneColumns) WHERE database = $1 AND name = $2", [.int(database), .text(name)])
    let found = rows.isEmpty ? nil : zone(rows, 0)
    remember(found, as: place)
    return found
  }

  func remember(_ zone: StoredZone?, as place: PostgresWork.ZoneName) {
    work.zones[place] = .some(zone)
    if let zone { work.zoneNames[zone.key] = place }
  }

  /// Asks for what a reader needs of nearly every database that it looks at, with the next statement's round trip.
  private func lookUp(_ database: Int64) throws {
    guard work.databases[database] == nil else { return }
    do { try opened(database) } catch is DatabaseIsGone {
      // The user was removed: there is no zone to be found either.
    }
  }

  func zones(_ database: Int64, after position: Int64, limit: Int) throws -> [StoredZone] {
    if isWriter {
      try opened(database)
      try settle()
    }
    let rows = try query(
      "\(Self.zoneColumns) WHERE database = $1 AND position > $2 ORDER BY position LIMIT $3",
      [.int(database), .int(position), .int(Int64(limit))])
    return (0..<rows.count).map { zone(rows, $0) }
  }

  private func zone(_ rows: PostgresRows, _ row: Int) -> StoredZone {
    StoredZone(
      key: rows.integer(row, 0), name: rows.text(row, 1), incarnation: rows.integer(row, 2),
      position: rows.integer(row, 3), isDeleted: rows.integer(row, 4) != 0, pruned: rows.integer(row, 5),
      bytes: rows.integer(row, 6), hasShares: rows.integer(row, 7) != 0)
  }

  // MARK: Records

  private static let recordColumns = """
    SELECT name, position, type, created, created_by, modified, modified_by, died, parent, flags, fields FROM records
    """

  private func record(_ rows: PostgresRows, _ row: Int) -> StoredRecord {
    StoredRecord(
      name: rows.text(row, 0), position: rows.integer(row, 1), type: rows.text(row, 2), created: rows.integer(row, 3),
      createdBy: rows.integer(row, 4), modified: rows.integer(row, 5), modifiedBy: rows.integer(row, 6),
      died: rows.optionalInteger(row, 7), parent: rows.optionalText(row, 8), flags: rows.integer(row, 9),
      fields: rows.bytes(row, 10))
  }

  func record(_ zone: Int64, named name: String) throws -> StoredRecord? {
    let key = PostgresWork.Name(zone: zone, name: name)
    if let known = work.records[key] { return known }
    let rows = try query(
      "\(Self.recordColumns) WHERE database = $1 AND zone = $2 AND name = $3", place(zone) + [.name(name)])
    let found = rows.isEmpty ? nil : record(rows, 0)
    work.records[key] = .some(found)
    return found
  }

  func prefetch(_ zone: Int64, named names: [String], referrersOf targets: [String]) throws {
    let names = Set(names.filter { work.records[PostgresWork.Name(zone: zone, name: $0)] == nil })
    if !targets.isEmpty { try settle() }
    guard names.count > 1 || !targets.isEmpty else { return }
    try connection.send(
      "\(Self.recordColumns) WHERE database = $1 AND zone = $2 AND name = ANY($3)", place(zone) + [.names(names)])
    if !targets.isEmpty {
      try connection.send(
        """
        SELECT target, source, field, kind FROM record_references
        WHERE database = $1 AND zone = $2 AND target = ANY($3)
        """, place(zone) + [.names(targets)])
    }
    let answers = try connection.flush()
    for name in names { work.records[PostgresWork.Name(zone: zone, name: name)] = .some(nil) }
    let rows = answers[answers.count - (targets.isEmpty ? 1 : 2)]
    for row in 0..<rows.count {
      let found = record(rows, row)
      work.records[PostgresWork.Name(zone: zone, name: found.name)] = found
    }
    guard !targets.isEmpty, let references = answers.last else { return }
    for target in targets { work.referrers[PostgresWork.Name(zone: zone, name: target)] = [] }
    for row in 0..<references.count {
      let target = references.text(row, 0)
      work.referrers[PostgresWork.Name(zone: zone, name: target)]?.append(
        contentsOf: reference(references, row, target: target, first: 1))
    }
  }

  func scan(
    _ zone: Int64, after position: Int64, before end: Int64, newestFirst: Bool,
    _ body: (StoredRecord) throws -> Bool
  ) throws {
    try settle()
    let order = newestFirst ? "DESC" : "ASC"
    var (low, high) = (position, end)
    try page { limit in
      let rows = try query(
        """
        \(Self.recordColumns) WHERE database = $1 AND zone = $2 AND position > $3 AND position < $4
        ORDER BY position \(order) LIMIT $5
        """, place(zone) + [.int(low), .int(high), .int(limit)])
      guard !rows.isEmpty else { return rows }
      let last = rows.integer(rows.count - 1, 1)
      if newestFirst { high = last } else { low = last }
      return rows
    } each: {
      try body($0)
    }
  }

  func scanNames(_ zone: Int64, type: String, after name: String, _ body: (StoredRecord) throws -> Bool) throws {
    try settle()
    var last = Array(name.utf8)
    try page { limit in
      let rows = try query(
        """
        \(Self.recordColumns) WHERE database = $1 AND zone = $2 AND name > $3 AND type = $4 AND died IS NULL
        ORDER BY name LIMIT $5
        """, place(zone) + [.bytes(last), .name(type), .int(limit)])
      if !rows.isEmpty { last = rows.bytes(rows.count - 1, 0) }
      return rows
    } each: {
      try body($0)
    }
  }

  /// Gets rows a piece at a time: small pieces first, since many readers stop soon, then as many as a few megabytes
  /// hold.
  private func page(
    _ next: (Int64) throws -> PostgresRows, each body: (StoredRecord) throws -> Bool
  ) throws {
    var limit: Int64 = 250
    while true {
      let rows = try next(limit)
      var bytes = 1
      for row in 0..<rows.count {
        let record = record(rows, row)
        bytes += record.fields.count + 200
        guard try body(record) else { return }
      }
      if rows.count < limit { return }
      limit = max(10, min(2_000, 4 << 20 / Int64(bytes / rows.count)))
    }
  }

  private func reference(_ rows: PostgresRows, _ row: Int, target: String, first: Int) -> [StoredReference] {
    guard let kind = StoredReference.Kind(rawValue: rows.integer(row, first + 2)) else { return [] }
    return [
      StoredReference(source: rows.text(row, first), field: rows.text(row, first + 1), target: target, kind: kind)
    ]
  }

  func referrers(_ zone: Int64, of target: String, limit: Int) throws -> [StoredReference] {
    if let known = work.referrers[PostgresWork.Name(zone: zone, name: target)] { return Array(known.prefix(limit)) }
    try settle()
    let rows = try query(
      """
      SELECT source, field, kind FROM record_references WHERE database = $1 AND zone = $2 AND target = $3 LIMIT $4
      """, place(zone) + [.name(target), .int(Int64(limit))])
    return (0..<rows.count).flatMap { reference(rows, $0, target: target, first: 0) }
  }

  func deleteSelfReferrerCount(_ zone: Int64, of target: String) throws -> Int {
    try settle()
    let rows = try query(
      """
      SELECT count(DISTINCT source) FROM record_references WHERE database = $1 AND zone = $2 AND target = $3 AND kind = 1
      """, place(zone) + [.name(target)])
    return Int(rows.integer(0, 0))
  }

  // MARK: Schema

  func schema(_ container: String, _ environment: ServerEnvironment) throws -> [StoredSchemaField] {
    let rows = try query(
      "SELECT type, field, kind, firm, yielded FROM schema_fields WHERE container = $1 AND environment = $2",
      [.text(container), .text(environment.rawValue)])
    return (0..<rows.count).map {
      StoredSchemaField(
        recordType: rows.text($0, 0), field: rows.text($0, 1), kind: rows.text($0, 2), isFirm: rows.integer($0, 3) != 0,
        hasYielded: rows.integer($0, 4) != 0)
    }
  }

  /// Random, so that one that was never committed does not come again with another content.
  func schemaVersion(_ container: String, _ environment: ServerEnvironment) throws -> Int64 {
    let name = PostgresWork.SchemaName(container: container, environment: environment)
    if let known = work.schemas[name] { return known.version }
    let rows = try query(
      "SELECT version FROM schema_versions WHERE container = $1 AND environment = $2",
      [.text(container), .text(environment.rawValue)])
    let version = rows.isEmpty ? 0 : rows.integer(0, 0)
    work.schemas[name] = PostgresWork.Schema(version: version, found: version)
    return version
  }
}
