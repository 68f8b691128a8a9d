import CSQLite

/// Several statements in one text.
public enum SQLStatements {
  /// The statements of a text, each with its end, as SQLite's own `sqlite3_complete` sees them: semicolons in strings,
  /// comments and trigger bodies do not end one.
  public static func split(_ sql: String) -> [String] {
    var statements: [String] = []
    var current = ""
    for piece in sql.split(separator: ";", omittingEmptySubsequences: false) {
      current += piece
      if sqlite3_complete(current + ";") == 1 {
        statements.append(current + ";")
        current = ""
      } else {
        current += ";"
      }
    }
    // The last statement needs no semicolon.
    while current.hasSuffix(";") { current.removeLast() }
    statements.append(current)
    return statements.filter { statement in
      !statement.utf8.allSatisfy { $0 == 0x3b || $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
    }
  }
}
