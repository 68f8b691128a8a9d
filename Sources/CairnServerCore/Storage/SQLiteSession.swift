import CairnRecords
import CairnSQLite

/// One connection's view of the store: the reading half. Confined to one thread at a time.
final class SQLiteSession: StorageWriter {
  let connection: Connection
  /// The newest position, as the transaction that is open sees it; only the writing session keeps it.
  var position: Int64?
  /// Of a copy that is being put into the store: keys of shares there, by those where they come from.
  var copiedShares: [Int64: Int64] = [:]
  /// The statements of the hot paths, by their place here: the connection's cache would hash their text each time.
  private var kept: [Statement?] = Array(repeating: nil, count: HotStatement.allCases.count)

  enum HotStatement: Int, CaseIterable {
    case recordByName, insertRecord, updateRecord, savepoint, release
  }

  init(_ connection: Connection) { self.connection = connection }

  /// A statement that this session keeps compiled, reset and without bindings.
  func hot(_ which: HotStatement, _ sql: () -> String) throws -> Statement {
    if let statement = kept[which.rawValue] {
      statement.reset()
      return statement
    }
    let statement = try connection.prepare(sql())
    kept[which.rawValue] = statement
    return statement
  }

  /// Finalizes what the session keeps, before the schema or the whole content is replaced.
  func forgetStatements() {
    for i in kept.indices { kept[i] = nil }
    connection.clearCache()
  }

  // MARK: Store

  func currentPosition() throws -> Int64 {
    if let position { return position }
    guard case .integer(let value)? = try connection.scalar("SELECT position FROM store") else {
      throw StorageFailure("The store has no position: it is damaged")
    }
    return value
  }

  /// A database that came from another store has epochs of its own, which all began before those of this one.
  func epochs(_ database: Int64) throws -> [Epoch] {
    try connection.rows("SELECT name, start FROM database_epoch WHERE database = ? ORDER BY number", .integer(database))
      .map { Epoch(name: UInt32(truncatingIfNeeded: $0[0].asInteger), start: $0[1].asInteger) } + storeEpochs()
  }

  func storeEpochs() throws -> [Epoch] {
    try connection.rows("SELECT name, start FROM epoch ORDER BY number").map {
      Epoch(name: UInt32(truncatingIfNeeded: $0[0].asInteger), start: $0[1].asInteger)
    }
  }

  // MARK: Users

  private static let userColumns = "SELECT user.key, user.name, user.record_name FROM user"

  func user(named name: String) throws -> Caller? {
    try callers("WHERE name = ?", .text(name)).first
  }

  func user(key: Int64) throws -> Caller? {
    try callers("WHERE key = ?", .integer(key)).first
  }

  func user(tokenHash: [UInt8]) throws -> Caller? {
    try callers("JOIN access_token ON access_token.user = user.key WHERE access_token.hash = ?", .blob(tokenHash)).first
  }

  func user(recordName: String) throws -> Caller? {
    try callers("WHERE record_name = ?", .text(recordName)).first
  }

  func user(email: String) throws -> Caller? { try callers("WHERE email = ?", .text(email)).first }

  func users() throws -> [Caller] { try callers("WHERE ? IS NULL ORDER BY name", .null) }

  private func callers(_ condition: String, _ value: Value) throws -> [Caller] {
    let statement = try connection.cached("\(Self.userColumns) \(condition)")
    defer { statement.reset() }
    try statement.bind(1, value)
    var found: [Caller] = []
    while try statement.step() {
      found.append(Caller(key: statement.integer(0), name: statement.text(1), recordName: statement.text(2)))
    }
    return found
  }

  // MARK: Databases and zones

  func database(_ user: Int64, _ scope: DatabaseScope) throws -> StoredDatabase? {
    try connection.rows(
      "SELECT key, incarnation FROM database WHERE user = ? AND container = ? AND environment = ? AND kind = ?",
      .integer(user), .text(scope.container), .text(scope.environment.rawValue), .text(scope.kind.rawValue)
    ).first.map { StoredDatabase(key: $0[0].asInteger, incarnation: $0[1].asInteger) }
  }

  private static let zoneColumns = """
    SELECT key, name, incarnation, position, deleted, pruned, bytes,
      EXISTS (SELECT 1 FROM share WHERE share.zone = zone.key) FROM zone
    """

  func zone(_ database: Int64, named name: String) throws -> StoredZone? {
    let statement = try connection.cached("\(Self.zoneColumns) WHERE database = ? AND name = ?")
    defer { statement.reset() }
    try statement.bind(1, database)
    try statement.bind(2, name)
    return try statement.step() ? zone(statement) : nil
  }

  func zones(_ database: Int64, after position: Int64, limit: Int) throws -> [StoredZone] {
    let statement = try connection.cached(
      "\(Self.zoneColumns) WHERE database = ? AND position > ? ORDER BY position LIMIT ?")
    defer { statement.reset() }
    try statement.bind(1, database)
    try statement.bind(2, position)
    try statement.bind(3, Int64(limit))
    var found: [StoredZone] = []
    while try statement.step() { found.append(zone(statement)) }
    return found
  }

  private func zone(_ row: Statement) -> StoredZone {
    StoredZone(
      key: row.integer(0), name: row.text(1), incarnation: row.integer(2), position: row.integer(3),
      isDeleted: row.integer(4) != 0, pruned: row.integer(5), bytes: row.integer(6), hasShares: row.integer(7) != 0)
  }

  // MARK: Records

  private static let recordColumns = """
    SELECT name, position, type, created, created_by, modified, modified_by, died, parent, has_references, fields
    FROM record
    """

  func record(_ zone: Int64, named name: String) throws -> StoredRecord? {
    let statement = try hot(.recordByName) { "\(Self.recordColumns) WHERE zone = ? AND name = ?" }
    defer { statement.reset() }
    try statement.bind(1, zone)
    try statement.bind(2, name)
    return try statement.step() ? record(statement) : nil
  }

  func scan(
    _ zone: Int64, after position: Int64, before end: Int64, newestFirst: Bool,
    _ body: (StoredRecord) throws -> Bool
  ) throws {
    let order = newestFirst ? "DESC" : "ASC"
    let statement = try connection.cached(
      "\(Self.recordColumns) WHERE zone = ? AND position > ? AND position < ? ORDER BY position \(order)")
    defer { statement.reset() }
    try statement.bind(1, zone)
    try statement.bind(2, position)
    try statement.bind(3, end)
    while try statement.step(), try body(record(statement)) {}
  }

  func scanNames(_ zone: Int64, type: String, after name: String, _ body: (StoredRecord) throws -> Bool) throws {
    let statement = try connection.cached(
      "\(Self.recordColumns) WHERE zone = ? AND name > ? AND type = ? AND died IS NULL ORDER BY name")
    defer { statement.reset() }
    try statement.bind(1, zone)
    try statement.bind(2, name)
    try statement.bind(3, type)
    while try statement.step(), try body(record(statement)) {}
  }

  private func record(_ row: Statement) -> StoredRecord {
    StoredRecord(
      name: row.text(0), position: row.integer(1), type: row.text(2), created: row.integer(3),
      createdBy: row.integer(4), modified: row.integer(5), modifiedBy: row.integer(6), died: row.optionalInteger(7),
      parent: row.optionalText(8), flags: row.integer(9), fields: row.blob(10))
  }

  func referrers(_ zone: Int64, of target: String, limit: Int) throws -> [StoredReference] {
    let statement = try connection.cached(
      "SELECT source, field, kind FROM reference WHERE zone = ? AND target = ? LIMIT ?")
    defer { statement.reset() }
    try statement.bind(1, zone)
    try statement.bind(2, target)
    try statement.bind(3, Int64(limit))
    var found: [StoredReference] = []
    while try statement.step() {
      guard let kind = StoredReference.Kind(rawValue: statement.integer(2)) else { continue }
      found.append(StoredReference(source: statement.text(0), field: statement.text(1), target: target, kind: kind))
    }
    return found
  }

  func deleteSelfReferrerCount(_ zone: Int64, of target: String) throws -> Int {
    let count = try connection.scalar(
      "SELECT count(DISTINCT source) FROM reference WHERE zone = ? AND target = ? AND kind = 1",
      .integer(zone), .text(target))
    return Int(count?.asInteger ?? 0)
  }

  // MARK: Schema

  func schema(_ container: String, _ environment: ServerEnvironment) throws -> [StoredSchemaField] {
    try connection.rows(
      "SELECT type, field, kind, firm, yielded FROM schema_field WHERE container = ? AND environment = ?",
      .text(container), .text(environment.rawValue)
    ).map {
      StoredSchemaField(
        recordType: $0[0].asText, field: $0[1].asText, kind: $0[2].asText, isFirm: $0[3].asInteger != 0,
        hasYielded: $0[4].asInteger != 0)
    }
  }
}

extension Value {
  /// The integer of a column that is declared so; 0 for anything else.
  var asInteger: Int64 { if case .integer(let value) = self { value } else { 0 } }
  /// The text of a column that is declared so; empty for anything else.
  var asText: String { if case .text(let value) = self { value } else { "" } }
}
