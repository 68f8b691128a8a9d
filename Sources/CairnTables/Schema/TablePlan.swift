import CairnRecords
import CairnSQLite

/// How one table is synced: what its key means, how its columns travel, and in which order it is sent and applied.
///
/// Columns are referred to by their index in ``columns``; masks, clocks and values are arrays by that index.
public struct TablePlan: Hashable, Sendable {
  /// How a row's key names its record (tables 1.2).
  public enum KeyKind: Hashable, Sendable {
    /// Each row has a UUID record name and a local integer.
    case mapped
    /// The key's value or values name the record.
    case natural
  }

  /// Stable number of the table in this file.
  public var number: Int { facts.value.number }
  public var name: String { facts.value.name }
  /// Record type on the server (tables 1.3). Fixed when the table is first synced.
  public var wireName: String { facts.value.wireName }
  public var keyKind: KeyKind { facts.value.keyKind }
  /// Every column that is not generated, in the order of the declaration.
  public var columns: [ColumnPlan] { facts.value.columns }
  public var generatedColumns: [String] { facts.value.generatedColumns }
  /// Indexes into ``columns``, in the order of `PRIMARY KEY(…)`.
  public var keyColumns: [Int] { facts.value.keyColumns }
  public var isWithoutRowID: Bool { facts.value.isWithoutRowID }
  public var isStrict: Bool { facts.value.isStrict }
  /// The column that is SQLite's rowid, as an index into ``columns``.
  public var rowIDAlias: Int? { facts.value.rowIDAlias }
  /// UNIQUE constraints and unique indexes other than the primary key.
  public var uniqueIndexes: [UniqueIndexPlan] { facts.value.uniqueIndexes }
  public var foreignKeys: [ForeignKeyPlan] { facts.value.foreignKeys }
  /// Position in the order of sending: parents before children, the same on devices with the same
  /// tables, within cycles too.
  public var rank: Int
  /// Whether rows may depend on rows of the same rank: a self-reference, or a table on a cycle.
  public var isCyclic: Bool
  /// Whether writing a row makes SQLite write others: user triggers, or ON UPDATE actions that follow a column that is
  /// not the primary key (tables T3).
  public var writesElsewhere: Bool { facts.value.writesElsewhere }
  /// Whether deleting a row makes SQLite write others: user triggers, or ON DELETE actions (tables M15).
  public var deletesWriteElsewhere: Bool { facts.value.deletesWriteElsewhere }
  /// What each of ``keyColumns`` adds to the record name (tables 1.2).
  public var keyParts: [KeyPart] { facts.value.keyParts }
  public var isAutoincrement: Bool { facts.value.isAutoincrement }

  /// What a key column adds to the record name.
  public enum KeyPart: Hashable, Sendable {
    /// Its value.
    case value
    /// The record name of the row of that table whose only key column has this value.
    case reference(table: Int)
  }

  /// All but what is known only once all tables are. Behind one reference, as plans are handed around for every record.
  private struct Facts: Hashable, Sendable {
    var number: Int
    var name: String
    var wireName: String
    var keyKind: KeyKind
    var columns: [ColumnPlan]
    var generatedColumns: [String]
    var keyColumns: [Int]
    var isWithoutRowID: Bool
    var isStrict: Bool
    var rowIDAlias: Int?
    var uniqueIndexes: [UniqueIndexPlan]
    var foreignKeys: [ForeignKeyPlan]
    var writesElsewhere: Bool
    var deletesWriteElsewhere: Bool
    var keyParts: [KeyPart]
    var isAutoincrement: Bool
  }

  private final class Box: Sendable {
    let value: Facts
    /// The key column of a mapped table; -1 in others.
    let mappedKey: Int
    let localTargets: [(column: Int, table: Int)]
    let isNamedByValue: Bool
    let wireNames: [String]

    init(_ value: Facts) {
      self.value = value
      wireNames = value.columns.map(\.wireName)
      isNamedByValue = value.keyKind == .natural && value.keyParts == [.value]
      mappedKey = value.keyKind == .mapped ? value.columns.firstIndex(where: \.isKey) ?? -1 : -1
      localTargets = value.columns.indices.compactMap { column in
        value.columns[column].localTarget.map { (column, $0) }
      }
    }
  }

  private let facts: Box

  public static func == (a: TablePlan, b: TablePlan) -> Bool {
    a.rank == b.rank && a.isCyclic == b.isCyclic && (a.facts === b.facts || a.facts.value == b.facts.value)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(rank)
    hasher.combine(isCyclic)
    hasher.combine(facts.value)
  }

  public init(
    number: Int, name: String, wireName: String, keyKind: KeyKind, columns: [ColumnPlan], generatedColumns: [String],
    keyColumns: [Int], isWithoutRowID: Bool, isStrict: Bool, rowIDAlias: Int?, uniqueIndexes: [UniqueIndexPlan],
    foreignKeys: [ForeignKeyPlan], rank: Int, isCyclic: Bool, writesElsewhere: Bool,
    deletesWriteElsewhere: Bool = true, keyParts: [KeyPart]? = nil, isAutoincrement: Bool = false
  ) {
    self.rank = rank
    self.isCyclic = isCyclic
    facts = Box(
      Facts(
        number: number, name: name, wireName: wireName, keyKind: keyKind, columns: columns,
        generatedColumns: generatedColumns, keyColumns: keyColumns, isWithoutRowID: isWithoutRowID, isStrict: isStrict,
        rowIDAlias: rowIDAlias, uniqueIndexes: uniqueIndexes, foreignKeys: foreignKeys,
        writesElsewhere: writesElsewhere, deletesWriteElsewhere: deletesWriteElsewhere,
        keyParts: keyParts ?? keyColumns.map { columns[$0].localTarget.map { .reference(table: $0) } ?? .value },
        isAutoincrement: isAutoincrement))
  }

  /// Whether a column is a field of the record: every column but a mapped key (tables 1.2).
  public func isField(_ column: Int) -> Bool { column != facts.mappedKey }

  var fieldCount: Int { columns.count - (facts.mappedKey < 0 ? 0 : 1) }

  /// Columns that hold integers of mapped tables, with the numbers of those.
  var localTargets: [(column: Int, table: Int)] { facts.localTargets }

  /// Whether the key is one value, which names the record by itself.
  var isNamedByValue: Bool { facts.isNamedByValue }

  /// The index of a column by its wire name.
  public func column(wireName: String) -> Int? { facts.wireNames.firstIndex(of: wireName) }

  /// By column.
  var wireNames: [String] { facts.wireNames }

  /// Whether the key names its record through a parent: then a name is not computed from the row alone.
  public var isNamedByParent: Bool { keyKind == .natural && keyColumns.contains { columns[$0].localTarget != nil } }
}

/// One synced column.
public struct ColumnPlan: Hashable, Sendable {
  public var name: String
  /// Field name on the server (tables 1.3). Fixed when the column is first synced.
  public var wireName: String
  /// Field type on the server (tables 1.5). Fixed with the wire name.
  public var fieldType: FieldType
  public var affinity: Affinity
  /// Collation of comparisons, upper case as SQLite spells it: `BINARY`, `NOCASE`, `RTRIM`.
  public var collation: String
  public var isNotNull: Bool
  /// SQL text of the DEFAULT, nil for none.
  public var defaultSQL: String?
  public var isKey: Bool
  /// The number of the mapped table whose record a value of this column stands for (tables 1.2, "local"); nil for
  /// plain values. A mapped key column itself is nil.
  public var localTarget: Int?

  public init(
    name: String, wireName: String, fieldType: FieldType, affinity: Affinity, collation: String,
    isNotNull: Bool, defaultSQL: String?, isKey: Bool, localTarget: Int?
  ) {
    self.name = name
    self.wireName = wireName
    self.fieldType = fieldType
    self.affinity = affinity
    self.collation = collation
    self.isNotNull = isNotNull
    self.defaultSQL = defaultSQL
    self.isKey = isKey
    self.localTarget = localTarget
  }

  /// Whether equal numbers may differ in storage class here, so that comparing must look at the class (tables T5).
  public var keepsStorageClass: Bool { affinity == .blob }
}

/// A unique index other than the primary key.
public struct UniqueIndexPlan: Hashable, Sendable {
  /// One key term.
  public enum Term: Hashable, Sendable {
    /// Index into ``TablePlan/columns``.
    case column(Int, collation: String)
    /// Text of an expression, as written in CREATE INDEX, or the name of a generated column, quoted.
    case expression(String, collation: String)
  }

  public var name: String
  public var terms: [Term]
  /// Text of a partial index's WHERE.
  public var predicate: String?

  public init(name: String, terms: [Term], predicate: String?) {
    self.name = name
    self.terms = terms
    self.predicate = predicate
  }
}

/// A foreign key whose parent is a synced table.
public struct ForeignKeyPlan: Hashable, Sendable {
  /// Indexes into the child's ``TablePlan/columns``.
  public var columns: [Int]
  /// Number of the parent table.
  public var parent: Int
  /// Indexes into the parent's ``TablePlan/columns``, one for each of ``columns``.
  public var parentColumns: [Int]
  public var onDelete: SchemaForeignKey.Action
  public var onUpdate: SchemaForeignKey.Action
  /// `DEFERRABLE INITIALLY DEFERRED`.
  public var isDeferred: Bool

  public init(
    columns: [Int], parent: Int, parentColumns: [Int], onDelete: SchemaForeignKey.Action,
    onUpdate: SchemaForeignKey.Action, isDeferred: Bool = false
  ) {
    self.columns = columns
    self.parent = parent
    self.parentColumns = parentColumns
    self.onDelete = onDelete
    self.onUpdate = onUpdate
    self.isDeferred = isDeferred
  }
}
