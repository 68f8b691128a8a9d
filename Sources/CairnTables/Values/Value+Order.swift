import CairnSQLite

extension Value {
  /// The beginning of a value as a number that is in the order of SQLite's comparison with values of the same storage
  /// class. Values with the same number may differ.
  var orderPrefix: UInt64 {
    func first(_ bytes: some Sequence<UInt8>) -> UInt64 {
      var number: UInt64 = 0
      var count: UInt64 = 0
      for byte in bytes {
        number |= UInt64(byte) << (56 - 8 * count)
        count += 1
        if count == 8 { break }
      }
      return number
    }
    switch self {
    case .null: return 0
    case .integer(let integer): return UInt64(bitPattern: integer) ^ 1 << 63
    case .real(let real):
      let bits = real.bitPattern
      return bits >> 63 == 1 ? ~bits : bits | 1 << 63
    case .text(let text): return first(text.utf8)
    case .malformedText(let bytes), .blob(let bytes): return first(bytes)
    }
  }

  /// The order of two values of one storage class and with the same ``orderPrefix``; nil for the same values.
  func isLess(than other: Value) -> Bool? {
    func compare(_ a: some Sequence<UInt8>, _ b: some Sequence<UInt8>) -> Bool? {
      if a.lexicographicallyPrecedes(b) { return true }
      return b.lexicographicallyPrecedes(a) ? false : nil
    }
    switch (self, other) {
    case (.text(let a), .text(let b)): return compare(a.utf8, b.utf8)
    case (.malformedText(let a), .text(let b)): return compare(a, b.utf8)
    case (.text(let a), .malformedText(let b)): return compare(a.utf8, b)
    case (.malformedText(let a), .malformedText(let b)), (.blob(let a), .blob(let b)): return compare(a, b)
    default: return nil
    }
  }

  /// Whether another value of the same storage class comes after this one in an index of SQLite.
  func precedes(inIndex other: Value) -> Bool {
    guard storageClass == other.storageClass else { return false }
    let (prefix, otherPrefix) = (orderPrefix, other.orderPrefix)
    return prefix == otherPrefix ? isLess(than: other) ?? false : prefix < otherPrefix
  }

  /// Whether SQLite may take an integer and a real for one key though their canonical keys differ (``RowKey``).
  var mayEqualAnotherNumber: Bool {
    switch self {
    case .integer(let integer): integer.magnitude >= 1 << 53
    case .real(let real): abs(real) >= 9_007_199_254_740_992
    case .null, .text, .malformedText, .blob: false
    }
  }
}
