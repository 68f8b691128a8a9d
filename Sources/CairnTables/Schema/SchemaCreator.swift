import CairnSQLite

/// Creates the tables of a zone in a file that does not have them (tables L3).
///
/// The statements come from a server and are not trusted. They are refused unless
/// 1. each is a plain CREATE TABLE or CREATE INDEX of the table it is published for, token by token;
/// 2. SQLite, while compiling it, asks for nothing but that (no SELECT, trigger, view, virtual table, ATTACH, PRAGMA
///   …);
/// 3. DEFAULT, CHECK, generated columns and indexes use no function but SQLite's own.
public enum SchemaCreator {
  /// A statement that was refused; nothing was changed.
  public struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
    public var table: String
    public var statement: String
    public var reason: String

    public var description: String {
      "the zone's schema of \(table) was refused: \(reason), in: \(statement): create the table yourself, then join"
    }
  }

  /// Creates each table that the file lacks, with its indexes. All or nothing.
  ///
  /// - Returns: names of the tables that were created.
  /// - Throws: ``Refusal``, or `SQLiteError` where SQLite fails for another reason.
  @discardableResult
  public static func create(_ tables: [PublishedTable], in connection: Connection) throws -> [String] {
    let present = try DatabaseSchema.read(from: connection)
    let missing = tables.filter { present.table($0.name) == nil }
    for table in missing { try check(table) }
    let functions = try builtInFunctions(connection)
    connection.clearCache()
    return try connection.transaction {
      for table in missing {
        for statement in table.statements { try run(statement, of: table, functions, connection) }
      }
      for table in missing { try checkDefaults(of: table, functions, connection) }
      return missing.map(\.name)
    }
  }

  // MARK: Tokens

  private static func check(_ table: PublishedTable) throws(Refusal) {
    guard let create = table.statements.first else {
      throw Refusal(table: table.name, statement: "", reason: "there is no CREATE TABLE")
    }
    try checkName(table.name, table, create)
    var names: Set<String> = []
    for (i, statement) in table.statements.enumerated() {
      let tokens = try tokens(statement, table)
      if i == 0 {
        try checkTable(tokens, table, statement)
      } else {
        let index = try checkIndex(tokens, table, statement)
        guard names.insert(SQLName.folded(index)).inserted else {
          throw Refusal(table: table.name, statement: statement, reason: "the index is there twice")
        }
      }
    }
  }

  private static func checkName(_ name: String, _ table: PublishedTable, _ statement: String) throws(Refusal) {
    let folded = SQLName.folded(name)
    guard !name.isEmpty, !folded.hasPrefix("cairn_"), !folded.hasPrefix("sqlite_") else {
      throw Refusal(table: table.name, statement: statement, reason: "the name \(name) is reserved")
    }
  }

  private static func tokens(_ statement: String, _ table: PublishedTable) throws(Refusal) -> [SQLToken] {
    let tokens = SQLTokenizer.tokens(statement)
    let isPlain = tokens.allSatisfy { token in
      token.kind != .unfinished && token.kind != .parameter && !token.isSymbol(";") && !token.isSymbol("\0")
    }
    guard isPlain, !statement.utf8.contains(0) else {
      throw Refusal(table: table.name, statement: statement, reason: "it is not one plain statement")
    }
    return tokens
  }

  /// `CREATE TABLE name ( … ) [WITHOUT ROWID] [, STRICT]`
  private static func checkTable(
    _ tokens: [SQLToken], _ table: PublishedTable, _ statement: String
  ) throws(Refusal) {
    guard tokens.count > 4, tokens[0].isWord("create"), tokens[1].isWord("table"), tokens[2].isName,
      SQLName.equal(tokens[2].text, table.name), tokens[3].isSymbol("("), let end = tokens.closing(3)
    else { throw Refusal(table: table.name, statement: statement, reason: "it is not a plain CREATE TABLE") }
    let options = tokens[(end + 1)...].filter { !$0.isSymbol(",") }.map(\.text)
    guard options.allSatisfy({ ["without", "rowid", "strict"].contains($0) }) else {
      throw Refusal(table: table.name, statement: statement, reason: "something follows the columns")
    }
  }

  /// `CREATE [UNIQUE] INDEX name ON table ( … ) [WHERE …]`; returns the index's name.
  private static func checkIndex(
    _ tokens: [SQLToken], _ table: PublishedTable, _ statement: String
  ) throws(Refusal) -> String {
    let refusal = Refusal(table: table.name, statement: statement, reason: "it is not a plain CREATE INDEX")
    var tokens = tokens
    guard tokens.count > 1, tokens[0].isWord("create") else { throw refusal }
    if tokens[1].isWord("unique") { tokens.remove(at: 1) }
    guard tokens.count > 6, tokens[1].isWord("index"), tokens[2].isName, tokens[3].isWord("on"), tokens[4].isName,
      SQLName.equal(tokens[4].text, table.name), tokens[5].isSymbol("("), let end = tokens.closing(5),
      end + 1 == tokens.count || tokens[end + 1].isWord("where")
    else { throw refusal }
    try checkName(tokens[2].text, table, statement)
    return tokens[2].text
  }

  // MARK: Authorizer

  private static func run(
    _ statement: String, of table: PublishedTable, _ functions: Set<String>, _ connection: Connection
  ) throws {
    do {
      try connection.authorizing { request in
        allowsCreating(request, table.name, functions)
      } _: {
        try connection.prepare(statement).run()
      }
    } catch let error as SQLiteError where isRefusal(error) {
      throw Refusal(table: table.name, statement: statement, reason: error.message)
    }
  }

  /// SQLite did not like the statement, or the authorizer did not: it reports a function that is not allowed as
  /// `SQLITE_ERROR` (1), everything else as `SQLITE_AUTH` (23).
  private static func isRefusal(_ error: SQLiteError) -> Bool { error.code == 1 || error.code == 23 }

  private static func allowsCreating(_ request: AuthorizerRequest, _ table: String, _ functions: Set<String>) -> Bool {
    let first = request.first ?? ""
    let isCatalog = ["sqlite_master", "sqlite_schema"].contains(SQLName.folded(first))
    guard request.database == nil || request.database == "main" else { return false }
    switch request.action {
    case .createTable: return SQLName.equal(first, table) || SQLName.equal(first, "sqlite_sequence")
    case .createIndex: return SQLName.equal(request.second ?? "", table)
    case .reindex: return true
    case .insert, .update: return isCatalog
    case .read: return isCatalog || SQLName.equal(first, table)
    case .function: return functions.contains(SQLName.folded(request.second ?? ""))
    case .delete, .select, .other: return false
    }
  }

  /// Compiles every DEFAULT by itself: SQLite looks at their functions only when a row is inserted, and then without
  /// asking.
  private static func checkDefaults(
    of table: PublishedTable, _ functions: Set<String>, _ connection: Connection
  ) throws {
    let created = try DatabaseSchema.read(from: connection).table(table.name)
    for text in created?.columns.compactMap(\.defaultSQL) ?? [] {
      // A single word is a constant, though SQLite would take it for a column elsewhere.
      if SQLTokenizer.tokens(text).count == 1 { continue }
      do {
        try connection.authorizing { request in
          request.action == .select
            || (request.action == .function && functions.contains(SQLName.folded(request.second ?? "")))
        } _: {
          _ = try connection.prepare("SELECT \(text)")
        }
      } catch let error as SQLiteError where isRefusal(error) {
        throw Refusal(table: table.name, statement: table.statements[0], reason: error.message)
      }
    }
  }

  /// Functions that every SQLite has, less the one that loads code.
  private static func builtInFunctions(_ connection: Connection) throws(SQLiteError) -> Set<String> {
    var result: Set<String> = []
    let list = try connection.prepare("SELECT name FROM pragma_function_list WHERE builtin = 1")
    while try list.step() { result.insert(SQLName.folded(list.text(0))) }
    result.remove("load_extension")
    return result
  }
}
