/// One token of SQL text, by SQLite's lexical rules.
public struct SQLToken: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    /// A keyword or a name without quotes.
    case word
    /// A name in `"…"`, `` `…` `` or `[…]`.
    case quotedName
    case string
    case blob
    case number
    /// `?1`, `:name`, `@name`, `$name`.
    case parameter
    /// Anything else: one operator or punctuation byte.
    case symbol
    /// A quote without end.
    case unfinished
  }

  public var kind: Kind
  /// Byte range in the text.
  public var range: Range<Int>
  /// A word folded to lower case, a quoted name or string without its quotes, else the text itself.
  public var text: String

  /// Whether this is the keyword `word`, given in lower case.
  public func isWord(_ word: String) -> Bool { kind == .word && text == word }
  public func isSymbol(_ symbol: String) -> Bool { kind == .symbol && text == symbol }
  /// Whether this may stand where a name is expected. SQLite takes a string for a name there.
  public var isName: Bool { kind == .word || kind == .quotedName || kind == .string }
}

extension [SQLToken] {
  /// The index of the parenthesis that closes the one at `open`; nil where none does.
  public func closing(_ open: Int) -> Int? {
    var depth = 0
    for i in open..<count {
      if self[i].isSymbol("(") { depth += 1 }
      if self[i].isSymbol(")") {
        depth -= 1
        if depth == 0 { return i }
      }
    }
    return nil
  }
}

/// Splits SQL text into tokens; white space and comments are dropped.
public struct SQLTokenizer {
  private let bytes: [UInt8]
  private var position = 0

  public init(_ sql: String) { bytes = Array(sql.utf8) }

  public static func tokens(_ sql: String) -> [SQLToken] {
    var tokenizer = SQLTokenizer(sql)
    var result: [SQLToken] = []
    while let token = tokenizer.next() { result.append(token) }
    return result
  }

  private func at(_ index: Int) -> UInt8 { bytes.indices.contains(index) ? bytes[index] : 0 }

  private mutating func next() -> SQLToken? {
    skipSpace()
    guard position < bytes.count else { return nil }
    let start = position
    switch bytes[position] {
    case UInt8(ascii: "'"): return quoted(start, close: UInt8(ascii: "'"), kind: .string)
    case UInt8(ascii: "\""): return quoted(start, close: UInt8(ascii: "\""), kind: .quotedName)
    case UInt8(ascii: "`"): return quoted(start, close: UInt8(ascii: "`"), kind: .quotedName)
    case UInt8(ascii: "["): return bracketed(start)
    case UInt8(ascii: "x"), UInt8(ascii: "X"):
      guard at(position + 1) == UInt8(ascii: "'") else { return word(start) }
      position += 1
      return quoted(start, close: UInt8(ascii: "'"), kind: .blob)
    case UInt8(ascii: "?"), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "$"), UInt8(ascii: "#"):
      position += 1
      while Self.isWordByte(at(position)) { position += 1 }
      return make(.parameter, start)
    case UInt8(ascii: "."):
      return Self.isDigit(at(position + 1)) ? number(start) : symbol(start)
    case let byte where Self.isDigit(byte): return number(start)
    case let byte where Self.isWordByte(byte): return word(start)
    default: return symbol(start)
    }
  }

  /// Skips white space and comments.
  private mutating func skipSpace() {
    while position < bytes.count {
      let byte = bytes[position]
      if byte == 0x20 || (byte >= 0x09 && byte <= 0x0D && byte != 0x0B) {
        position += 1
      } else if byte == UInt8(ascii: "-") && at(position + 1) == UInt8(ascii: "-") {
        while position < bytes.count && bytes[position] != 0x0A { position += 1 }
      } else if byte == UInt8(ascii: "/") && at(position + 1) == UInt8(ascii: "*") {
        position += 2
        // SQLite lets a comment end with the text.
        while position < bytes.count && !(bytes[position] == UInt8(ascii: "*") && at(position + 1) == UInt8(ascii: "/"))
        {
          position += 1
        }
        position = min(position + 2, bytes.count)
      } else {
        return
      }
    }
  }

  private mutating func quoted(_ start: Int, close: UInt8, kind: SQLToken.Kind) -> SQLToken {
    position += 1
    var content: [UInt8] = []
    while position < bytes.count {
      if bytes[position] == close {
        guard at(position + 1) == close else {
          position += 1
          return SQLToken(kind: kind, range: start..<position, text: String(decoding: content, as: UTF8.self))
        }
        position += 1
      }
      content.append(bytes[position])
      position += 1
    }
    return make(.unfinished, start)
  }

  private mutating func bracketed(_ start: Int) -> SQLToken {
    guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "]")) else {
      position = bytes.count
      return make(.unfinished, start)
    }
    position = end + 1
    return SQLToken(
      kind: .quotedName, range: start..<position, text: String(decoding: bytes[(start + 1)..<end], as: UTF8.self))
  }

  private mutating func word(_ start: Int) -> SQLToken {
    while Self.isWordByte(at(position)) { position += 1 }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    return SQLToken(kind: .word, range: start..<position, text: SQLName.folded(text))
  }

  private mutating func number(_ start: Int) -> SQLToken {
    while position < bytes.count {
      let byte = bytes[position]
      let isSign = byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
      let followsExponent = at(position - 1) | 0x20 == UInt8(ascii: "e") && at(start + 1) | 0x20 != UInt8(ascii: "x")
      guard Self.isWordByte(byte) || byte == UInt8(ascii: ".") || (isSign && position > start && followsExponent) else {
        break
      }
      position += 1
    }
    return make(.number, start)
  }

  private mutating func symbol(_ start: Int) -> SQLToken {
    position += 1
    return make(.symbol, start)
  }

  private func make(_ kind: SQLToken.Kind, _ start: Int) -> SQLToken {
    SQLToken(kind: kind, range: start..<position, text: String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    byte >= 0x80 || isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "$")
  }
}
