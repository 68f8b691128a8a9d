import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Engine section 6 and the weaknesses of section 14 that concern sending.
@Suite struct SendTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(_ limits: CloudLimits = CloudLimits(), settings: SyncSettings = SyncSettings()) throws -> Device {
    let device = try Device(server, clock, settings: settings, limits: limits)
    device.notes.set("0", "first", at: 1)
    try device.sync()
    device.cloud.clearLog()
    device.notes.settled = []
    return device
  }

  @Test("engine section 6: after more than a day a call that only sends fetches first", arguments: [23, 25])
  func aFetchComesFirstAfterMoreThanADay(_ hours: Int64) throws {
    let device = try ready()
    clock.advance(seconds: hours * 3_600)
    device.notes.set("a", "one", at: 2)
    try device.sync(.sendOnly)
    let calls = device.cloud.log.map(\.call)
    let fetch = calls.firstIndex { if case .zoneChanges = $0 { true } else { false } }
    let save = calls.firstIndex { if case .modify = $0 { true } else { false } }
    #expect(save != nil && (hours < 24 ? fetch.map { $0 > save! } ?? true : fetch.map { $0 < save! } ?? false))
  }

  @Test func e1AChangeMadeBeforeACrashIsSentAfterRelaunch() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.relaunch()
    #expect(try device.sync().saved == 1)
    #expect(try device.serverTexts["a"] == "one")
  }

  @Test func e2AChangeAddedWhileABatchIsSettledIsSentByTheSameCall() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.onSettle = { [notes = device.notes] in
      notes.onSettle = nil
      notes.set("a", "two", at: 3)
    }
    let result = try device.sync()
    #expect(result.saved == 2)
    #expect(result.endedQuiet)
    #expect(try device.serverTexts["a"] == "two")
  }

  @Test func e4AnEditDuringItsSaveKeepsItsOwnRevision() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.setAfter { [notes = Unchecked(device.notes), cloud = device.cloud] call in
      guard case .modify = call else { return }
      cloud.setAfter(nil)
      notes.value.set("a", "two", at: 3)
    }
    let result = try device.sync()
    #expect(result.saved == 2)
    #expect(device.notes.settled.map(\.revision) == [1, 2])
    #expect(try device.serverTexts["a"] == "two")
    #expect(device.notes.pendingCount == 0)
  }

  @Test func e9NoRequestIsOverTheCap() throws {
    let device = try ready(CloudLimits(entriesPerRequest: 50))
    for i in 0..<1_000 { device.notes.set("n\(i)", "x", at: 2) }
    let result = try device.sync()
    #expect(result.saved == 1_000)
    for case .modify(_, let operations, _) in device.cloud.log.map(\.call) { #expect(operations.count <= 50) }
  }

  @Test func e9ABatchOverTheCapIsSplit() throws {
    // The category ignores the limit: the engine does not.
    let device = try ready(CloudLimits(entriesPerRequest: 10))
    var entries: [OutgoingEntry] = []
    for i in 0..<25 {
      device.notes.set("n\(i)", "x", at: 2)
      let record = Record(id: RecordID(name: device.notes.recordName("n\(i)"), zone: Device.zone), type: "Note")
      entries.append(OutgoingEntry(operation: RecordOperation(.create, record), revision: 1))
    }
    let request = BatchRequest(limits: CloudLimits(entriesPerRequest: 10), now: 1, isManual: true, deletesOnly: false)
    var send = ZoneSend(
      zone: Device.zone, category: 0, request: request, settings: SyncSettings(), attempts: [:], cap: 10)
    let moment = Moment(wall: 1, uptime: 1, random: 1)
    var sizes: [Int] = []
    var answer = EngineAnswer.batch(OutgoingBatch(zone: Device.zone, entries: entries))
    while case .task(let task) = send.step(answer, ZoneRegistry(), moment) {
      guard case .modify(_, let operations, _) = task else { break }
      sizes.append(operations.count)
      answer = .outcomes(
        operations.map { operation in
          var record = operation.record
          record.changeTag = ChangeTag("1")
          return .saved(record)
        })
    }
    #expect(sizes == [10, 10, 5])
  }

  @Test func e11AnUnreadableRecordStaysPendingAndTheOthersGo() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.set("b", "two", at: 2)
    device.notes.unreadable = ["a"]
    #expect(try device.sync().saved == 1)
    #expect(device.notes.pendingCount == 1)
    device.notes.unreadable = []
    #expect(try device.sync().saved == 1)
    #expect(device.notes.pendingCount == 0)
  }

  @Test func e16SaveThenDeleteWhileStoppedSendsOneDelete() throws {
    let device = try ready()
    device.notes.set("0", "edited", at: 2)
    device.notes.delete("0", at: 3)
    device.relaunch()
    #expect(try device.sync().deleted == 1)
    #expect(device.cloud.sentOperations.map(\.kind) == [.delete])
    #expect(try device.serverTexts.isEmpty)
  }

  @Test func e27AnEchoSendsNothing() throws {
    let device = try ready()
    try device.sync()
    try device.sync()
    #expect(device.cloud.sentOperations.isEmpty)
  }

  @Test func conflictIsMergedAndSentAgainInOneCall() throws {
    let a = try ready()
    let b = try Device(server, clock)
    try b.sync()
    b.notes.set("0", "theirs", at: 5)
    try b.sync()
    a.notes.set("0", "mine", at: 9)
    let result = try a.sync(.sendOnly)
    #expect(result.conflicts == 1)
    #expect(result.saved == 1)
    #expect(try a.serverTexts["0"] == "mine")
  }

  @Test func conflictWithoutServerRecordIsLookedUp() throws {
    let a = try ready()
    let b = try Device(server, clock)
    try b.sync()
    b.notes.set("0", "theirs", at: 5)
    try b.sync()
    a.notes.set("0", "mine", at: 2)
    let name = a.notes.recordName("0")
    a.cloud.fail(.error(CloudError(.exists, "taken")), times: 1) { if case .modify = $0 { true } else { false } }
    let result = try a.sync(.sendOnly)
    #expect(a.cloud.log.contains { $0.call == .lookup(Device.zone, [name]) })
    #expect(result.conflicts == 1)
    #expect(a.notes.notes["0"] == "theirs")
    #expect(a.notes.pendingCount == 0)
  }

  @Test func e38OneConflictInAnAtomicBatchHoldsNothingElse() throws {
    var settings = SyncSettings()
    settings.atomicByZone = true
    let a = try ready(settings: settings)
    let b = try Device(server, clock)
    try b.sync()
    b.notes.set("0", "theirs", at: 5)
    try b.sync()
    a.notes.set("0", "mine", at: 9)
    a.notes.set("x", "new", at: 9)
    let result = try a.sync(.sendOnly)
    #expect(result.saved == 2)
    #expect(try a.serverTexts == ["0": "mine", "x": "new"])
    #expect(a.notes.pendingCount == 0)
  }

  @Test func unknownItemFetchesTheZoneBeforeTheCategoryIsTold() throws {
    let a = try ready()
    let b = try Device(server, clock)
    try b.sync()
    b.notes.delete("0", at: 5)
    try b.sync()
    a.notes.set("0", "mine", at: 9)
    a.notes.calls = []
    let result = try a.sync(.sendOnly)
    // The deletion is found, the later edit wins and the record is made again.
    #expect(a.notes.calls.contains("apply 0 1"))
    #expect(result.saved == 1)
    #expect(try a.serverTexts["0"] == "mine")
  }

  @Test func deletingWhatIsGoneIsSuccess() throws {
    let a = try ready()
    let b = try Device(server, clock)
    try b.sync()
    b.notes.delete("0", at: 5)
    try b.sync()
    a.notes.delete("0", at: 6)
    let result = try a.sync(.sendOnly)
    #expect(result.deleted == 1)
    #expect(a.notes.pendingCount == 0)
  }

  @Test func lostAnswerIsSentAgainAndStoredOnce() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.fail(.lostAnswer) { if case .modify = $0 { true } else { false } }
    let first = try device.sync()
    #expect(first.condition == .offline)
    #expect(!first.endedQuiet)
    #expect(device.notes.reason("a") == .offline)
    let second = try device.sync()
    #expect(second.endedQuiet)
    #expect(device.notes.pendingCount == 0)
    #expect(try device.serverTexts["a"] == "one")
  }

  @Test func limitExceededHalvesDownToTheCulprit() throws {
    let device = try ready()
    for i in 0..<8 { device.notes.set("n\(i)", "x", at: 2) }
    let culprit = device.notes.recordName("n5")
    device.cloud.fail(.error(CloudError(.limitExceeded, "too large")), times: 100) { call in
      guard case .modify(_, let operations, _) = call else { return false }
      return operations.contains { $0.record.id.name == culprit }
    }
    let result = try device.sync()
    #expect(result.saved == 7)
    #expect(result.handedOver == 1)
    #expect(device.notes.reason("n5") == .tooLarge)
    #expect(!result.endedQuiet)
    #expect(result.condition == .paused(.internal))
  }

  @Test func aConflictThatNeverEndsStopsAfterFiveAttempts() throws {
    let device = try ready()
    device.notes.set("0", "mine", at: 9)
    var other = Record(id: RecordID(name: device.notes.recordName("0"), zone: Device.zone), type: "Note")
    other.changeTag = ChangeTag("zzz")
    other.fields = ["text": .string("theirs"), "clock": .int64(3)]
    device.cloud.fail(.error(CloudError(.conflict, "again", serverRecord: other)), times: 1_000) {
      if case .modify = $0 { true } else { false }
    }
    let result = try device.sync()
    let tries = device.cloud.log.filter { if case .modify = $0.call { true } else { false } }.count
    #expect(tries == 5)
    #expect(!result.endedQuiet)
    #expect(result.nextRetry.map { $0 > clock.wallClock } == true)
    device.cloud.heal()
    clock.advance(seconds: 3_600)
    try device.sync()
    #expect(try device.serverTexts["0"] == "mine")
  }

  @Test func settlingThatFailsLeavesTheChangePending() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.settleFailures = 3
    let result = try device.sync()
    #expect(result.failure.map { if case .store = $0 { true } else { false } } == true)
    #expect(device.notes.pendingCount == 1)
    try device.sync()
    #expect(device.notes.pendingCount == 0)
    #expect(try device.serverTexts["a"] == "one")
  }
}

/// Carries a reference into a `@Sendable` closure that runs on the test's own thread.
struct Unchecked<Value>: @unchecked Sendable {
  // Only used from closures that the fault injector calls on the thread that called it.
  let value: Value
  init(_ value: Value) { self.value = value }
}
