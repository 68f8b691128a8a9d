import CairnRecords

/// A field value whose type the wire does not say, or says in a way that only a schema can resolve: no `type`, `LIST`,
/// `UNKNOWN_LIST`, `BOOLEAN`, or a name that is not known (web-services section 7, schema memory).
public struct UntypedValue: Hashable, Sendable {
  /// The `type` as it was written; nil where there was none.
  public var declaredType: String?
  /// The JSON value; never null, because null needs no type.
  public var json: JSONValue
  public var isEncrypted: Bool

  public init(declaredType: String? = nil, json: JSONValue, isEncrypted: Bool = false) {
    self.declaredType = declaredType
    self.json = json
    self.isEncrypted = isEncrypted
  }

  /// Whether the declared type is one that section 7 lets a client write without naming an exact type.
  public var isAcceptable: Bool {
    switch declaredType {
    case nil, "LIST", "UNKNOWN_LIST", "BOOLEAN": true
    default: false
    }
  }

  /// The kind that rule 3 of the schema memory infers. Nil for an empty array and what fits no type.
  public var inferredKind: FieldKind? {
    if declaredType == "BOOLEAN" { return FieldKind(.int64) }
    if case .array(let elements) = json {
      return elements.first.flatMap { Self.scalarType($0) }.map { FieldKind($0, isList: true) }
    }
    return Self.scalarType(json).map { FieldKind($0) }
  }

  private static func scalarType(_ json: JSONValue) -> FieldType? {
    switch json {
    case .string: .string
    case .integer, .bool: .int64
    case .double: .double
    case .object:
      if json["recordName"] != nil {
        .reference
      } else if json["latitude"] != nil {
        .location
      } else if json["receipt"] != nil || json["fileChecksum"] != nil {
        .asset
      } else {
        nil
      }
    case .array, .null: nil
    }
  }

  /// The value read as `kind`, or nil if the JSON does not fit it.
  public func value(as kind: FieldKind) -> FieldValue? {
    var json = json
    if case .bool(let flag) = json { json = .integer(flag ? 1 : 0) }
    let value = try? JSONReader.parse(json.encoded) { (reader) throws(WireError) in try reader.readFieldValue(kind) }
    guard let value else { return nil }
    if kind == FieldKind(.encryptedBytes) { return value }
    return isEncrypted ? .encrypted(value) : value
  }
}
