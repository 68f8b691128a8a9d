import CairnSQLite

/// The canonical form of a row's key, as `cairn_record.key` holds it.
///
/// A key of one column is the column's value itself; keys that SQLite calls equal have one form (tables 1.2). A key of
/// several columns is packed into a blob, part after part:
///
///     00                     NULL
///     1n b1…bn               INTEGER, n = 0…8 bytes, big-endian two's complement, shortest form
///     20 b1…b8               REAL, big-endian bits
///     30 len b1…blen         TEXT; len is 4 bytes, big-endian
///     40 len b1…blen         BLOB
///
/// Parts that name a parent with a mapped key hold the parent's local integer.
enum RowKey {
  /// The canonical key, or nil when a part is NULL: such a row has no record yet (tables 1.1).
  static func canonical(_ parts: [Value], _ plan: TablePlan) -> Value? {
    if parts.count == 1 { return canonical(parts[0], of: plan) }
    var packed: [UInt8] = []
    packed.reserveCapacity(parts.count * 8)
    for (i, part) in parts.enumerated() {
      if part.isNull { return nil }
      pack(canonical(part, plan.columns[plan.keyColumns[i]].collation), into: &packed)
    }
    return .blob(packed)
  }

  /// The canonical key of a table whose key is one column.
  static func canonical(_ part: Value, of plan: TablePlan) -> Value? {
    part.isNull ? nil : canonical(part, plan.columns[plan.keyColumns[0]].collation)
  }

  /// Values one after the other in the form of a composite key.
  static func packed(_ values: [Value]) -> [UInt8] {
    var bytes: [UInt8] = []
    for value in values { pack(value, into: &bytes) }
    return bytes
  }

  /// The values that ``packed(_:)`` was given; of damaged bytes those before the damage.
  static func unpacked(_ bytes: [UInt8]) -> [Value] { unpack(bytes) }

  /// The parts of a canonical key, in the order of the primary key.
  static func parts(of key: Value, _ plan: TablePlan) -> [Value] {
    guard plan.keyColumns.count > 1 else { return [key] }
    guard case .blob(let bytes) = key else { return [] }
    return unpack(bytes)
  }

  /// One value as its column's collation and SQLite's comparison of numbers see it.
  static func canonical(_ value: Value, _ collation: String) -> Value {
    switch value {
    case .real(let real):
      if real.rounded(.towardZero) == real, abs(real) <= 9_007_199_254_740_992 { return .integer(Int64(real)) }
      return value
    case .text(let text):
      if collation == "NOCASE" { return .text(asciiLowercased(text)) }
      if collation == "RTRIM" { return .text(trimmingTrailingSpaces(text)) }
      return value
    default:
      return value
    }
  }

  private static func asciiLowercased(_ text: String) -> String {
    String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
  }

  private static func trimmingTrailingSpaces(_ text: String) -> String {
    var bytes = Array(text.utf8)
    while bytes.last == 32 { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func pack(_ value: Value, into bytes: inout [UInt8]) {
    switch value {
    case .null:
      bytes.append(0x00)
    case .integer(let integer):
      var count = 0
      while count < 8, count == 0 ? integer != 0 : !fits(integer, count) { count += 1 }
      bytes.append(0x10 | UInt8(count))
      for i in stride(from: count - 1, through: 0, by: -1) {
        bytes.append(UInt8(truncatingIfNeeded: integer >> (8 * i)))
      }
    case .real(let real):
      bytes.append(0x20)
      for i in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: real.bitPattern >> i)) }
    case .text(let text):
      pack(0x30, Array(text.utf8), into: &bytes)
    case .malformedText(let raw):
      pack(0x30, raw, into: &bytes)
    case .blob(let raw):
      pack(0x40, raw, into: &bytes)
    }
  }

  private static func fits(_ integer: Int64, _ count: Int) -> Bool {
    let shift = 64 - 8 * count
    return (integer << shift) >> shift == integer
  }

  private static func pack(_ tag: UInt8, _ raw: [UInt8], into bytes: inout [UInt8]) {
    bytes.append(tag)
    let count = UInt32(raw.count)
    for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
    bytes += raw
  }

  private static func unpack(_ bytes: [UInt8]) -> [Value] {
    var values: [Value] = []
    var i = 0
    while i < bytes.count {
      let tag = bytes[i]
      i += 1
      switch tag & 0xf0 {
      case 0x10:
        let count = Int(tag & 0x0f)
        guard count <= bytes.count - i else { return values }
        var integer: Int64 = count > 0 && bytes[i] & 0x80 != 0 ? -1 : 0
        for byte in bytes[i..<i + count] { integer = integer << 8 | Int64(byte) }
        values.append(.integer(integer))
        i += count
      case 0x20:
        guard bytes.count - i >= 8 else { return values }
        values.append(.real(Double(bitPattern: bytes[i..<i + 8].reduce(0) { $0 << 8 | UInt64($1) })))
        i += 8
      case 0x30, 0x40:
        guard bytes.count - i >= 4 else { return values }
        let count = Int(bytes[i..<i + 4].reduce(0) { $0 << 8 | UInt32($1) })
        guard count <= bytes.count - i - 4 else { return values }
        let raw = Array(bytes[i + 4..<i + 4 + count])
        i += 4 + count
        if tag & 0xf0 == 0x40 {
          values.append(.blob(raw))
        } else {
          values.append(String(validating: raw, as: UTF8.self).map(Value.text) ?? .malformedText(raw))
        }
      default:
        values.append(.null)
      }
    }
    return values
  }
}
