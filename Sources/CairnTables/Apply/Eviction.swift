import CairnRecords
import CairnSQLite

/// Takes a row out of its table without deleting the record: the record is parked and comes back when it can
/// (tables M10, M11). Rows that refer to it go with it, without ON DELETE actions.
struct Eviction {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  /// Returns a sentence when the row can't be put aside; then nothing was changed.
  func putAside(_ record: RecordRow, _ plan: TablePlan, _ reason: ParkedReason, _ detail: String) throws -> String? {
    do {
      try file.connection.savepoint { try move(record, plan, reason, detail, waitsFor: nil) }
      return nil
    } catch let problem as Stuck {
      return problem.detail
    }
  }

  private struct Stuck: Error {
    var detail: String
  }

  private func move(
    _ record: RecordRow, _ plan: TablePlan, _ reason: ParkedReason, _ detail: String, waitsFor: String?
  ) throws {
    guard let row = try file.row(plan, record.key), let name = try file.names.name(of: record, plan) else { return }
    let whole = try RecordComposer(file).whole(record, plan, row: row, name: name)
    for (child, childPlan) in try file.children(of: row, plan)
    where child.key != record.key || childPlan.number != plan.number {
      try move(child, childPlan, .missingParent, "\(name) is parked", waitsFor: name)
    }
    if case .other(_, let problem)? = try applier.writer.delete(plan, record.key) { throw Stuck(detail: problem) }
    var parked = record
    parked.flags.insert(.parked)
    if plan.keyKind == .mapped {
      if case .integer(let integer) = record.key { parked.wish = integer }
      parked.key = record.name
    } else if plan.isNamedByParent {
      parked.key = .text(name)
      parked.name = .text(name)
    }
    try file.records.update(record, to: parked)
    try applier.park(whole, plan, reason, detail, waitsFor: waitsFor)
  }
}

extension FileContext {
  /// The live records whose rows refer to a row by a foreign key.
  func children(of row: [Value], _ plan: TablePlan) throws -> [(RecordRow, TablePlan)] {
    var result: [(RecordRow, TablePlan)] = []
    for (number, foreignKey) in catalog.foreignKeys(to: plan.number) {
      guard let child = catalog.plan(number) else { continue }
      for key in try keys(of: child, referringTo: row, foreignKey) {
        if let record = try records.find(number, key: key), record.isAlive { result.append((record, child)) }
      }
    }
    return result
  }

  /// The canonical keys of the rows of `child` that refer to `row` by one foreign key.
  func keys(of child: TablePlan, referringTo row: [Value], _ foreignKey: ForeignKeyPlan) throws -> [Value] {
    let values = foreignKey.parentColumns.map { row[$0] }
    if values.contains(.null) { return [] }
    let conditions = foreignKey.columns.enumerated().map { "\(SQLText.quoted(child.columns[$1].name)) = ?\($0 + 1)" }
    let key = child.keyColumns.map { SQLText.quoted(child.columns[$0].name) }
    let statement = try connection.cached(
      """
      SELECT \(key.joined(separator: ", ")) FROM main.\(SQLText.quoted(child.name))
      WHERE \(conditions.joined(separator: " AND "))
      """)
    defer { statement.reset() }
    try statement.bind(values)
    var keys: [Value] = []
    while try statement.step() {
      let parts = key.indices.map { statement.value(Int32($0)) }
      if let canonical = RowKey.canonical(parts, child) { keys.append(canonical) }
    }
    return keys
  }

  /// The row's values as the merge compares them: local foreign keys as the records that they stand for.
  func cells(of row: [Value], _ plan: TablePlan) throws -> [MergeCell] {
    var cells: [MergeCell] = []
    cells.reserveCapacity(row.count)
    for (column, value) in row.enumerated() {
      if let target = plan.columns[column].localTarget, case .integer(let integer) = value,
        let name = try names.name(ofMapped: integer, in: target)
      {
        cells.append(.reference(name))
      } else {
        cells.append(.value(value))
      }
    }
    return cells
  }
}
