import CairnRecords
import CairnSQLite

/// What the zone's `cairn_table` record says of one table (tables 1.4).
public struct PublishedTable: Hashable, Sendable {
  public var wireName: String
  /// The table's name on the device that last changed its schema.
  public var name: String
  public var isMapped: Bool
  /// Claims, sorted.
  public var columns: [ColumnClaim]
  /// CREATE TABLE first, then every CREATE INDEX.
  public var statements: [String]
  /// When the device that wrote ``statements`` changed its schema.
  public var statementsClock: FieldClock

  public init(
    wireName: String, name: String, isMapped: Bool, columns: [ColumnClaim], statements: [String],
    statementsClock: FieldClock
  ) {
    self.wireName = wireName
    self.name = name
    self.isMapped = isMapped
    self.columns = columns.sorted()
    self.statements = statements
    self.statementsClock = statementsClock
  }

  /// A device's word that a column has this name and type on the wire.
  public struct ColumnClaim: Hashable, Sendable, Comparable {
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

    public static func < (a: ColumnClaim, b: ColumnClaim) -> Bool {
      (a.name, a.clock, a.wireName, a.fieldType.rawValue) < (b.name, b.clock, b.wireName, b.fieldType.rawValue)
    }
  }

  /// What this device says of a table of its own, now.
  public init(_ plan: TablePlan, _ table: SchemaTable, clock: FieldClock) {
    self.init(
      wireName: plan.wireName, name: table.name, isMapped: plan.keyKind == .mapped,
      columns: plan.columns.map {
        ColumnClaim(name: $0.name, wireName: $0.wireName, fieldType: $0.fieldType, clock: clock)
      },
      statements: [table.sql] + table.indexes.compactMap(\.sql), statementsClock: clock)
  }

  /// The union of what two devices say: every claim stands with its earliest clock; the statements of the later schema
  /// change win. Commutative, associative and idempotent.
  public func merged(with other: PublishedTable) -> PublishedTable {
    var claims: [[String]: ColumnClaim] = [:]
    for claim in columns + other.columns {
      let key = [SQLName.folded(claim.name), claim.wireName]
      claims[key] = claims[key].map { Self.earlier($0, claim) } ?? claim
    }
    let later = Self.isLater(self, other) ? self : other
    return PublishedTable(
      wireName: wireName, name: later.name, isMapped: isMapped && other.isMapped, columns: Array(claims.values),
      statements: later.statements, statementsClock: later.statementsClock)
  }

  private static func earlier(_ a: ColumnClaim, _ b: ColumnClaim) -> ColumnClaim {
    (a.clock, a.fieldType.rawValue, a.name) <= (b.clock, b.fieldType.rawValue, b.name) ? a : b
  }

  private static func isLater(_ a: PublishedTable, _ b: PublishedTable) -> Bool {
    if a.statementsClock != b.statementsClock { return a.statementsClock > b.statementsClock }
    if a.name != b.name { return a.name > b.name }
    return b.statements.lexicographicallyPrecedes(a.statements)
  }

  /// Whether the record must be saved so that other devices learn what `local` says.
  public func lacks(_ local: PublishedTable) -> Bool { merged(with: local) != self }
}
