/// A parameter of a statement, sent in PostgreSQL's binary form.
enum PostgresValue {
  case null
  case int(Int64)
  case text(String)
  case bytes([UInt8])
  case ints([Int64?])
  case texts([String])
  case byteses([[UInt8]?])

  static func optional(_ value: Int64?) -> PostgresValue { value.map { .int($0) } ?? .null }
  static func optional(_ value: [UInt8]?) -> PostgresValue { value.map { .bytes($0) } ?? .null }
  /// Text that may hold anything, in a column of bytes.
  static func name(_ text: String) -> PostgresValue { .bytes(Array(text.utf8)) }
  static func optionalName(_ text: String?) -> PostgresValue { text.map { .name($0) } ?? .null }
  static func names(_ texts: some Sequence<String>) -> PostgresValue { .byteses(texts.map { Array($0.utf8) }) }

  /// Types as PostgreSQL numbers them: int8 20, text 25, bytea 17, and arrays of them. A null takes its column's.
  var type: UInt32 {
    switch self {
    case .null: 0
    case .int: 20
    case .text: 25
    case .bytes: 17
    case .ints: 1016
    case .texts: 1009
    case .byteses: 1001
    }
  }

  /// Nil for a null.
  var encoded: [UInt8]? {
    switch self {
    case .null: return nil
    case .int(let value): return Self.bigEndian(value)
    case .text(let text): return Array(text.utf8)
    case .bytes(let bytes): return bytes
    case .ints(let values): return Self.array(values, type: 20) { $0.map(Self.bigEndian) }
    case .texts(let values): return Self.array(values, type: 25) { Array($0.utf8) }
    case .byteses(let values): return Self.array(values, type: 17) { $0 }
    }
  }

  private static func bigEndian(_ value: Int64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

  private static func append(_ value: Int32, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Dimensions, whether there are nulls, the elements' type; for the one dimension its size and first index; elements
  /// with their lengths.
  private static func array<Element>(_ values: [Element], type: Int32, _ encode: (Element) -> [UInt8]?) -> [UInt8] {
    var bytes: [UInt8] = []
    append(values.isEmpty ? 0 : 1, to: &bytes)
    append(1, to: &bytes)
    append(type, to: &bytes)
    if values.isEmpty { return bytes }
    append(Int32(values.count), to: &bytes)
    append(1, to: &bytes)
    for value in values {
      guard let element = encode(value) else {
        append(-1, to: &bytes)
        continue
      }
      append(Int32(element.count), to: &bytes)
      bytes.append(contentsOf: element)
    }
    return bytes
  }
}
