import CairnRecords
import CairnSQLite

/// One part of a record name (tables 1.2).
public enum KeyPartValue: Hashable, Sendable {
  case value(Value)
  /// The record name of the row that the part refers to.
  case reference(String)
}

/// What a record name tells of its row's key.
public enum DecodedRecordName: Hashable, Sendable {
  /// A mapped row: the 16 bytes of its UUID.
  case uuid([UInt8])
  /// A natural key, part by part. A NOCASE part is in lower case: the spelling is in the fields.
  case parts([KeyPartValue])
  /// Too long a name: the key is in the fields only.
  case hashed
}

/// Record names: `<table>:<UUID>` for mapped rows, `<table>:<part>,<part>` for natural keys (tables 1.2).
public enum RecordNameCodec {
  public static let maximumLength = 255
  private static let maximumPrefix = 180
  /// `~h` and the digits of a SHA-256.
  private static let hashLength = 66

  /// How many bytes of text, blob or packed key certainly fit a name of the table. Nil where a part is the name of a natural
  /// parent, which is as long as that one's key.
  static func roomForKey(_ plan: TablePlan, _ parent: (Int) -> TablePlan?) -> Int? {
    var room = maximumLength - plan.wireName.utf8.count - 1
    for part in plan.keyParts {
      switch part {
      // A comma, and what an integer of few bytes takes beyond three for each.
      case .value: room -= 5
      case .reference(let table):
        guard let parent = parent(table), parent.keyKind == .mapped else { return nil }
        // `~f`, the escaped name with its UUID, a comma.
        room -= 3 * parent.wireName.utf8.count + 42
      }
    }
    // A byte takes three at most.
    return room < 0 ? -1 : room / 3
  }

  // MARK: Mapped

  /// The name of a mapped row. `uuid` has 16 bytes.
  public static func mapped(table wireName: String, uuid: [UInt8]) -> String {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(wireName.utf8.count + 37)
    buffer.append(contentsOf: wireName.utf8)
    buffer.append(UInt8(ascii: ":"))
    for (i, byte) in uuid.enumerated() {
      if i == 4 || i == 6 || i == 8 || i == 10 { buffer.append(UInt8(ascii: "-")) }
      Hex.appendLower(byte, &buffer)
    }
    return shortened(&buffer, wireName)
  }

  /// The 16 bytes of a mapped row's UUID; nil for a name that ``mapped(table:uuid:)`` does not give.
  public static func uuid(_ name: String, table wireName: String) -> [UInt8]? {
    withKey(name, wireName) { key, isWhole in isWhole ? uuid(key) : nil }
  }

  private static func uuid(_ digits: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard digits.count == 36 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(16)
    var i = 0
    for place in 0..<16 {
      if place == 4 || place == 6 || place == 8 || place == 10 {
        guard digits[i] == UInt8(ascii: "-") else { return nil }
        i += 1
      }
      guard let high = lowerDigit(digits[i]), let low = lowerDigit(digits[i + 1]) else { return nil }
      result.append(high << 4 | low)
      i += 2
    }
    return result
  }

  private static func lowerDigit(_ byte: UInt8) -> UInt8? {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "F") ? nil : Hex.digit(byte)
  }

  // MARK: Natural

  /// The name of a row by its key parts, in the order of `PRIMARY KEY(…)`; nil if a part is NULL.
  ///
  /// - Parameter collations: of the key columns, upper case; keys that they take for equal have one name.
  public static func natural(
    table wireName: String, parts: [KeyPartValue], collations: [String]
  ) -> String? {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(96)
    buffer.append(contentsOf: wireName.utf8)
    buffer.append(UInt8(ascii: ":"))
    for (i, part) in parts.enumerated() {
      if i > 0 { buffer.append(UInt8(ascii: ",")) }
      let collation = i < collations.count ? collations[i] : "BINARY"
      guard append(part, KeyCollation(upper: collation), &buffer) else { return nil }
    }
    return shortened(&buffer, wireName)
  }

  /// The name of a row whose key is one value; nil if that is NULL.
  public static func natural(table wireName: String, value: Value, collation: String) -> String? {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(96)
    buffer.append(contentsOf: wireName.utf8)
    buffer.append(UInt8(ascii: ":"))
    guard append(value, KeyCollation(upper: collation), &buffer) else { return nil }
    return shortened(&buffer, wireName)
  }

  private static func append(_ part: KeyPartValue, _ collation: KeyCollation, _ buffer: inout [UInt8]) -> Bool {
    switch part {
    case .reference(let name):
      tag("f", &buffer)
      escape(name, .binary, &buffer)
      return true
    case .value(let value): return append(value, collation, &buffer)
    }
  }

  private static func append(_ value: Value, _ collation: KeyCollation, _ buffer: inout [UInt8]) -> Bool {
    switch value {
    case .null:
      return false
    case .integer(let integer):
      tag("i", &buffer)
      buffer.append(contentsOf: String(integer).utf8)
    case .real(let real):
      if let integer = KeyValue.integral(real) { return append(.integer(integer), collation, &buffer) }
      tag("r", &buffer)
      Hex.appendLower(real.bitPattern, &buffer)
    case .text(let text):
      escape(text, collation, &buffer)
    case .malformedText(let bytes):
      bytes.withUnsafeBufferPointer { escape($0, collation, &buffer) }
    case .blob(let bytes):
      tag("b", &buffer)
      for byte in bytes { Hex.appendLower(byte, &buffer) }
    }
    return true
  }

  private static func tag(_ letter: Unicode.Scalar, _ buffer: inout [UInt8]) {
    buffer.append(UInt8(ascii: "~"))
    buffer.append(UInt8(ascii: letter))
  }

  private static func escape(_ text: String, _ collation: KeyCollation, _ buffer: inout [UInt8]) {
    var text = text
    text.withUTF8 { escape($0, collation, &buffer) }
  }

  private static func escape(
    _ bytes: UnsafeBufferPointer<UInt8>, _ collation: KeyCollation, _ buffer: inout [UInt8]
  ) {
    for i in 0..<collation.significantCount(bytes) {
      let byte = collation.folded(bytes[i])
      if isPlain(byte) || (byte == UInt8(ascii: "~") && i > 0) {
        buffer.append(byte)
      } else {
        buffer.append(UInt8(ascii: "%"))
        Hex.appendUpper(byte, &buffer)
      }
    }
  }

  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
      || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
  }

  private static func shortened(_ buffer: inout [UInt8], _ wireName: String) -> String {
    if buffer.count > maximumLength {
      let hash = SHA256.digest(buffer)
      buffer = Array(wireName.utf8.prefix(maximumPrefix))
      buffer.append(UInt8(ascii: ":"))
      tag("h", &buffer)
      for byte in hash { Hex.appendLower(byte, &buffer) }
    }
    return String(decoding: buffer, as: UTF8.self)
  }

  // MARK: Reading

  /// Reads a name of a table; nil for a name that no row of this table can have.
  public static func decode(_ name: String, _ plan: TablePlan) -> DecodedRecordName? {
    withKey(name, plan.wireName) { key, isWhole in
      if key.starts(with: "~h".utf8) {
        return key.count == hashLength && !(isWhole && plan.wireName.utf8.count > maximumPrefix) ? .hashed : nil
      }
      guard isWhole else { return nil }
      if plan.keyKind == .mapped { return uuid(key).map { .uuid($0) } }
      let count = plan.keyColumns.count
      if count == 1 {
        guard !key.contains(UInt8(ascii: ",")), let value = decodePart(key) else { return nil }
        return .parts([value])
      }
      var parts: [KeyPartValue] = []
      parts.reserveCapacity(count)
      for part in key.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
        guard let value = decodePart(UnsafeBufferPointer(rebasing: part)) else { return nil }
        parts.append(value)
      }
      return parts.count == count ? .parts(parts) : nil
    }
  }

  /// Reads what stands after `<table>:`. Of a table with a long name only hashed keys stand behind a part of the name:
  /// `isWhole` is false then.
  private static func withKey<Result>(
    _ name: String, _ wireName: String, _ body: (_ key: UnsafeBufferPointer<UInt8>, _ isWhole: Bool) -> Result?
  ) -> Result? {
    var (name, wireName) = (name, wireName)
    return name.withUTF8 { bytes in
      wireName.withUTF8 { table in
        for count in [table.count, min(table.count, maximumPrefix)] {
          guard bytes.count > count, bytes[count] == UInt8(ascii: ":"),
            bytes[..<count].elementsEqual(table[..<count])
          else { continue }
          return body(UnsafeBufferPointer(rebasing: bytes[(count + 1)...]), count == table.count)
        }
        return nil
      }
    }
  }

  private static func decodePart(_ part: UnsafeBufferPointer<UInt8>) -> KeyPartValue? {
    guard part.first == UInt8(ascii: "~") else { return text(part).map { .value($0) } }
    let rest = UnsafeBufferPointer(rebasing: part.dropFirst(2))
    switch part.dropFirst().first {
    case UInt8(ascii: "i"): return Int64(String(decoding: rest, as: UTF8.self)).map { .value(.integer($0)) }
    case UInt8(ascii: "r"): return Hex.number(rest).map { .value(.real(Double(bitPattern: $0))) }
    case UInt8(ascii: "b"): return Hex.bytes(rest).map { .value(.blob($0)) }
    case UInt8(ascii: "f"):
      guard case .text(let name)? = text(rest) else { return nil }
      return .reference(name)
    default: return nil
    }
  }

  private static func text(_ part: UnsafeBufferPointer<UInt8>) -> Value? {
    // Most keys have nothing to be escaped.
    guard part.contains(UInt8(ascii: "%")) else { return Value(textBytes: part) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(part.count)
    var i = part.startIndex
    while i < part.endIndex {
      if part[i] == UInt8(ascii: "%") {
        guard i + 2 < part.endIndex, let high = Hex.digit(part[i + 1]), let low = Hex.digit(part[i + 2]) else {
          return nil
        }
        bytes.append(high << 4 | low)
        i += 3
      } else {
        bytes.append(part[i])
        i += 1
      }
    }
    return bytes.withUnsafeBufferPointer { Value(textBytes: $0) }
  }
}

extension KeyCollation {
  /// The collation of a name in upper case; one that a program has registered compares bytes.
  @inline(__always)
  init(upper name: String) {
    self = name == "BINARY" ? .binary : name == "NOCASE" ? .noCase : name == "RTRIM" ? .rightTrimmed : .binary
  }
}

/// Numbers in keys.
enum KeyValue {
  /// The integer that a key's real stands for: integral ones within ±2^53 (tables 1.2).
  static func integral(_ real: Double) -> Int64? {
    real.rounded(.towardZero) == real && abs(real) <= 9_007_199_254_740_992 ? Int64(real) : nil
  }
}
