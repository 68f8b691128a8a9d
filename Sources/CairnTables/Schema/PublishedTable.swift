import CairnRecords

/// What the zone's `cairn_table` record says of one table (tables 1.4).
public struct PublishedTable: Hashable, Sendable {
  public var wireName: String
  /// The table's name on the device that last changed its schema.
  public var name: String
  public var isMapped: Bool
  /// Claims by column name, sorted by name.
  public var columns: [ColumnClaim]
  public var createTable: String
  public var createIndexes: [String]
  /// Clock of the schema's statements.
  public var schemaClock: FieldClock

  public init(
    wireName: String, name: String, isMapped: Bool, columns: [ColumnClaim], createTable: String,
    createIndexes: [String], schemaClock: FieldClock
  ) {
    self.wireName = wireName
    self.name = name
    self.isMapped = isMapped
    self.columns = columns
    self.createTable = createTable
    self.createIndexes = createIndexes
    self.schemaClock = schemaClock
  }

  /// A device's word that a column has this name and type on the wire.
  public struct ColumnClaim: Hashable, Sendable {
    /// The column's name in SQL.
    public var name: String
    public var wireName: String
    public var fieldType: FieldType
    public var clock: FieldClock

    public init(name: String, wireName: String, fieldType: FieldType, clock: FieldClock) {
      self.name = name
      self.wireName = wireName
      self.fieldType = fieldType
      self.clock = clock
    }
  }
}
