import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// What is promised about events and deliveries (engine O6, O8, O9, E46, E48).
@Suite struct OrderTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: Device

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try Device(server, clock)
    for i in 0..<25 { writer.notes.set("n\(i)", "x\(i)", at: 1) }
    try writer.sync()
  }

  @Test(arguments: [CategoryDelivery.pages, .sealedSet])
  func o6ATokenFollowsTheRecordsThatItCovers(_ delivery: CategoryDelivery) throws {
    let device = try Device(server, clock, delivery: delivery, limits: CloudLimits(entriesPerRequest: 10))
    var seen: [Int] = []
    device.store.failsOn = { [notes = device.notes] delta in
      if delta.contains(where: { $0.key.hasSuffix("/token") && $0.value != nil }) {
        seen.append(notes.notes.count + (notes.state.staged + notes.state.sealed).reduce(0) { $0 + $1.records.count })
      }
      return false
    }
    try device.sync()
    #expect(seen == [10, 20, 25])
  }

  @Test func o8EachIdentifierOnceInADelivery() throws {
    let zone = Device.zone
    func record(_ key: String, _ text: String, _ tag: String) -> Record {
      let id = RecordID(name: "Note:\(key)", zone: zone)
      return Record(
        id: id, type: "Note", changeTag: ChangeTag(tag), fields: ["text": .string(text), "clock": .int64(1)])
    }
    let notes = NotesCategory(zone: zone)
    let deletion = RecordDeletion(id: RecordID(name: "Note:c", zone: zone))
    let revived = RecordDeletion(id: RecordID(name: "Note:b", zone: zone))
    let page = ZonePage(
      zone: zone, records: [record("a", "old", "1"), record("b", "alive", "2"), record("a", "new", "3")],
      deletions: [deletion, revived, deletion], token: ChangeToken("t"), moreComing: false)
    let part = try #require(PageAtHand(page, categories: [notes], active: [0]).parts[0])
    #expect(part.records.map(\.id.name) == ["Note:b", "Note:a"])
    #expect(part.records.last?.fields["text"] == .string("new"))
    #expect(part.deletions == [deletion])
  }

  /// Everything is delivered twice: nothing changes, nothing is sent.
  @Test func o9ARepeatedDeliveryChangesNothing() throws {
    let device = try Device(server, clock)
    try device.sync()
    let before = device.notes.notes
    device.cloud.clearLog()
    var request = SyncRequest()
    request.resync = true
    let result = try device.session.sync(request)
    #expect(result.received == 25)
    #expect(device.notes.notes == before)
    #expect(device.cloud.sentOperations.isEmpty && device.notes.pendingCount == 0)
  }

  /// O9: the token is lost with a crash after the records were stored by a category in a file of its own.
  @Test func o9RecordsWhoseTokenWasLostComeAgain() throws {
    let device = try Device(server, clock)
    device.store.members = []
    device.store.failsOn = { $0.contains { $0.key.hasSuffix("/token") } }
    #expect(try device.sync().failure != nil)
    #expect(device.notes.notes.count == 25)
    device.store.failsOn = nil
    device.relaunch()
    #expect(try device.registry().token(Device.zone) == nil)
    try device.sync()
    #expect(device.notes.notes == writer.notes.notes)
    #expect(device.notes.pendingCount == 0)
  }

  /// E46: what a category does to its copy of a record reaches nobody else.
  @Test func e46AMutatedRecordLeavesTheEnginesCopyAlone() throws {
    final class Mutating: RecordCategory {
      let inner: NotesCategory
      init(_ inner: NotesCategory) { self.inner = inner }
      var name: String { "mutating" }
      var delivery: CategoryDelivery { .sealedSet }
      func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
        inner.claims(type: type, name: name, in: zone)
      }
      func gatherLocalChanges(now: Int64) throws {}
      func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
        var batch = try inner.nextBatch(in: zone, request)
        let kept = batch
        for index in batch?.entries.indices ?? 0..<0 { batch?.entries[index].operation.record.fields = [:] }
        return kept
      }
      func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
        let mutated = results.map { result -> EntryResult in
          guard case .conflict(var record) = result else { return result }
          record.fields.set("text", .string("spoiled"))
          record.fields = [:]
          return result
        }
        try inner.settle(batch, mutated, now: now)
      }
      func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
        try inner.hasSendableChanges(in: zone, now: now)
      }
      func nextAttempt(in zone: ZoneID) throws -> Int64? { nil }
      func apply(_ page: ZonePage, now: Int64) throws {
        var copy = page
        for index in copy.records.indices { copy.records[index].fields = [:] }
        try inner.apply(page, now: now)
      }
      func stage(_ page: ZonePage, now: Int64) throws { try inner.stage(page, now: now) }
      func seal(_ zone: ZoneID) throws { try inner.seal(zone) }
      func applySealed(in zone: ZoneID, now: Int64) throws -> Bool { try inner.applySealed(in: zone, now: now) }
      func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { try inner.hasUnsealedRecords(in: zone) }
      func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {}
      func beginSnapshot(of zone: ZoneID) throws { try inner.beginSnapshot(of: zone) }
      func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
        try inner.unseen(in: zone, after: cursor, limit: limit)
      }
      func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
        try inner.zoneLost(zone, loss, now: now)
      }
    }
    let notes = NotesCategory(zone: Device.zone)
    let store = MemoryStore()
    store.members = [notes]
    let session = SyncSession(
      cloud: try server.cloud(user: "anna"), store: store, categories: [Mutating(notes)], zones: [Device.zone],
      time: clock, randomness: SeededRandomness(seed: 1))
    _ = try session.sync()
    #expect(notes.notes == writer.notes.notes)
    writer.notes.set("n1", "theirs", at: 5)
    try writer.sync()
    notes.set("n1", "mine", at: 9)
    _ = try session.sync()
    #expect(try writer.serverTexts["n1"] == "mine")
  }
}
