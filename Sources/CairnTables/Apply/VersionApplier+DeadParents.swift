import CairnRecords
import CairnSQLite

/// A version whose parent is not here: it waits, or, where the parent was deleted here, it is judged as if the parent's
/// delete met it (tables M8, M13).
extension VersionApplier {
  /// - Parameters:
  ///   - name: what the version waits for if it waits.
  ///   - content: the version merged with the row that is here.
  func meetMissing(
    _ missing: ParentCheck.Missing?, _ name: String, _ local: RecordRow?, content: MergedContent? = nil
  ) throws -> Result {
    let wait = WriteRefused(.missingParent, "\(name) is not here", waitsFor: name)
    if let missing, let deletedAt = missing.deletedAt {
      let columns = missing.foreignKey.columns
      switch missing.foreignKey.onDelete {
      case .cascade:
        let touch = max(version.clocks.touch, liveTouch(local))
        if touch < deletedAt, try die(local, at: deletedAt) { return .unchanged }
      case .setNull where !columns.contains(where: version.detachedColumns.contains):
        return try detached(columns, columns.map { _ in .null }, at: deletedAt)
      case .setDefault where !columns.contains(where: version.detachedColumns.contains):
        let values = try file.valuesWithoutParent(missing.foreignKey, plan)
        return try detached(columns, zip(columns, values).map { try file.cell($1, $0, plan) }, at: deletedAt)
      case .setNull, .setDefault, .restrict, .noAction:
        break
      }
      try WantedParents(file).keep(missing.name, for: version)
    }
    if let local, local.isAlive, !local.flags.contains(.parked) {
      // A parent that a unique value keeps out is kept out everywhere, and its dependants with it (tables M11).
      if let content, try applier.isKeptOut(name) { return try leave(local, content, wait) }
      return try keepBase(local, wait)
    }
    return .parked(wait.reason, wait.detail, waitsFor: wait.waitsFor)
  }

  private func liveTouch(_ local: RecordRow?) -> FieldClock {
    guard let local, local.isAlive else { return 0 }
    return local.clocks.touch
  }

  /// The parent that is a part of the record's name.
  func missingKeyParent(_ name: String) throws -> ParentCheck.Missing? {
    for column in plan.keyColumns {
      if let missing = try ParentCheck(applier).missing(name, column, version),
        version.cells[column] == .reference(name) || plan.keyColumns.count == 1
      {
        return missing
      }
    }
    return nil
  }

  private func detached(_ columns: [Int], _ cells: [MergeCell], at clock: FieldClock) throws -> Result {
    let result = try VersionApplier(applier, version.detached(columns, cells, at: clock)).apply()
    // What is parked is what was fetched: it is judged again when it is tried.
    if case .parked(let reason, let detail, let waitsFor, _) = result {
      return .parked(reason, detail, waitsFor: waitsFor, record: version.record)
    }
    return result
  }

  /// What was detached from a dead parent is an edit made here, and is sent.
  func assertDetached(_ record: inout RecordRow) {
    if version.detachedColumns.isEmpty { return }
    if record.pending != .save { record.dirty = .none }
    record.pending = .save
    for column in version.detachedColumns { record.dirty.insert(plan.columns[column].wireName) }
    record.raiseRevision()
  }

  /// The record dies with its parent, and its delete is sent. Returns false if it must stay because of rows that refer
  /// to it.
  private func die(_ local: RecordRow?, at clock: FieldClock) throws -> Bool {
    if let local, local.isAlive, !local.flags.contains(.parked) {
      return try DeletionApplier(applier).follow(local, plan, parentDeletedAt: clock, tag: version.tag)
    }
    var dead = RecordRow(
      table: plan.number, key: .text(version.name), name: .text(version.name),
      clocks: FieldClocks(life: 0, columns: []))
    if plan.keyKind == .mapped, let uuid = RecordNameCodec.uuid(version.name, table: plan.wireName) {
      dead.key = .blob(uuid)
      dead.name = .blob(uuid)
    } else if !plan.isNamedByParent, case .success(let key) = try deadKey() {
      dead.key = key
      dead.name = try file.names.storedName(version.name, for: key, plan)
    }
    dead.deletedAt = clock
    dead.life = .deleted
    dead.pending = .delete
    dead.tag = version.isRetry ? local?.tag ?? version.tag : version.tag
    dead.revision = (local?.revision ?? 0) + 1
    if let local { try file.records.remove(local) }
    _ = try file.records.insert(dead)
    applier.noteReleased(version.name)
    return true
  }

  private struct NoKey: Error {}

  private func deadKey() throws -> Swift.Result<Value, NoKey> {
    if case .key(let key) = try file.names.resolve(version.name, plan) { return .success(key) }
    var parts: [Value] = []
    for column in plan.keyColumns {
      guard case .value(let value) = version.cells[column] else { return .failure(NoKey()) }
      parts.append(value)
    }
    return RowKey.canonical(parts, plan).map { .success($0) } ?? .failure(NoKey())
  }
}

extension FileContext {
  /// What ON DELETE puts into a foreign key whose parent goes: NULL, or the default where its row is there
  /// (tables M12).
  func valuesWithoutParent(_ foreignKey: ForeignKeyPlan, _ plan: TablePlan) throws -> [Value] {
    let nulls = foreignKey.columns.map { _ in Value.null }
    guard foreignKey.onDelete == .setDefault else { return nulls }
    let values = try foreignKey.columns.map { column -> Value in
      guard let sql = plan.columns[column].defaultSQL else { return .null }
      return AffinityRules.stored(try connection.scalar("SELECT (\(sql))") ?? .null, in: plan.columns[column].affinity)
    }
    guard let parent = catalog.plan(foreignKey.parent), !values.contains(.null) else { return values }
    if try rowExists(parent, foreignKey.parentColumns, values) { return values }
    return foreignKey.columns.contains { plan.columns[$0].isNotNull } ? values : nulls
  }

  /// A value as the merge compares it.
  func cell(_ value: Value, _ column: Int, _ plan: TablePlan) throws -> MergeCell {
    guard let target = plan.columns[column].localTarget, case .integer(let integer) = value,
      let name = try names.name(ofMapped: integer, in: target)
    else { return .value(value) }
    return .reference(name)
  }
}
