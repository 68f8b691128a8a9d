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
    _ version: FetchedVersion, key: Value, row: [Value], _ write: () throws -> RowWriter.Refusal?
  ) throws -> (ParkedReason, String)? {
    switch try write() {
    case nil: return nil
    case .other(let reason, let detail)?: return (reason, detail)
    case .unique?: break
    }
    let obstacles = try conflictingKeys(version.plan, key: key, row: row)
    var toMove: [RecordRow] = []
    for obstacle in obstacles {
      guard let record = try file.records.find(version.plan.number, key: obstacle), record.isAlive else {
        return (.unique, "a row without record has the same unique values")
      }
      let name = try file.names.name(of: record, version.plan) ?? ""
      // A newer version of the obstacle comes with the set: it may free the value.
      let isChanging = applier.isWaiting(name) != nil
      if !isChanging && (record.clocks.life, name) < (version.clocks.life, version.name) {
        return (.unique, "\(name) has the same unique values and is older")
      }
      toMove.append(record)
    }
    if obstacles.isEmpty { return (.unique, "another row has the same unique values") }
    for record in toMove {
      let name = try file.names.name(of: record, version.plan) ?? ""
      if applier.isWaiting(name) != nil, try stepAside(record, version.plan) { continue }
      if let problem = try Eviction(applier).putAside(record, version.plan, .unique, "\(version.name) is older") {
        return (.unique, problem)
      }
    }
    switch try write() {
    case nil: return nil
    case .other(let reason, let detail)?: return (reason, detail)
    case .unique?: return (.unique, "another row has the same unique values")
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
  private func stepAside(_ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    let columns = Set(
      plan.uniqueIndexes.flatMap(\.terms).compactMap { term -> Int? in
        guard case .column(let column, _) = term, !plan.columns[column].isKey, !plan.columns[column].isNotNull else {
          return nil
        }
        return column
      }
    ).sorted()
    guard !columns.isEmpty else { return false }
    guard let row = try file.row(plan, record.key), let name = try file.names.name(of: record, plan),
      try applier.writer.update(plan, record.key, columns, columns.map { _ in .null }) == nil
    else { return false }
    applier.cleared[name] = Dictionary(uniqueKeysWithValues: columns.map { ($0, row[$0]) })
    return true
  }
}
