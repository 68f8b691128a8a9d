import CairnRecords
import CairnServerCore

/// One transaction's view of the store: what it has read and what it is going to write. Confined to one thread at a
/// time.
///
/// Invariants:
/// 1. A write job reads and changes what a database holds only while it holds the lock of the database's row. Lock
///    order: databases, then users and assets.
/// 2. What a job stores of records stays here until somebody asks for what may contain it, or the transaction ends: a
///    request of 200 records is a few statements.
/// 3. Whatever a transaction has read of a database that it has locked stays true until it ends, so it is asked once.
final class PostgresSession: StorageWriter {
  let connection: PostgresConnection
  let isWriter: Bool
  var work = PostgresWork()
  /// How often the job has changed the store itself, beside what waits in `work`.
  var directWrites = 0

  /// Of a copy that is being put into the store: keys of zones and shares there, by those where they come from.
  var copiedZones: [Int64: Int64] = [:]
  var copiedShares: [Int64: Int64] = [:]

  init(_ connection: PostgresConnection, isWriter: Bool) {
    self.connection = connection
    self.isWriter = isWriter
  }

  // MARK: Transactions

  /// Collected, and sent with the first statement.
  func begin() throws {
    work = PostgresWork()
    directWrites = 0
    // A writer sees with each statement what was committed before it; a reader one snapshot throughout.
    try connection.send(isWriter ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
  }

  /// Writes what waits and commits, in one round trip.
  func commit() throws {
    try sendWork()
    do {
      try connection.send("COMMIT")
      try connection.flush()
    } catch var error as PostgresError {
      // The commit was on its way: only an answer tells whether it was carried out.
      error.isInDoubt = error.isConnectionLoss && error.state != "25006" || error.state == "40003"
      throw error
    }
  }

  /// Ends a reader's transaction without waiting for that.
  func end() throws {
    try connection.send("COMMIT")
    try connection.detach()
  }

  // MARK: Statements

  func query(_ sql: String, _ values: [PostgresValue] = []) throws -> PostgresRows {
    try connection.query(sql, values)
  }

  /// A change that is made at once. Returns how many rows it was.
  @discardableResult
  func change(_ sql: String, _ values: [PostgresValue] = []) throws -> Int {
    directWrites += 1
    return try connection.query(sql, values).changes
  }

  /// Writes what waits, because somebody is going to ask for what may contain it.
  func settle() throws {
    guard work.hasWrites else { return }
    directWrites += 1
    try sendWork()
    try connection.flush()
  }

  /// A change that is sent with the next statement that needs an answer.
  func changeLater(_ sql: String, _ values: [PostgresValue] = []) throws {
    directWrites += 1
    try connection.send(sql, values)
  }

  // MARK: Locks

  static func database(ofZone zone: Int64) -> Int64 { zone >> PostgresTables.zoneBits }

  /// The first two parameters of statements about what a zone holds.
  func place(_ zone: Int64) -> [PostgresValue] { [.int(Self.database(ofZone: zone)), .int(zone)] }

  /// Takes the lock of a database's row, which a writer holds until its end; a reader reads the row.
  @discardableResult
  func opened(_ database: Int64) throws -> PostgresWork.Database {
    if let known = work.databases[database] { return known }
    try connection.send(
      "SELECT position, epochs, last_zone FROM databases WHERE key = $1\(isWriter ? " FOR UPDATE" : "")",
      [.int(database)])
    // After the lock: whoever held it before has used an epoch that is this one or an older one.
    if isWriter { try connection.send("SELECT epoch FROM store WHERE id = 1") }
    let answers = try connection.flush()
    let last = isWriter ? answers.count - 2 : answers.count - 1
    let row = answers[last]
    guard !row.isEmpty else { throw DatabaseIsGone() }
    var opened = PostgresWork.Database(
      position: row.integer(0, 0), epochs: Epochs(PostgresSession.epochs(row.bytes(0, 1))), lastZone: row.integer(0, 2))
    if isWriter, !answers[last + 1].isEmpty {
      let name = UInt32(truncatingIfNeeded: answers[last + 1].integer(0, 0))
      if opened.epochs.all.last?.name != name { opened.epochs = opened.epochs.beginning(name, at: opened.position) }
    }
    work.databases[database] = opened
    return opened
  }

  // MARK: Epochs

  /// A database has the epochs in which it was written, each with a start of its own.
  func epochs(_ database: Int64) throws -> [Epoch] { try opened(database).epochs.all }

  /// Twelve bytes each: name and start, big endian.
  static func epochs(_ bytes: [UInt8]) -> [Epoch] {
    stride(from: 0, to: bytes.count - 11, by: 12).map { at in
      let name = bytes[at..<at + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      return Epoch(
        name: name, start: Int64(bitPattern: bytes[at + 4..<at + 12].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
    }
  }

  static func bytes(_ epochs: [Epoch]) -> [UInt8] {
    epochs.flatMap { epoch in
      withUnsafeBytes(of: epoch.name.bigEndian) { Array($0) } + withUnsafeBytes(of: epoch.start.bigEndian) { Array($0) }
    }
  }

  func beginEpoch(_ name: UInt32) throws {
    try change("UPDATE store SET epoch = $1 WHERE id = 1", [.int(Int64(name))])
  }

  func takePosition(_ database: Int64) throws -> Int64 {
    var opened = try opened(database)
    opened.position += 1
    opened.isChanged = true
    work.databases[database] = opened
    return opened.position
  }
}

/// The user of a database was removed while a request was on its way: its next one is not let in.
struct DatabaseIsGone: Error {}

/// What a transaction knows of the store and is going to write. A value: a job that fails is undone by going back to
/// the one from before it.
struct PostgresWork {
  struct Database {
    var position: Int64
    var epochs: Epochs
    var lastZone: Int64
    var isChanged = false
  }

  struct Name: Hashable {
    var zone: Int64
    var name: String
  }

  struct ZoneName: Hashable {
    var database: Int64
    var name: String
  }

  struct SchemaName: Hashable {
    var container: String
    var environment: ServerEnvironment
  }

  struct Schema {
    var version: Int64
    /// The version that the transaction found.
    var found: Int64
  }

  /// What a zone's records become.
  struct Puts {
    var records: [StoredRecord] = []
    /// Places in `records` by name: a record that is stored again takes its place.
    var places: [String: Int] = [:]
    /// Positions of rows that go.
    var replaced: [Int64] = []
    var references: [String: [StoredReference]] = [:]
    var position: Int64?
  }

  var databases: [Int64: Database] = [:]
  /// Nil for a zone that is not there.
  var zones: [ZoneName: StoredZone?] = [:]
  var zoneNames: [Int64: ZoneName] = [:]
  var records: [Name: StoredRecord?] = [:]
  var referrers: [Name: [StoredReference]] = [:]
  var schemas: [SchemaName: Schema] = [:]
  var usages: [Int64: StoredUsage] = [:]
  /// The zones of shares.
  var shareZones: [Int64: Int64] = [:]

  // What waits to be written.
  var puts: [Int64: Puts] = [:]
  /// By user, and by zone.
  var userBytes: [Int64: Int64] = [:]
  var zoneBytes: [Int64: Int64] = [:]
  var hasWrites: Bool { !puts.isEmpty || !userBytes.isEmpty || !zoneBytes.isEmpty }
}
