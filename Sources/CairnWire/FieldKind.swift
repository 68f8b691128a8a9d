import CairnRecords

/// A field type as it is named on the wire: a scalar type or a list of it (web-services section 7).
public struct FieldKind: Hashable, Sendable, CustomStringConvertible {
  public var type: FieldType
  public var isList: Bool

  public init(_ type: FieldType, isList: Bool = false) {
    self.type = type
    self.isList = isList
  }

  /// The kind of a value. Encrypted bytes are named ENCRYPTED_BYTES, other encrypted values by what they hold.
  public init(of value: FieldValue) {
    switch value {
    case .string: self.init(.string)
    case .int64: self.init(.int64)
    case .double: self.init(.double)
    case .bytes: self.init(.bytes)
    case .timestamp: self.init(.timestamp)
    case .reference: self.init(.reference)
    case .asset: self.init(.asset)
    case .location: self.init(.location)
    case .list(let type, _): self.init(type, isList: true)
    case .encrypted(.bytes): self.init(.encryptedBytes)
    case .encrypted(let inner): self.init(of: inner)
    }
  }

  /// Parses `STRING`, `STRING_LIST` and so on. Nil for `LIST`, `UNKNOWN_LIST`, `BOOLEAN` and names not known.
  public init?(name: String) {
    if name.hasSuffix("_LIST"), let type = FieldType(rawValue: String(name.dropLast(5))) {
      self.init(type, isList: true)
    } else if let type = FieldType(rawValue: name) {
      self.init(type)
    } else {
      return nil
    }
  }

  /// ``init(name:)`` without building a string.
  init?(_ name: JSONKey) {
    switch name {
    case "STRING": self.init(.string)
    case "INT64": self.init(.int64)
    case "DOUBLE": self.init(.double)
    case "BYTES": self.init(.bytes)
    case "REFERENCE": self.init(.reference)
    case "TIMESTAMP": self.init(.timestamp)
    default: self.init(name: name.string)
    }
  }

  /// The name on the wire.
  public var name: StaticString {
    switch (type, isList) {
    case (.string, false): "STRING"
    case (.int64, false): "INT64"
    case (.double, false): "DOUBLE"
    case (.bytes, false): "BYTES"
    case (.encryptedBytes, false): "ENCRYPTED_BYTES"
    case (.timestamp, false): "TIMESTAMP"
    case (.reference, false): "REFERENCE"
    case (.asset, false): "ASSETID"
    case (.location, false): "LOCATION"
    case (.string, true): "STRING_LIST"
    case (.int64, true): "INT64_LIST"
    case (.double, true): "DOUBLE_LIST"
    case (.bytes, true): "BYTES_LIST"
    case (.encryptedBytes, true): "ENCRYPTED_BYTES_LIST"
    case (.timestamp, true): "TIMESTAMP_LIST"
    case (.reference, true): "REFERENCE_LIST"
    case (.asset, true): "ASSETID_LIST"
    case (.location, true): "LOCATION_LIST"
    }
  }

  public var description: String { name.description }
}
