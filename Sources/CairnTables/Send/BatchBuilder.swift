import CairnEngine
import CairnRecords
import CairnSQLite

/// Takes the next pending changes into one request (tables 3.3).
///
/// Saves go parents first, deletes children first; a save waits for a parent that is pending too, unless both travel in
/// the same request (tables U4). Records that wait for something are left out.
struct BatchBuilder {
  private let file: FileContext
  private let request: BatchRequest
  private(set) var entries: [OutgoingEntry] = []
  private(set) var sent: [String: SentRevision] = [:]
  private var bytes = 0
  /// Bytes of assets to be uploaded: the receipts of the first must still be good when the last is there.
  private var assetBytes: Int64 = 0
  private static let assetLimit: Int64 = 64 << 20
  /// Whether a record of a table in ``linked`` may go as far as its parents are concerned, by table and key.
  private var decided: [Place: Bool] = [:]
  /// Tables with foreign keys, or that some lead to.
  private let linked: Set<Int>
  /// Records that were in no batch before.
  private var firstTaken: [RecordRow] = []
  /// A record was taken before its turn, for a child's sake.
  private var hasTakenParents = false
  private var pendingTables: [Int: Bool] = [:]

  private struct Place: Hashable {
    var table: Int
    var key: Value
  }

  /// A row that can't be read. It must not hold the others (tables U6), but SQLite may refuse every write in the
  /// transaction that met it: the batch is built again without it.
  struct UnreadableRow: Error, Hashable {
    var table: Int
    var key: Value
  }

  /// What an earlier try to build the batch has met.
  struct Obstacles {
    /// Rows to leave out, with reason `internal`.
    var unreadable: Set<UnreadableRow> = []
    /// Whether rows are read one by one, to find out which of them can't be read.
    var readsOneByOne = false
  }

  private let obstacles: Obstacles

  init(_ file: FileContext, _ request: BatchRequest, _ obstacles: Obstacles) {
    self.file = file
    self.request = request
    self.obstacles = obstacles
    // Some databases have no limit.
    let count = min(request.limits.entriesPerRequest, PendingSaves.step)
    entries.reserveCapacity(count)
    sent.reserveCapacity(count)
    linked = Set(file.catalog.plans.flatMap { plan in plan.foreignKeys.flatMap { [plan.number, $0.parent] } })
  }

  private var isFull: Bool {
    entries.count >= request.limits.entriesPerRequest || bytes >= request.limits.bytesPerRequest
      || assetBytes >= Self.assetLimit
  }

  mutating func build() throws {
    if !request.deletesOnly { for plan in file.catalog.plans { try takeSaves(plan) } }
    for plan in file.catalog.plans.reversed() { try takeDeletes(plan) }
    try file.records.noteAttempts(firstTaken, isOrdered: !hasTakenParents)
  }

  private mutating func takeSaves(_ plan: TablePlan) throws {
    let pending = PendingSaves(
      file, plan, readsRows: !obstacles.readsOneByOne, limit: max(1, request.limits.entriesPerRequest))
    var cursor: Value?
    while !isFull {
      let items = try pending.next(after: cursor)
      guard let last = items.last else { return }
      cursor = last.record.key
      for i in items.indices {
        if isFull { return }
        _ = try takeSave(items[i].record, plan, items[i].row)
      }
    }
  }

  private mutating func takeDeletes(_ plan: TablePlan) throws {
    var cursor: Value?
    while !isFull {
      let records = try file.records.pending(.delete, table: plan.number, after: cursor, limit: PendingSaves.step)
      guard let last = records.last else { return }
      cursor = last.key
      for record in records {
        if isFull { return }
        try takeDelete(record, plan)
      }
    }
  }

  // MARK: Saves

  /// Returns whether the record travels in this batch.
  private mutating func takeSave(_ record: RecordRow, _ plan: TablePlan, _ row: PendingSaves.Row) throws -> Bool {
    guard linked.contains(plan.number) else { return try isDue(record) && takeReadable(record, plan, row) }
    let place = Place(table: record.table, key: record.key)
    if let known = decided[place] { return known }
    // Rows on a circle of references travel together: while the parents are looked at, the record counts as taken.
    decided[place] = true
    let taken = try isDue(record) && takeReadable(record, plan, row)
    decided[place] = taken
    return taken
  }

  private mutating func takeReadable(_ record: RecordRow, _ plan: TablePlan, _ row: PendingSaves.Row) throws -> Bool {
    if obstacles.unreadable.contains(UnreadableRow(table: record.table, key: record.key)) {
      try postpone(record, .internal, retryAt: request.now + Self.unreadableDelay)
      return false
    }
    do {
      let values =
        switch row {
        case .read(let values): values as [Value]?
        case .notRead: try file.row(plan, record.key)
        }
      return try parentsAllow(plan, values) && compose(record, plan, values)
    } catch let error as SQLiteError where error.isUnreadable {
      throw UnreadableRow(table: record.table, key: record.key)
    }
  }

  /// How long a row that could not be read waits, ms.
  private static let unreadableDelay: Int64 = 60_000

  /// Whether the record was refused in this call already; the next call tries it again if it may.
  private func hasHadItsTurn(_ name: String) -> Bool { request.excluded[name] != nil }

  private func isDue(_ record: RecordRow) -> Bool {
    switch record.reason {
    case nil, .unsent, .offline: request.isManual || (record.retryAt ?? 0) <= request.now
    case .throttled: (record.retryAt ?? 0) <= request.now
    case .quota, .internal, .unavailable: request.isManual || (record.retryAt ?? 0) <= request.now
    case .rejected, .tooLarge, .permission, .missingParent: request.isManual
    case .signedOut: true
    case .zoneGone, .nullKey, .schema, .gated, .disabled: false
    }
  }

  /// Whether every parent is confirmed, or travels with this request.
  private mutating func parentsAllow(_ plan: TablePlan, _ row: [Value]?) throws -> Bool {
    guard let row else { return true }
    for foreignKey in plan.foreignKeys where try hasPendingSaves(foreignKey.parent) {
      guard let parent = file.catalog.plan(foreignKey.parent),
        let key = try parentKey(foreignKey, parent, row),
        let parentRecord = try file.records.find(parent.number, key: key), parentRecord.pending == .save
      else { continue }
      if isFull && decided[Place(table: parent.number, key: key)] != true { return false }
      hasTakenParents = true
      if try !takeSave(parentRecord, parent, .notRead) { return false }
    }
    return true
  }

  private func parentKey(_ foreignKey: ForeignKeyPlan, _ parent: TablePlan, _ row: [Value]) throws -> Value? {
    guard foreignKey.parentColumns == parent.keyColumns else { return nil }
    return RowKey.canonical(foreignKey.columns.map { row[$0] }, parent)
  }

  private mutating func hasPendingSaves(_ table: Int) throws -> Bool {
    if let known = pendingTables[table] { return known }
    let some = try !file.records.pending(.save, table: table, after: nil, limit: 1).isEmpty
    pendingTables[table] = some
    return some
  }

  private mutating func compose(_ record: RecordRow, _ plan: TablePlan, _ row: [Value]?) throws -> Bool {
    let parkedName = record.flags.contains(.parked) ? try file.names.name(of: record, plan) : nil
    if let parkedName { return try composeParked(record, plan, parkedName) }
    guard let row else { return false }
    guard let name = try file.names.name(of: record, plan) else {
      try postpone(record, .missingParent)
      return false
    }
    if hasHadItsTurn(name) { return false }
    if try isNameOfAnother(name, record, plan) {
      try postpone(record, .rejected)
      return false
    }
    do {
      let operation = try RecordComposer(file).save(record, plan, row: row, name: name)
      return try add(operation, record, name)
    } catch RecordComposer.Obstacle.missingParent {
      try postpone(record, .missingParent)
      return false
    }
  }

  /// Two rows have one name where they spell a natural parent in two ways that it takes for one: only one is synced.
  private func isNameOfAnother(_ name: String, _ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    guard plan.keyKind == .natural, file.names.mayDiffer(record.key, plan) else { return false }
    guard let named = try file.names.record(named: name, plan) else { return false }
    return named.key != record.key
  }

  /// A row that was put aside is saved all the same, from its parked version (tables M10).
  private mutating func composeParked(_ record: RecordRow, _ plan: TablePlan, _ name: String) throws -> Bool {
    guard !hasHadItsTurn(name), let parked = try file.inbox.find(name)?.record else { return false }
    var outgoing = parked
    outgoing.changeTag = record.tag
    if case .success(var content) = file.codec(plan).content(of: parked) {
      // A replace: what the server has as an asset and is none any more goes by itself.
      _ = try OutgoingAssets(file).choose(&content, plan, name: name, isOnServer: record.tag != nil) { _ in false }
      outgoing.fields = file.codec(plan).encode(content)
    }
    return try add(RecordOperation(record.tag == nil ? .create : .replace, outgoing), record, name)
  }

  // MARK: Deletes

  private mutating func takeDelete(_ record: RecordRow, _ plan: TablePlan) throws {
    guard isDue(record), let name = try file.names.name(of: record, plan), !hasHadItsTurn(name) else {
      return
    }
    let stub = Record(id: RecordID(name: name, zone: file.zone), type: plan.wireName, changeTag: record.tag)
    _ = try add(RecordOperation(.delete, stub, deleteTime: record.deletedAt), record, name)
  }

  // MARK: Taking

  private mutating func add(_ operation: RecordOperation, _ record: RecordRow, _ name: String) throws -> Bool {
    let (size, ofAssets) = operation.record.approximateSizes
    if size > request.limits.bytesPerRecord {
      try postpone(record, .tooLarge)
      return false
    }
    bytes += size
    assetBytes += ofAssets
    entries.append(OutgoingEntry(operation: operation, revision: record.revision))
    sent[name] = SentRevision(record)
    // Of a record with a tag the server knows in any case.
    if record.tag == nil, !record.flags.contains(.attempted) { firstTaken.append(record) }
    return true
  }

  private func postpone(_ record: RecordRow, _ reason: PendingReason, retryAt: Int64? = nil) throws {
    var waiting = record
    waiting.reason = reason
    if let retryAt { waiting.retryAt = retryAt }
    try file.records.update(record, to: waiting)
  }
}

/// What a batch took of a record: tells, when the answer comes, what was changed meanwhile.
struct SentRevision {
  var table: Int
  var key: Value
  var revision: Int64
  var clocks: FieldClocks
  var isSave: Bool

  init(_ record: RecordRow) {
    table = record.table
    key = record.key
    revision = record.revision
    clocks = record.clocks
    isSave = record.pending == .save
  }
}

extension Record {
  /// About as many bytes as the record takes in a request, and the bytes of its assets that are to be uploaded.
  fileprivate var approximateSizes: (record: Int, assets: Int64) {
    var size = 120 + id.name.utf8.count
    var assets: Int64 = 0
    // By index: a loop over elements would retain each.
    fields.storage.withUnsafeBufferPointer { fields in
      for i in fields.indices {
        size += fields[i].name.utf8.count + 30
        switch fields[i].value {
        case .string(let text)?: size += text.utf8.count
        case .bytes(let bytes)?: size += bytes.count * 4 / 3
        case .reference(let reference)?: size += reference.recordName.utf8.count + 20
        case .asset(let asset)?:
          size += 12
          if asset.pendingHash != nil { assets += asset.size }
        default: size += 12
        }
      }
    }
    return (size, assets)
  }
}
