import CairnRecords
import CairnSQLite

/// What a changed table means for its records (tables T26, T28, T29, V2–V4).
struct SchemaChange {
  private let file: FileContext
  private let plan: TablePlan
  private let task: UpkeepTask

  init(_ file: FileContext, _ plan: TablePlan, _ task: UpkeepTask) {
    self.file = file
    self.plan = plan
    self.task = task
  }

  /// Rows per transaction.
  private static let chunk = 500

  /// Does the work and crosses it off. It may have been done in part before.
  func takeUp() throws {
    try Folder.fold(file)
    switch task.kind {
    case .columns: break
    case .gap:
      // Triggers were missing: rows without record are inserts, records without row are missing, not deleted.
      try RowTakeUp(file: file, clock: task.time).run(plan)
    case .new: try NewTable(file, plan, time: task.time).takeUp()
    }
    let added = plan.columns.indices.filter { plan.isField($0) && task.columns.contains(plan.columns[$0].wireName) }
    if !added.isEmpty { try takeUpColumns(added) }
    try file.transaction {
      if task.kind == .gap {
        try GapComparison(file).begin(plan, at: task.time)
        try MissingRows(file).count(plan)
      }
      try file.outcomes.add(.schema, table: plan.name, sentence)
      try task.remove(file.settings)
    }
  }

  private var sentence: String {
    switch task.kind {
    case .columns: "the table's schema has changed: capture is up to date"
    case .gap: "capture was off: it is back, and the next sync compares the rows with the server's"
    case .new: "the table is synced from now on"
    }
  }

  // MARK: Columns

  /// Kept fields move into new columns; rows that hold something else than the default count as set with clock 1
  /// (tables T26, V2).
  private func takeUpColumns(_ added: [Int]) throws {
    var cursor: Value?
    while true {
      let more = try file.transaction {
        // An edit of a new column must be known before a kept value could take its place.
        try Folder.fold(file)
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
    for column in added {
      let name = plan.columns[column].wireName
      if let kept = changed.kept, kept.names.contains(name) {
        try moveIn(kept, name, column, &changed)
      } else if changed.clocks.clock(of: column) == nil, try row[column] != defaultValue(column) {
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

  /// A kept field becomes the column's value, as if it were fetched now. One that needs an asset or a parent is left
  /// for the fetch that follows.
  private func moveIn(_ kept: KeptFields, _ name: String, _ column: Int, _ record: inout RecordRow) throws {
    guard let value = try value(kept.field(name, clock: record.clocks.columns[column]), column) else {
      return try GapComparison(file).begin(plan, at: task.time)
    }
    if let refusal = try RowWriter(file: file).update(plan, record.key, [column], [value]) {
      // What the table does not accept is parked when the record is fetched again.
      if case .other(_, let detail) = refusal {
        try file.outcomes.add(
          .error, table: plan.name, "a kept value of \(name) does not fit the new column: \(detail)")
      }
      return try GapComparison(file).begin(plan, at: task.time)
    }
    record.kept = kept.without(name)
  }

  /// Nil for what can't be had now.
  private func value(_ field: RecordContent.KeptField, _ column: Int) throws -> Value? {
    let content: FieldContent? =
      if let text = field.tagged {
        ValueCodec.decode(tagged: text, asset: field.asset, plan.columns[column])
      } else if let value = field.field {
        ValueCodec.decode(value, plan.columns[column])
      } else {
        .null
      }
    switch content {
    case .value(let plain)?: return plain
    case .reference(let target)?: return try file.names.integer(of: target)
    case .large?, nil: return nil
    }
  }

  private func defaultValue(_ column: Int) throws -> Value {
    guard let sql = plan.columns[column].defaultSQL else { return .null }
    let value = try file.connection.scalar("SELECT \(sql)") ?? .null
    return AffinityRules.stored(value, in: plan.columns[column].affinity)
  }
}
