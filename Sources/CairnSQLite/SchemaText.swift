/// What the pragmas don't tell and the text of CREATE statements does.
enum SchemaText {
  /// Terms and predicate of a CREATE INDEX statement.
  struct IndexText: Hashable {
    /// Each key term without ASC or DESC, as written.
    var terms: [String]
    /// The text after WHERE.
    var predicate: String?
  }

  static func index(_ sql: String) -> IndexText? {
    let tokens = SQLTokenizer.tokens(sql)
    // The index and the table may be named "on": the ON that counts comes right before `table (`.
    guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }), let close = tokens.closing(open) else {
      return nil
    }
    let terms = split(tokens[(open + 1)..<close]).map { term -> String in
      var term = term
      if let last = term.last, term.count > 1, last.isWord("asc") || last.isWord("desc") { term = term.dropLast() }
      return text(term, sql)
    }
    let rest = tokens[(close + 1)...]
    guard let first = rest.first, first.isWord("where") else { return IndexText(terms: terms, predicate: nil) }
    return IndexText(terms: terms, predicate: text(rest.dropFirst(), sql))
  }

  /// For each foreign key of a CREATE TABLE statement, in order, whether it is initially deferred.
  static func deferredForeignKeys(_ sql: String) -> [Bool] {
    let tokens = SQLTokenizer.tokens(sql)
    var result: [Bool] = []
    // REFERENCES and DEFERRABLE are reserved: without quotes they are never names.
    for (i, token) in tokens.enumerated() {
      if token.isWord("references") {
        result.append(false)
      } else if token.isWord("deferrable"), !result.isEmpty {
        let isNegated = i > 0 && tokens[i - 1].isWord("not")
        let saysDeferred =
          i + 2 < tokens.count && tokens[i + 1].isWord("initially") && tokens[i + 2].isWord("deferred")
        result[result.count - 1] = !isNegated && saysDeferred
      }
    }
    return result
  }

  /// The first column whose definition in a CREATE TABLE statement uses `word`.
  static func column(using word: String, in sql: String) -> String? {
    let tokens = SQLTokenizer.tokens(sql)
    guard let open = tokens.firstIndex(where: { $0.isSymbol("(") }), let close = tokens.closing(open) else {
      return nil
    }
    let constraints: Set<String> = ["constraint", "primary", "unique", "check", "foreign"]
    for definition in split(tokens[(open + 1)..<close]) {
      guard let first = definition.first, !(first.kind == .word && constraints.contains(first.text)) else { continue }
      let uses = definition.dropFirst().contains { $0.isName && SQLName.equal($0.text, word) }
      if uses { return String(decoding: Array(sql.utf8)[first.range], as: UTF8.self).trimmingQuotes }
    }
    return nil
  }

  /// Splits at the commas outside parentheses.
  static func split(_ tokens: ArraySlice<SQLToken>) -> [ArraySlice<SQLToken>] {
    var result: [ArraySlice<SQLToken>] = []
    var depth = 0
    var start = tokens.startIndex
    for i in tokens.indices {
      if tokens[i].isSymbol("(") { depth += 1 }
      if tokens[i].isSymbol(")") { depth -= 1 }
      if depth == 0 && tokens[i].isSymbol(",") {
        result.append(tokens[start..<i])
        start = i + 1
      }
    }
    result.append(tokens[start...])
    return result
  }

  /// The text from the first to the last token: a comment behind the last one is left out.
  static func text(_ tokens: ArraySlice<SQLToken>, _ sql: String) -> String {
    guard let first = tokens.first, let last = tokens.last else { return "" }
    return String(decoding: Array(sql.utf8)[first.range.lowerBound..<last.range.upperBound], as: UTF8.self)
  }
}

extension String {
  fileprivate var trimmingQuotes: String {
    guard let token = SQLTokenizer.tokens(self).first, token.kind != .word else { return self }
    return token.text
  }
}
