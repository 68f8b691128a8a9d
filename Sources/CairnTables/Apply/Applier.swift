import CairnRecords
import CairnSQLite

/// Applies a set of fetched records and deletions to the rows, in the caller's transaction (tables M1).
///
/// The result does not depend on the order inside the set. Saves come before deletions, parents before children; rows
/// that refer to each other are written under deferred foreign keys. What can't be applied is parked with its reason;
/// nothing is dropped (DESIGN G6).
final class Applier {
  let file: FileContext
  /// Wall clock, ms since 1970.
  let now: Int64
  let writer: RowWriter
  private let takesEchoes: Bool
  var progress: ApplyProgress
  /// Records of the set that proved not to come, so that nothing may be written in the hope of them.
  var unavailable: Set<String> = []
  /// Rows written before a parent that comes later in the set.
  var promises: [Promise] = []

  struct Promise {
    var child: String
    var parent: String
  }

  var counts: ApplyCounts {
    get { progress.counts }
    set { progress.counts = newValue }
  }

  /// Integers given to new mapped records of the set, before their rows are there.
  var assigned: KeyAssignment { progress.assigned }

  /// - Parameter takesEchoes: whether a version that is known already is applied all the same, for repairs.
  init(_ file: FileContext, now: Int64, takesEchoes: Bool = false) {
    self.file = file
    self.now = now
    self.takesEchoes = takesEchoes
    writer = RowWriter(file: file)
    progress = ApplyProgress(assigned: KeyAssignment(file))
  }

  /// Applies the set. The caller has folded before, in the same transaction (tables M1).
  func apply(_ records: [Record], _ deletions: [RecordDeletion]) throws {
    try file.beginApplying()
    var versions: [FetchedVersion] = []
    versions.reserveCapacity(records.count)
    for record in records {
      if let version = try accept(record) { versions.append(version) }
    }
    try applySaves(versions)
    if !deletions.isEmpty { try DeletionApplier(self).apply(deletions) }
    try finish()
    try file.endApplying()
  }

  /// Merges the server's version that a refused save met. Returns whether it differed from what is here.
  func applyConflict(_ record: Record) throws -> Bool {
    let before = counts.fetched + counts.parked
    try apply([record], [])
    let differed = counts.fetched + counts.parked > before
    counts.fetched = before
    return differed
  }

  /// Tries the given parked records again.
  func retry(_ entries: [Inbox.Entry]) throws {
    try file.beginApplying()
    try applySaves(try entries.compactMap(parkedVersion))
    try finish()
    try file.endApplying()
    counts = ApplyCounts()
  }

  // MARK: Taking versions in

  /// Reads a record into its table's columns; parks what can't be read; nil for what needs no applying.
  func accept(_ record: Record) throws -> FetchedVersion? {
    guard let plan = file.catalog.plan(wireName: record.type) else {
      // A type without clocks is another program's and left alone (tables M7, M14).
      if record.fields.contains(name: RecordField.clocks) {
        try park(record, nil, .unknownTable, "there is no table \(record.type) here")
      }
      return nil
    }
    switch FetchedVersion.decode(record, file.codec(plan)) {
    case .failure(let problem):
      try park(record, plan, problem.reason, problem.detail)
      try holdEdits(of: record, plan, problem.reason)
      return nil
    case .success(var version):
      if !file.gaps.isEmpty { version.isMissed = try GapComparison(file).mustApply(version) }
      // Others of the set would count on an echo as on a version that changes something. Where no others are looked at,
      // the record is looked up once, later.
      if !plan.uniqueIndexes.isEmpty || plan.isCyclic,
        let local = try file.names.record(named: version.name, plan), try isEcho(version, local)
      {
        return nil
      }
      return version
    }
  }

  /// Whether the version is here already: its tag is the one that is known, and nothing of it is parked.
  func isEcho(_ version: FetchedVersion, _ local: RecordRow) throws -> Bool {
    guard !takesEchoes, !version.isRetry, !version.isMissed, let tag = version.tag, local.tag == tag else {
      return false
    }
    return try !file.inbox.has(.parked) || file.inbox.find(version.name) == nil
  }

  /// Local edits of a row whose newer version can't be read: a newer format must not be overwritten (tables V8); on any
  /// other version they are sent (tables M9).
  private func holdEdits(of record: Record, _ plan: TablePlan, _ reason: ParkedReason) throws {
    guard let local = try file.names.record(named: record.id.name, plan), local.isAlive else { return }
    var held = local
    if reason == .newerFormat {
      if held.pending != .none { held.reason = .schema }
    } else if reason == .assetMissing {
      // Merged when the asset is here: sent before, they would take back clocks of the version that is not read yet.
      guard held.pending != .none else { return }
      held.reason = .unavailable
      held.retryAt = now + Inbox.Parking.delay(tries: 0)
    } else {
      held.tag = record.changeTag
    }
    try file.records.update(local, to: held)
  }

  /// The integer for a record of a mapped table that is about to get a row. One that was put aside while the set was
  /// applied gets its integer only now (tables M10).
  func integer(for version: FetchedVersion) throws -> Int64? {
    guard version.plan.keyKind == .mapped else { return nil }
    try progress.assigned.assign(version)
    return assigned.integer(of: version.name)
  }

  /// The version of the set that is not applied yet and will give the row of this name or wait key.
  func isWaiting(_ name: String) -> FetchedVersion? {
    if progress.waiting.isEmpty || unavailable.contains(name) { return nil }
    if let version = progress.waiting.find(name) { return version }
    guard let provider = progress.providers[name], !unavailable.contains(provider) else { return nil }
    return progress.waiting.find(provider)
  }

  func promise(_ parent: String, to child: FetchedVersion) {
    promises.append(Promise(child: child.name, parent: parent))
  }

  func applyOne(_ version: FetchedVersion) throws {
    let result = try VersionApplier(self, version).apply()
    if case .unchanged = result {} else if !version.isRetry { counts.fetched += 1 }
    switch result {
    case .unchanged, .applied:
      try file.inbox.removeParked(version.name)
    case .parked(let reason, let detail, let waitsFor, let record):
      try park(record ?? version.record, version.plan, reason, detail, waitsFor: waitsFor)
      // Rows whose parked versions refer to this one go with it (tables M11).
      if try isKeptOut(version.name) { noteArrived(version.name, version.cells.map(\.plainValue), version.plan) }
    case .putAside:
      break
    }
  }

  // MARK: Parking

  func park(
    _ record: Record, _ plan: TablePlan?, _ reason: ParkedReason, _ detail: String, waitsFor: String? = nil
  ) throws {
    let old = try file.inbox.find(record.id.name)
    counts.parked += 1
    let tries = (old?.parking?.tries ?? -1) + 1
    let parking = Inbox.Parking(
      reason: reason, detail: detail, since: old?.parking?.since ?? now, waitsFor: waitsFor, tries: tries,
      retryAt: now + Inbox.Parking.delay(tries: tries))
    try file.inbox.put(
      Inbox.Entry(name: record.id.name, stage: .parked, record: record, parking: parking), table: plan)
    if old == nil {
      try file.outcomes.add(.parked, table: plan?.name, record: record.id.name, "\(reason.rawValue): \(detail)")
    }
  }

  /// Content of a parked record, to be tried again.
  func parkedVersion(_ entry: Inbox.Entry) throws -> FetchedVersion? {
    guard let record = entry.record, let plan = file.catalog.plan(wireName: record.type),
      case .success(var version) = FetchedVersion.decode(record, file.codec(plan))
    else { return nil }
    version.isRetry = true
    return version
  }

  // MARK: Notes for others that wait

  func noteRemoved() { counts.removed += 1 }

  /// The row is there, or has new values: what waits for it, and what it kept out, may come in.
  func noteArrived(_ name: String, _ row: [Value], _ plan: TablePlan) {
    progress.woken.append(name)
    for key in WaitKey.all(of: row, plan, file.catalog) { progress.woken.append(key.text) }
  }

  /// The row has left its table, or the record is dead.
  func noteReleased(_ name: String) { progress.woken.append(name) }
}

/// How far an apply has come: what goes back with a savepoint.
struct ApplyProgress {
  var counts = ApplyCounts()
  /// Versions of the set that are not applied yet.
  var waiting = WaitingVersions()
  /// Names of versions of the set by the wait keys that their rows will answer to.
  var providers: [String: String] = [:]
  var assigned: KeyAssignment
  /// Values of rows of the set that were cleared so that others could take them, by record name and column.
  var cleared: [String: [Int: Value]] = [:]
  /// Names and wait keys of which something has changed that parked records may wait for.
  var woken: [String] = []
  /// Parents that were taken out of the inbox for the sake of a child.
  var pulled: Set<String> = []
  /// How often a parked record was tried again.
  var retries: [String: Int] = [:]

  /// A copy that later changes leave alone.
  func copy() -> ApplyProgress {
    var copy = self
    copy.waiting = waiting.copy()
    return copy
  }
}

/// What a set of fetched changes did (tables section 7).
struct ApplyCounts {
  /// Records taken in, applied or parked; no echoes, no deletions.
  var fetched = 0
  /// Rows removed by fetched deletions.
  var removed = 0
  var parked = 0
}
