import CairnRecords
import CairnSQLite

/// Applies one fetched version of a record: merges it into the row, or creates the row (tables M2–M6, M8–M13).
struct VersionApplier {
  enum Result {
    /// Nothing of it was new here.
    case unchanged
    case applied
    /// - record: what to park, if not the version itself.
    case parked(ParkedReason, String, waitsFor: String?, record: Record? = nil)
    /// The row was put aside and parked with the merged content.
    case putAside
  }

  let applier: Applier
  let version: FetchedVersion
  var file: FileContext { applier.file }
  var plan: TablePlan { version.plan }

  init(_ applier: Applier, _ version: FetchedVersion) {
    self.applier = applier
    self.version = version
  }

  func apply() throws -> Result {
    guard let local = try file.names.record(named: version.name, plan) else {
      return try create(over: nil)
    }
    if try applier.isEcho(version, local) { return .unchanged }
    if let deletedAt = local.deletedAt { return try meetDead(local, deletedAt) }
    if local.flags.contains(.parked) { return try joinParked(local) }
    guard var row = try file.row(plan, local.key) else { return try create(over: local) }
    let cleared = applier.progress.cleared[version.name] ?? [:]
    for (column, value) in cleared { row[column] = value }
    let result = try merge(into: local, row, rewriting: cleared.keys.sorted())
    applier.progress.cleared[version.name] = nil
    if case .parked = result, !cleared.isEmpty { try putBack(local, cleared) }
    return result
  }

  // MARK: Merging

  /// Puts values back that were cleared for a version which then could not be applied.
  private func putBack(_ local: RecordRow, _ cleared: [Int: Value]) throws {
    guard let record = try file.names.record(named: version.name, plan), record.isAlive,
      !record.flags.contains(.parked), var row = try file.row(plan, record.key)
    else { return }
    let columns = cleared.keys.sorted()
    for column in columns { row[column] = cleared[column] ?? .null }
    let refused = try UniqueResolver(applier).writing(version, life: record.clocks.life, key: record.key, row: row) {
      try applier.writer.update(plan, record.key, columns, columns.map { row[$0] })
    }
    guard let refused else { return }
    applier.progress.cleared[version.name] = cleared
    if let problem = try Eviction(applier).putAside(
      record, plan, refused.reason, refused.detail, waitsFor: refused.waitsFor)
    {
      throw TablesError.damagedMetadata("\(version.name) lost its unique values: \(problem)")
    }
  }

  /// - Parameter rewriting: columns whose values in the table are not those of `row` and must be written again.
  private func merge(into local: RecordRow, _ row: [Value], rewriting: [Int] = []) throws -> Result {
    let cells = try file.cells(of: row, plan)
    var merge = RecordMerge(local: local, cells: cells, fetched: version)
    let content = { MergedContent(merge, rowCells: cells.all, fetched: version) }
    var writes = RowWrites(row)
    for (column, change) in merge.changes {
      switch change {
      case .setDefault: writes.defaults.append(column)
      case .set(let cell):
        switch try ParentCheck(applier).value(of: cell, version) {
        case .value(let value): writes.set(column, value)
        case .missing(let name):
          let missing = try ParentCheck(applier).missing(name, column, version)
          return try meetMissing(missing, name, local, content: content())
        }
      }
    }
    for column in rewriting where !writes.columns.contains(column) { writes.set(column, row[column]) }
    let changed = writes.columns.filter { !rewriting.contains($0) || row[$0] != writes.row[$0] }
    if !plan.foreignKeys.isEmpty, !changed.isEmpty,
      let missing = try ParentCheck(applier).missingParent(of: writes.row, content().cells, version, changed: changed)
    {
      return try meetMissing(missing, missing.name, local, content: content())
    }
    if let refused = try write(local.key, writes, life: merge.record.clocks.life) {
      guard refused.reason == .unique else { return try keepBase(local, refused) }
      return try leave(local, content(), refused)
    }
    if writes.columns.contains(where: { plan.columns[$0].isKey }) { moveKey(&merge, writes.row) }
    var record = merge.record
    if version.isRetry { record.tag = local.tag }
    record.flags.subtract(.parked)
    assertDetached(&record)
    try file.records.update(local, to: record)
    try logLosses(merge)
    if !writes.isEmpty || record.clocks.life != local.clocks.life {
      applier.noteArrived(version.name, writes.row, plan)
    }
    return merge.broughtNews || !merge.changes.isEmpty ? .applied : .unchanged
  }

  /// The merged row can't be in the table beside an older one, or without its parent: it is put aside as it would be on
  /// any other device (tables M10).
  func leave(_ local: RecordRow, _ content: MergedContent, _ refused: WriteRefused) throws -> Result {
    var state = content.record
    if version.isRetry { state.tag = local.tag }
    try file.inbox.removeParked(version.name)
    let problem = try Eviction(applier).putAside(
      state, plan, refused.reason, refused.detail, waitsFor: refused.waitsFor, content: content.version(file).record)
    guard problem == nil else { return try keepBase(local, refused) }
    try logLosses(content.merge)
    return .putAside
  }

  func write(_ key: Value, _ writes: RowWrites, life: FieldClock) throws -> WriteRefused? {
    if !writes.columns.isEmpty {
      let values = writes.columns.map { writes.row[$0] }
      let refused = try UniqueResolver(applier).writing(version, life: life, key: key, row: writes.row) {
        try applier.writer.update(plan, key, writes.columns, values)
      }
      if let refused { return refused }
      if plan.writesElsewhere {
        let kept = plan.columns.indices.filter { !writes.defaults.contains($0) }
        try applier.writer.restore(plan, key, kept, kept.map { writes.row[$0] })
      }
    }
    if writes.defaults.isEmpty { return nil }
    switch try applier.writer.setDefaults(plan, key, writes.defaults) {
    case nil: return nil
    case .other(let reason, let detail)?: return WriteRefused(reason, detail)
    case .unique?: return WriteRefused(.unique, "another row has the same unique values")
    }
  }

  /// A key column may change its spelling, never the record (tables T18).
  private func moveKey(_ merge: inout RecordMerge, _ row: [Value]) {
    guard plan.keyKind == .natural, let key = RowKey.canonical(plan.keyColumns.map { row[$0] }, plan) else { return }
    merge.move(to: key)
  }

  /// The row keeps its values; what is edited here is sent on the parked version as base (tables M9).
  func keepBase(_ local: RecordRow, _ refused: WriteRefused) throws -> Result {
    if !version.isRetry {
      var base = local
      base.tag = version.tag
      try file.records.update(local, to: base)
    }
    return .parked(refused.reason, refused.detail, waitsFor: refused.waitsFor)
  }

  func logLosses(_ merge: RecordMerge) throws {
    for loss in merge.losses {
      try file.outcomes.addLoss(
        "\(loss.field): the edit", at: loss.localClock, against: loss.isCut ? "the delete" : "the one",
        of: loss.remoteClock, table: plan.name, record: version.name)
    }
  }
}

/// What to write into a row.
struct RowWrites {
  /// The whole row as it will be.
  private(set) var row: [Value]
  /// The columns that change.
  private(set) var columns: [Int] = []
  /// The columns that get their defaults.
  var defaults: [Int] = []

  var isEmpty: Bool { columns.isEmpty && defaults.isEmpty }

  init(_ row: [Value]) { self.row = row }

  mutating func set(_ column: Int, _ value: Value) {
    row[column] = value
    columns.append(column)
  }
}
