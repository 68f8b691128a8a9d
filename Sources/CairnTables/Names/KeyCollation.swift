import CairnSQLite

/// SQLite's own collations: how they take texts for equal.
public enum KeyCollation: String, Hashable, Sendable {
  case binary = "BINARY"
  case noCase = "NOCASE"
  case rightTrimmed = "RTRIM"

  /// Nil for a collation that a program has registered.
  public init?(_ name: String) {
    switch SQLName.folded(name) {
    case "binary": self = .binary
    case "nocase": self = .noCase
    case "rtrim": self = .rightTrimmed
    default: return nil
    }
  }

  /// The byte that stands for all bytes that this collation takes for equal.
  @inline(__always)
  func folded(_ byte: UInt8) -> UInt8 {
    self == .noCase && byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }

  /// How many of the bytes count.
  @inline(__always)
  func significantCount(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    guard self == .rightTrimmed else { return bytes.count }
    var count = bytes.count
    while count > 0 && bytes[count - 1] == UInt8(ascii: " ") { count -= 1 }
    return count
  }
}
