import CairnRecords
import CairnSQLite

/// What a field of a row holds, independent of how it travels.
public enum FieldContent: Hashable, Sendable {
  case value(Value)
  /// The record that a local foreign key stands for, by name (tables 1.2).
  case reference(String)
  /// A TEXT or BLOB that lies in an asset.
  indirect case large(LargeValue)

  public static let null = FieldContent.value(.null)
}

/// A value that is too large for its record (tables 1.5).
public struct LargeValue: Hashable, Sendable {
  public var isText: Bool
  /// SHA-256 of the value's bytes in hex; empty where a foreign client did not say.
  public var hash: String
  public var asset: Asset

  public init(isText: Bool, hash: String, asset: Asset) {
    self.isText = isText
    self.hash = hash
    self.asset = asset
  }

  /// The hash of a value's bytes, as it stands in ``hash``.
  public static func hash(of bytes: [UInt8]) -> String { Hex.lower(SHA256.digest(bytes)) }

  /// The value, once its bytes are here.
  public func value(_ bytes: [UInt8]) -> Value {
    guard isText else { return .blob(bytes) }
    return String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .malformedText(bytes)
  }
}

/// Everything that a record says of a row (tables 1.4).
public struct RecordContent: Hashable, Sendable {
  /// Stands for "never set" in ``clocks``.
  public static let never: FieldClock = -1

  /// Clock of the insert, reinsert or revival that made the row alive.
  public var life: FieldClock
  /// Clock of the delete before the present life.
  public var cut: FieldClock?
  /// Mapped tables: the creator's integer.
  public var key: Int64?
  /// By column; only where ``clocks`` has a clock.
  public var values: [FieldContent]
  /// By column; ``never`` for fields that no version has set, and for a mapped key.
  public var clocks: [FieldClock]
  /// Fields without a column here, by name.
  public var kept: [KeptField]
  /// False for a record that a client wrote that does not know Cairn (tables M14).
  public var hasClocks: Bool

  public init(
    life: FieldClock, cut: FieldClock? = nil, key: Int64? = nil, values: [FieldContent], clocks: [FieldClock],
    kept: [KeptField] = [], hasClocks: Bool = true
  ) {
    self.life = life
    self.cut = cut
    self.key = key
    self.values = values
    self.clocks = clocks
    self.kept = kept
    self.hasClocks = hasClocks
  }

  /// A field without a column, as it came.
  public struct KeptField: Hashable, Sendable {
    /// Its name on the server.
    public var name: String
    public var clock: FieldClock
    /// Its value; nil for NULL and for what travels otherwise.
    public var field: FieldValue?
    /// Its text in `cairn_values`.
    public var tagged: String?
    /// The asset in `cairn_a_NAME`.
    public var asset: Asset?

    public init(
      name: String, clock: FieldClock, field: FieldValue? = nil, tagged: String? = nil, asset: Asset? = nil
    ) {
      self.name = name
      self.clock = clock
      self.field = field
      self.tagged = tagged
      self.asset = asset
    }
  }
}
