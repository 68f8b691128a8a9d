import CairnRecords
import CairnSQLite

/// Reading rows of the user's tables by their canonical keys.
extension FileContext {
  func statements(_ plan: TablePlan) -> RowStatements {
    if let statements = rowStatements[plan.number] { return statements }
    let statements = RowStatements(plan, connection, hasConflictClauses: hasConflictClauses(plan))
    rowStatements[plan.number] = statements
    return statements
  }

  /// A table whose declaration can't be read counts as having some: that only makes its writes stricter.
  private func hasConflictClauses(_ plan: TablePlan) -> Bool {
    let found = try? connection.scalar(
      """
      SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE
        AND sql NOT LIKE '%on%conflict%'
      """, .text(plan.name))
    return found == nil
  }

  /// The codec of a table's records, made once.
  func codec(_ plan: TablePlan) -> RecordBodyCodec {
    if let codec = codecs[plan.number] { return codec }
    let codec = RecordBodyCodec(plan)
    codecs[plan.number] = codec
    return codec
  }

  func rowExists(_ plan: TablePlan, _ key: Value) throws -> Bool {
    let statement = try statements(plan).exists.get()
    defer { statement.reset() }
    try bindKey(key, plan, to: statement)
    return try statement.step()
  }

  /// The row's values by column; nil when there is no such row.
  func row(_ plan: TablePlan, _ key: Value) throws -> [Value]? {
    let statement = try statements(plan).selectRow.get()
    defer { statement.reset() }
    try bindKey(key, plan, to: statement)
    guard try statement.step() else { return nil }
    return plan.columns.indices.map { statement.value(Int32($0)) }
  }

  func columnValue(_ plan: TablePlan, _ column: Int, _ key: Value) throws -> Value? {
    try row(plan, key)?[column]
  }

  /// Binds a canonical key to the first parameters.
  func bindKey(_ key: Value, _ plan: TablePlan, to statement: Statement) throws {
    guard plan.keyColumns.count > 1 else { return try statement.bind(1, key) }
    for (i, part) in RowKey.parts(of: key, plan).enumerated() { try statement.bind(Int32(i + 1), part) }
  }

  /// What is known of a record after its row was deleted at `clock`; nil when the server never heard of it
  /// (tables F7, 3.2).
  func dead(_ old: RecordRow, _ plan: TablePlan, at clock: FieldClock) throws -> RecordRow? {
    var row = old
    row.clocks = FieldClocks(life: 0, columns: [])
    row.deletedAt = clock
    row.kept = nil
    row.dirty = .none
    row.flags.remove(.parked)
    row.raiseRevision()
    row.life = .deleted
    if plan.keyKind == .mapped {
      row.key = old.name
    } else if plan.isNamedByParent, old.isAlive, let name = try names.name(of: old, plan) {
      row.key = .text(name)
      row.name = .text(name)
    }
    if old.tag == nil && !old.flags.contains(.attempted) {
      // Never in a batch: forgotten, unless the server's tombstone must still be known.
      guard old.life == .reinserted else { return nil }
      row.pending = .none
      row.reason = nil
      row.retryAt = nil
      return row
    }
    row.pending = .delete
    return row
  }
}
