import CairnRecords
import CairnSQLite

/// Takes a row out of its table without deleting the record: the record is parked and comes back when it can
/// (tables M10, M11). Rows that refer to it go with it, without ON DELETE actions.
struct Eviction {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  /// A row that is to go, with everything that is needed to bring it back.
  private struct Leaving {
    var record: RecordRow
    var plan: TablePlan
    var name: String
    var whole: Record
    /// The row that takes this one along; nil for the first.
    var parent: String?
    /// What keeps it out.
    var reason: ParkedReason
    var detail: String
    var waitsFor: String?
    /// Whether `whole` has what was parked of the record already.
    var isMerged = false
  }

  private struct Stuck: Error {
    var detail: String
  }

  /// Puts a row aside, and those that refer to it.
  ///
  /// - Parameters:
  ///   - content: what to park, if that is not what the table holds; `record` then is the state of that content.
  ///   - waitsFor: name of the record that is in the way.
  /// - Returns: a sentence when the row can't be put aside; then nothing was changed.
  func putAside(
    _ record: RecordRow, _ plan: TablePlan, _ reason: ParkedReason, _ detail: String, waitsFor: String?,
    content: Record? = nil
  ) throws -> String? {
    do {
      try file.savepoint {
        let leaving = try everythingThatGoes(with: record, plan, reason, detail, waitsFor, content)
        try remove(leaving)
        for row in leaving { try park(row) }
      }
      return nil
    } catch let problem as Stuck {
      return problem.detail
    } catch RecordComposer.Obstacle.missingParent(let detail) {
      return "a row refers to one without record: \(detail)"
    }
  }

  /// The row and, level by level, those that refer to it. Contents are read before anything is removed: rows may refer
  /// to each other in a circle.
  private func everythingThatGoes(
    with record: RecordRow, _ plan: TablePlan, _ reason: ParkedReason, _ detail: String, _ waitsFor: String?,
    _ content: Record?
  ) throws -> [Leaving] {
    var result: [Leaving] = []
    var seen: Set<String> = []
    guard let name = try file.names.name(of: record, plan), let row = try wholeRow(plan, record, name) else {
      return []
    }
    let composer = RecordComposer(file)
    result.append(
      Leaving(
        record: record, plan: plan, name: name,
        whole: try content ?? composer.whole(record, plan, row: row, name: name),
        reason: reason, detail: detail, waitsFor: waitsFor, isMerged: content != nil))
    seen.insert(name)
    var rows = [row]
    var next = 0
    while next < result.count {
      let (parent, parentRow) = (result[next], rows[next])
      next += 1
      for (child, childPlan) in try file.children(of: parentRow, parent.plan) {
        guard let name = try file.names.name(of: child, childPlan), seen.insert(name).inserted,
          let row = try wholeRow(childPlan, child, name)
        else { continue }
        rows.append(row)
        result.append(
          Leaving(
            record: child, plan: childPlan, name: name,
            whole: try composer.whole(child, childPlan, row: row, name: name),
            parent: parent.name, reason: .missingParent, detail: "\(parent.name) is parked", waitsFor: parent.name))
      }
    }
    return result
  }

  /// The row, with the values that were cleared for a moment (tables M10).
  private func wholeRow(_ plan: TablePlan, _ record: RecordRow, _ name: String) throws -> [Value]? {
    guard var row = try file.row(plan, record.key) else { return nil }
    for (column, value) in applier.progress.cleared.removeValue(forKey: name) ?? [:] { row[column] = value }
    return row
  }

  private func remove(_ leaving: [Leaving]) throws {
    for row in leaving.reversed() where try file.rowExists(row.plan, row.record.key) {
      if case .other(_, let problem)? = try applier.writer.delete(row.plan, row.record.key) {
        throw Stuck(detail: problem)
      }
    }
  }

  private func park(_ row: Leaving) throws {
    // By its key: the parent that is a part of the name may have been parked a moment ago.
    guard let current = try file.records.find(row.plan.number, key: row.record.key) else { return }
    var parked = row.record
    parked.flags.insert(.parked)
    if row.plan.keyKind == .mapped {
      if case .integer(let integer) = parked.key { parked.wish = parked.wish ?? integer }
      parked.key = parked.name
    } else if row.plan.isNamedByParent {
      parked.key = .text(row.name)
      parked.name = .text(row.name)
    }
    try file.records.update(current, to: parked)
    applier.noteReleased(row.name)
    let content = row.isMerged ? row.whole : try joinedWithWaiting(row) ?? row.whole
    try applier.park(content, row.plan, row.reason, row.detail, waitsFor: row.waitsFor)
  }

  /// A version of the row was parked while the row kept older values (tables M9): now that the row has left, what is
  /// parked is the merge of both.
  private func joinedWithWaiting(_ row: Leaving) throws -> Record? {
    guard let waiting = try file.inbox.find(row.name)?.record,
      case .success(let version) = FetchedVersion.decode(waiting, file.codec(row.plan)),
      case .success(let own) = FetchedVersion.decode(row.whole, file.codec(row.plan)),
      let record = try file.names.record(named: row.name, row.plan)
    else { return nil }
    let joined = MergedContent(local: record, own, with: version)
    var state = joined.record
    state.tag = record.tag
    state.flags.insert(.parked)
    try file.records.update(record, to: state)
    return joined.version(file).record
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
  func cells(of row: [Value], _ plan: TablePlan) throws -> LocalCells {
    var cells = LocalCells(row)
    for (column, target) in plan.localTargets {
      if case .integer(let integer) = row[column], let name = try names.name(ofMapped: integer, in: target) {
        cells.refer(column, to: name)
      }
    }
    return cells
  }
}
