#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

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
    let isSame = a.utf8.withContiguousStorageIfAvailable { a in
      b.utf8.withContiguousStorageIfAvailable { b in
        guard let x = a.baseAddress, let y = b.baseAddress else { return true }
        return memcmp(x, y, a.count) == 0
      }
    }
    return (isSame ?? nil) ?? a.utf8.elementsEqual(b.utf8)
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
  /// Text of these bytes, which need not be valid UTF-8.
  public init(textBytes bytes: UnsafeBufferPointer<UInt8>) {
    // Decoding mends what is wrong and is several times as fast as validating: valid are bytes that come out as they
    // went in.
    var text = String(decoding: bytes, as: UTF8.self)
    let isSame = text.withUTF8 { decoded in
      guard decoded.count == bytes.count else { return false }
      guard let x = decoded.baseAddress, let y = bytes.baseAddress else { return true }
      return memcmp(x, y, bytes.count) == 0
    }
    self = isSame ? .text(text) : .malformedText([UInt8](bytes))
  }

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
