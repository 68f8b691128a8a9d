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
}
