/// A value of a record's field, as CloudKit types it.
///
/// Rare cases are boxed so that an array of scalars stays small. Values are equal if their bytes are: `String`'s own
/// `==` takes two spellings of one character for equal, and a change from one to the other would get lost.
public enum FieldValue: Hashable, Sendable {
  case string(String)
  case int64(Int64)
  case double(Double)
  case bytes([UInt8])
  /// Milliseconds since 1970; may be fractional or negative.
  case timestamp(Double)
  indirect case reference(Reference)
  indirect case asset(Asset)
  indirect case location(Location)
  /// A list and the type of its elements.
  indirect case list(FieldType, [FieldValue])
  /// A value that the client marked `isEncrypted`.
  indirect case encrypted(FieldValue)

  public static func == (a: FieldValue, b: FieldValue) -> Bool {
    switch (a, b) {
    case (.string(let x), .string(let y)): sameBytes(x, y)
    case (.int64(let x), .int64(let y)): x == y
    case (.double(let x), .double(let y)), (.timestamp(let x), .timestamp(let y)): x.bitPattern == y.bitPattern
    case (.bytes(let x), .bytes(let y)): x == y
    case (.reference(let x), .reference(let y)): x == y
    case (.asset(let x), .asset(let y)): x == y
    case (.location(let x), .location(let y)): x == y
    case (.list(let type, let x), .list(let other, let y)): type == other && x == y
    case (.encrypted(let x), .encrypted(let y)): x == y
    default: false
    }
  }

  private static func sameBytes(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && a.utf8.elementsEqual(b.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    // Strings of equal bytes have equal hashes.
    case .string(let text): hasher.combine(text)
    case .int64(let integer): hasher.combine(integer)
    case .double(let real), .timestamp(let real): hasher.combine(real.bitPattern)
    case .bytes(let bytes): hasher.combine(bytes)
    case .reference(let reference): hasher.combine(reference)
    case .asset(let asset): hasher.combine(asset)
    case .location(let location): hasher.combine(location)
    case .list(let type, let values):
      hasher.combine(type)
      hasher.combine(values)
    case .encrypted(let value): hasher.combine(value)
    }
  }
}

/// The scalar types of fields. A list is named by its element type.
public enum FieldType: String, Hashable, Sendable, CaseIterable {
  case string = "STRING"
  case int64 = "INT64"
  case double = "DOUBLE"
  case bytes = "BYTES"
  case encryptedBytes = "ENCRYPTED_BYTES"
  case timestamp = "TIMESTAMP"
  case reference = "REFERENCE"
  case asset = "ASSETID"
  case location = "LOCATION"
}

/// A pointer to another record.
public struct Reference: Hashable, Sendable {
  /// What the server does with the referring record when the target is deleted.
  public enum Action: String, Hashable, Sendable {
    case none = "NONE"
    case deleteSelf = "DELETE_SELF"
    case validate = "VALIDATE"
  }

  public var recordName: String
  /// The target's zone; nil means the referring record's own.
  public var zone: ZoneID?
  public var action: Action

  public init(recordName: String, zone: ZoneID? = nil, action: Action = .none) {
    self.recordName = recordName
    self.zone = zone
    self.action = action
  }
}

/// A file kept beside the record.
public struct Asset: Hashable, Sendable {
  public var fileChecksum: String
  /// Size in bytes.
  public var size: Int64
  public var referenceChecksum: String?
  public var wrappingKey: String?
  /// Proof of an upload; only in writes.
  public var receipt: String?
  /// Where the bytes can be read; only in answers.
  public var downloadURL: String?

  public init(
    fileChecksum: String, size: Int64, referenceChecksum: String? = nil, wrappingKey: String? = nil,
    receipt: String? = nil, downloadURL: String? = nil
  ) {
    self.fileChecksum = fileChecksum
    self.size = size
    self.referenceChecksum = referenceChecksum
    self.wrappingKey = wrappingKey
    self.receipt = receipt
    self.downloadURL = downloadURL
  }
}

/// A place on earth. Angles in degrees, lengths in metres, speed in metres per second, time in ms since 1970.
public struct Location: Hashable, Sendable {
  public var latitude: Double
  public var longitude: Double
  public var altitude: Double?
  public var horizontalAccuracy: Double?
  public var verticalAccuracy: Double?
  public var speed: Double?
  public var course: Double?
  public var timestamp: Double?

  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}
