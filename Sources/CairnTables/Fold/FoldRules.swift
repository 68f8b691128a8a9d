import CairnRecords
import CairnSQLite

/// What an insert, edit, delete or change of key makes of a record (tables 3.1, 3.2).
struct FoldRules {
  let file: FileContext
  /// Mapped integers that change at this place in the log.
  var moves = MovedParents()
  /// Mapped integers that lost or got their record in this fold.
  var integers = IntegerReuse()

  init(_ file: FileContext) { self.file = file }

  private var records: RecordStore { file.records }

  // MARK: Insert

  mutating func insert(_ plan: TablePlan, _ key: Value, at time: FieldClock) throws {
    let old: RecordRow?
    if plan.isNamedByParent || file.names.mayDiffer(key, plan) {
      old = try recordAt(plan, key, time)
      if old == nil, try store(try newRecord(plan, key, at: time), plan) { return }
    } else {
      // Most inserted rows are new: one look at the key is enough for them.
      if try store(try newRecord(plan, key, at: time), plan) { return }
      old = try recordAt(plan, key, time)
    }
    guard let old else { throw TablesError.damagedMetadata("a record of \(plan.name) could not be stored") }
    if old.isAlive {
      // A row stood here and no delete was logged: something removed it unseen. What stands here now is another row.
      try delete(plan, old, at: time)
      return try insert(plan, key, at: time)
    }
    try records.remove(old)
    _ = try records.insert(try reinserted(old, plan, key, at: time))
  }

  /// Stores a new record; false if there is one under its key.
  private mutating func store(_ row: RecordRow, _ plan: TablePlan) throws -> Bool {
    guard try records.insert(row) else { return false }
    integers.begin(plan, row.key, at: row.clocks.life)
    try file.meetParked(row, plan)
    return true
  }

  private func newRecord(_ plan: TablePlan, _ key: Value, at time: FieldClock) throws -> RecordRow {
    var row = RecordRow(
      table: plan.number, key: key, clocks: FieldClocks(uniform: max(time, 0), plan: plan))
    row.name = plan.keyKind == .mapped ? .blob(file.newUUID(plan, key)) : try file.names.storedName(for: key, plan)
    row.pending = .save
    row.dirty = .all
    row.revision = 1
    return row
  }

  /// Insert over a dead record: one save with fresh times for every field; the tag stays, nothing else of the dead
  /// record does (DESIGN G5, tables F3).
  private func reinserted(_ old: RecordRow, _ plan: TablePlan, _ key: Value, at time: FieldClock) throws -> RecordRow {
    let deleted = old.deletedAt ?? 0
    var row = old
    row.key = key
    if plan.keyKind == .natural { row.name = try file.names.storedName(for: key, plan) }
    row.clocks = FieldClocks(
      uniform: max(time, deleted.next), cut: min(deleted, FieldClock.greatest - 1), plan: plan)
    row.deletedAt = nil
    row.pending = .save
    row.life = .reinserted
    row.dirty = .all
    row.kept = nil
    row.raiseRevision()
    return row
  }

  // MARK: Edit

  mutating func edit(_ plan: TablePlan, _ key: Value, _ changed: [Int], at time: FieldClock) throws {
    guard let old = try records.find(plan.number, key: key), old.isAlive else {
      // An update of a row that has no record: capture was off when it was inserted.
      return try file.rowExists(plan, key) ? insert(plan, key, at: time) : ()
    }
    let row = edited(old, plan, changed, at: time)
    try records.update(old, to: row)
  }

  /// Each changed field gets max(logged time, its clock + 1) (tables F3).
  func edited(_ old: RecordRow, _ plan: TablePlan, _ changed: [Int], at time: FieldClock) -> RecordRow {
    var row = old
    var edits = false
    for column in changed where plan.isField(column) && !namesTheSameRecord(plan, column) {
      // A field that no version has set may be edited by a slow clock: it must not fall under the cut (tables 1.4).
      row.clocks.columns[column] = max(time, row.clocks.columns[column].next, (row.clocks.cut ?? -1).next)
      // A value that waits to be moved into the column is older than the edit (tables V2).
      let name = plan.columns[column].wireName
      if let kept = row.kept, kept.names.contains(name) { row.kept = kept.without(name) }
      if row.pending != .save { row.dirty = .none }
      row.pending = .save
      row.dirty.insert(name)
      edits = true
    }
    if edits { row.raiseRevision() }
    return row
  }

  /// Whether a foreign key changed only because its parent's mapped integer did (tables F5).
  private func namesTheSameRecord(_ plan: TablePlan, _ column: Int) -> Bool {
    guard !moves.isEmpty, let target = plan.columns[column].localTarget, moves.isMoving(target) else { return false }
    return plan.foreignKeys.contains { $0.onUpdate == .cascade && $0.columns.contains(column) }
  }

  // MARK: Delete

  func delete(_ plan: TablePlan, _ key: Value, at time: FieldClock) throws {
    guard let old = try records.find(plan.number, key: key), old.isAlive else { return }
    try delete(plan, old, at: time)
  }

  func delete(_ plan: TablePlan, _ old: RecordRow, at time: FieldClock) throws {
    let clock = max(time, old.clocks.touch.next, (old.clocks.cut ?? -1).next)
    let dead = try file.dead(old, plan, at: clock)
    try records.remove(old)
    if plan.keyKind == .mapped, case .integer(let integer) = old.key {
      file.endedNames[plan.number, default: [:]][integer] = old.name
    }
    if let dead { _ = try records.insert(dead) }
    if old.flags.contains(.parked) { try file.inbox.removeParked(try file.names.name(of: old, plan)) }
  }

  // MARK: Change of key

  mutating func rekey(_ plan: TablePlan, from old: Value, to new: Value, _ changed: [Int], at time: FieldClock)
    throws
  {
    guard let record = try records.find(plan.number, key: old), record.isAlive else {
      return try insert(plan, new, at: time)
    }
    let sameRecord = plan.keyKind == .mapped || keepsItsName(plan, record, new)
    guard sameRecord else {
      try delete(plan, record, at: time)
      return try insert(plan, new, at: time)
    }
    if let other = try records.find(plan.number, key: new) { try delete(plan, other, at: time) }
    var moved = record
    moved.key = new
    if plan.keyKind == .mapped {
      integers.forget(plan, old)
      if case .integer(let creator) = old, moved.wish == nil { moved.wish = creator }
      if case .integer(let integer) = new, moved.wish == integer { moved.wish = nil }
    }
    try records.update(record, to: edited(moved, plan, changed, at: time))
  }

  /// Whether a row whose key is made of parents' integers names the same record after they changed.
  private func keepsItsName(_ plan: TablePlan, _ record: RecordRow, _ new: Value) -> Bool {
    guard plan.isNamedByParent, !moves.isEmpty else { return false }
    var parts = RowKey.parts(of: new, plan)
    for (i, column) in plan.keyColumns.enumerated() {
      guard let target = plan.columns[column].localTarget, let previous = moves.previous(target, parts[i]) else {
        continue
      }
      parts[i] = previous
    }
    return RowKey.canonical(parts, plan) == record.key
  }

  // MARK: Helpers

  /// The record that stands, alive or dead, for the row that is inserted under `key`.
  private func recordAt(_ plan: TablePlan, _ key: Value, _ time: FieldClock) throws -> RecordRow? {
    if let row = try records.find(plan.number, key: key) { return row }
    return plan.keyKind == .natural ? try file.names.recordByName(ofKey: key, plan) : nil
  }

  func countNullKeys(_ plan: TablePlan, _ change: Int64) throws {
    try file.connection.run(
      "UPDATE cairn_table SET null_keys = max(0, null_keys + ?2) WHERE number = ?1", .integer(Int64(plan.number)),
      .integer(change))
  }
}
