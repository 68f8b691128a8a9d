import CSQLite
import CairnRecords
import CairnSQLite

/// Writes fetched values into the user's rows.
///
/// The engine's connection has triggers switched off while it writes tables that no user trigger watches: such writes
/// are not captured and cost nothing. Where the user has triggers they must fire (tables M17): then capture sees the
/// write too, and its entry for exactly this row is taken out of the log again; what the triggers did elsewhere stays
/// in the log as a local edit (tables T3).
struct RowWriter {
  /// Why a row could not be written.
  enum Refusal {
    case unique
    case other(ParkedReason, String)
  }

  let file: FileContext

  // MARK: Writing

  func insert(_ plan: TablePlan, _ key: Value, _ columns: [Int], _ values: [Value]) throws -> Refusal? {
    let sql = file.statements(plan).insert(columns)
    return try write(plan, key, .insert) {
      let statement = try file.connection.cached(sql)
      try statement.run(values)
    }
  }

  func update(_ plan: TablePlan, _ key: Value, _ columns: [Int], _ values: [Value]) throws -> Refusal? {
    let sql = file.statements(plan).update(columns)
    return try write(plan, key, .update) {
      let statement = try file.connection.cached(sql)
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
      let statement = try file.connection.cached(file.statements(plan).delete)
      try file.bindKey(key, plan, to: statement)
      try statement.run()
    }
  }

  // MARK: Capture

  private func write(
    _ plan: TablePlan, _ key: Value, _ operation: LogLayout.Operation, _ body: () throws -> Void
  ) throws -> Refusal? {
    try file.setTriggers(plan.writesElsewhere)
    let mark = plan.writesElsewhere ? try lastLogID() : 0
    do {
      try body()
    } catch let error as SQLiteError where error.isConstraint && file.connection.isInTransaction {
      return Self.refusal(error)
    } catch let error as SQLiteError where error.code == SQLITE_MISMATCH && file.connection.isInTransaction {
      return .other(.type, error.message)
    }
    if plan.writesElsewhere { try removeOwnEntry(plan, key, operation, after: mark) }
    return nil
  }

  private func lastLogID() throws -> Int64 {
    try file.connection.scalar("SELECT max(id) FROM cairn_log")?.integer ?? 0
  }

  /// Takes the entries that this write itself caused out of the log; those of the user's triggers stay.
  private func removeOwnEntry(
    _ plan: TablePlan, _ key: Value, _ operation: LogLayout.Operation, after mark: Int64
  ) throws {
    let statement = try file.connection.cached("SELECT * FROM cairn_log WHERE id > ?1 ORDER BY id")
    try statement.bind(1, mark)
    var own: [Int64] = []
    var found = false
    while try statement.step() {
      guard let entry = LogEntry(statement, file.catalog), entry.shape.table == plan.number else { continue }
      if entry.operation == .begin {
        own.append(entry.id)
        continue
      }
      guard RowKey.canonical(entry.key, plan) == key else { continue }
      // A key spelled otherwise (NOCASE) is logged as a change of key.
      let isOwnKind = entry.operation == operation || entry.operation == .rekey && operation == .update
      if entry.operation == .candidate || entry.operation == .danger {
        own.append(entry.id)
      } else if !found && isOwnKind {
        own.append(entry.id)
        found = true
      }
    }
    for id in own { try file.connection.run("DELETE FROM cairn_log WHERE id = ?", .integer(id)) }
  }

  static func refusal(_ error: SQLiteError) -> Refusal {
    switch error.extendedCode {
    case 2067, 1555, 2579: .unique  // SQLITE_CONSTRAINT_UNIQUE, _PRIMARYKEY, _ROWID
    case 1299: .other(.notNull, error.message)
    case 1811: .other(.trigger, error.message)
    case 3091: .other(.type, error.message)  // SQLITE_CONSTRAINT_DATATYPE
    case 787: .other(.missingParent, error.message)
    default: .other(.check, error.message)
    }
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
