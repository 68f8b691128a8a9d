import CairnRecords
import CairnSQLite

/// What a changed table means for its records (tables T26, T28, T29, V2, V3).
struct SchemaChange {
  private let file: FileContext
  private let plan: TablePlan
  private let match: TableMatch

  init(_ file: FileContext, _ plan: TablePlan, _ match: TableMatch) {
    self.file = file
    self.plan = plan
    self.match = match
  }

  /// Rows per transaction.
  private static let chunk = 500

  func takeUp() throws {
    if match.isGap {
      // Triggers were missing: rows without record are inserts, records without row are missing, not deleted.
      try RowTakeUp(file: file, clock: file.clock.wallClock).run(plan)
    }
    let added = plan.columns.indices.filter { i in match.columns.indices.contains(i) ? match.columns[i] == nil : true }
    if !added.isEmpty { try takeUpColumns(added) }
    try file.outcomes.add(.schema, table: plan.name, "the table's schema has changed: capture is up to date")
  }

  /// Kept fields move into new columns; rows that hold something else than the default count as set with clock 1
  /// (tables T26, V2).
  private func takeUpColumns(_ added: [Int]) throws {
    var cursor: Value?
    while true {
      let more = try file.transaction {
        let rows = try file.records.all(table: plan.number, after: cursor, limit: Self.chunk)
        cursor = rows.last?.key
        for record in rows where record.isAlive { try takeUp(record, added) }
        return rows.count == Self.chunk
      }
      if !more { return }
    }
  }

  private func takeUp(_ record: RecordRow, _ added: [Int]) throws {
    guard let row = try file.row(plan, record.key) else { return }
    var changed = record
    var edited: [String] = []
    for column in added where plan.isField(column) {
      let name = plan.columns[column].wireName
      if let kept = changed.kept, changed.clocks.clock(of: column) != nil {
        try moveIn(kept, name, column, &changed)
      } else if try row[column] != defaultValue(column) {
        changed.clocks.columns[column] = 1
        edited.append(name)
      }
    }
    if !edited.isEmpty {
      if changed.pending != .save { changed.dirty = .none }
      changed.pending = .save
      for name in edited { changed.dirty.insert(name) }
      changed.raiseRevision()
    }
    try file.records.update(record, to: changed)
  }

  /// A kept field becomes the column's value, as if it were fetched now.
  private func moveIn(_ kept: KeptFields, _ name: String, _ column: Int, _ record: inout RecordRow) throws {
    var rest = KeptFields()
    for other in kept.names where other != name { rest.take(other, from: kept) }
    record.kept = rest.isEmpty ? nil : rest
    let field = kept.field(name, clock: record.clocks.columns[column])
    let content: FieldContent? =
      if let text = field.tagged {
        ValueCodec.decode(tagged: text, asset: field.asset, plan.columns[column])
      } else if let value = field.field {
        ValueCodec.decode(value, plan.columns[column])
      } else {
        .null
      }
    let value: Value
    switch content {
    case .value(let plain)?: value = plain
    case .reference(let target)?:
      guard let integer = try file.names.integer(of: target) else { return }
      value = integer
    case .large?, nil: return
    }
    if case .other(_, let detail)? = try RowWriter(file: file).update(plan, record.key, [column], [value]) {
      try file.outcomes.add(.error, table: plan.name, "a kept value of \(name) does not fit the new column: \(detail)")
    }
  }

  private func defaultValue(_ column: Int) throws -> Value {
    guard let sql = plan.columns[column].defaultSQL else { return .null }
    return try file.connection.scalar("SELECT \(sql)") ?? .null
  }
}
