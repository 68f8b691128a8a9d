import CairnRecords
import CairnSQLite

/// Makes records for rows that were there before capture: in batches, without touching the rows, so that no user
/// trigger fires and no edit time changes (tables U8, L1).
struct RowTakeUp {
  /// Rows per transaction.
  static let chunk = 2_000

  let file: FileContext
  /// The clock that every field of the rows gets.
  let clock: FieldClock
  /// Called with the number of rows after each batch.
  var progress: ((Int) -> Void)?

  /// Takes up every row of a table that has no record.
  func run(_ plan: TablePlan) throws {
    try countNullKeys(plan)
    var cursor: [Value]?
    while true {
      let keys = try nextKeys(plan, after: cursor)
      if keys.isEmpty { return }
      try file.transaction {
        for parts in keys {
          guard let key = RowKey.canonical(parts, plan) else { continue }
          var row = RecordRow(table: plan.number, key: key, clocks: FieldClocks(uniform: clock, plan: plan))
          row.name =
            plan.keyKind == .mapped ? .blob(file.newUUID(plan, key)) : try file.names.storedName(for: key, plan)
          row.pending = .save
          row.dirty = .all
          row.revision = 1
          if try !file.records.insert(row) { try meet(key, plan) }
        }
      }
      progress?(keys.count)
      cursor = keys.last
    }
  }

  /// The row's key has a record: one that died makes the row a reinsert (tables 3.2).
  private func meet(_ key: Value, _ plan: TablePlan) throws {
    guard let known = try file.records.find(plan.number, key: key), !known.isAlive else { return }
    var rules = FoldRules(file)
    try rules.insert(plan, key, at: clock)
  }

  private func nextKeys(_ plan: TablePlan, after cursor: [Value]?) throws -> [[Value]] {
    let columns = plan.keyColumns.map { SQLText.quoted(plan.columns[$0].name) }
    let list = columns.joined(separator: ", ")
    let notNull = columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    let places = columns.indices.map { "?\($0 + 2)" }.joined(separator: ", ")
    let later = cursor == nil ? "" : "AND (\(list)) > (\(places))"
    let statement = try file.connection.cached(
      "SELECT \(list) FROM main.\(SQLText.quoted(plan.name)) WHERE \(notNull) \(later) ORDER BY \(list) LIMIT ?1")
    defer { statement.reset() }
    try statement.bind(1, Int64(Self.chunk))
    for (i, value) in (cursor ?? []).enumerated() { try statement.bind(Int32(i + 2), value) }
    var keys: [[Value]] = []
    while try statement.step() { keys.append(columns.indices.map { statement.value(Int32($0)) }) }
    return keys
  }

  private func countNullKeys(_ plan: TablePlan) throws {
    let null = plan.keyColumns.map { "\(SQLText.quoted(plan.columns[$0].name)) IS NULL" }.joined(separator: " OR ")
    try file.connection.run(
      """
      UPDATE cairn_table SET null_keys = (SELECT count(*) FROM main.\(SQLText.quoted(plan.name)) WHERE \(null))
      WHERE number = ?
      """, .integer(Int64(plan.number)))
  }
}
