/// A value of a record's field, as CloudKit types it.
///
/// Rare cases are boxed so that an array of scalars stays small.
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
