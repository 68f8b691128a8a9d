import CSQLite
import CairnRecords
import CairnSQLite

/// Writes fetched values into the user's rows.
///
/// The engine's connection has triggers switched off while it writes tables that no user trigger watches: such writes
/// are not captured and cost nothing. Where the user has triggers they must fire (tables M17): then capture sees the
/// write too, and its entries for exactly this row are taken out of the log again; what the triggers did elsewhere
/// stays in the log as a local edit (tables T3).
struct RowWriter {
  /// Why a row could not be written.
  enum Refusal: Error {
    case unique
    case other(ParkedReason, String)
  }

  let file: FileContext

  // MARK: Writing

  func insert(_ plan: TablePlan, _ key: Value, _ columns: [Int], _ values: [Value]) throws -> Refusal? {
    try write(plan, key, .insert) {
      try file.statements(plan).insert(columns).run(values)
    }
  }

  func update(_ plan: TablePlan, _ key: Value, _ columns: [Int], _ values: [Value]) throws -> Refusal? {
    try write(plan, key, .update) {
      let statement = try file.statements(plan).update(columns)
      try file.bindKey(key, plan, to: statement)
      for (i, value) in values.enumerated() { try statement.bind(Int32(plan.keyColumns.count + 1 + i), value) }
      try statement.run()
    }
  }

  /// Sets columns to their defaults.
  func setDefaults(_ plan: TablePlan, _ key: Value, _ columns: [Int]) throws -> Refusal? {
    let sets = columns.map { "\(SQLText.quoted(plan.columns[$0].name)) = (\(plan.columns[$0].defaultSQL ?? "NULL"))" }
    let sql =
      "UPDATE main.\(SQLText.quoted(plan.name)) SET \(sets.joined(separator: ", ")) "
      + "WHERE \(file.statements(plan).keyCondition)"
    return try write(plan, key, .update) {
      let statement = try file.connection.cached(sql)
      try file.bindKey(key, plan, to: statement)
      try statement.run()
    }
  }

  func delete(_ plan: TablePlan, _ key: Value) throws -> Refusal? {
    try write(plan, key, .delete) {
      let statement = try file.statements(plan).delete.get()
      try file.bindKey(key, plan, to: statement)
      try statement.run()
    }
  }

  /// Writes values that a user trigger has changed once more, without triggers (tables M17).
  func restore(_ plan: TablePlan, _ key: Value, _ columns: [Int], _ values: [Value]) throws {
    guard plan.writesElsewhere, let row = try file.row(plan, key) else { return }
    let differing = columns.indices.filter { row[columns[$0]] != values[$0] && !plan.columns[columns[$0]].isKey }
    if differing.isEmpty { return }
    try file.setTriggers(false)
    let statement = try file.statements(plan).update(differing.map { columns[$0] })
    try file.bindKey(key, plan, to: statement)
    for (i, at) in differing.enumerated() {
      // A value may come back in another storage class by the column's affinity; that is no difference of a trigger's.
      try statement.bind(Int32(plan.keyColumns.count + 1 + i), values[at])
    }
    try statement.run()
  }

  // MARK: Refusals

  private func write(
    _ plan: TablePlan, _ key: Value, _ operation: LogLayout.Operation, _ body: () throws -> Void
  ) throws -> Refusal? {
    let write = RowWrite(table: plan.number, key: key, operation: operation)
    if file.refusedWrites.contains(write) { return .other(.trigger, "a trigger rolls the transaction back") }
    try file.setTriggers(plan.writesElsewhere)
    do {
      guard plan.writesElsewhere else {
        try body()
        return nil
      }
      // RAISE(FAIL) leaves what the statement has done so far, RAISE(IGNORE) drops it without a word.
      try file.savepoint {
        let mark = try lastLogID()
        try body()
        if try file.rowExists(plan, key) == (operation == .delete) {
          throw Refusal.other(.trigger, "a trigger prevents it")
        }
        try removeOwnEntries(plan, key, operation, after: mark)
      }
      return nil
    } catch let refusal as Refusal {
      return refusal
    } catch let error as SQLiteError {
      guard error.isConstraint || error.code == SQLITE_MISMATCH else { throw error }
      guard file.connection.isInTransaction else { throw TransactionUndone(write: write) }
      return Self.refusal(error)
    }
  }

  static func refusal(_ error: SQLiteError) -> Refusal {
    if error.code == SQLITE_MISMATCH { return .other(.type, error.message) }
    switch error.extendedCode {
    case 2067, 1555, 2579: return .unique  // SQLITE_CONSTRAINT_UNIQUE, _PRIMARYKEY, _ROWID
    case 1299: return .other(.notNull, error.message)  // SQLITE_CONSTRAINT_NOTNULL
    case 1811: return .other(.trigger, error.message)  // SQLITE_CONSTRAINT_TRIGGER
    case 3091: return .other(.type, error.message)  // SQLITE_CONSTRAINT_DATATYPE
    case 787: return .other(.missingParent, error.message)  // SQLITE_CONSTRAINT_FOREIGNKEY
    default: return .other(.check, error.message)
    }
  }

  // MARK: Capture

  private func lastLogID() throws -> Int64 {
    try file.connection.scalar("SELECT max(id) FROM cairn_log")?.integer ?? 0
  }

  /// Takes the entries about the written row out of the log, those of triggers that changed it included: the merged
  /// values stand. What the triggers did to other rows stays.
  private func removeOwnEntries(
    _ plan: TablePlan, _ key: Value, _ operation: LogLayout.Operation, after mark: Int64
  ) throws {
    let statement = try file.connection.cached("SELECT * FROM cairn_log WHERE id > ?1 ORDER BY id")
    try statement.bind(1, mark)
    var own: [Int64] = []
    while try statement.step() {
      guard let entry = LogEntry(statement, file.catalog), entry.shape.table == plan.number else { continue }
      if entry.operation == .begin || entry.operation == .announcement {
        own.append(entry.id)
        continue
      }
      guard RowKey.canonical(entry.key, plan) == key else { continue }
      switch entry.operation {
      case .candidate, .danger, .update: own.append(entry.id)
      case .insert, .delete: if operation != .update { own.append(entry.id) }
      // A key spelled otherwise (NOCASE) is logged as a change of key.
      case .rekey: if operation == .update { own.append(entry.id) }
      case .begin, .announcement: continue
      }
    }
    for id in own { try file.connection.run("DELETE FROM cairn_log WHERE id = ?", .integer(id)) }
  }
}

extension FileContext {
  /// Switches triggers on this connection. Compiled statements are compiled again after a change, so callers that write
  /// many rows keep to one table after the other.
  func setTriggers(_ enabled: Bool) throws {
    guard triggersEnabled != enabled else { return }
    var now: Int32 = 0
    let code = cairn_sqlite3_db_config_int(
      connection.handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled ? 1 : 0, &now)
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: "triggers could not be switched")
    }
    triggersEnabled = enabled
  }
}
