import CairnRecords

/// A category for apps that keep no outbox of their own: pending changes are in the engine's queue (engine section 2),
/// and a delegate provides their records. One per session; its rows are filed by identity.
///
/// Used on the engine's thread, and wherever that is legal for the store: a change is durable when ``add(_:)`` returns.
public final class RecordQueueCategory: RecordCategory {
  public let name: String
  public let zones: [ZoneID]?
  /// Types of records that are the app's; nil: all.
  public let types: Set<String>?
  public weak var delegate: (any RecordQueueDelegate)?
  public var delivery: CategoryDelivery { .pages }
  public var wantsSavedRecords: Bool { true }

  private let store: any EngineStore
  private var user: String?
  private var loaded: Loaded?
  /// Seen by the snapshot that runs; lost with a crash, which only means more look-ups.
  private var seen: Set<RecordID> = []
  private var skipped: [RecordID] = []
  /// How long an unreadable record waits, in milliseconds.
  private static let unavailableWait: Int64 = 60_000

  /// The queue, and the number of writes that it stands for: another number in the store means that a transaction was
  /// rolled back, and the queue is read again.
  private struct Loaded {
    var queue: PendingQueue<RecordID>
    var writes: Int64
  }

  public init(
    name: String = "records", store: any EngineStore, zones: [ZoneID]? = nil, types: Set<String>? = nil,
    delegate: (any RecordQueueDelegate)? = nil
  ) {
    self.name = name
    self.store = store
    self.zones = zones
    self.types = types
    self.delegate = delegate
  }

  // MARK: The queue

  /// Adds changes (S1, S2, S5); durable when it returns.
  public func add(_ changes: [PendingState.RecordZoneChange]) throws {
    try change { queue in
      for change in changes {
        switch change {
        case .saveRecord(let id): queue.add(.save, id)
        case .deleteRecord(let id): queue.add(.delete, id)
        }
      }
    }
  }

  /// Removes pending changes of this kind; what is in flight stays (S5).
  public func remove(_ changes: [PendingState.RecordZoneChange]) throws {
    try change { queue in
      for change in changes {
        let (id, kind): (RecordID, PendingKind) =
          switch change {
          case .saveRecord(let id): (id, .save)
          case .deleteRecord(let id): (id, .delete)
          }
        if queue.kind(of: id) == kind { queue.remove(id) }
      }
    }
  }

  /// Lets gated changes go.
  public func release(_ ids: [RecordID]) throws {
    try change { queue in
      for id in ids where queue.blocked(id)?.reason == .gated { queue.block(id, nil) }
    }
  }

  /// Pending changes in order.
  public var pendingRecordZoneChanges: [PendingState.RecordZoneChange] {
    get throws { try queue().pending.map { $0.kind == .save ? .saveRecord($0.id) : .deleteRecord($0.id) } }
  }

  /// Counts by kind and reason, and the next retry time (S9).
  public var summary: PendingSummary { get throws { try queue().summary } }

  private var root: String { SyncSession.sharedKey(StoredKeys.queue(name, user)) }
  private var writesKey: String { SyncSession.sharedKey(StoredKeys.queueWrites(name, user)) }

  private func queue() throws -> PendingQueue<RecordID> {
    let writes = try store.readState(writesKey).flatMap { Int64($0) } ?? 0
    if let loaded, loaded.writes == writes { return loaded.queue }
    let rows = try store.loadState().filter { $0.key.hasPrefix(root) }
    let queue = try PendingQueue<RecordID>(prefix: root, rows: rows)
    loaded = Loaded(queue: queue, writes: writes)
    return queue
  }

  private func change(_ body: (inout PendingQueue<RecordID>) throws -> Void) throws {
    try store.transaction {
      var queue = try queue()
      let writes = loaded?.writes ?? 0
      // The only reference while it changes, so that nothing is copied; if this throws, the queue is read again.
      loaded = nil
      try body(&queue)
      let delta = queue.takeDelta()
      if !delta.isEmpty { try store.writeState(delta.merging([writesKey: String(writes + 1)]) { $1 }) }
      loaded = Loaded(queue: queue, writes: delta.isEmpty ? writes : writes + 1)
    }
  }

  // MARK: Identity

  public func begin(as user: String?) throws {
    self.user = user
    loaded = nil
  }

  public func recoverInFlight() throws { try change { $0.recover() } }
  public func gatherLocalChanges(now: Int64) throws {}
  public func zonesWithChanges() throws -> [ZoneID] { Array(Set(try queue().pending.map(\.id.zone))).sorted() }

  public func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    guard zones?.contains(zone) != false else { return false }
    return type.map { types?.contains($0) != false } ?? true
  }

  // MARK: Sending

  public func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    try store.transaction {
      if request.isManual { try change { Self.freeWaiting(&$0, zone) } }
      while true {
        var taken: QueuedBatch<RecordID>?
        try change { taken = take(zone, request, from: &$0) }
        guard let taken else { return nil }
        let entries = try entries(taken, request.now)
        if !entries.isEmpty { return OutgoingBatch(zone: zone, entries: entries) }
      }
    }
  }

  /// Asks the delegate for the records of a batch, and puts back what it cannot give. The queue is not held meanwhile:
  /// the delegate may add to it.
  private func entries(_ batch: QueuedBatch<RecordID>, _ now: Int64) throws -> [OutgoingEntry] {
    var entries: [OutgoingEntry] = []
    var others: [(RecordID, FlightResult)] = []
    for item in batch.items {
      switch entry(item, now) {
      case .success(let entry): entries.append(entry)
      case .failure(let other): others.append((item.id, other.result))
      }
    }
    if !others.isEmpty {
      try change { queue in for (id, result) in others { queue.settle(id, batch: batch.number, result) } }
    }
    return entries
  }

  private struct Other: Error { var result: FlightResult }

  private static func freeWaiting(_ queue: inout PendingQueue<RecordID>, _ zone: ZoneID) {
    for (id, _) in queue.pending where id.zone == zone {
      guard let blocked = queue.blocked(id), blocked.retryAt != nil || blocked.reason == .quota else { continue }
      queue.block(id, nil)
    }
  }

  private func take(
    _ zone: ZoneID, _ request: BatchRequest, from queue: inout PendingQueue<RecordID>
  ) -> QueuedBatch<RecordID>? {
    func mayGo(_ id: RecordID, _ kind: PendingKind) -> Bool {
      id.zone == zone && request.excluded[id.name] == nil && (kind == .delete || !request.deletesOnly)
    }
    let limit = request.limits.entriesPerRequest
    let ranks = ranks(queue, where: mayGo)
    guard !ranks.isEmpty else { return queue.take(limit: limit, now: request.now, where: mayGo) }
    let order = queue.pending.map(\.id).filter { ranks[$0] != nil && queue.canGo($0, request.now) }
    let sorted = order.enumerated().sorted { (ranks[$0.element] ?? 0, $0.offset) < (ranks[$1.element] ?? 0, $1.offset) }
    let chosen = Set(sorted.prefix(limit).map(\.element))
    var batch = queue.take(limit: limit, now: request.now) { id, _ in chosen.contains(id) }
    let places = Dictionary(sorted.enumerated().map { ($1.element, $0) }) { first, _ in first }
    batch?.items.sort { (places[$0.id] ?? 0) < (places[$1.id] ?? 0) }
    return batch
  }

  private func ranks(
    _ queue: PendingQueue<RecordID>, where mayGo: (RecordID, PendingKind) -> Bool
  ) -> [RecordID: Int] {
    guard let delegate, let first = queue.pending.first(where: { mayGo($0.id, $0.kind) }) else { return [:] }
    func rank(_ id: RecordID, _ kind: PendingKind) -> Int? {
      delegate.rank(of: kind == .save ? .saveRecord(id) : .deleteRecord(id))
    }
    guard rank(first.id, first.kind) != nil else { return [:] }
    var ranks: [RecordID: Int] = [:]
    for (id, kind) in queue.pending where mayGo(id, kind) { ranks[id] = rank(id, kind) ?? 0 }
    return ranks
  }

  private func entry(
    _ item: QueuedBatch<RecordID>.Item, _ now: Int64
  ) -> Result<OutgoingEntry, Other> {
    if item.kind == .delete {
      let (tag, time) = delegate?.deletion(of: item.id) ?? (nil, nil)
      let record = Record(id: item.id, type: "", changeTag: tag)
      let operation = RecordOperation(tag == nil ? .forceDelete : .delete, record, deleteTime: time)
      return .success(OutgoingEntry(operation: operation, revision: item.revision))
    }
    switch provided(item.id) {
    case .record(var record, let needs):
      record.id = item.id
      let operation = RecordOperation(record.changeTag == nil ? .create : .update, record)
      return .success(OutgoingEntry(operation: operation, revision: item.revision, needs: needs))
    case .gone:
      skipped.append(item.id)
      return .failure(Other(result: .success))
    case .unavailable(let reason, let retryAt):
      return .failure(Other(result: .retry(Blocked(reason, retryAt: retryAt ?? now + Self.unavailableWait))))
    case .gated: return .failure(Other(result: .retry(Blocked(.gated))))
    }
  }

  private func provided(_ id: RecordID) -> ProvidedRecord {
    guard let delegate else { return .unavailable(.unavailable, retryAt: nil) }
    do { return try delegate.record(for: id) } catch { return .unavailable(.unavailable, retryAt: nil) }
  }

  public func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    let queue = try queue()
    return queue.pending.contains { $0.id.zone == zone && queue.canGo($0.id, now) }
  }

  public func nextAttempt(in zone: ZoneID) throws -> Int64? { try queue().summary.nextRetry }

  // MARK: Results

  public func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    var sent = SentQueueChanges(zone: batch.zone)
    sent.skipped = skipped
    let stored = Dictionary(batch.returned.map { ($0.id.name, $0) }) { $1 }
    try change { queue in
      for (entry, result) in zip(batch.entries, results) {
        let id = entry.operation.record.id
        note(result, entry, stored[id.name], in: &sent)
        if let number = queue.batch(of: id) { queue.settle(id, batch: number, Self.flight(result)) }
      }
    }
    try delegate?.handleSent(sent)
    try change { queue in for entry in batch.entries { queue.releaseHeld(entry.operation.record.id) } }
    skipped = []
  }

  private func note(_ result: EntryResult, _ entry: OutgoingEntry, _ stored: Record?, in sent: inout SentQueueChanges) {
    let id = entry.operation.record.id
    switch result {
    case .saved(let tag):
      var record = stored ?? entry.operation.record
      record.changeTag = tag
      sent.savedRecords.append(record)
    case .deleted: sent.deletedRecordIDs.append(id)
    default:
      let failure = SentQueueChanges.Failure(id: id, result: result)
      if entry.operation.kind.isDelete { sent.failedDeletes.append(failure) } else { sent.failedSaves.append(failure) }
    }
  }

  /// What the engine tries again itself goes back at its place; the rest waits for the app (engine section 2).
  private static func flight(_ result: EntryResult) -> FlightResult {
    switch result {
    case .saved, .deleted: .success
    case .postponed(.unsent, nil): .retry(nil)
    case .postponed(let reason, let retryAt): .retry(Blocked(reason, retryAt: retryAt))
    case .conflict, .unknownItem: .handedOver(.rejected)
    case .handedOver(let reason, _): .handedOver(reason)
    }
  }

  // MARK: Receiving

  public func apply(_ page: ZonePage, now: Int64) throws { try deliver(page) }

  /// Nothing waits for a seal: the delegate gets each page as it comes, in the transaction of its token.
  public func stage(_ page: ZonePage, now: Int64) throws { try deliver(page) }
  public func seal(_ zone: ZoneID) throws {}
  public func applySealed(in zone: ZoneID, now: Int64) throws -> Bool { false }
  public func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { false }
  public func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {}

  private func deliver(_ page: ZonePage) throws {
    seen.formUnion(page.records.map(\.id))
    guard let delegate else { throw NoDelegate() }
    try delegate.handleFetched(page)
  }

  struct NoDelegate: Error, CustomStringConvertible {
    var description: String { "the delegate that takes fetched records is gone" }
  }

  // MARK: Snapshots and zones

  public func beginSnapshot(of zone: ZoneID) throws { seen = seen.filter { $0.zone != zone } }

  public func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
    let queue = try queue()
    var cursor = cursor
    var found: [RecordID] = []
    while found.count < limit, let delegate {
      let next = try delegate.confirmedRecords(in: zone, after: cursor, limit: limit)
      let wanted = next.filter {
        !seen.contains($0) && queue.kind(of: $0) != .save && queue.kindInFlight(of: $0) != .save
      }
      found += wanted.prefix(limit - found.count)
      guard next.count == limit, let last = next.last else { break }
      cursor = last.name
    }
    return found
  }

  public func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
    try delegate?.handleZoneLost(zone, loss)
  }

  public func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws {
    try delegate?.handleZoneAnswer(zone, answer)
  }

  public func abandonChanges(in zone: ZoneID, now: Int64) throws -> Int {
    var count = 0
    try change { queue in count = queue.removeAll { $0.zone == zone }.count }
    return count
  }
}
