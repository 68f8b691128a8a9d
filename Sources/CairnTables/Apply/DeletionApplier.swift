import CairnRecords
import CairnSQLite

/// Applies fetched deletions (tables M1, M5, M12, M15).
///
/// The deletions of a set are judged together: a row that goes with the same set keeps no parent, in whatever order
/// they come and whichever rows refer to each other in a circle.
struct DeletionApplier {
  let applier: Applier
  var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  func apply(_ deletions: [RecordDeletion]) throws {
    var doomed: [Doom] = []
    for deletion in deletions.sorted(by: { $0.id.name < $1.id.name }) {
      if let doom = try judge(deletion) { doomed.append(doom) }
    }
    try carryOut(doomed)
  }

  /// The record dies because a parent was deleted here at `clock`: its delete is sent. Returns false if rows that refer
  /// to it keep it.
  func follow(_ record: RecordRow, _ plan: TablePlan, parentDeletedAt clock: FieldClock, tag: ChangeTag?) throws -> Bool
  {
    guard let name = try file.names.name(of: record, plan) else { return false }
    var doom = Doom(record: record, plan: plan, name: name, clock: clock, isExplicit: false)
    doom.tag = .some(tag)
    doom.row = try file.row(plan, record.key)
    try carryOut([doom])
    return try file.names.record(named: name) == nil
  }

  /// What a deletion does to the record itself; nil when nothing has to go.
  private func judge(_ deletion: RecordDeletion) throws -> Doom? {
    let name = deletion.id.name
    guard let plan = file.names.plan(ofName: name), let record = try file.names.record(named: name, plan) else {
      try file.inbox.removeParked(name)
      applier.noteReleased(name)
      return nil
    }
    // The content of a row that was put aside lies in the inbox: it goes with the record, or stays with it.
    if !record.flags.contains(.parked) { try file.inbox.removeParked(name) }
    switch verdict(on: record.localLife, deletedAt: deletion.time, now: applier.now) {
    case .bothDead:
      try forgetDead(record)
      applier.noteReleased(name)
      return nil
    case .reassert(let life):
      try reassert(record, plan, life: life)
      return nil
    case .remove(let clock):
      var doom = Doom(record: record, plan: plan, name: name, clock: clock, isExplicit: true)
      doom.isTimeKnown = deletion.time != nil
      doom.row = try file.row(plan, record.key)
      return doom
    }
  }

  private func forgetDead(_ record: RecordRow) throws {
    var gone = record
    gone.pending = .none
    gone.tag = nil
    gone.reason = nil
    gone.retryAt = nil
    gone.flags = []
    try file.records.update(record, to: gone)
  }

  /// The row stays and is sent again as a new record (tables M5).
  func reassert(_ record: RecordRow, _ plan: TablePlan, life: FieldClock?) throws {
    var alive = record
    alive.tag = nil
    alive.pending = .save
    alive.dirty = .all
    // A delete that comes after all must still be remembered: the server keeps a tombstone of the record.
    alive.flags.insert(.attempted)
    if let life { alive.clocks.life = max(alive.clocks.life, life) }
    alive.raiseRevision()
    try file.records.update(record, to: alive)
    guard let name = try file.names.name(of: record, plan) else { return }
    applier.noteReleased(name)
    try file.outcomes.add(
      .merged, table: plan.name, record: name,
      "deleted elsewhere, but edited here later: the row stays and is sent again")
  }

  // MARK: Carrying out

  private struct Unremovable: Error {
    var name: String
    var detail: String
  }

  /// Removes what has to go. A row that a user trigger or a table that is not synced holds stays, and what it refers to
  /// stays with it.
  private func carryOut(_ doomed: [Doom]) throws {
    if doomed.isEmpty { return }
    let doomed = try withWaitingChildren(doomed)
    var immortal: Set<String> = []
    while true {
      let family = try DoomedFamily(file, doomed, immortal: immortal)
      let counts = applier.counts
      let woken = applier.progress.woken
      do {
        return try file.savepoint { try carryOut(family) }
      } catch let held as Unremovable {
        applier.counts = counts
        applier.progress.woken = woken
        guard immortal.insert(held.name).inserted else { throw TablesError.damagedMetadata(held.detail) }
        try file.outcomes.add(.error, record: held.name, "could not be deleted: \(held.detail)")
      }
    }
  }

  /// A large set is applied in several transactions, and where rows refer to rows of their own table a parent may come
  /// before its children: those of them that the same set deletes are judged with it, as if it were applied at once
  /// (tables M1).
  private func withWaitingChildren(_ doomed: [Doom]) throws -> [Doom] {
    guard doomed.contains(where: \.plan.isCyclic), try file.inbox.has(.sealed) else { return doomed }
    var all = doomed
    var names = Set(doomed.map(\.name))
    var next = 0
    while next < all.count {
      let doom = all[next]
      next += 1
      guard doom.plan.isCyclic else { continue }
      for child in try DoomedFamily.edges(of: doom, file) where names.insert(child.name).inserted {
        guard let entry = try file.inbox.find(child.name, stage: .sealed), entry.record == nil else { continue }
        try file.inbox.removeSealed(child.name)
        let id = RecordID(name: child.name, zone: file.zone)
        if let found = try judge(RecordDeletion(id: id, time: entry.deletedAt)) { all.append(found) }
      }
    }
    return all
  }

  private func carryOut(_ family: DoomedFamily) throws {
    for doom in family.all where doom.isExplicit || family.keeps(doom) == nil { try detachChildren(of: doom, family) }
    for doom in family.childrenFirst { try remove(doom) }
    for doom in family.all where doom.isExplicit {
      guard let life = family.keeps(doom), let record = try file.names.record(named: doom.name, doom.plan) else {
        continue
      }
      try reassert(record, doom.plan, life: life)
    }
  }

  private func remove(_ doom: Doom) throws {
    if let row = doom.row, try file.rowExists(doom.plan, doom.record.key) {
      if case .other(let reason, let detail)? = try applier.writer.delete(doom.plan, doom.record.key) {
        throw Unremovable(name: doom.name, detail: "\(reason.rawValue): \(detail)")
      }
      for key in WaitKey.all(of: row, doom.plan, file.catalog) { applier.noteReleased(key.text) }
    }
    let current = try file.names.record(named: doom.name, doom.plan) ?? doom.record
    try file.inbox.removeParked(doom.name)
    try file.records.remove(current)
    var known = current
    // A record that came from the server must not be forgotten as one that never left this device.
    if doom.isExplicit { known.flags.insert(.attempted) }
    if let tag = doom.tag { known.tag = tag }
    applier.noteReleased(doom.name)
    if doom.row != nil { applier.noteRemoved() }
    if current.pending == .save {
      try file.outcomes.addLoss(
        "the edit", at: current.clocks.touch, against: doom.isExplicit ? "the delete" : "the delete of its parent",
        of: doom.clock, table: doom.plan.name, record: doom.name)
    }
    guard var dead = try file.dead(known, doom.plan, at: doom.clock) else { return }
    if doom.isExplicit {
      dead.pending = .none
      dead.tag = nil
      dead.flags = []
    }
    _ = try file.records.insert(dead)
  }

  /// SET NULL and SET DEFAULT: the child's edit has the time of the delete, and is sent (tables M12).
  private func detachChildren(of doom: Doom, _ family: DoomedFamily) throws {
    for edge in doom.edges where edge.foreignKey.onDelete == .setNull || edge.foreignKey.onDelete == .setDefault {
      if family.goes(edge.name) { continue }
      // Another parent of the set may have changed it.
      guard let record = try file.names.record(named: edge.name) else { continue }
      let columns = edge.foreignKey.columns
      let values = try file.valuesWithoutParent(edge.foreignKey, edge.plan)
      if let row = try file.row(edge.plan, record.key), columns.map({ row[$0] }) == values { continue }
      if let refusal = try applier.writer.update(edge.plan, record.key, columns, values) {
        throw Unremovable(name: doom.name, detail: "\(edge.name) can't be detached: \(refusal)")
      }
      var edited = record
      if edited.pending != .save { edited.dirty = .none }
      edited.pending = .save
      for column in columns where edge.plan.isField(column) {
        let name = edge.plan.columns[column].wireName
        if edited.dirty.contains(name), let time = edited.clocks.clock(of: column) {
          try file.outcomes.addLoss(
            "\(name): the edit", at: time, against: "the delete of its parent", of: doom.clock, table: edge.plan.name,
            record: edge.name)
        }
        edited.clocks.columns[column] = max(doom.clock, edited.clocks.columns[column].next)
        edited.dirty.insert(name)
      }
      edited.raiseRevision()
      try file.records.update(record, to: edited)
      if !edge.plan.uniqueIndexes.isEmpty { applier.noteReleased(edge.name) }
    }
  }
}
