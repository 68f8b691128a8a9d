import CairnEngine
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
  var counts = ApplyCounts()
  /// Versions of the set that are not applied yet, by record name.
  private var waiting: [String: FetchedVersion] = [:]
  /// Integers given to new mapped records of the set, before their rows are there.
  private(set) var assigned: KeyAssignment

  /// Values of rows of the set that were cleared so that others could take them, by record name and column.
  var cleared: [String: [Int: Value]] = [:]

  /// - Parameter takesEchoes: whether a version that is known already is applied all the same, for repairs.
  init(_ file: FileContext, now: Int64, takesEchoes: Bool = false) {
    self.file = file
    self.now = now
    self.takesEchoes = takesEchoes
    writer = RowWriter(file: file)
    assigned = KeyAssignment(file)
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
    try DeletionApplier(self).apply(deletions)
    try retryWaiting()
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

  // MARK: Taking versions in

  /// Reads a record into its table's columns; parks what can't be read; nil for what needs no applying.
  private func accept(_ record: Record) throws -> FetchedVersion? {
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
      return nil
    case .success(let version):
      // The version that is here already: an echo.
      if !takesEchoes, let tag = record.changeTag, try file.names.record(named: record.id.name, plan)?.tag == tag {
        return try file.inbox.find(record.id.name) == nil ? nil : version
      }
      return version
    }
  }

  private func applySaves(_ versions: [FetchedVersion]) throws {
    let ordered = versions.sorted { ($0.plan.rank, $0.plan.number, $0.name) < ($1.plan.rank, $1.plan.number, $1.name) }
    for version in ordered {
      waiting[version.name] = version
      if version.plan.keyKind == .mapped { try assigned.assign(version) }
    }
    for version in ordered where waiting[version.name] != nil { try applyWithParents(version) }
    if file.connection.hasDeferredForeignKeyViolations {
      throw TablesError.damagedMetadata("a fetched set left foreign keys unsatisfied")
    }
  }

  /// Applies a version after those versions of the set that it refers to. Rows that refer to each other in a circle are
  /// written one after the other under deferred foreign keys (tables M8).
  private func applyWithParents(_ version: FetchedVersion) throws {
    var stack = [version]
    var entered: Set<String> = []
    while let next = stack.last {
      if waiting[next.name] == nil {
        stack.removeLast()
        continue
      }
      if entered.insert(next.name).inserted {
        let parents = try ParentCheck(self).parentsInSet(of: next).filter { !entered.contains($0.name) }
        if !parents.isEmpty {
          stack += parents
          continue
        }
      }
      stack.removeLast()
      waiting[next.name] = nil
      try applyOne(next)
    }
  }

  /// The integer for a record of a mapped table that is about to get a row. One that was put aside while the set was applied
  /// gets its integer only now (tables M10).
  func integer(for version: FetchedVersion) throws -> Int64? {
    try assigned.assign(version)
    return assigned.integer(of: version.name)
  }

  func isWaiting(_ name: String) -> FetchedVersion? { waiting[name] }

  private func applyOne(_ version: FetchedVersion) throws {
    switch try VersionApplier(self, version).apply() {
    case .unchanged:
      try file.inbox.removeParked(version.name)
    case .applied:
      counts.fetched += 1
      try file.inbox.removeParked(version.name)
      arrived.append(version.name)
    case .parked(let reason, let detail, let waitsFor):
      counts.fetched += 1
      try park(version.record, version.plan, reason, detail, waitsFor: waitsFor)
    }
  }

  // MARK: Parking

  /// Names of records whose rows came in this set: others may have waited for them.
  private var arrived: [String] = []

  func noteRemoved() { counts.removed += 1 }

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

  /// Tries parked records whose missing record has come (tables M8), until none is left that can be applied.
  private func retryWaiting() throws {
    while !arrived.isEmpty {
      let names = arrived
      arrived = []
      guard try file.inbox.has(.parked) else { return }
      var freed: [FetchedVersion] = []
      for name in names {
        for entry in try file.inbox.waiting(for: name) {
          guard let record = entry.record, let plan = file.catalog.plan(wireName: record.type),
            case .success(let version) = FetchedVersion.decode(record, file.codec(plan))
          else { continue }
          freed.append(version)
        }
      }
      if freed.isEmpty { return }
      let fetched = counts.fetched
      try applySaves(freed)
      counts.fetched = fetched
    }
  }

  /// Tries the given parked records again.
  func retry(_ entries: [Inbox.Entry]) throws {
    try file.beginApplying()
    let versions = entries.compactMap { entry -> FetchedVersion? in
      guard let record = entry.record, let plan = file.catalog.plan(wireName: record.type) else { return nil }
      guard case .success(let version) = FetchedVersion.decode(record, file.codec(plan)) else { return nil }
      return version
    }
    try applySaves(versions)
    try retryWaiting()
    try file.endApplying()
    counts = ApplyCounts()
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
