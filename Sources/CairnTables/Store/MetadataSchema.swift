import CairnSQLite

/// The tables that Cairn keeps in the user's file (docs/internals/file-format.md).
enum MetadataSchema {
  /// Raised with every change of the tables below or of the triggers' format.
  static let version: Int64 = 1

  /// Every statement is for a file without Cairn.
  static let statements: [String] = [
    // One row. User triggers read `applying`.
    """
    CREATE TABLE cairn_state(
      id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, applying INTEGER NOT NULL DEFAULT 0)
    """,
    "CREATE TABLE cairn_setting(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID",
    // `memory` is RememberedTable as JSON. `live` and `null_keys` count rows.
    """
    CREATE TABLE cairn_table(
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, memory TEXT NOT NULL, live INTEGER NOT NULL DEFAULT 0,
      null_keys INTEGER NOT NULL DEFAULT 0, suspended TEXT)
    """,
    // No constraint but the rowid: the user's conflict clause would override it (tables T2).
    "CREATE TABLE cairn_log(id INTEGER PRIMARY KEY, event, time, v1, v2, v3, v4)",
    """
    CREATE TABLE cairn_record(
      tbl INTEGER NOT NULL, key NOT NULL, name, pending INTEGER NOT NULL, state INTEGER NOT NULL, tag, clock INTEGER,
      shape INTEGER, rest TEXT, PRIMARY KEY (tbl, key)) WITHOUT ROWID
    """,
    "CREATE INDEX cairn_record_pending ON cairn_record(pending) WHERE pending > 0",
    // Names that stand in the row as they are; not the numbers of prefixes.
    "CREATE UNIQUE INDEX cairn_record_name ON cairn_record(name) WHERE name >= ''",
    """
    CREATE TABLE cairn_prefix(
      number INTEGER PRIMARY KEY, tbl INTEGER NOT NULL, prefix BLOB NOT NULL UNIQUE, clock INTEGER NOT NULL)
    """,
    // Fetched records that are not in the rows: stage 0 staged, 1 sealed, 2 parked. A null body is a deletion.
    // A record may be parked here, with edits that are nowhere else, while a fetched version of it is staged.
    """
    CREATE TABLE cairn_inbox(
      name TEXT NOT NULL, stage INTEGER NOT NULL, type TEXT, tbl INTEGER, rank INTEGER NOT NULL, body BLOB,
      time INTEGER, reason TEXT, detail TEXT, since INTEGER, waits TEXT, tries INTEGER NOT NULL DEFAULT 0,
      retry INTEGER, PRIMARY KEY (name, stage)) WITHOUT ROWID
    """,
    "CREATE INDEX cairn_inbox_stage ON cairn_inbox(stage, rank, name)",
    "CREATE INDEX cairn_inbox_waits ON cairn_inbox(waits) WHERE waits IS NOT NULL",
    // Mapped integers without a row that rows refer to (tables F6).
    "CREATE TABLE cairn_dangling(tbl INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (tbl, key)) WITHOUT ROWID",
    // Names of records that a snapshot has shown.
    "CREATE TABLE cairn_seen(name TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE cairn_outcome(
      id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, tbl TEXT, record TEXT, detail TEXT)
    """,
  ]

  static let tableNames: Set<String> = [
    "cairn_state", "cairn_setting", "cairn_table", "cairn_log", "cairn_record", "cairn_inbox", "cairn_seen",
    "cairn_outcome", "cairn_dangling", "cairn_prefix", "cairn_asset", "cairn_large",
    FiledIdentities.tableName,
  ]

  /// Whether the file was prepared by some version of Cairn.
  static func isInstalled(in connection: Connection) throws(SQLiteError) -> Bool {
    try connection.scalar("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'cairn_state'") != nil
  }

  /// Refuses a file that a newer Cairn has prepared (tables V9).
  static func checkVersion(of connection: Connection) throws {
    guard let version = try installedVersion(in: connection), version > Self.version else { return }
    throw TablesError.newerVersion(path: connection.path, file: version, library: Self.version)
  }

  static func install(in connection: Connection) throws(SQLiteError) {
    for statement in statements + LargeStore.statements { try connection.execute(statement) }
    try connection.run("INSERT INTO cairn_state(id, version) VALUES (1, ?)", .integer(version))
  }

  static func installedVersion(in connection: Connection) throws(SQLiteError) -> Int64? {
    guard case .integer(let version)? = try connection.scalar("SELECT version FROM cairn_state") else { return nil }
    return version
  }
}
