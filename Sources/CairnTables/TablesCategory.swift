import CairnEngine
import CairnRecords
import CairnSQLite

/// The rows of a SQLite file's tables as a category of the sync engine (docs/spec/tables.md).
///
/// Confined to the engine's thread, like the connection that it works on.
public final class TablesCategory: RecordCategory {
  static let engineName = "tables"
  public let name = TablesCategory.engineName
  public let delivery = CategoryDelivery.pages
  /// What was done since ``resetCounts()``.
  public private(set) var counts = TablesCounts()

  let file: FileContext
  /// Revisions of the batch that was taken last, by record name.
  private(set) var sent: [String: SentRevision] = [:]
  private var unseenNames: [String] = []
  /// Some row can't be read: reading rows together would fail for every batch.
  private var readsOneByOne = false

  init(_ file: FileContext) { self.file = file }

  public func resetCounts() { counts = TablesCounts() }

  /// Whether records of this type are rows or schemas of tables: other categories' types contain an upper-case letter
  /// (tables 1.3).
  static func isType(_ type: String) -> Bool { !type.utf8.contains { (65...90).contains($0) } && type != "users" }

  /// A deletion without type is told by its name's prefix.
  public func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    guard zone == file.zone else { return false }
    if let type { return Self.isType(type) }
    return name.utf8.contains(UInt8(ascii: ":"))
  }

  // MARK: Sending

  public func gatherLocalChanges(now: Int64) throws { try Folder.fold(file) }

  public func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    var obstacles = BatchBuilder.Obstacles(readsOneByOne: readsOneByOne)
    while true {
      do {
        return try buildBatch(in: zone, request, obstacles)
      } catch let row as BatchBuilder.UnreadableRow where obstacles.unreadable.insert(row).inserted {
        continue
      } catch is PendingSaves.RowsUnreadable {
        readsOneByOne = true
        obstacles.readsOneByOne = true
      }
    }
  }

  private func buildBatch(
    in zone: ZoneID, _ request: BatchRequest, _ obstacles: BatchBuilder.Obstacles
  ) throws -> OutgoingBatch? {
    try file.transaction {
      try Folder.fold(file)
      file.large.beginBatch()
      var builder = BatchBuilder(file, request, obstacles)
      try builder.build()
      sent = builder.sent
      return builder.entries.isEmpty ? nil : OutgoingBatch(zone: zone, entries: builder.entries)
    }
  }

  public func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    try file.transaction(confirmsAttempts: true) {
      let isConfirmed =
        results.count == sent.count && batch.entries.count == sent.count
        && results.allSatisfy { if case .saved = $0 { true } else if case .deleted = $0 { true } else { false } }
      if !isConfirmed { try file.records.writeAttempts() }
      try Folder.fold(file)
      var settlement = Settlement(file, now: now)
      try settlement.settle(batch, results, sent)
      try file.records.forgetAttempts()
      counts.saved += settlement.saved
      counts.deleted += settlement.deleted
      counts.conflicts += settlement.conflicts
    }
  }

  public func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    if try file.connection.scalar("SELECT 1 FROM cairn_log LIMIT 1") != nil { return true }
    return try file.connection.scalar(
      """
      SELECT 1 FROM cairn_record WHERE pending > 0 AND (coalesce(json_extract(rest, '$.reason'), 'offline') = 'offline'
        OR json_extract(rest, '$.retry') IS NOT NULL) AND coalesce(json_extract(rest, '$.retry'), 0) <= ? LIMIT 1
      """, .integer(now)) != nil
  }

  public func nextAttempt(in zone: ZoneID) throws -> Int64? {
    try file.connection.scalar("SELECT min(json_extract(rest, '$.retry')) FROM cairn_record WHERE pending > 0")?.integer
  }

  public func recoverInFlight() throws {
    sent = [:]
  }

  // MARK: Receiving

  public func apply(_ page: ZonePage, now: Int64) throws {
    try file.transaction {
      try Folder.fold(file)
      try noteSeen(page)
      try apply(page.records, page.deletions, now: now)
      if !page.moreComing { try dropAssetBytes() }
    }
  }

  private func apply(_ records: [Record], _ deletions: [RecordDeletion], now: Int64) throws {
    var rows: [Record] = []
    rows.reserveCapacity(records.count)
    for record in records {
      if record.type == PublishedTable.recordType { try file.published.take(record) } else { rows.append(record) }
    }
    let applied = try file.applyWithAssets(rows, deletions, now: now)
    counts.fetched += applied.fetched
    counts.removed += applied.removed
  }

  /// What the server answered for parents that fetched children keep (tables M13).
  func takeWanted(_ answers: [(name: String, answer: Result<Record, CloudError>)], now: Int64) throws {
    try file.transaction {
      try Folder.fold(file)
      let wanted = WantedParents(file)
      var records: [Record] = []
      for (name, answer) in answers {
        switch answer {
        case .success(let record):
          records.append(record)
          try wanted.release([name])
        case .failure(let error) where error.code == .notFound: try wanted.giveUp(name)
        case .failure: continue
        }
      }
      try apply(records, [], now: now)
    }
  }

  public func stage(_ page: ZonePage, now: Int64) throws {
    try file.transaction {
      try noteSeen(page)
      for record in page.records {
        let plan = file.catalog.plan(wireName: record.type)
        try file.inbox.put(Inbox.Entry(name: record.id.name, stage: .staged, record: record), table: plan)
      }
      for deletion in page.deletions {
        let plan = file.names.plan(ofName: deletion.id.name)
        try file.inbox.put(
          Inbox.Entry(name: deletion.id.name, stage: .staged, record: nil, deletedAt: deletion.time), table: plan)
      }
    }
  }

  public func seal(_ zone: ZoneID) throws { try file.inbox.seal() }

  /// Entries of a sealed set per transaction: a few tens of milliseconds of the write lock.
  private static let sealedChunk = 500

  public func applySealed(in zone: ZoneID, now: Int64) throws -> Bool {
    // Asked at the start of every sync: one without work takes no write lock.
    guard try file.inbox.has(.sealed) else { return false }
    return try file.transaction {
      try Folder.fold(file)
      let entries = try file.inbox.sealed(limit: Self.sealedChunk)
      for entry in entries { try file.inbox.removeSealed(entry.name) }
      let deletions = entries.filter { $0.record == nil }.map {
        RecordDeletion(id: RecordID(name: $0.name, zone: file.zone), time: $0.deletedAt)
      }
      try apply(entries.compactMap(\.record), deletions, now: now)
      let isMore = try file.inbox.has(.sealed)
      if !isMore { try dropAssetBytes() }
      return isMore
    }
  }

  public func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { try file.inbox.has(.staged) }

  public func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {
    let entries = try file.retriable(all: all, now: now)
    if entries.isEmpty { return }
    try file.transaction {
      try Folder.fold(file)
      try Applier(file, now: now).retry(file.retriable(all: all, now: now))
    }
  }

  // MARK: Snapshots

  public func beginSnapshot(of zone: ZoneID) throws {
    try file.connection.run("DELETE FROM cairn_seen")
    try file.settings.set(.snapshot, "1")
  }

  private func noteSeen(_ page: ZonePage) throws {
    guard try file.settings.get(.snapshot) != nil else { return }
    let statement = try file.connection.cached("INSERT OR IGNORE INTO cairn_seen(name) VALUES (?1)")
    for record in page.records {
      try statement.bind(1, record.id.name)
      try statement.run()
    }
  }

  public func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
    if cursor == nil { unseenNames = try findUnseen() }
    let names = unseenNames.drop { name in cursor.map { name <= $0 } ?? false }.prefix(limit)
    if names.isEmpty {
      try file.transaction {
        try file.settings.set(.snapshot, nil)
        try file.connection.run("DELETE FROM cairn_seen")
      }
    }
    return names.map { RecordID(name: $0, zone: zone) }
  }

  private func findUnseen() throws -> [String] {
    let seen = try file.connection.prepare("SELECT 1 FROM cairn_seen WHERE name = ?1")
    let statement = try file.connection.prepare(
      "SELECT \(RecordStore.columns) FROM cairn_record WHERE \(TagCoding.isTagged)")
    var names: [String] = []
    while try statement.step() {
      let row = try file.records.read(statement)
      guard let plan = file.catalog.plan(row.table), let name = try file.names.name(of: row, plan) else { continue }
      seen.reset()
      try seen.bind(1, name)
      if try !seen.step() { names.append(name) }
    }
    return names.sorted()
  }

  // MARK: Lost zones

  public func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
    try file.outcomes.add(.identity, "the zone \(zone.name) was lost on the server (\(loss.rawValue))")
    if loss == .encryptedDataReset { try file.transaction { try FreshStart(file).run() } }
  }

  public func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws {
    switch answer {
    case .keepLocal: break
    case .recreateAndReupload: try file.transaction { try FreshStart(file).run() }
    case .deleteLocal: try TableEmptying(file).backUpAndEmpty(now: now)
    }
    try file.outcomes.add(.identity, "answered \(answer.rawValue)")
  }
}

/// What a sync did with records of rows (tables section 7).
public struct TablesCounts: Hashable, Sendable {
  /// Confirmed saves.
  public var saved = 0
  /// Confirmed deletes.
  public var deleted = 0
  /// Records taken in, applied or parked; no echoes, no deletions.
  public var fetched = 0
  /// Rows removed by fetched deletions.
  public var removed = 0
  /// Saves that were refused and merged.
  public var conflicts = 0

  public init() {}

  public static func += (sum: inout TablesCounts, more: TablesCounts) {
    sum.saved += more.saved
    sum.deleted += more.deleted
    sum.fetched += more.fetched
    sum.removed += more.removed
    sum.conflicts += more.conflicts
  }
}
