import CairnSQLite

/// What SQLite makes of a value that is stored in a column (tables V7).
enum AffinityRules {
  /// The value as it can be read back. Numbers in TEXT columns become text, numerals in number columns numbers.
  static func stored(_ value: Value, in affinity: Affinity) -> Value {
    switch (value, affinity) {
    case (.integer(let integer), .text): .text(String(integer))
    case (.integer(let integer), .real): .real(Double(integer))
    case (.real(let real), .integer), (.real(let real), .numeric): integral(real).map { .integer($0) } ?? value
    case (.real(let real), .real): real == 0 ? .real(0) : value
    case (.text(let text), .integer), (.text(let text), .numeric), (.text(let text), .real):
      numeral(text).map { stored($0, in: affinity) } ?? value
    default: value
    }
  }

  /// SQLite stores a real as an integer where that loses nothing.
  private static func integral(_ real: Double) -> Int64? {
    // SQLite leaves the ends of the range alone.
    guard let integer = Int64(exactly: real), integer != .min, integer != .max else { return nil }
    return integer
  }

  /// The number that a text is the numeral of; nil for other texts, hexadecimal ones too.
  private static func numeral(_ text: String) -> Value? {
    var bytes = Substring(text).utf8
    while let first = bytes.first, isSpace(first) { bytes.removeFirst() }
    while let last = bytes.last, isSpace(last) { bytes.removeLast() }
    guard let first = bytes.first, isDigit(first) || "+-.".utf8.contains(first) else { return nil }
    guard bytes.allSatisfy({ isDigit($0) || "+-.eE".utf8.contains($0) }) else { return nil }
    let numeral = String(Substring(bytes))
    if let integer = Int64(numeral) { return .integer(integer) }
    return Double(numeral).map { .real($0) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }
}
