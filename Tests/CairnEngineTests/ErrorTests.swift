import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Engine sections 9 and 10.
@Suite struct ErrorTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(_ user: String? = nil) throws -> Device {
    let device = try Device(server, clock, expectedUser: user)
    device.notes.set("0", "first", at: 1)
    try device.sync()
    device.cloud.clearLog()
    return device
  }

  static func isModify(_ call: FaultInjector.Call) -> Bool { if case .modify = call { true } else { false } }

  @Test func throttleIsNeverShortened() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.fail(.throttled(retryAfter: 30))
    let first = try device.sync()
    #expect(first.condition == .paused(.throttled))
    let until = try #require(first.nextRetry)
    #expect(until >= clock.wallClock + 30_000 && until <= clock.wallClock + 33_000)

    clock.advance(seconds: 10)
    device.relaunch()
    device.cloud.clearLog()
    let early = try device.sync(manual: true)
    #expect(early.failure == .rateLimited(until: until))
    #expect(device.cloud.log.isEmpty)

    clock.advance(seconds: 24)
    let late = try device.sync()
    #expect(late.saved == 1)
    #expect(late.condition == .ready)
  }

  @Test func aWallClockThatJumpsDoesNotStretchAWait() throws {
    let device = try ready()
    device.cloud.fail(.throttled(retryAfter: 30))
    try device.sync()
    clock.setWallClock(clock.wallClock - 10 * 365 * 86_400_000)
    clock.advance(seconds: 34)
    #expect(try device.sync().failure == nil)
  }

  @Test func aStoredWaitFromAJumpedClockIsClamped() throws {
    let device = try ready()
    clock.setWallClock(clock.wallClock + 10 * 365 * 86_400_000)
    device.cloud.fail(.throttled(retryAfter: 30))
    try device.sync()
    clock.setWallClock(clock.wallClock - 10 * 365 * 86_400_000)
    device.relaunch()
    #expect(try device.sync().failure != nil)
    clock.advance(seconds: 24 * 3_600)
    #expect(try device.sync().failure == nil)
  }

  @Test func zoneThrottleHoldsTheZone() throws {
    let device = try ready()
    device.cloud.fail(.error(CloudError(.zoneBusy, "busy", retryAfter: 20)))
    let first = try device.sync()
    #expect(first.condition == .paused(.throttled))
    device.cloud.clearLog()
    #expect(try device.sync().failure != nil)
    #expect(device.cloud.log.isEmpty)
    clock.advance(seconds: 23)
    #expect(try device.sync().failure == nil)
  }

  @Test func offlineKeepsEverythingAndBacksOff() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.isOffline = true
    let first = try device.sync()
    #expect(first.condition == .offline)
    #expect(first.requests == 1)
    #expect(device.notes.pendingCount == 1)
    device.cloud.clearLog()
    let automatic = try device.sync(manual: false)
    #expect(automatic.failure.map { if case .backingOff = $0 { true } else { false } } == true)
    #expect(device.cloud.log.isEmpty)
    device.cloud.isOffline = false
    try device.session.noteReconnect()
    let online = try device.sync(manual: false)
    #expect(online.saved == 1)
    #expect(online.condition == .ready)
  }

  @Test func l8ARefusedTokenKeepsPendingAndSignsOut() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.delete("0", at: 2)
    device.cloud.fail(.authenticationFailed, times: 2)
    let first = try device.sync()
    #expect(first.condition == .signedOut)
    #expect(device.notes.pendingCount == 2)
    device.relaunch()
    #expect(try device.sync().condition == .signedOut)
    let back = try device.sync()
    #expect(back.condition == .ready)
    #expect((back.saved, back.deleted) == (1, 1))
    #expect(device.events.events.contains(.resumed(.account)))
  }

  @Test func l10AnotherUserIsRefusedBeforeAnythingIsSent() throws {
    let device = try Device(server, clock, expectedUser: "_somebody")
    device.notes.set("a", "one", at: 2)
    let result = try device.sync()
    #expect(result.condition == .paused(.account))
    #expect(result.failure == .anotherUser(device.plain.caller.recordName))
    #expect(device.cloud.log.map(\.call) == [.currentUser])
    #expect(device.notes.pendingCount == 1)
  }

  @Test func e31InternalErrorsAreNeverSuccessAndEndHourly() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.fail(.error(CloudError(.internalError, "oops")), times: 6, where: Self.isModify)
    for attempt in 1...6 {
      let result = try device.sync()
      #expect(!result.endedQuiet)
      #expect(result.saved == 0)
      #expect(device.notes.reason("a") == .internal)
      #expect(result.condition == .paused(.internal))
      let wait = try #require(result.nextRetry) - clock.wallClock
      #expect(attempt < 5 ? wait < 3_600_000 : wait == 3_600_000)
      clock.advance(seconds: 1)
    }
    let diagnostics = device.events.events.filter { if case .diagnostic = $0 { true } else { false } }
    #expect(diagnostics.count >= 6)
    #expect(try device.registry().lastSync.map { $0 < clock.wallClock - 5_000 } == true)
    device.cloud.clearLog()
    _ = try device.sync(manual: false)
    #expect(device.cloud.log.isEmpty)
    clock.advance(seconds: 3_601)
    #expect(try device.sync(manual: false).saved == 1)
    #expect(try device.registry().rows.keys.allSatisfy { !$0.contains("tries") })
  }

  @Test func e34AnHourOfTransientErrorsLosesNothing() throws {
    let seed = UInt64.random(in: 0..<1_000_000)
    let device = try Device(server, clock)
    let flaky = FaultInjector(device.plain, seed: seed)
    flaky.setRates(.init(lostRequest: 20, lostAnswer: 20, throttled: 15, temporary: 15))
    let notes = NotesCategory(zone: Device.zone)
    let session = SyncSession(
      cloud: flaky, store: MemoryStore(), categories: [notes], zones: [Device.zone], time: clock,
      randomness: SeededRandomness(seed: seed))
    for minute in 0..<60 {
      notes.set("n\(minute % 20)", "text \(minute)", at: Int64(minute + 1))
      if minute % 7 == 6 { notes.delete("n\(minute % 5)", at: Int64(minute + 1)) }
      _ = try session.sync(SyncRequest(isManual: minute % 2 == 0))
      clock.advance(seconds: 60)
    }
    flaky.heal()
    clock.advance(seconds: 3_600)
    let last = try session.sync()
    #expect(last.endedQuiet, "seed \(seed)")
    #expect(notes.pendingCount == 0, "seed \(seed)")
    #expect(try device.serverTexts == notes.notes, "seed \(seed)")
  }

  @Test func e35QuotaHoldsSavesOnlyAndEndsWithoutLoss() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.set("b", "two", at: 2)
    device.notes.delete("0", at: 2)
    device.cloud.fail(.quotaExceeded, times: 100, where: Self.isModify)
    let first = try device.sync()
    #expect(first.deleted == 1)
    #expect(first.saved == 0)
    #expect(first.condition == .paused(.quota))
    #expect(device.notes.reason("a") == .quota)
    #expect(device.notes.pendingCount == 2)

    // Not manual: saves wait, a fetch goes on.
    device.cloud.clearLog()
    clock.advance(seconds: 60)
    _ = try device.sync(manual: false)
    #expect(device.cloud.sentOperations.isEmpty)
    #expect(device.cloud.log.contains { if case .zoneChanges = $0.call { true } else { false } })

    // Manual: tried at once, and still refused.
    _ = try device.sync()
    #expect(!device.cloud.sentOperations.isEmpty)

    device.cloud.heal()
    clock.advance(seconds: 24 * 3_600)
    let last = try device.sync(manual: false)
    #expect(last.saved == 2)
    #expect(last.condition == .ready)
    #expect(try device.serverTexts == ["a": "one", "b": "two"])
  }

  @Test func aQuotaIsOverOnceNothingMeetsIt() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.cloud.fail(.quotaExceeded, times: 1, where: Self.isModify)
    #expect(try device.sync().condition == .paused(.quota))
    device.notes.delete("a", at: 3)
    #expect(try device.sync().condition == .ready)
    #expect(device.events.events.contains(.resumed(.quota)) || device.notes.pendingCount == 0)
  }

  @Test func permissionIsHandedOverAndPauses() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.notes.set("b", "two", at: 2)
    let refused = CloudError(.accessDenied, "read only")
    device.cloud.fail(.error(refused), times: 1, where: Self.isModify)
    let result = try device.sync()
    #expect(result.condition == .paused(.permission))
    #expect(result.handedOver == 2)
    #expect(device.notes.pendingCount == 2)
    #expect(device.notes.reason("a") == .permission)
    // Not tried again by itself, but for a new revision.
    device.cloud.clearLog()
    try device.sync(manual: false)
    #expect(device.cloud.sentOperations.isEmpty)
    device.notes.set("a", "three", at: 4)
    #expect(try device.sync(manual: false).saved == 1)
  }

  @Test func entriesAreJudgedByTheirOwnCodes() {
    let error = CloudError(.accessDenied, "no")
    #expect(ErrorReactions.entry(error, isDelete: false) == .settled(.handedOver(.permission, error)))
    let missing = CloudError(.notFound, "gone")
    #expect(ErrorReactions.entry(missing, isDelete: true) == .settled(.deleted))
    #expect(ErrorReactions.entry(missing, isDelete: false) == .fetchFirst(.unknownItem(missing)))
    let zone = CloudError(.zoneNotFound, "gone")
    #expect(ErrorReactions.entry(zone, isDelete: true) == .settled(.deleted))
    #expect(ErrorReactions.entry(zone, isDelete: false) == .zoneMissing)
    let reference = CloudError(.validatingReferenceError, "parent")
    #expect(ErrorReactions.entry(reference, isDelete: false) == .fetchFirst(.handedOver(.missingParent, reference)))
    for code in CloudError.Code.allCases {
      // A failure is never taken for a stored record.
      let reaction = ErrorReactions.entry(CloudError(code, "x"), isDelete: false)
      if case .settled(.saved) = reaction { Issue.record("\(code) counts as saved") }
      if case .settled(.deleted) = reaction { Issue.record("\(code) counts as deleted") }
    }
  }

  @Test func e40ABusyStoreIsTriedAgainAndSyncGoesOn() throws {
    let device = try ready()
    device.notes.set("a", "one", at: 2)
    device.store.failures = 2
    let result = try device.sync()
    #expect(result.saved == 1)
    #expect(result.failure == nil)
  }

  @Test func aStoreThatStaysBusyConfirmsNothing() throws {
    let device = try ready()
    let other = try Device(server, clock)
    other.notes.set("b", "two", at: 2)
    try other.sync()
    let token = try device.registry().token(Device.zone)
    device.store.failures = 1_000
    let result = try device.sync()
    #expect(result.failure != nil)
    #expect(!result.endedQuiet)
    device.store.failures = 0
    device.relaunch()
    #expect(try device.registry().token(Device.zone) == token)
    try device.sync()
    #expect(device.notes.notes["b"] == "two")
  }
}
