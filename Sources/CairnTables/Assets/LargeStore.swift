import CairnRecords
import CairnSQLite

/// What the file knows of values that travel as assets: bytes that were fetched and wait for their records, and what
/// the server has of which record.
///
/// `cairn_asset` holds bytes by hash until the records that need them are applied. `cairn_large` holds, by record name
/// and wire name of the column, the asset in the server's version: the version that the record's tag is of, or a later
/// one. Callers hold a transaction wherever they write.
final class LargeStore {
  /// An asset of the server's version of a record.
  struct Known: Hashable {
    /// SHA-256 of the bytes in hex.
    var hash: String
    /// What the server calls them.
    var checksum: String
    var size: Int64

    var asset: Asset { Asset(fileChecksum: checksum, size: size) }
  }

  static let statements = [
    // Bytes of assets that were fetched, until their records are applied.
    "CREATE TABLE IF NOT EXISTS cairn_asset(hash TEXT PRIMARY KEY NOT NULL, bytes BLOB NOT NULL)",
    // Which values of a record are assets on the server.
    """
    CREATE TABLE IF NOT EXISTS cairn_large(
      record TEXT NOT NULL, field TEXT NOT NULL, hash TEXT NOT NULL, checksum TEXT NOT NULL, size INTEGER NOT NULL,
      PRIMARY KEY (record, field)) WITHOUT ROWID
    """,
  ]

  private unowned let file: FileContext
  private var connection: Connection { file.connection }
  private var exists = false
  /// The transaction in which nothing was known.
  private var emptyEpoch = -1
  /// The assets of records of the batch that was taken last, by record and wire name; nil checksums are not uploaded
  /// yet.
  private var outgoing: [String: [String: Known]] = [:]

  init(_ file: FileContext) { self.file = file }

  // MARK: Tables

  /// Whether the tables are there: a file of an earlier day may lack them.
  private func isThere() throws -> Bool {
    if exists { return true }
    exists =
      try connection.scalar(
        "SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name IN ('cairn_asset', 'cairn_large')")?
      .integer == 2
    return exists
  }

  private func make() throws {
    if try isThere() { return }
    for statement in Self.statements { try connection.execute(statement) }
    // Not a change of the user's schema.
    file.openedSchemaVersion = try file.schemaVersion()
    exists = true
  }

  // MARK: Bytes

  func bytes(_ hash: String) throws -> [UInt8]? {
    guard try isThere() else { return nil }
    let statement = try connection.cached("SELECT bytes FROM cairn_asset WHERE hash = ?1")
    defer { statement.reset() }
    try statement.bind(1, hash)
    return try statement.step() ? statement.blob(0) : nil
  }

  func hasBytes(_ hash: String) throws -> Bool {
    guard try isThere() else { return false }
    return try connection.scalar("SELECT 1 FROM cairn_asset WHERE hash = ?", .text(hash)) != nil
  }

  func put(_ bytes: [UInt8], _ hash: String) throws {
    try make()
    try connection.run("INSERT OR REPLACE INTO cairn_asset(hash, bytes) VALUES (?, ?)", .text(hash), .blob(bytes))
  }

  /// Everything that was fetched has been applied, or is not wanted any more.
  func removeBytes() throws {
    guard try isThere(), try connection.scalar("SELECT 1 FROM cairn_asset LIMIT 1") != nil else { return }
    try connection.run("DELETE FROM cairn_asset")
  }

  // MARK: What the server has

  /// Whether nothing is known of any record: nearly always.
  func knowsNothing() throws -> Bool {
    guard try isThere() else { return true }
    // Every record that is sent or applied asks.
    if emptyEpoch == connection.epoch, connection.isInTransaction { return true }
    let isEmpty = try connection.scalar("SELECT 1 FROM cairn_large LIMIT 1") == nil
    if isEmpty { emptyEpoch = connection.epoch }
    return isEmpty
  }

  /// By wire name.
  func known(_ record: String) throws -> [String: Known] {
    guard try isThere() else { return [:] }
    let statement = try connection.cached("SELECT field, hash, checksum, size FROM cairn_large WHERE record = ?1")
    defer { statement.reset() }
    try statement.bind(1, record)
    var found: [String: Known] = [:]
    while try statement.step() {
      found[statement.text(0)] = Known(hash: statement.text(1), checksum: statement.text(2), size: statement.integer(3))
    }
    return found
  }

  func setKnown(_ record: String, _ assets: [String: Known]) throws {
    if assets.isEmpty, try knowsNothing() { return }
    try make()
    emptyEpoch = -1
    try connection.run("DELETE FROM cairn_large WHERE record = ?", .text(record))
    for (field, known) in assets {
      try connection.run(
        "INSERT INTO cairn_large(record, field, hash, checksum, size) VALUES (?, ?, ?, ?, ?)", .text(record),
        .text(field), .text(known.hash), .text(known.checksum), .integer(known.size))
    }
  }

  // MARK: A batch on its way

  func beginBatch() { outgoing = [:] }

  func setOutgoing(_ record: String, _ assets: [String: Known]) { outgoing[record] = assets }

  /// What an upload of the batch is called on the server.
  func noteUploaded(_ asset: Asset, _ record: String, _ field: String) {
    outgoing[record]?[field]?.checksum = asset.fileChecksum
  }

  /// The server has stored the record as it was sent.
  func confirm(_ record: String) throws {
    guard let assets = outgoing[record] else {
      if try !knowsNothing() { try setKnown(record, [:]) }
      return
    }
    try setKnown(record, assets.filter { !$0.value.checksum.isEmpty })
  }
}
