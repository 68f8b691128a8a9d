import CairnRecords
import CairnSQLite

/// How the rows of one table are synced: everything that capture, merge and sending need, by index.
///
/// Columns are numbered without the generated ones; all indices of columns below are of that numbering.
public struct TablePlan: Hashable, Sendable {
  /// The table's number in this file, fixed when it was first synced.
  public var number: Int
  /// The name that it has now.
  public var name: String
  /// Its record type (tables 1.3).
  public var wireName: String
  public var keyKind: KeyKind
  /// In declaration order, generated columns left out.
  public var columns: [ColumnPlan]
  /// Names of the generated columns: never captured or sent.
  public var generatedColumns: [String]
  /// In the order of `PRIMARY KEY(…)`.
  public var keyColumns: [Int]
  /// What each of ``keyColumns`` adds to the record name (tables 1.2).
  public var keyParts: [KeyPart]
  /// Columns that are fields of the record: all but a mapped key.
  public var fieldColumns: [Int]
  public var isWithoutRowID: Bool
  public var isStrict: Bool
  public var isAutoincrement: Bool
  /// The column that is another name of the rowid.
  public var rowIDAlias: Int?
  /// Every UNIQUE constraint and unique index, the primary key's own left out.
  public var uniqueIndexes: [UniqueIndexPlan]
  /// In declaration order.
  public var foreignKeys: [ForeignKeyPlan]
  /// Place in a strict total order of all tables with parents before children (tables U4); the same on devices with
  /// the same schema, within cycles too.
  public var rank: Int
  /// The table is on a cycle of foreign keys through other tables.
  public var isInCycle: Bool
  /// A foreign key of the table refers to the table itself.
  public var isSelfReferencing: Bool
  /// An insert or update of a row here may write other rows or change this one: by user triggers, or by ON UPDATE
  /// actions of foreign keys that refer to columns whose bytes may change.
  public var writesElsewhere: Bool
  /// A delete of a row here may write rows: by user triggers, or by ON DELETE actions.
  public var deletesWriteElsewhere: Bool

  /// The kind of the primary key (tables 1.2).
  public enum KeyKind: String, Hashable, Sendable {
    /// Each row has a UUID record name and a local integer.
    case mapped
    /// One column names the record.
    case natural
    /// Several columns name the record.
    case composite
  }

  /// What a key column adds to the record name.
  public enum KeyPart: Hashable, Sendable {
    /// Its value.
    case value
    /// The record name of the row of that table whose only key column has this value.
    case reference(table: Int)
  }

  public var isMapped: Bool { keyKind == .mapped }

  /// The index of a column by its present name.
  public func column(_ name: String) -> Int? { columns.firstIndex { SQLName.equal($0.name, name) } }

  /// The index of a column by its wire name.
  public func column(wireName: String) -> Int? { columns.firstIndex { $0.wireName == wireName } }
}

/// How the values of one column travel.
public struct ColumnPlan: Hashable, Sendable {
  public var name: String
  public var wireName: String
  /// Fixed when the column was first synced (tables 1.5).
  public var fieldType: FieldType
  public var affinity: Affinity
  public var collation: KeyCollation
  public var isNotNull: Bool
  /// The text of the DEFAULT expression.
  public var defaultSQL: String?
  public var isKey: Bool
  /// The mapped table at the end of the chain of foreign keys that the value comes from; the table itself for a mapped
  /// key (tables 1.2, *local*).
  public var localTarget: Int?
  /// Equal values may differ in storage class, as 1 and 1.0 do: a comparison must look at `typeof` too.
  public var needsTypeofComparison: Bool
}

/// How SQLite compares a column's texts.
public enum KeyCollation: Hashable, Sendable {
  case binary, noCase, rightTrimmed
  /// Registered by a program.
  case other(String)

  public init(_ name: String) {
    self =
      switch SQLName.folded(name) {
      case "binary": .binary
      case "nocase": .noCase
      case "rtrim": .rightTrimmed
      default: .other(name)
      }
  }

  public var name: String {
    switch self {
    case .binary: "BINARY"
    case .noCase: "NOCASE"
    case .rightTrimmed: "RTRIM"
    case .other(let name): name
    }
  }
}

/// A UNIQUE constraint or a unique index.
public struct UniqueIndexPlan: Hashable, Sendable {
  public var name: String
  public var terms: [Term]
  /// The text after WHERE of a partial index.
  public var predicate: String?

  public struct Term: Hashable, Sendable {
    public enum Key: Hashable, Sendable {
      case column(Int)
      /// A generated column, by name.
      case generated(String)
      /// An expression as the user wrote it.
      case expression(String)
    }
    public var key: Key
    /// The name of the collation of this term.
    public var collation: String
  }

  /// Whether every term is a plain column and all rows are covered.
  public var isPlain: Bool {
    predicate == nil
      && terms.allSatisfy { term in
        if case .column = term.key { true } else { false }
      }
  }
}

/// A foreign key of a synced table.
public struct ForeignKeyPlan: Hashable, Sendable {
  public enum Parent: Hashable, Sendable {
    /// A synced table, by number.
    case synced(Int)
    /// A table that is not synced, by name: its values travel as they are.
    case unsynced(String)
  }

  /// The child's columns; empty where one of them is generated.
  public var columns: [Int]
  public var parent: Parent
  /// Names of the parent's columns.
  public var parentColumns: [String]
  /// The parent's columns by index; empty where the parent is not synced or one of them is generated.
  public var parentColumnIndices: [Int]
  /// The parent's columns are its primary key, in that order.
  public var refersToKey: Bool
  public var onDelete: SchemaForeignKey.Action
  public var onUpdate: SchemaForeignKey.Action
  public var isDeferred: Bool
  /// A value of it is an integer of this device only and travels as a reference.
  public var isTranslated: Bool
  public var isSelfReference: Bool

  public var parentNumber: Int? {
    if case .synced(let number) = parent { number } else { nil }
  }
}
