import CairnSQLite

/// What a file keeps of users other than its own: everything that belongs to their identity, rows included
/// (tables L10; docs/internals/file-format.md).
///
/// Each table is copied as it is into one of the name `cairn_filed_<number>_<table>`, without declared types, so that
/// values keep their storage classes. Callers hold a transaction.
struct FiledIdentities {
  /// A user whose state is filed.
  struct Entry {
    var number: Int64
    var user: String
    /// Changes that were never sent.
    var pending: Int
  }

  /// Not the log, which is empty when filed, nor what every user's state has in common.
  private static let filed = MetadataSchema.tableNames.subtracting(["cairn_state", "cairn_log", tableName]).sorted()
  static let tableName = "cairn_identity"
  private static let prefix = "cairn_filed_"

  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  // MARK: Reports

  func entries() throws -> [Entry] {
    guard try exists(Self.tableName) else { return [] }
    return try connection.rows("SELECT number, user, pending FROM cairn_identity ORDER BY user").map {
      Entry(number: $0[0].integer ?? 0, user: $0[1].text ?? "", pending: Int($0[2].integer ?? 0))
    }
  }

  /// Every table of Cairn's in the file.
  static func ownTables(in connection: Connection) throws(SQLiteError) -> [String] {
    let copies = try connection.rows(
      "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name LIKE 'cairn\\_filed\\_%' ESCAPE '\\'")
    return MetadataSchema.tableNames.sorted() + copies.compactMap(\.[0].text)
  }

  /// What is remembered of the tables whose rows are filed.
  func remembered(_ entry: Entry) throws -> [RememberedTable] {
    try CaptureInstaller(connection: connection).remembered(in: name(entry.number, "cairn_table"))
  }

  /// The filed rows of a table, and which columns they have.
  func rows(_ entry: Entry, table: Int) throws -> (table: String, columns: [String]) {
    let copy = name(entry.number, "row\(table)")
    return (copy, try columns(of: copy))
  }

  /// Whether a column of filed rows holds anything but NULL.
  func isUsed(_ column: String, of copy: String) throws -> Bool {
    try connection.scalar(
      "SELECT 1 FROM main.\(SQLText.quoted(copy)) WHERE \(SQLText.quoted(column)) IS NOT NULL LIMIT 1") != nil
  }

  // MARK: Filing

  /// Files what the file holds now under `user`. The log has been folded.
  func file(_ user: String, _ plans: [TablePlan], at now: Int64) throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS cairn_identity(
        number INTEGER PRIMARY KEY, user TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, time INTEGER NOT NULL,
        pending INTEGER NOT NULL)
      """)
    try connection.run(
      """
      INSERT INTO cairn_identity(user, version, time, pending) SELECT ?1, version, ?2,
        (SELECT count(*) FROM cairn_record WHERE pending > 0) + (SELECT coalesce(sum(null_keys), 0) FROM cairn_table)
      FROM cairn_state
      """, .text(user), .integer(now))
    let number = connection.lastInsertRowID
    for table in Self.filed { try copy(table, columns(of: table), to: name(number, table)) }
    for plan in plans { try copy(plan.name, plan.columns.map(\.name), to: name(number, "row\(plan.number)")) }
  }

  private func copy(_ table: String, _ columns: [String], to copy: String) throws {
    let list = columns.map(SQLText.quoted).joined(separator: ", ")
    try connection.execute("CREATE TABLE main.\(SQLText.quoted(copy))(\(list))")
    try connection.execute(
      "INSERT INTO main.\(SQLText.quoted(copy)) SELECT \(list) FROM main.\(SQLText.quoted(table))")
  }

  /// Puts Cairn's own tables back as they were filed, in place of what they hold now, and forgets the entry.
  func bringBack(_ entry: Entry) throws {
    for table in Self.filed {
      let copy = name(entry.number, table)
      let list = try columns(of: copy).map(SQLText.quoted).joined(separator: ", ")
      try connection.execute("DELETE FROM \(table)")
      try connection.execute("INSERT INTO \(table)(\(list)) SELECT \(list) FROM main.\(SQLText.quoted(copy))")
    }
    for copy in try Self.ownTables(in: connection) where copy.hasPrefix("\(Self.prefix)\(entry.number)_") {
      try connection.execute("DROP TABLE main.\(SQLText.quoted(copy))")
    }
    try connection.run("DELETE FROM cairn_identity WHERE number = ?", .integer(entry.number))
  }

  private func name(_ number: Int64, _ table: String) -> String {
    "\(Self.prefix)\(number)_\(table.replacing("cairn_", with: ""))"
  }

  private func columns(of table: String) throws -> [String] {
    try connection.rows("SELECT name FROM pragma_table_info(?)", .text(table)).compactMap(\.[0].text)
  }

  private func exists(_ table: String) throws -> Bool {
    try connection.scalar("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?", .text(table)) != nil
  }
}
