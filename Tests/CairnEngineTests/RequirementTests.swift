import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import Testing

@testable import CairnEngine

/// Faults of other engines, each provoked (engine section 14).
@Suite struct RequirementTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(_ limits: CloudLimits = CloudLimits(), others: [NotesCategory] = []) throws -> Device {
    let device = try Device(server, clock, others: others, limits: limits)
    device.notes.set("0", "first", at: 1)
    try device.sync()
    device.cloud.clearLog()
    return device
  }

  static func isModify(_ call: FaultInjector.Call) -> Bool { if case .modify = call { true } else { false } }

  // MARK: Order and dependencies

  /// Runs entries through one batch; `answer` says what the server makes of each. Returns the requests and the results.
  func send(
    _ entries: [OutgoingEntry], limits: CloudLimits, excluded: [String: PendingReason] = [:],
    answer: (RecordOperation) -> OperationOutcome
  ) -> (requests: [[String]], results: [String: EntryResult]) {
    var request = BatchRequest(limits: limits, now: 1, isManual: true, deletesOnly: false)
    request.excluded = excluded
    var send = ZoneSend(
      zone: Device.zone, category: 0, request: request, settings: SyncSettings(), attempts: [:],
      cap: limits.entriesPerRequest)
    let moment = Moment(wall: 1, uptime: 1, random: 1)
    var requests: [[String]] = []
    var results: [String: EntryResult] = [:]
    var next = EngineAnswer.batch(OutgoingBatch(zone: Device.zone, entries: entries))
    while case .task(let task) = send.step(next, ZoneRegistry(), moment) {
      switch task {
      case .modify(_, let operations, _):
        requests.append(operations.map(\.record.id.name))
        next = .outcomes(operations.map(answer))
      case .settle(_, let batch, let list, _):
        for (entry, result) in zip(batch.entries, list) { results[entry.operation.record.id.name] = result }
        next = .done
      default: return (requests, results)
      }
    }
    return (requests, results)
  }

  func entry(_ name: String, needs: [String] = [], bytes: Int = 0) -> OutgoingEntry {
    var record = Record(id: RecordID(name: name, zone: Device.zone), type: "Note")
    if bytes > 0 { record.fields = ["text": .string(String(repeating: "x", count: bytes))] }
    return OutgoingEntry(operation: RecordOperation(.create, record), revision: 1, needs: needs)
  }

  static func saved(_ operation: RecordOperation) -> OperationOutcome {
    var record = operation.record
    record.changeTag = ChangeTag("1")
    return .saved(record)
  }

  @Test func e6AChildNeverTravelsBeforeItsParent() {
    let limits = CloudLimits(entriesPerRequest: 2)
    // The child comes first by mistake, and is in an earlier request than its parent.
    let wrong = send([entry("child", needs: ["parent"]), entry("x"), entry("parent")], limits: limits) {
      Self.saved($0)
    }
    #expect(wrong.requests == [["x"], ["parent"]])
    #expect(wrong.results["child"] == .postponed(.unsent, retryAt: nil))
    let right = send([entry("x"), entry("parent"), entry("child", needs: ["parent"])], limits: limits) {
      Self.saved($0)
    }
    #expect(right.requests == [["x", "parent"], ["child"]])
  }

  @Test func e6AChildIsNotSentWhileItsParentIsUnstored() {
    let refused = CloudError(.accessDenied, "no")
    let sent = send(
      [entry("parent"), entry("child", needs: ["parent"]), entry("grandchild", needs: ["child"])],
      limits: CloudLimits(entriesPerRequest: 1)
    ) { $0.record.id.name == "parent" ? .failed($0.record.id, refused) : Self.saved($0) }
    #expect(sent.requests == [["parent"]])
    #expect(sent.results["parent"] == .handedOver(.permission, refused))
    #expect(sent.results["child"] == .postponed(.missingParent, retryAt: nil))
    #expect(sent.results["grandchild"] == .postponed(.missingParent, retryAt: nil))
    let later = send(
      [entry("child", needs: ["parent"]), entry("x")], limits: CloudLimits(), excluded: ["parent": .permission]
    ) { Self.saved($0) }
    #expect(later.requests == [["x"]])
  }

  /// Engine section 6, caps.
  @Test func e9NoRequestIsOverTheCapOfBytesAndNoRecordOverItsOwn() {
    let limits = CloudLimits(entriesPerRequest: 200, bytesPerRecord: 5_000, bytesPerRequest: 10_000)
    let entries = (0..<10).map { entry("r\($0)", bytes: 3_000) } + [entry("huge", bytes: 6_000)]
    let sent = send(entries, limits: limits) { Self.saved($0) }
    #expect(sent.requests.map(\.count) == [2, 2, 2, 2, 2])
    guard case .handedOver(.tooLarge, let error) = sent.results["huge"] else {
      Issue.record("a record over the limit was sent")
      return
    }
    #expect(error.code == .limitExceeded)
    // A single record that is over the cap of a request alone is tried.
    let alone = send([entry("big", bytes: 4_900)], limits: CloudLimits(bytesPerRequest: 100)) { Self.saved($0) }
    #expect(alone.requests == [["big"]])
  }

  // MARK: Refusals

  @Test func e23ARefusedDeleteStaysKnownAndRetriable() throws {
    let device = try ready()
    let tag = try #require(device.notes.state.entries["0"]?.tag)
    device.notes.delete("0", at: 5)
    device.cloud.fail(.error(CloudError(.accessDenied, "no")), where: Self.isModify)
    try device.sync()
    device.relaunch()
    #expect(device.notes.pendingCount == 1)
    #expect(device.notes.state.entries["0"]?.tag == tag)
    #expect(device.notes.reason("0") == .permission)
    #expect(try device.sync().deleted == 1)
    #expect(try device.serverTexts.isEmpty)
  }

  @Test func e24ARejectedRequestKeepsEntryAndBaseVersion() throws {
    let device = try ready()
    let tag = try #require(device.notes.state.entries["0"]?.tag)
    device.notes.set("0", "second", at: 5)
    device.cloud.fail(.error(CloudError(.badRequest, "rejected")), where: Self.isModify)
    let result = try device.sync()
    #expect(result.handedOver == 1)
    #expect(device.notes.reason("0") == .rejected)
    #expect(device.notes.state.entries["0"]?.tag == tag)
    device.notes.set("0", "third", at: 6)
    device.cloud.clearLog()
    #expect(try device.sync(manual: false).saved == 1)
    #expect(device.cloud.sentOperations.map(\.record.changeTag) == [tag])
  }

  @Test func e25AFailedFirstUploadIsNeverConfirmed() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 5)
    device.cloud.fail(.error(CloudError(.badRequest, "rejected")), where: Self.isModify)
    try device.sync()
    #expect(device.notes.state.entries["a"]?.tag == nil)
    // Not among what a snapshot may sweep, and still an insert when it goes.
    try device.notes.beginSnapshot(of: Device.zone)
    #expect(try device.notes.unseen(in: Device.zone, after: nil, limit: 9).map(\.name) == ["Note:0"])
    device.notes.set("a", "two", at: 6)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.cloud.sentOperations.map(\.kind) == [.create])
    #expect(try device.serverTexts["a"] == "two")
  }

  @Test func e36AReferenceViolationKeepsTheChild() throws {
    let device = try ready()
    device.notes.set("child", "c", at: 5)
    device.cloud.fail(.error(CloudError(.validatingReferenceError, "no parent")), where: Self.isModify)
    try device.sync()
    #expect(device.notes.notes["child"] == "c")
    #expect(device.notes.pendingCount == 1)
    #expect(device.notes.reason("child") == .missingParent)
    #expect(try device.sync().saved == 1)
  }

  @Test func e49WithoutPermissionNothingIsOverwritten() throws {
    let device = try ready()
    device.notes.set("0", "mine", at: 5)
    device.cloud.fail(.error(CloudError(.accessDenied, "the share's root")), times: 9, where: Self.isModify)
    let result = try device.sync()
    #expect(result.condition == .paused(.permission))
    #expect(result.handedOver == 1)
    let handed = device.notes.settled.compactMap { settled -> CloudError? in
      if case .handedOver(.permission, let error) = settled.result { error } else { nil }
    }
    #expect(handed.map(\.code) == [.accessDenied])
    // Neither side has been replaced by the other.
    #expect(device.notes.notes["0"] == "mine")
    #expect(try device.serverTexts["0"] == "first")
    device.cloud.clearLog()
    try device.sync(manual: false)
    #expect(device.cloud.sentOperations.isEmpty)
    #expect(device.notes.notes["0"] == "mine")
  }

  // MARK: Zones, convergence, resources

  @Test func e29AZoneResetQueuesOnlyThatZonesRecords() throws {
    let workZone = ZoneID(name: "work")
    let work = NotesCategory("work", type: "Work", zone: workZone)
    let device = try Device(server, clock, others: [work], allZones: true)
    device.notes.set("a", "1", at: 1)
    work.set("w", "1", at: 1)
    try device.sync()
    _ = try device.plain.deleteZones([workZone])
    try device.sync()
    device.cloud.clearLog()
    try device.session.decide(workZone, category: "work", .recreateAndReupload)
    try device.sync()
    var sent: [ZoneID: [String]] = [:]
    for case .modify(let zone, let operations, _) in device.cloud.log.map(\.call) {
      sent[zone, default: []] += operations.map(\.record.id.name)
      #expect(operations.allSatisfy { $0.record.id.zone == zone })
    }
    #expect(sent == [workZone: ["Work:w"]])
  }

  /// The record is deleted and made again elsewhere while this device's delete waits; the later one wins everywhere.
  @Test(arguments: [3, 9] as [Int64]) func e44ADeleteThatWaitsMeetsARecreatedRecord(recreatedAt: Int64) throws {
    let a = try ready()
    let b = try Device(server, clock)
    try b.sync()
    a.notes.delete("0", at: 5)
    b.notes.delete("0", at: 2)
    try b.sync()
    b.notes.set("0", "again", at: recreatedAt)
    try b.sync()
    for _ in 0..<3 {
      try a.sync()
      try b.sync()
    }
    let wanted = recreatedAt > 5 ? ["0": "again"] : [:]
    #expect(a.notes.notes == wanted)
    #expect(b.notes.notes == wanted)
    #expect(try a.serverTexts == wanted)
    #expect(a.notes.pendingCount == 0 && b.notes.pendingCount == 0)
  }

  @Test func e14WithoutPushDevicesConvergeByPolling() throws {
    let a = try ready()
    let b = try Device(server, clock)
    var scheduler = Scheduler(settings: SyncSettings(), now: Moment(wall: 0, uptime: clock.uptime, random: 1))
    var polls = 0
    a.notes.set("0", "later", at: 5)
    try a.sync()
    for _ in 0..<40 {
      let now = Moment(wall: clock.wallClock, uptime: clock.uptime, random: 1)
      if scheduler.isDue(now) {
        scheduler.noteStart()
        scheduler.noteFinish(try b.sync(manual: false), now)
        polls += 1
      }
      clock.advance(seconds: 60)
    }
    #expect(polls == 3)
    #expect(b.notes.notes == ["0": "later"])
  }

  /// The engine's thread holds nothing of the engine: closing or dropping it ends it.
  @Test func e41FiveHundredEnginesReturnTheirMemoryAndThreads() async throws {
    struct Weak { weak var notes: NotesCategory? }
    var made: [Weak] = []
    func threads() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0 }
    let before = threads()
    for _ in 0..<500 {
      let box = try SyncEngineTests.Box(server, clock)
      made.append(Weak(notes: box.notes))
      let engine = box.engine(automatic: false)
      if made.count % 50 == 0 { try await engine.sync() }
    }
    let limit = ContinuousClock.now + Patience.limit
    while ContinuousClock.now < limit {
      if made.allSatisfy({ $0.notes == nil }) && threads() < before + 100 { break }
      await Task.yield()
    }
    #expect(made.allSatisfy { $0.notes == nil })
    #expect(threads() < before + 100)
  }
}
