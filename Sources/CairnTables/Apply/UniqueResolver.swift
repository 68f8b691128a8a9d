import CairnRecords
import CairnSQLite

/// Decides which of two rows stays when a UNIQUE constraint allows only one: the one with the smaller (creation clock,
/// record name), on every device (tables M10). The other is parked and returns when the obstacle goes.
struct UniqueResolver {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  /// Runs a write of a fetched row. Rows in its way that must yield are put aside, and the write is tried again.
  /// Returns why the row could not be written.
  func writing(
    _ version: FetchedVersion, life: FieldClock, key: Value, row: [Value], _ write: () throws -> RowWriter.Refusal?
  ) throws -> WriteRefused? {
    switch try write() {
    case nil: return nil
    case .other(let reason, let detail)?: return WriteRefused(reason, detail)
    case .unique?: break
    }
    let plan = version.plan
    let obstacles = try conflictingKeys(plan, key: key, row: row)
    if obstacles.isEmpty { return WriteRefused(.unique, "another row has the same unique values") }
    var toMove: [(record: RecordRow, name: String)] = []
    for obstacle in obstacles {
      guard let record = try file.records.find(plan.number, key: obstacle), record.isAlive,
        let name = try file.names.name(of: record, plan)
      else { return WriteRefused(.unique, "a row without record has the same unique values") }
      // A newer version of the obstacle comes with the set: it may free the value.
      let isChanging = applier.isWaiting(name) != nil
      if !isChanging && (record.clocks.life, name) < (life, version.name) {
        return WriteRefused(.unique, "\(name) has the same unique values and is older", waitsFor: name)
      }
      toMove.append((record, name))
    }
    for (record, name) in toMove {
      if applier.isWaiting(name) != nil, try stepAside(record, name, plan) { continue }
      // An earlier one may have taken it along.
      guard let current = try file.names.record(named: name, plan), !current.flags.contains(.parked) else { continue }
      let detail = "\(version.name) has the same unique values and is older"
      if let problem = try Eviction(applier).putAside(current, plan, .unique, detail, waitsFor: version.name) {
        return WriteRefused(.unique, problem, waitsFor: name)
      }
    }
    return try writeAgain(version, row: row, toMove[0].name, write)
  }

  private func writeAgain(
    _ version: FetchedVersion, row: [Value], _ obstacle: String, _ write: () throws -> RowWriter.Refusal?
  ) throws -> WriteRefused? {
    let cells = try file.cells(of: row, version.plan).all
    // The row may depend on one that just left.
    if let missing = try ParentCheck(applier).missingParent(
      of: row, cells, version, changed: Array(version.plan.columns.indices))
    {
      return WriteRefused(.missingParent, "\(missing.name) is not here", waitsFor: missing.name)
    }
    switch try write() {
    case nil: return nil
    case .other(let reason, let detail)?: return WriteRefused(reason, detail)
    case .unique?: return WriteRefused(.unique, "another row has the same unique values", waitsFor: obstacle)
    }
  }

  /// Keys of the rows whose unique values a row would take.
  private func conflictingKeys(_ plan: TablePlan, key: Value, row: [Value]) throws -> [Value] {
    var keys: Set<Value> = []
    for index in plan.uniqueIndexes {
      let statement = try file.connection.cached(Self.query(plan, index))
      defer { statement.reset() }
      // Columns behind the last one that the index names have no parameter.
      for (i, value) in row.prefix(statement.parameterCount).enumerated() { try statement.bind(Int32(i + 1), value) }
      while try statement.step() {
        let parts = plan.keyColumns.indices.map { statement.value(Int32($0)) }
        if let found = RowKey.canonical(parts, plan), found != key { keys.insert(found) }
      }
    }
    return keys.sorted { MergeCell.precedes(.value($0), .value($1)) }
  }

  /// Selects the keys of rows that have the same index entry as the row in the parameters.
  private static func query(_ plan: TablePlan, _ index: UniqueIndexPlan) -> String {
    let columns = plan.columns.map { SQLText.quoted($0.name) }
    let row = "(SELECT " + columns.enumerated().map { "?\($0 + 1) AS \($1)" }.joined(separator: ", ") + ")"
    var conditions = index.terms.map { term in
      switch term {
      case .column(let column, let collation):
        "\(columns[column]) = ?\(column + 1) COLLATE \(SQLText.quoted(collation))"
      case .expression(let text, let collation):
        "(\(text)) = (SELECT (\(text)) FROM \(row)) COLLATE \(SQLText.quoted(collation))"
      }
    }
    if let predicate = index.predicate { conditions.append("(\(predicate)) AND (SELECT (\(predicate)) FROM \(row))") }
    let key = plan.keyColumns.map { columns[$0] }.joined(separator: ", ")
    return "SELECT \(key) FROM main.\(SQLText.quoted(plan.name)) WHERE \(conditions.joined(separator: " AND "))"
  }

  /// Clears the unique columns of a row whose newer version is about to be applied, so that values can be swapped
  /// inside a set (tables M10). Returns false where the columns can't be cleared.
  private func stepAside(_ record: RecordRow, _ name: String, _ plan: TablePlan) throws -> Bool {
    let terms = plan.uniqueIndexes.flatMap(\.terms)
    let referenced = Set(file.catalog.foreignKeys(to: plan.number).flatMap(\.foreignKey.parentColumns))
    var columns: Set<Int> = []
    for term in terms {
      guard case .column(let column, _) = term else { return false }
      // ON UPDATE actions must not follow a value that is away for a moment.
      if referenced.contains(column) && !plan.columns[column].isKey { return false }
      if !plan.columns[column].isKey && !plan.columns[column].isNotNull { columns.insert(column) }
    }
    let list = columns.sorted()
    guard !list.isEmpty, let row = try file.row(plan, record.key) else { return false }
    let written = try applier.writer.update(plan, record.key, list, list.map { _ in .null })
    if written != nil { return false }
    var cleared = applier.progress.cleared[name] ?? [:]
    for column in list where cleared[column] == nil { cleared[column] = row[column] }
    applier.progress.cleared[name] = cleared
    return true
  }
}

/// Why a row could not be written.
struct WriteRefused {
  var reason: ParkedReason
  var detail: String
  /// Name of the record that is in the way.
  var waitsFor: String?

  init(_ reason: ParkedReason, _ detail: String, waitsFor: String? = nil) {
    self.reason = reason
    self.detail = detail
    self.waitsFor = waitsFor
  }
}
