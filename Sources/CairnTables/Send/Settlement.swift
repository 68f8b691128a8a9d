import CairnEngine
import CairnRecords
import CairnSQLite

/// Takes what became of sent changes into the record states (tables 3.2).
struct Settlement {
  private let file: FileContext
  private let now: Int64
  private(set) var saved = 0
  private(set) var deleted = 0
  private(set) var conflicts = 0

  init(_ file: FileContext, now: Int64) {
    self.file = file
    self.now = now
  }

  /// - Parameter sent: what the batch took, by record name.
  mutating func settle(_ batch: OutgoingBatch, _ results: [EntryResult], _ sent: [String: SentRevision]) throws {
    let revisions = batch.entries.map { sent[$0.operation.record.id.name] }
    var next = 0
    while next < min(results.count, batch.entries.count) {
      let keys = Self.confirmedKeys(results[next...], revisions[next...])
      let end = next + max(keys.count, 1)
      let settleThese = { (settlement: inout Settlement) throws in
        for i in next..<end { try settlement.settle(batch.entries[i], revisions[i], results[i]) }
      }
      if keys.count > 1, let table = revisions[next]?.table {
        try file.records.grouped(table, keys) { try settleThese(&self) }
      } else {
        try settleThese(&self)
      }
      next = end
    }
  }

  /// The keys of the confirmed saves that come first, as far as they are of one table and in order: most batches are.
  private static func confirmedKeys(_ results: ArraySlice<EntryResult>, _ revisions: ArraySlice<SentRevision?>)
    -> [Value]
  {
    var keys: [Value] = []
    for (result, revision) in zip(results, revisions) {
      guard keys.count < RecordGroup.size, case .saved = result, let revision,
        revision.table == revisions.first??.table, keys.last?.precedes(inIndex: revision.key) ?? true
      else { break }
      keys.append(revision.key)
    }
    return keys
  }

  private mutating func settle(_ entry: OutgoingEntry, _ sent: SentRevision?, _ result: EntryResult) throws {
    let name = entry.operation.record.id.name
    guard let plan = file.names.plan(ofName: name) else { return }
    switch result {
    case .saved(let tag):
      saved += 1
      try confirmSave(name, plan, tag, sent)
    case .deleted:
      deleted += 1
      try confirmDelete(name, plan)
    case .conflict(let record):
      if try Applier(file, now: now).applyConflict(IncomingAssets(file).taken(record, plan)) {
        conflicts += 1
      } else if let sent, sent.isSave {
        // The server holds just this content: the answer to an earlier try was lost.
        saved += 1
      }
    case .unknownItem:
      try meetUnknown(name, plan, triedTag: entry.operation.record.changeTag)
    case .postponed(let reason, let retryAt):
      try postpone(name, plan, reason, retryAt: retryAt, revision: entry.revision)
    case .handedOver(let reason, let error):
      try postpone(name, plan, reason, retryAt: nil, revision: entry.revision)
      try file.outcomes.add(.error, table: plan.name, record: name, "not sent: \(reason.rawValue): \(error.reason)")
    }
  }

  private func confirmSave(_ name: String, _ plan: TablePlan, _ tag: ChangeTag, _ sent: SentRevision?) throws {
    guard let record = try file.names.record(named: name, plan) else { return }
    try file.large.confirm(name)
    var confirmed = record
    confirmed.tag = tag
    confirmed.reason = nil
    confirmed.retryAt = nil
    guard record.isAlive else { return try file.records.update(record, to: confirmed) }
    if let sent, sent.revision != record.revision {
      // Edited meanwhile: only what is later than the confirmed revision is still pending.
      let isReborn = record.life == .reinserted && record.clocks.life > sent.clocks.life
      if !isReborn {
        confirmed.life = .none
        confirmed.dirty = DirtyFields(laterFields(record, plan, than: sent))
        confirmed.flags.remove(.replaces)
      }
    } else {
      confirmed.pending = .none
      confirmed.dirty = .none
      confirmed.life = .none
      confirmed.flags.remove(.attempted)
      confirmed.flags.remove(.replaces)
    }
    try file.records.update(record, to: confirmed)
  }

  private func laterFields(_ record: RecordRow, _ plan: TablePlan, than sent: SentRevision) -> Set<String> {
    var names: Set<String> = []
    for column in plan.columns.indices where plan.isField(column) {
      let before = column < sent.clocks.columns.count ? sent.clocks.columns[column] : FieldClocks.never
      if record.clocks.columns[column] > before { names.insert(plan.columns[column].wireName) }
    }
    return names
  }

  private func confirmDelete(_ name: String, _ plan: TablePlan) throws {
    guard let record = try file.names.record(named: name, plan) else { return }
    var confirmed = record
    confirmed.tag = nil
    confirmed.reason = nil
    confirmed.retryAt = nil
    confirmed.flags.remove(.attempted)
    // Reinserted meanwhile: it is sent as a create. Else it is gone, and its delete clock is remembered.
    if !record.isAlive { confirmed.pending = .none }
    try file.records.update(record, to: confirmed)
  }

  /// The server does not know the record; the zone has been fetched since.
  private func meetUnknown(_ name: String, _ plan: TablePlan, triedTag: ChangeTag?) throws {
    guard let record = try file.names.record(named: name, plan) else { return }
    guard record.isAlive else { return try confirmDelete(name, plan) }
    // A deletion or another version that the fetch brought has decided already: the tag that was tried is gone.
    guard record.tag != nil, record.tag == triedTag else { return }
    var unknown = record
    unknown.tag = nil
    unknown.flags.insert(.attempted)
    unknown.pending = .save
    unknown.dirty = .all
    try file.records.update(record, to: unknown)
  }

  /// The reason of a refusal belongs to the revision that was refused; only one that ends by itself holds a later
  /// revision too (tables F8).
  private func postpone(
    _ name: String, _ plan: TablePlan, _ reason: PendingReason, retryAt: Int64?, revision: Int64
  ) throws {
    guard let record = try file.names.record(named: name, plan), record.pending != .none else { return }
    if record.revision != revision, reason.endsWithRevision { return }
    var waiting = record
    waiting.reason = reason == .unsent ? nil : reason
    waiting.retryAt = retryAt
    try file.records.update(record, to: waiting)
  }
}
