import CairnRecords
import CairnSQLite

/// Empties and fills synced tables as a whole, where a file changes what it holds (tables L2, L10, L11).
///
/// Triggers of the user fire, as they do for fetched rows: what they keep of the rows elsewhere, such as an index for
/// full-text search, stays right (tables M17). What they prevent is done without them, and in the end the tables hold
/// the rows that were asked for and no others. Foreign keys do nothing meanwhile: rows of tables that are not synced
/// stay. What capture logs is of no use to anyone: callers empty the log.
struct WholeTables {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// Callers hold a transaction of `file`.
  func empty(_ plans: [TablePlan]) throws {
    try whileApplying {
      for plan in plans.reversed() { try write(plan, .delete, deletion(plan)) }
      try file.setTriggers(false)
      // What a trigger kept, or has put into a table that was empty already.
      for plan in plans { try file.connection.execute(deletion(plan)) }
    }
  }

  /// Where the rows of a table come from.
  struct Source {
    var plan: TablePlan
    /// A table whose columns have names of columns of `plan`.
    var table: String
    var columns: [String]
  }

  /// Fills empty tables; columns that a source lacks get their defaults. Callers hold a transaction of `file`.
  func fill(from sources: [Source]) throws {
    try whileApplying {
      for source in sources { try write(source.plan, .insert, insertion(source)) }
      guard sources.contains(where: \.plan.writesElsewhere) else { return }
      try file.setTriggers(false)
      for source in sources where try differs(source) {
        try file.connection.execute(deletion(source.plan))
        try file.connection.execute(insertion(source))
      }
    }
  }

  // MARK: Statements

  private func deletion(_ plan: TablePlan) -> String { "DELETE FROM main.\(SQLText.quoted(plan.name))" }

  private func insertion(_ source: Source) -> String {
    let columns = source.columns.map(SQLText.quoted).joined(separator: ", ")
    return "INSERT INTO main.\(SQLText.quoted(source.plan.name))(\(columns)) \(selection(source, of: source.table))"
  }

  private func selection(_ source: Source, of table: String) -> String {
    "SELECT \(source.columns.map(SQLText.quoted).joined(separator: ", ")) FROM main.\(SQLText.quoted(table))"
  }

  private func differs(_ source: Source) throws -> Bool {
    let present = selection(source, of: source.plan.name)
    let wanted = selection(source, of: source.table)
    for query in ["\(present) EXCEPT \(wanted)", "\(wanted) EXCEPT \(present)"]
    where try file.connection.scalar("SELECT 1 FROM (\(query)) LIMIT 1") != nil {
      return true
    }
    return false
  }

  // MARK: Triggers

  private func whileApplying(_ body: () throws -> Void) throws {
    try file.connection.withoutForeignKeys {
      try file.connection.run("UPDATE cairn_state SET applying = 1")
      defer { file.connection.clearCache() }
      let result = Result { try body() }
      try file.setTriggers(true)
      try result.get()
      try file.connection.run("UPDATE cairn_state SET applying = 0")
    }
  }

  private func write(_ plan: TablePlan, _ operation: LogLayout.Operation, _ sql: String) throws {
    let write = RowWrite(table: plan.number, key: .null, operation: operation)
    let hasTriggers = plan.writesElsewhere || plan.deletesWriteElsewhere
    if hasTriggers && !file.refusedWrites.contains(write) {
      try file.setTriggers(true)
      do {
        return try file.savepoint { try file.connection.execute(sql) }
      } catch let error as SQLiteError where !error.isDiskFailure && !error.isBusy {
        guard file.connection.isInTransaction else { throw TransactionUndone(write: write) }
      }
    }
    try file.setTriggers(false)
    try file.connection.execute(sql)
  }
}
