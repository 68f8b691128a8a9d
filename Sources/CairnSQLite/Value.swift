/// A value in one of SQLite's storage classes.
public enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  /// Valid UTF-8; may hold NUL.
  case text(String)
  /// Text whose bytes are not valid UTF-8, kept as they are.
  case malformedText([UInt8])
  case blob([UInt8])
}

/// SQLite's storage classes, in SQLite's own numbering.
public enum StorageClass: Int32, Hashable, Sendable {
  case integer = 1
  case real = 2
  case text = 3
  case blob = 4
  case null = 5
}

extension Value {
  public var storageClass: StorageClass {
    switch self {
    case .null: .null
    case .integer: .integer
    case .real: .real
    case .text, .malformedText: .text
    case .blob: .blob
    }
  }

  public var isNull: Bool { self == .null }
}
