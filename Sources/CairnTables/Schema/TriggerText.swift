import CairnSQLite

/// What the text of a trigger tells about its effects.
struct TriggerText {
  /// Tables that its statements write, folded.
  private(set) var writes: Set<String> = []
  /// It looks at Cairn's state, where `applying` is.
  private(set) var readsApplying = false
  private(set) var hasWhen = false
  /// Columns that it names as `NEW.x` or `OLD.x`, folded.
  private(set) var rowColumns: Set<String> = []

  init(_ sql: String) {
    let tokens = SQLTokenizer.tokens(sql)
    let body = tokens.firstIndex { $0.isWord("begin") } ?? tokens.endIndex
    for (i, token) in tokens.enumerated() {
      if token.isName && (SQLName.equal(token.text, "cairn_state") || SQLName.equal(token.text, "applying")) {
        readsApplying = true
      }
      if i < body && token.isWord("when") { hasWhen = true }
      if token.isName, i + 2 < tokens.count, tokens[i + 1].isSymbol("."), tokens[i + 2].isName {
        let row = SQLName.folded(token.text)
        if row == "new" || row == "old" { rowColumns.insert(SQLName.folded(tokens[i + 2].text)) }
      }
      if i > body, let target = Self.target(tokens, i) { writes.insert(target) }
    }
  }

  /// The table that the statement whose keyword is at `i` writes.
  private static func target(_ tokens: [SQLToken], _ i: Int) -> String? {
    var next = i + 1
    if tokens[i].isWord("into") {
      // INSERT INTO, REPLACE INTO
    } else if tokens[i].isWord("from"), i > 0, tokens[i - 1].isWord("delete") {
      // DELETE FROM
    } else if tokens[i].isWord("update"), i > 0, tokens[i - 1].isSymbol(";") || tokens[i - 1].isWord("begin") {
      if next < tokens.count, tokens[next].isWord("or") { next += 2 }
    } else {
      return nil
    }
    guard next < tokens.count, tokens[next].isName else { return nil }
    return SQLName.folded(tokens[next].text)
  }
}
