import CairnEngine
import CairnRecords

/// A category of the least possible kind: notes of one text each, last edit wins. Its whole state is a value, so that a
/// crash is a copy and a rollback an assignment.
final class NotesCategory: RecordCategory, Rollbackable {
  struct Note: Hashable {
    var text: String
    var clock: Int64
  }

  struct Entry {
    var note: Note?
    var deleteClock: Int64 = 0
    var tag: ChangeTag?
    var isPending = false
    var revision: Int64 = 0
    var reason: PendingReason?
    var retryAt: Int64?
    var needsUser = false
    var isSeen = true
  }

  struct State {
    var entries: [String: Entry] = [:]
    var inFlight: Set<String> = []
    var staged: [ZonePage] = []
    var sealed: [ZonePage] = []
    var inSnapshot = false
  }

  let name: String
  let type: String
  let delivery: CategoryDelivery
  let zone: ZoneID
  var lossPolicy = ZoneLossPolicy.ask
  var state = State()
  var maxBatch = Int.max

  // What a test may look at or break.
  var calls: [String] = []
  var settled: [(name: String, result: EntryResult, revision: Int64)] = []
  var applyFailures = 0
  var settleFailures = 0
  var unreadable: Set<String> = []
  /// Notes that stay pending when they are confirmed, as where what is stored of them contradicts itself.
  var deaf: Set<String> = []
  var onSettle: (() -> Void)?

  init(_ name: String = "notes", type: String = "Note", delivery: CategoryDelivery = .pages, zone: ZoneID) {
    self.name = name
    self.type = type
    self.delivery = delivery
    self.zone = zone
  }

  struct Broken: Error {}

  func mark() -> () -> Void {
    let before = state
    return { [unowned self] in state = before }
  }

  // MARK: Local edits

  func set(_ key: String, _ text: String, at clock: Int64) {
    var entry = state.entries[key] ?? Entry()
    entry.note = Note(text: text, clock: clock)
    touch(&entry)
    state.entries[key] = entry
  }

  func delete(_ key: String, at clock: Int64) {
    guard var entry = state.entries[key] else { return }
    entry.note = nil
    entry.deleteClock = clock
    touch(&entry)
    state.entries[key] = entry
  }

  private func touch(_ entry: inout Entry) {
    entry.isPending = true
    entry.revision += 1
    if entry.needsUser { (entry.reason, entry.needsUser) = (nil, false) }
  }

  var notes: [String: String] { state.entries.compactMapValues { $0.note?.text } }
  var pendingCount: Int { state.entries.values.filter(\.isPending).count }
  func reason(_ key: String) -> PendingReason? { state.entries[key]?.reason }

  // MARK: Sending

  func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    zone == self.zone && (type.map { $0 == self.type } ?? name.hasPrefix(self.type))
  }

  func recordName(_ key: String) -> String { "\(type):\(key)" }
  private func key(_ name: String) -> String { String(name.dropFirst(type.count + 1)) }

  func recoverInFlight() throws { state.inFlight = [] }
  func gatherLocalChanges(now: Int64) throws { calls.append("gather") }
  func zonesWithChanges() throws -> [ZoneID] { pendingCount > 0 ? [zone] : [] }
  var zones: [ZoneID]? { [zone] }
  func policy(for loss: ZoneLoss) -> ZoneLossPolicy { lossPolicy }

  private func mayGo(_ key: String, _ entry: Entry, _ request: BatchRequest) -> Bool {
    guard entry.isPending, request.excluded[recordName(key)] == nil else { return false }
    if request.deletesOnly && entry.note != nil { return false }
    if request.isManual { return true }
    if entry.needsUser { return false }
    return (entry.retryAt ?? 0) <= request.now
  }

  func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    calls.append("batch")
    guard zone == self.zone else { return nil }
    var entries: [OutgoingEntry] = []
    for (key, entry) in state.entries.sorted(by: { $0.key < $1.key }) where mayGo(key, entry, request) {
      if entries.count == min(maxBatch, request.limits.entriesPerRequest) { break }
      if unreadable.contains(key) {
        state.entries[key]?.reason = .internal
        continue
      }
      state.inFlight.insert(key)
      entries.append(OutgoingEntry(operation: operation(key, entry), revision: entry.revision))
    }
    return entries.isEmpty ? nil : OutgoingBatch(zone: zone, entries: entries)
  }

  private func operation(_ key: String, _ entry: Entry) -> RecordOperation {
    var record = Record(id: RecordID(name: recordName(key), zone: zone), type: type, changeTag: entry.tag)
    guard let note = entry.note else {
      return RecordOperation(entry.tag == nil ? .forceDelete : .delete, record, deleteTime: entry.deleteClock)
    }
    record.fields = ["text": .string(note.text), "clock": .int64(note.clock)]
    return RecordOperation(entry.tag == nil ? .create : .update, record)
  }

  func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    if settleFailures > 0 {
      settleFailures -= 1
      throw Broken()
    }
    precondition(batch.entries.count == results.count)
    for (sent, result) in zip(batch.entries, results) {
      let name = sent.operation.record.id.name
      settled.append((name, result, sent.revision))
      state.inFlight.remove(key(name))
      settle(key(name), sent, result)
    }
    onSettle?()
  }

  private func settle(_ key: String, _ sent: OutgoingEntry, _ result: EntryResult) {
    guard var entry = state.entries[key] else { return }
    (entry.reason, entry.retryAt, entry.needsUser) = (nil, nil, false)
    switch result {
    case .saved(let tag):
      entry.tag = tag
      if entry.revision == sent.revision, !deaf.contains(key) { entry.isPending = false }
    case .deleted:
      entry.tag = nil
      if entry.revision == sent.revision {
        state.entries[key] = nil
        return
      }
    case .conflict(let record):
      state.entries[key] = entry
      join(record)
      return
    case .unknownItem: entry.tag = nil
    case .postponed(let reason, let retryAt):
      entry.reason = reason == .unsent ? nil : reason
      entry.retryAt = retryAt
    case .handedOver(let reason, _):
      entry.reason = reason
      entry.needsUser = entry.revision == sent.revision
    }
    state.entries[key] = entry
  }

  func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    state.entries.values.contains { $0.isPending && !$0.needsUser && $0.reason == nil && ($0.retryAt ?? 0) <= now }
  }

  func nextAttempt(in zone: ZoneID) throws -> Int64? { state.entries.values.compactMap(\.retryAt).min() }

  // MARK: Receiving

  func apply(_ page: ZonePage, now: Int64) throws {
    calls.append("apply \(page.records.count) \(page.deletions.count)")
    if applyFailures > 0 {
      applyFailures -= 1
      throw Broken()
    }
    take(page)
  }

  private func take(_ page: ZonePage) {
    for record in page.records { join(record) }
    for deletion in page.deletions { remove(deletion) }
  }

  private func join(_ record: Record) {
    let key = key(record.id.name)
    var entry = state.entries[key] ?? Entry()
    defer { state.entries[key] = entry }
    entry.isSeen = true
    if entry.tag == record.changeTag { return }
    entry.tag = record.changeTag
    guard case .string(let text)? = record.fields["text"], case .int64(let clock)? = record.fields["clock"] else {
      return
    }
    let remote = Note(text: text, clock: clock)
    if let local = entry.note {
      if (local.clock, local.text) > (clock, text) {
        touch(&entry)
      } else {
        entry.note = remote
        entry.isPending = false
      }
    } else if entry.isPending && entry.deleteClock > clock {
      touch(&entry)
    } else {
      entry.note = remote
      entry.isPending = false
    }
  }

  private func remove(_ deletion: RecordDeletion) {
    let key = key(deletion.id.name)
    guard var entry = state.entries[key] else { return }
    if entry.isPending, let note = entry.note, note.clock >= (deletion.time ?? Int64.min) {
      entry.tag = nil
      state.entries[key] = entry
    } else {
      state.entries[key] = nil
    }
  }

  func stage(_ page: ZonePage, now: Int64) throws {
    calls.append("stage \(page.records.count) \(page.deletions.count)")
    state.staged.append(page)
  }

  func seal(_ zone: ZoneID) throws {
    calls.append("seal")
    state.sealed += state.staged
    state.staged = []
  }

  func applySealed(in zone: ZoneID, now: Int64) throws -> Bool {
    guard !state.sealed.isEmpty else { return false }
    calls.append("applySealed")
    if applyFailures > 0 {
      applyFailures -= 1
      throw Broken()
    }
    take(state.sealed.removeFirst())
    return !state.sealed.isEmpty
  }

  func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { zone == self.zone && !state.staged.isEmpty }
  func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {}

  // MARK: Snapshots and zones

  func beginSnapshot(of zone: ZoneID) throws {
    calls.append("snapshot")
    for key in state.entries.keys { state.entries[key]?.isSeen = false }
  }

  func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
    let names = state.entries.filter { !$0.value.isSeen && !$0.value.isPending && $0.value.tag != nil }
      .map { recordName($0.key) }.sorted().filter { $0 > (cursor ?? "") }
    return names.prefix(limit).map { RecordID(name: $0, zone: zone) }
  }

  func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
    calls.append("lost \(loss.rawValue)")
    for key in state.entries.keys { state.entries[key]?.tag = nil }
  }

  func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws {
    calls.append("answer \(answer.rawValue)")
    switch answer {
    case .keepLocal: break
    case .deleteLocal: state.entries = [:]
    case .recreateAndReupload:
      for (key, entry) in state.entries where entry.note != nil { state.entries[key]?.isPending = true }
    }
  }

  func abandonChanges(in zone: ZoneID, now: Int64) throws -> Int {
    let count = pendingCount
    state.entries = [:]
    return count
  }
}
