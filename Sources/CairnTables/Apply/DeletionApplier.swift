import CairnRecords
import CairnSQLite

/// Applies fetched deletions, children first (tables M1, M5, M12).
struct DeletionApplier {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  func apply(_ deletions: [RecordDeletion]) throws {
    if deletions.isEmpty { return }
    var known: [(RecordDeletion, TablePlan)] = []
    for deletion in deletions {
      if let plan = file.names.plan(ofName: deletion.id.name) {
        known.append((deletion, plan))
      } else {
        try file.inbox.removeParked(deletion.id.name)
      }
    }
    known.sort { ($1.1.rank, $1.1.number, $0.0.id.name) < ($0.1.rank, $0.1.number, $1.0.id.name) }
    var order = known
    // Rows of one table may refer to each other: those that nothing of the set refers to go first.
    var again = true
    while again && !order.isEmpty {
      again = false
      var left: [(RecordDeletion, TablePlan)] = []
      for (deletion, plan) in order {
        if plan.isCyclic, try isNeeded(deletion, plan, by: order) {
          left.append((deletion, plan))
        } else {
          try apply(deletion, plan)
          again = true
        }
      }
      order = left
    }
    for (deletion, plan) in order { try apply(deletion, plan) }
  }

  private func isNeeded(
    _ deletion: RecordDeletion, _ plan: TablePlan, by others: [(RecordDeletion, TablePlan)]
  ) throws -> Bool {
    guard let record = try file.names.record(named: deletion.id.name, plan), record.isAlive,
      let row = try file.row(plan, record.key)
    else { return false }
    let names = Set(others.map { $0.0.id.name })
    return try file.children(of: row, plan).contains { child, childPlan in
      guard let name = try file.names.name(of: child, childPlan) else { return false }
      return name != deletion.id.name && names.contains(name)
    }
  }

  private func apply(_ deletion: RecordDeletion, _ plan: TablePlan) throws {
    let name = deletion.id.name
    let parked = try file.inbox.find(name) != nil
    guard let record = try file.names.record(named: name, plan) else {
      if parked { try file.inbox.removeParked(name) }
      return
    }
    if parked { try file.inbox.removeParked(name) }
    switch verdict(on: record.localLife, deletedAt: deletion.time, now: applier.now) {
    case .bothDead:
      try forgetDead(record)
    case .reassert(let life):
      try reassert(record, plan, life: life)
    case .remove(let clock):
      try remove(record, plan, name, at: clock, isTimeKnown: deletion.time != nil)
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
  private func reassert(_ record: RecordRow, _ plan: TablePlan, life: FieldClock?) throws {
    var alive = record
    alive.tag = nil
    alive.pending = .save
    alive.dirty = .all
    // A delete that comes after all must still be remembered: the server keeps a tombstone of the record.
    alive.flags.insert(.attempted)
    if let life { alive.clocks.life = max(alive.clocks.life, life) }
    alive.raiseRevision()
    try file.records.update(record, to: alive)
    try file.outcomes.add(
      .merged, table: plan.name, record: try file.names.name(of: record, plan),
      "deleted elsewhere, but edited here later: the row stays and is sent again")
  }

  private func remove(
    _ record: RecordRow, _ plan: TablePlan, _ name: String, at clock: FieldClock, isTimeKnown: Bool
  ) throws {
    guard let row = try file.row(plan, record.key) else { return try makeGone(record, plan, at: clock) }
    let family = Family(applier)
    if let life = try family.lifeToKeep(record, plan, row, deletedAt: clock, isTimeKnown: isTimeKnown) {
      return try reassert(record, plan, life: life)
    }
    let wasUnsent = record.pending == .save
    try family.removeChildren(of: record, plan, row, at: clock)
    if case .other(let reason, let detail)? = try applier.writer.delete(plan, record.key) {
      // The row can't go: a user trigger or a table that is not synced refuses. It stays, and the record with it.
      try file.outcomes.add(
        .error, table: plan.name, record: name, "could not be deleted: \(reason.rawValue): \(detail)")
      return try reassert(record, plan, life: max(clock, record.clocks.touch + 1))
    }
    try makeGone(record, plan, at: clock)
    applier.noteRemoved()
    if wasUnsent {
      try file.outcomes.add(
        .merged, table: plan.name, record: name,
        "the edit made here at \(record.clocks.touch) lost against the delete of \(clock)")
    }
  }

  private func makeGone(_ record: RecordRow, _ plan: TablePlan, at clock: FieldClock) throws {
    try file.records.remove(record)
    var known = record
    known.flags.insert(.attempted)
    guard var gone = try file.dead(known, plan, at: clock) else { return }
    gone.pending = .none
    gone.tag = nil
    gone.flags = []
    _ = try file.records.insert(gone)
  }
}
