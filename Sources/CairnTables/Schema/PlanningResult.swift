/// Which tables are synced, as the user chose (tables 1.1). Names ignore ASCII case.
public struct SelectionOptions: Hashable, Sendable {
  /// The tables to sync; empty means every table.
  public var tables: [String]
  public var exclude: [String]
  /// Tables whose INTEGER keys mean the same on every device.
  public var naturalKeys: [String]
  /// Names of the tables that Cairn itself has made in this file; empty in a file that was not prepared yet.
  public var ownTables: [String]

  public init(
    tables: [String] = [], exclude: [String] = [], naturalKeys: [String] = [], ownTables: [String] = []
  ) {
    self.tables = tables
    self.exclude = exclude
    self.naturalKeys = naturalKeys
    self.ownTables = ownTables
  }
}

/// A reason why a table can't be synced as it is, and what to do about it (tables 1.1).
public struct SchemaProblem: Error, Hashable, Sendable, CustomStringConvertible {
  /// The words of `cairn init --json` (tables 1.1).
  public enum Code: String, Hashable, Sendable, CaseIterable {
    case noPrimaryKey, virtualTable, view, shadowTable, reservedName, noSuchTable, parentNotSynced, parentInvalid
    case keyCycle, needsExtension, keyKindDiffers, nameTooLong, file
  }

  public var code: Code
  public var table: String
  public var column: String?
  public var reason: String
  public var remedy: String

  public init(_ code: Code, table: String, column: String? = nil, reason: String, remedy: String) {
    self.code = code
    self.table = table
    self.column = column
    self.reason = reason
    self.remedy = remedy
  }

  /// `table[.column]: reason: remedy`
  public var description: String { "\(table)\(column.map { "." + $0 } ?? ""): \(reason): \(remedy)" }
}

/// Something that the user should know, but that stops nothing.
public struct SchemaWarning: Hashable, Sendable, CustomStringConvertible {
  /// What the warning is about.
  public enum Code: String, Hashable, Sendable {
    /// A user trigger writes synced rows and does not ask where the write comes from.
    case triggerWritesSynced
    /// Rows refer to parents that are not there.
    case foreignKeyViolations
    /// Deletes from other devices remove rows of a table that is not synced.
    case excludedTableCascades
  }

  public var code: Code
  public var table: String
  public var column: String?
  public var message: String

  public var description: String { message }
}

/// What planning found: plans of the tables that can be synced, and every reason against the others.
public struct PlanningResult: Hashable, Sendable {
  /// By ascending number. Tables with problems are not among them.
  public var plans: [TablePlan]
  /// Tables that were left out without a word.
  public var skipped: [String]
  /// Everything that `init` refuses.
  public var problems: [SchemaProblem]
  /// Names in the options that are no tables: wrong usage, exit code 2.
  public var usageErrors: [SchemaProblem]
  public var warnings: [SchemaWarning]
  /// Remembered tables as they are now, new ones included, by ascending number.
  public var remembered: [RememberedTable]
  /// Remembered tables that can't be synced until the user has acted (tables T30).
  public var suspended: [SuspendedTable]
}

/// A table that is neither sent nor applied until its schema is repaired (tables T30).
public struct SuspendedTable: Hashable, Sendable {
  /// What happened to the table.
  public enum Reason: String, Hashable, Sendable {
    case dropped, primaryKeyChanged
  }
  public var number: Int
  public var name: String
  public var reason: Reason
}
