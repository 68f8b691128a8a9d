import CairnRecords
import CairnSQLite
import CairnWire

/// Values of one column on the wire and back (tables 1.5).
public enum ValueCodec {
  /// How a value travels.
  public enum Encoded: Hashable, Sendable {
    case null
    /// In its field.
    case field(FieldValue)
    /// In `cairn_values`: it does not fit its field.
    case tagged(String)
    /// In `cairn_a_NAME`, with a word about it in `cairn_values`.
    indirect case asset(Asset, tag: String)
  }

  // MARK: Writing

  /// How a value of a column travels.
  public static func encode(_ content: FieldContent, _ column: ColumnPlan) -> Encoded {
    encode(content, Shape(column))
  }

  /// What of a column decides how its values travel; free to copy.
  struct Shape: Hashable, Sendable {
    var fieldType: FieldType
    var affinity: Affinity

    init(_ column: ColumnPlan) {
      fieldType = column.fieldType
      affinity = column.affinity
    }
  }

  static func encode(_ content: FieldContent, _ column: Shape) -> Encoded {
    switch content {
    case .value(.null): .null
    case .value(let value): fitted(value, column).map { .field($0) } ?? .tagged(tag(value))
    case .reference(let name):
      column.fieldType == .reference ? .field(.reference(Reference(recordName: name))) : .tagged("f:" + name)
    case .large(let large): .asset(large.asset, tag: (large.isText ? "at:" : "ab:") + large.hash)
    }
  }

  /// The value in its field; nil if it does not *fit*: if it would not come back through the field's type and the
  /// column's affinity with the same storage class and bytes.
  static func fitted(_ value: Value, _ column: Shape) -> FieldValue? {
    switch (value, column.fieldType) {
    case (.integer(let integer), .int64):
      return .int64(integer)
    case (.integer(let integer), .double):
      guard column.affinity == .numeric || column.affinity == .integer, let real = Double(exactly: integer),
        AffinityRules.stored(.real(real), in: column.affinity) == value
      else { return nil }
      return .double(real)
    case (.real(let real), .double):
      // −0 equals 0 and would come back as it.
      guard real.isFinite, !(real == 0 && real.sign == .minus) else { return nil }
      guard column.affinity == .real || AffinityRules.stored(value, in: column.affinity) == value else { return nil }
      return .double(real)
    case (.text(let text), .string):
      guard !hasNUL(text) else { return nil }
      let isNumber = column.affinity != .text && column.affinity != .blob
      guard !isNumber || AffinityRules.stored(value, in: column.affinity) == value else { return nil }
      return .string(text)
    case (.blob(let bytes), .bytes):
      return .bytes(bytes)
    default:
      return nil
    }
  }

  private static func hasNUL(_ text: String) -> Bool {
    text.utf8.withContiguousStorageIfAvailable { bytes in
      for byte in bytes where byte == 0 { return true }
      return false
    } ?? text.utf8.contains(0)
  }

  /// The tagged text of a value that is not NULL.
  static func tag(_ value: Value) -> String {
    switch value {
    case .null: ""
    case .integer(let integer): "i:\(integer)"
    case .real(let real):
      {
        var digits = Array("r:".utf8)
        Hex.appendLower(real.bitPattern, &digits)
        return String(decoding: digits, as: UTF8.self)
      }()
    case .text(let text): "t:" + Base64.encode(Array(text.utf8))
    case .malformedText(let bytes): "t:" + Base64.encode(bytes)
    case .blob(let bytes): "b:" + Base64.encode(bytes)
    }
  }

  // MARK: Reading

  /// What the column holds when the field has this value; nil for a value that no column can hold.
  public static func decode(_ field: FieldValue, _ column: ColumnPlan) -> FieldContent? {
    decode(field, Shape(column))
  }

  static func decode(_ field: FieldValue, _ column: Shape) -> FieldContent? {
    let value: Value
    switch field {
    case .string(let text): value = .text(text)
    case .bytes(let bytes): value = .blob(bytes)
    case .int64(let integer):
      value = column.fieldType == .double ? .real(Double(integer)) : .integer(integer)
    case .double(let real):
      if column.fieldType == .int64, let integer = Int64(exactly: real) {
        value = .integer(integer)
      } else {
        value = .real(real)
      }
    case .timestamp(let milliseconds): value = .real(milliseconds)
    case .reference(let reference): return .reference(reference.recordName)
    case .asset(let asset): return .large(LargeValue(isText: column.fieldType == .string, hash: "", asset: asset))
    case .location, .list, .encrypted: return nil
    }
    return .value(AffinityRules.stored(value, in: column.affinity))
  }

  /// What the column holds when `cairn_values` has this text; nil for a text that no Cairn writes.
  ///
  /// - Parameter asset: what `cairn_a_NAME` holds.
  public static func decode(tagged text: String, asset: Asset?, _ column: ColumnPlan) -> FieldContent? {
    decode(tagged: text, asset: asset, Shape(column))
  }

  static func decode(tagged text: String, asset: Asset?, _ column: Shape) -> FieldContent? {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let rest = String(text[text.index(after: colon)...])
    let value: Value?
    switch text[..<colon] {
    case "i": value = Int64(rest).map { .integer($0) }
    case "r": value = Hex.number(Array(rest.utf8)).map { .real(Double(bitPattern: $0)) }
    case "b": value = Base64.decode(rest).map { .blob($0) }
    case "t":
      value = Base64.decode(rest).map { bytes in
        String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .malformedText(bytes)
      }
    case "f": return rest.isEmpty ? nil : .reference(rest)
    case "at", "ab":
      return asset.map { .large(LargeValue(isText: text.hasPrefix("at"), hash: rest, asset: $0)) }
    default: return nil
    }
    return value.map { .value(AffinityRules.stored($0, in: column.affinity)) }
  }
}
