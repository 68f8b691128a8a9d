import CairnRecords
import CairnSQLite

/// A field's value as the merge compares it: SQLite's storage classes and, above them, references (tables M2).
enum MergeCell: MergeOrdered, Hashable, Sendable {
  case value(Value)
  /// The record that a local foreign key stands for.
  case reference(String)

  static let null = MergeCell.value(.null)

  /// NULL < INTEGER < REAL < TEXT < BLOB < reference, then numerically or bytewise.
  static func precedes(_ a: MergeCell, _ b: MergeCell) -> Bool {
    switch (a, b) {
    case (.value(let x), .value(let y)): precedes(x, y)
    case (.value, .reference): true
    case (.reference, .value): false
    case (.reference(let x), .reference(let y)): x.utf8.lexicographicallyPrecedes(y.utf8)
    }
  }

  private static func precedes(_ a: Value, _ b: Value) -> Bool {
    let (x, y) = (rank(a), rank(b))
    if x != y { return x < y }
    switch (a, b) {
    case (.integer(let x), .integer(let y)): return x < y
    case (.real(let x), .real(let y)): return x < y || (x == y && x.bitPattern < y.bitPattern)
    case (.blob(let x), .blob(let y)): return x.lexicographicallyPrecedes(y)
    default: return textBytes(a).lexicographicallyPrecedes(textBytes(b))
    }
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer: 1
    case .real: 2
    case .text, .malformedText: 3
    case .blob: 4
    }
  }

  private static func textBytes(_ value: Value) -> [UInt8] {
    switch value {
    case .text(let text): Array(text.utf8)
    case .malformedText(let bytes): bytes
    default: []
    }
  }
}

extension MergeCell {
  /// The value; NULL for a reference.
  var plainValue: Value { if case .value(let value) = self { value } else { .null } }
}
