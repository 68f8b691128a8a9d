/// The tables, views and triggers of a database's `main` schema, as SQLite sees them at one moment.
public struct DatabaseSchema: Hashable, Sendable {
  /// Every table and view of `main`, `sqlite_…` left out, ordered by name.
  public var tables: [SchemaTable]
  /// Names of the tables that SQLite keeps for itself, such as `sqlite_sequence`.
  public var internalTables: [String]

  public init(tables: [SchemaTable], internalTables: [String] = []) {
    self.tables = tables
    self.internalTables = internalTables
  }

  /// The table of a name; SQLite's names ignore ASCII case.
  public func table(_ name: String) -> SchemaTable? {
    tables.first { SQLName.equal($0.name, name) }
  }
}

/// One table or view.
public struct SchemaTable: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable {
    case table, view, virtual, shadow
  }

  public var name: String
  public var kind: Kind
  /// The CREATE statement that SQLite keeps.
  public var sql: String
  /// All columns in declaration order, generated ones too.
  public var columns: [SchemaColumn]
  public var isWithoutRowID: Bool
  public var isStrict: Bool
  public var isAutoincrement: Bool
  /// The column that is another name of the rowid, as an index into ``columns``.
  public var rowIDAlias: Int?
  public var indexes: [SchemaIndex]
  /// In the order of declaration.
  public var foreignKeys: [SchemaForeignKey]
  /// In the order of names.
  public var triggers: [SchemaTrigger]
  /// What the table's definition or triggers use and the connection that read the schema does not have.
  public var missingExtension: MissingExtension?

  /// A function or collation that is not registered on the connection.
  public struct MissingExtension: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable { case collation, function }
    public var kind: Kind
    public var name: String
    /// The column whose definition or index names it, where that can be told.
    public var column: String?
  }

  /// Columns of the primary key in the order of `PRIMARY KEY(…)`, as indices into ``columns``.
  public var primaryKey: [Int] {
    columns.indices.filter { columns[$0].primaryKeyOrdinal > 0 }
      .sorted { columns[$0].primaryKeyOrdinal < columns[$1].primaryKeyOrdinal }
  }

  public func column(_ name: String) -> Int? {
    columns.firstIndex { SQLName.equal($0.name, name) }
  }
}

/// One column of a table.
public struct SchemaColumn: Hashable, Sendable {
  public enum Generated: Hashable, Sendable { case no, virtual, stored }

  public var name: String
  /// The declared type as written, empty when there is none.
  public var declaredType: String
  public var affinity: Affinity
  public var isNotNull: Bool
  /// The text of the DEFAULT expression.
  public var defaultSQL: String?
  /// Place in the primary key, from 1; 0 for other columns.
  public var primaryKeyOrdinal: Int
  public var generated: Generated
  /// `BINARY`, `NOCASE`, `RTRIM` or a name of the user's.
  public var collation: String
}

/// What a column does to a value that is stored in it.
public enum Affinity: String, Hashable, Sendable {
  case integer, text, blob, real, numeric

  /// SQLite's rules for a declared type. In STRICT tables ANY converts nothing.
  public init(declaredType: String, isStrict: Bool) {
    let type = SQLName.folded(declaredType)
    self =
      if isStrict && type == "any" {
        .blob
      } else if type.contains("int") {
        .integer
      } else if type.contains("char") || type.contains("clob") || type.contains("text") {
        .text
      } else if type.isEmpty || type.contains("blob") {
        .blob
      } else if type.contains("real") || type.contains("floa") || type.contains("doub") {
        .real
      } else {
        .numeric
      }
  }
}

/// One index, made by CREATE INDEX or by a constraint.
public struct SchemaIndex: Hashable, Sendable {
  public enum Origin: Hashable, Sendable { case createIndex, unique, primaryKey }

  public var name: String
  public var isUnique: Bool
  public var origin: Origin
  /// The statement of a CREATE INDEX; nil for an index of a constraint.
  public var sql: String?
  /// The text after WHERE of a partial index.
  public var predicate: String?
  public var terms: [Term]

  /// One key term.
  public struct Term: Hashable, Sendable {
    public enum Key: Hashable, Sendable {
      /// An index into the table's columns.
      case column(Int)
      /// The expression as written.
      case expression(String)
      case rowID
    }
    public var key: Key
    public var collation: String
    public var isDescending: Bool
  }
}

/// One foreign key, simple or composite.
public struct SchemaForeignKey: Hashable, Sendable {
  public enum Action: String, Hashable, Sendable {
    case noAction = "NO ACTION"
    case restrict = "RESTRICT"
    case setNull = "SET NULL"
    case setDefault = "SET DEFAULT"
    case cascade = "CASCADE"

    /// Whether the action writes the child.
    public var writes: Bool { self != .noAction && self != .restrict }
  }

  /// The child's columns, as indices into its columns.
  public var columns: [Int]
  public var parentTable: String
  /// The parent's columns; where the declaration names none, the parent's primary key. Empty if there is none.
  public var parentColumns: [String]
  public var onUpdate: Action
  public var onDelete: Action
  /// `DEFERRABLE INITIALLY DEFERRED`.
  public var isDeferred: Bool
}

/// One trigger of `main`.
public struct SchemaTrigger: Hashable, Sendable {
  public var name: String
  public var table: String
  public var sql: String
  /// Its name begins with `cairn_`.
  public var isCairn: Bool { SQLName.folded(name).hasPrefix("cairn_") }
}
