import CairnEngine
import CairnRecords
import CairnSQLite

/// What `cairn status` shows (tables section 7).
public struct StatusReport: Hashable, Sendable {
  /// One synced table.
  public struct Table: Hashable, Sendable {
    public var name: String
    /// Live records whose rows are in the table: those that are parked have none.
    public var rows: Int
    public var pending: Int
    public var parked: Int
  }

  /// Why changes wait.
  public struct Reason: Hashable, Sendable {
    public var reason: PendingReason
    public var count: Int
    /// ms since 1970.
    public var nextAttempt: Int64?
  }

  public var tables: [Table]
  public var pending: Int
  public var parked: Int
  public var reasons: [Reason]
  /// ms since 1970 of the last sync that did everything.
  public var lastSync: Int64?
  public var place: SyncPlace
  /// Tables that are suspended until their schema is repaired.
  public var suspended: [String]
  /// Users whose state the file keeps, with the changes that were never sent (tables L10).
  public var setAside: [String: Int]
}

extension SyncedDatabase {
  /// Takes up what programs wrote since, and counts. Uses counters: no table is read.
  public func status() throws -> StatusReport {
    let unfolded = try foldIfPossible() ? [:] : UnfoldedChanges(file).count()
    var tables: [StatusReport.Table] = []
    for plan in file.catalog.plans.sorted(by: { $0.name < $1.name }) {
      tables.append(
        StatusReport.Table(
          name: plan.name, rows: Int(try file.liveRows(plan)) - (try withoutRow(plan)),
          pending: try pendingCount(plan) + nullKeys(plan) + unfolded[plan.number, default: 0],
          parked: try file.inbox.parkedCount(table: plan.number)))
    }
    let settings = file.settings
    return StatusReport(
      tables: tables, pending: tables.reduce(0) { $0 + $1.pending }, parked: try file.inbox.parkedCount(),
      reasons: try reasons(unfolded: unfolded.values.reduce(0, +)),
      lastSync: try settings.get(.lastSync).flatMap { Int64($0) }, place: try place(),
      suspended: file.catalog.suspended.map(\.name),
      setAside: Dictionary(
        try FiledIdentities(file.connection).entries().map { ($0.user, $0.pending) }, uniquingKeysWith: +))
  }

  /// Another process may hold the write lock, or the file may not be written to: then nothing is folded.
  private func foldIfPossible() throws -> Bool {
    if isReadOnly { return false }
    do {
      try Folder.fold(file)
      return true
    } catch let error as SQLiteError where error.isBusy {
      return false
    }
  }

  private func pendingCount(_ plan: TablePlan) throws -> Int {
    let count = try file.connection.scalar(
      "SELECT count(*) FROM cairn_record INDEXED BY cairn_record_pending WHERE pending > 0 AND tbl = ?",
      .integer(Int64(plan.number)))
    return Int(count?.integer ?? 0)
  }

  /// Live records that are parked without a row. Looks at parked records only, each by its name.
  private func withoutRow(_ plan: TablePlan) throws -> Int {
    try file.inbox.parkedNames(table: plan.number).reduce(0) { count, name in
      guard let row = try file.names.record(named: name, plan), row.isAlive, row.flags.contains(.parked) else {
        return count
      }
      return count + 1
    }
  }

  private func nullKeys(_ plan: TablePlan) throws -> Int {
    let count = try file.connection.scalar(
      "SELECT null_keys FROM cairn_table WHERE number = ?", .integer(Int64(plan.number)))
    return Int(count?.integer ?? 0)
  }

  private func reasons(unfolded: Int) throws -> [StatusReport.Reason] {
    var result = try file.connection.rows(
      """
      SELECT coalesce(json_extract(rest, '$.reason'), 'unsent'), count(*), min(json_extract(rest, '$.retry'))
      FROM cairn_record WHERE pending > 0 GROUP BY 1 ORDER BY 1
      """
    ).compactMap { row -> StatusReport.Reason? in
      guard let reason = row[0].text.flatMap(PendingReason.init(rawValue:)) else { return nil }
      return StatusReport.Reason(reason: reason, count: Int(row[1].integer ?? 0), nextAttempt: row[2].integer)
    }
    if unfolded > 0 {
      let known = result.firstIndex { $0.reason == .unsent }
      let unsent = StatusReport.Reason(
        reason: .unsent, count: (known.map { result[$0].count } ?? 0) + unfolded, nextAttempt: nil)
      if let known { result[known] = unsent } else { result.append(unsent) }
    }
    let withoutKey = try file.catalog.plans.reduce(0) { try $0 + nullKeys($1) }
    if withoutKey > 0 { result.append(StatusReport.Reason(reason: .nullKey, count: withoutKey, nextAttempt: nil)) }
    return result
  }
}

extension FileContext {
  /// Live records of a table, from the counter that fold and apply keep.
  func liveRows(_ plan: TablePlan) throws -> Int64 {
    try connection.scalar("SELECT live FROM cairn_table WHERE number = ?", .integer(Int64(plan.number)))?.integer ?? 0
  }
}

extension SyncedDatabase {
  /// The numbers that decide how a sync ended.
  public struct Counters: Hashable, Sendable {
    public var pending: Int
    /// Pending with a reason other than `unsent`.
    public var waiting: Int
    public var parked: Int
    /// Tables are suspended, or rows are missing (tables T30).
    public var needsSchemaRepair: Bool
  }

  /// Counts by the indexes of pending and parked records; no table is read.
  public func counters() throws -> Counters {
    let row = try file.connection.rows(
      """
      SELECT (SELECT count(*) FROM cairn_record WHERE pending > 0), (SELECT sum(null_keys) FROM cairn_table),
        (SELECT count(*) FROM cairn_record WHERE pending > 0 AND json_extract(rest, '$.reason') <> 'unsent')
      """)[0]
    let withoutKey = Int(row[1].integer ?? 0)
    return Counters(
      pending: Int(row[0].integer ?? 0) + withoutKey, waiting: Int(row[2].integer ?? 0) + withoutKey,
      parked: try file.inbox.parkedCount(),
      needsSchemaRepair: try !file.catalog.suspended.isEmpty || !MissingRows(file).known().isEmpty)
  }
}
