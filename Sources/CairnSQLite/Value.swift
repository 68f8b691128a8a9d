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

  // MARK: Equality

  /// Two values are equal if they have the same storage class and the same bytes.
  ///
  /// Swift takes strings for equal that differ in their Unicode normal form, and 0.0 for −0.0; to a database these are
  /// different values (tables 1.5).
  public static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.integer(let x), .integer(let y)): x == y
    case (.real(let x), .real(let y)): x.bitPattern == y.bitPattern
    case (.text(let x), .text(let y)): sameBytes(x, y)
    case (.malformedText(let x), .malformedText(let y)): x == y
    case (.blob(let x), .blob(let y)): x == y
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(storageClass)
    switch self {
    case .null: break
    case .integer(let integer): hasher.combine(integer)
    case .real(let real): hasher.combine(real.bitPattern)
    // Strings of equal bytes have equal hashes.
    case .text(let text): hasher.combine(text)
    case .malformedText(let bytes), .blob(let bytes): hasher.combine(bytes)
    }
  }

  private static func sameBytes(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    return a.utf8.elementsEqual(b.utf8)
  }
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
