/// JSON as a tree, for what is rare or has no fixed shape: untyped field values, notification settings.
public indirect enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  /// A number without fraction and exponent that 64 bits hold.
  case integer(Int64)
  case double(Double)
  case string(String)
  case array([JSONValue])
  /// Members in the order in which they stood; of equal keys the last wins on look-up.
  case object([JSONMember])

  /// The value of a key; nil when this is no object or has no such key.
  public subscript(key: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.key == key }?.value
  }

  public var string: String? {
    guard case .string(let text) = self else { return nil }
    return text
  }

  /// Parses a whole JSON text.
  public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(WireError) {
    self = try JSONReader.parse(bytes, limits: limits) { (reader) throws(WireError) in try reader.readValue() }
  }

  /// The text of this value.
  public var encoded: [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.value(self)
    return writer.bytes
  }
}

/// One key with its value.
public struct JSONMember: Hashable, Sendable {
  public var key: String
  public var value: JSONValue

  public init(_ key: String, _ value: JSONValue) {
    self.key = key
    self.value = value
  }
}

extension JSONReader {
  /// Reads any value as a tree.
  public mutating func readValue() throws(WireError) -> JSONValue {
    switch try kind() {
    case .null:
      _ = try readNull()
      return .null
    case .bool: return .bool(try readBool())
    case .string: return .string(try readString())
    case .number:
      let number = try number()
      if number.isInteger, let exact = number.int64 { return .integer(exact) }
      guard let value = number.double else { throw error(.value, "the number is too large") }
      return .double(value)
    case .array:
      var elements: [JSONValue] = []
      try beginArray()
      while try nextElement() { elements.append(try readValue()) }
      return .array(elements)
    case .object:
      var members: [JSONMember] = []
      try beginObject()
      while let key = try nextKey() { members.append(JSONMember(key.string, try readValue())) }
      return .object(members)
    }
  }
}

extension JSONWriter {
  public mutating func value(_ value: JSONValue) {
    switch value {
    case .null: null()
    case .bool(let flag): bool(flag)
    case .integer(let number): int64(number)
    case .double(let number): double(number)
    case .string(let text): string(text)
    case .array(let elements):
      beginArray()
      for element in elements { self.value(element) }
      endArray()
    case .object(let members):
      beginObject()
      for member in members {
        key(member.key)
        self.value(member.value)
      }
      endObject()
    }
  }
}
