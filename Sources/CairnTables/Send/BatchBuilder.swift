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

  private let unreadable: Set<UnreadableRow>

  /// - Parameter unreadable: rows to leave out, with reason `internal`.
  init(_ file: FileContext, _ request: BatchRequest, without unreadable: Set<UnreadableRow>) {
    self.file = file
    self.request = request
    self.unreadable = unreadable
    linked = Set(file.catalog.plans.flatMap { plan in plan.foreignKeys.flatMap { [plan.number, $0.parent] } })
  }

  /// Rows read per step through the pending records.
  private static let step = 200

  private var isFull: Bool {
    entries.count >= request.limits.entriesPerRequest || bytes >= request.limits.bytesPerRequest
      || assetBytes >= Self.assetLimit
  }

  mutating func build() throws {
    if !request.deletesOnly {
      for plan in file.catalog.plans { try walk(plan, .save) { builder, row in _ = try builder.takeSave(row, plan) } }
    }
    for plan in file.catalog.plans.reversed() {
      try walk(plan, .delete) { builder, row in try builder.takeDelete(row, plan) }
    }
    try file.records.markAttempted(firstTaken)
  }

  private mutating func walk(
    _ plan: TablePlan, _ change: PendingChange, _ take: (inout BatchBuilder, RecordRow) throws -> Void
  ) throws {
    var cursor: Value?
    while !isFull {
      let rows = try file.records.pending(change, table: plan.number, after: cursor, limit: Self.step)
      for row in rows {
        if isFull { return }
        try take(&self, row)
      }
      guard rows.count == Self.step else { return }
      cursor = rows.last?.key
    }
  }

  // MARK: Saves

  /// Returns whether the record travels in this batch.
  private mutating func takeSave(_ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    guard linked.contains(plan.number) else { return try isDue(record) && takeReadable(record, plan) }
    let place = Place(table: record.table, key: record.key)
    if let known = decided[place] { return known }
    // Rows on a circle of references travel together: while the parents are looked at, the record counts as taken.
    decided[place] = true
    let taken = try isDue(record) && takeReadable(record, plan)
    decided[place] = taken
    return taken
  }

  private mutating func takeReadable(_ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    if unreadable.contains(UnreadableRow(table: record.table, key: record.key)) {
      try postpone(record, .internal, retryAt: request.now + Self.unreadableDelay)
      return false
    }
    do {
      return try parentsAllow(record, plan) && compose(record, plan)
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
  private mutating func parentsAllow(_ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    guard try plan.foreignKeys.contains(where: { try hasPendingSaves($0.parent) }),
      let row = try file.row(plan, record.key)
    else { return true }
    for foreignKey in plan.foreignKeys where try hasPendingSaves(foreignKey.parent) {
      guard let parent = file.catalog.plan(foreignKey.parent),
        let key = try parentKey(foreignKey, parent, row),
        let parentRecord = try file.records.find(parent.number, key: key), parentRecord.pending == .save
      else { continue }
      if isFull && decided[Place(table: parent.number, key: key)] != true { return false }
      if try !takeSave(parentRecord, parent) { return false }
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

  private mutating func compose(_ record: RecordRow, _ plan: TablePlan) throws -> Bool {
    let parkedName = record.flags.contains(.parked) ? try file.names.name(of: record, plan) : nil
    if let parkedName { return try composeParked(record, plan, parkedName) }
    guard let row = try file.row(plan, record.key) else { return false }
    guard let name = try file.names.name(of: record, plan) else {
      try postpone(record, .missingParent)
      return false
    }
    if hasHadItsTurn(name) { return false }
    do {
      let operation = try RecordComposer(file).save(record, plan, row: row, name: name)
      return try add(operation, record, name)
    } catch RecordComposer.Obstacle.missingParent {
      try postpone(record, .missingParent)
      return false
    }
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
    let size = operation.record.approximateSize
    if size > request.limits.bytesPerRecord {
      try postpone(record, .tooLarge)
      return false
    }
    bytes += size
    for case .asset(let asset)? in operation.record.fields.lazy.map(\.value) where asset.pendingHash != nil {
      assetBytes += asset.size
    }
    entries.append(OutgoingEntry(operation: operation, revision: record.revision))
    sent[name] = SentRevision(record)
    if !record.flags.contains(.attempted) { firstTaken.append(record) }
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
  var revision: Int64
  var clocks: FieldClocks
  var isSave: Bool

  init(_ record: RecordRow) {
    revision = record.revision
    clocks = record.clocks
    isSave = record.pending == .save
  }
}

extension Record {
  /// About as many bytes as the record takes in a request.
  var approximateSize: Int {
    fields.reduce(120 + id.name.utf8.count) { size, field in
      let value: Int
      switch field.value {
      case .string(let text)?: value = text.utf8.count
      case .bytes(let bytes)?: value = bytes.count * 4 / 3
      case .reference(let reference)?: value = reference.recordName.utf8.count + 20
      default: value = 12
      }
      return size + field.name.utf8.count + 30 + value
    }
  }
}
