import CSQLite

extension DatabaseSchema {
  /// Reads the schema of `main`; TEMP and attached tables are not seen.
  ///
  /// Several statements: hold a transaction where other connections may change the schema meanwhile.
  public static func read(from connection: Connection) throws(SQLiteError) -> DatabaseSchema {
    try SchemaReader(connection: connection).read()
  }
}

private struct SchemaReader {
  let connection: Connection

  func read() throws(SQLiteError) -> DatabaseSchema {
    var sqlOf: [String: String] = [:]
    var triggers: [String: [SchemaTrigger]] = [:]
    var indexSQL: [String: String] = [:]
    let master = try connection.prepare(
      "SELECT type, name, tbl_name, sql FROM main.sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    while try master.step() {
      let name = master.text(1)
      let sql = master.text(3)
      switch master.text(0) {
      case "trigger":
        let table = master.text(2)
        triggers[SQLName.folded(table), default: []].append(SchemaTrigger(name: name, table: table, sql: sql))
      case "index": indexSQL[name] = sql
      default: sqlOf[name] = sql
      }
    }
    var tables: [SchemaTable] = []
    var internalTables: [String] = []
    let list = try connection.prepare(
      "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main' ORDER BY name")
    while try list.step() {
      let name = list.text(0)
      guard !SQLName.folded(name).hasPrefix("sqlite_") else {
        if sqlOf[name] != nil { internalTables.append(name) }
        continue
      }
      var table = SchemaTable(
        name: name, kind: SchemaTable.Kind(rawValue: list.text(1)) ?? .table, sql: sqlOf[name] ?? "", columns: [],
        isWithoutRowID: list.integer(2) != 0, isStrict: list.integer(3) != 0, isAutoincrement: false, rowIDAlias: nil,
        indexes: [], foreignKeys: [], triggers: triggers[SQLName.folded(name)] ?? [], missingExtension: nil)
      if table.kind == .table || table.kind == .shadow { try fill(&table, indexSQL) }
      tables.append(table)
    }
    return DatabaseSchema(tables: resolveParents(tables), internalTables: internalTables)
  }

  private func fill(_ table: inout SchemaTable, _ indexSQL: [String: String]) throws(SQLiteError) {
    try readColumns(&table)
    try readIndexes(&table, indexSQL)
    try readForeignKeys(&table)
    let key = table.primaryKey
    if key.count == 1, !table.isWithoutRowID, !table.indexes.contains(where: { $0.origin == .primaryKey }) {
      table.rowIDAlias = key[0]
    }
    if table.kind == .table { table.missingExtension = missingExtension(table) }
  }

  private func readColumns(_ table: inout SchemaTable) throws(SQLiteError) {
    let info = try connection.prepare("PRAGMA main.table_xinfo(\(SQLName.quoted(table.name)))")
    while try info.step() {
      var generated: SchemaColumn.Generated = .no
      var type = info.text(2)
      switch info.integer(6) {
      case 1: continue
      case 2: generated = .virtual
      case 3: generated = .stored
      default: break
      }
      if generated != .no {
        for suffix in ["generated always", "generated"] where SQLName.folded(type).hasSuffix(suffix) {
          type = String(type.dropLast(suffix.count))
          while type.hasSuffix(" ") { type.removeLast() }
        }
      }
      let facts = try metadata(table.name, info.text(1))
      if facts.isAutoincrement { table.isAutoincrement = true }
      table.columns.append(
        SchemaColumn(
          name: info.text(1), declaredType: type, affinity: Affinity(declaredType: type, isStrict: table.isStrict),
          isNotNull: info.integer(3) != 0, defaultSQL: info.optionalText(4), primaryKeyOrdinal: Int(info.integer(5)),
          generated: generated, collation: facts.collation))
    }
  }

  private func metadata(_ table: String, _ column: String) throws(SQLiteError) -> (
    collation: String, isAutoincrement: Bool
  ) {
    var collation: UnsafePointer<CChar>?
    var isAutoincrement: Int32 = 0
    let code = sqlite3_table_column_metadata(
      connection.handle, "main", table, column, nil, &collation, nil, nil, &isAutoincrement)
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: String(cString: sqlite3_errmsg(connection.handle)))
    }
    return (collation.map { String(cString: $0) } ?? "BINARY", isAutoincrement != 0)
  }

  private func readIndexes(_ table: inout SchemaTable, _ indexSQL: [String: String]) throws(SQLiteError) {
    let list = try connection.prepare("PRAGMA main.index_list(\(SQLName.quoted(table.name)))")
    while try list.step() {
      let name = list.text(1)
      let origin: SchemaIndex.Origin =
        switch list.text(3) {
        case "pk": .primaryKey
        case "u": .unique
        default: .createIndex
        }
      let sql = indexSQL[name]
      let text = sql.flatMap(SchemaText.index)
      var terms: [SchemaIndex.Term] = []
      let info = try connection.prepare("PRAGMA main.index_xinfo(\(SQLName.quoted(name)))")
      while try info.step() {
        guard info.integer(5) != 0 else { continue }
        let place = terms.count
        let key: SchemaIndex.Term.Key =
          switch info.integer(1) {
          case -1: .rowID
          case -2: .expression(text.flatMap { place < $0.terms.count ? $0.terms[place] : nil } ?? "")
          default: .column(Int(info.integer(1)))
          }
        terms.append(.init(key: key, collation: info.text(4), isDescending: info.integer(3) != 0))
      }
      table.indexes.append(
        SchemaIndex(
          name: name, isUnique: list.integer(2) != 0, origin: origin, sql: sql, predicate: text?.predicate,
          terms: terms))
    }
    table.indexes.sort { $0.name < $1.name }
  }

  private func readForeignKeys(_ table: inout SchemaTable) throws(SQLiteError) {
    var keys: [Int64: SchemaForeignKey] = [:]
    let list = try connection.prepare(
      """
      SELECT id, "table", "from", "to", on_update, on_delete
      FROM pragma_foreign_key_list(\(SQLName.literal(table.name)), 'main') ORDER BY id DESC, seq
      """)
    while try list.step() {
      let id = list.integer(0)
      var key =
        keys[id]
        ?? SchemaForeignKey(
          columns: [], parentTable: list.text(1), parentColumns: [],
          onUpdate: .init(rawValue: list.text(4)) ?? .noAction, onDelete: .init(rawValue: list.text(5)) ?? .noAction,
          isDeferred: false)
      if let column = table.column(list.text(2)) { key.columns.append(column) }
      if let parent = list.optionalText(3) { key.parentColumns.append(parent) }
      keys[id] = key
    }
    // SQLite numbers the keys from the last one declared.
    table.foreignKeys = keys.keys.sorted(by: >).compactMap { keys[$0] }
    let deferred = SchemaText.deferredForeignKeys(table.sql)
    if deferred.count == table.foreignKeys.count {
      for i in deferred.indices { table.foreignKeys[i].isDeferred = deferred[i] }
    }
  }

  private func resolveParents(_ tables: [SchemaTable]) -> [SchemaTable] {
    var tables = tables
    let schema = DatabaseSchema(tables: tables)
    for t in tables.indices {
      for k in tables[t].foreignKeys.indices where tables[t].foreignKeys[k].parentColumns.isEmpty {
        guard let parent = schema.table(tables[t].foreignKeys[k].parentTable) else { continue }
        tables[t].foreignKeys[k].parentColumns = parent.primaryKey.map { parent.columns[$0].name }
      }
    }
    return tables
  }

  /// Compiles a write of each kind: SQLite names what it misses in columns, checks, indexes and triggers.
  private func missingExtension(_ table: SchemaTable) -> SchemaTable.MissingExtension? {
    let name = "main." + SQLName.quoted(table.name)
    let plain = table.columns.filter { $0.generated == .no }.map { SQLName.quoted($0.name) }
    let statements = [
      "INSERT INTO \(name) DEFAULT VALUES",
      "UPDATE \(name) SET " + plain.map { "\($0) = \($0)" }.joined(separator: ", "),
      "DELETE FROM \(name)",
      "SELECT * FROM \(name) ORDER BY " + plain.joined(separator: ", "),
    ]
    for sql in statements {
      do {
        _ = try connection.prepare(sql)
      } catch {
        if let missing = Self.missing(error.message) {
          return .init(kind: missing.kind, name: missing.name, column: column(using: missing.name, table))
        }
      }
    }
    return nil
  }

  private func column(using name: String, _ table: SchemaTable) -> String? {
    if let column = table.columns.first(where: { SQLName.equal($0.collation, name) }) { return column.name }
    if let column = SchemaText.column(using: name, in: table.sql) { return column }
    for term in table.indexes.flatMap(\.terms) where SQLName.equal(term.collation, name) {
      if case .column(let index) = term.key { return table.columns[index].name }
    }
    return nil
  }

  /// Reads SQLite's messages; there is no code of their own for these failures.
  static func missing(_ message: String) -> (kind: SchemaTable.MissingExtension.Kind, name: String)? {
    let forms: [(String, SchemaTable.MissingExtension.Kind)] = [
      ("no such collation sequence: ", .collation), ("no such function: ", .function),
      ("unknown function: ", .function),
    ]
    for (prefix, kind) in forms where message.hasPrefix(prefix) {
      var name = String(message.dropFirst(prefix.count))
      if name.hasSuffix("()") { name.removeLast(2) }
      return (kind, name)
    }
    return nil
  }
}
