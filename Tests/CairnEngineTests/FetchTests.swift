import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Engine sections 7, 8 and 13.
@Suite struct FetchTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: Device

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try Device(server, clock)
    writer.notes.set("0", "first", at: 1)
    try writer.sync()
  }

  func write(_ count: Int, deleting: Int = 0) throws {
    for i in 0..<count { writer.notes.set("n\(i)", "x\(i)", at: 2) }
    try writer.sync()
    for i in 0..<deleting { writer.notes.delete("n\(i)", at: 3) }
    try writer.sync()
  }

  static func isFetch(_ call: FaultInjector.Call) -> Bool { if case .zoneChanges = call { true } else { false } }

  @Test func m1PagesWithoutDeletionsAreAppliedAsTheyCome() throws {
    try write(25)
    let device = try Device(server, clock, limits: CloudLimits(entriesPerRequest: 10))
    try device.sync()
    #expect(device.notes.calls.filter { $0.hasPrefix("apply") } == ["apply 10 0", "apply 10 0", "apply 6 0"])
    #expect(!device.notes.calls.contains("seal"))
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func c3ASealedSetIsAppliedOnlyWhenItIsWhole() throws {
    try write(25)
    let device = try Device(server, clock, delivery: .sealedSet, limits: CloudLimits(entriesPerRequest: 10))
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync()
    #expect(device.notes.notes.isEmpty)
    #expect(device.notes.state.staged.count == 2)
    // C4: what is staged and not sealed forces a fetch, which goes on from the token.
    device.relaunch()
    device.cloud.clearLog()
    try device.sync()
    #expect(device.cloud.log.filter { Self.isFetch($0.call) }.count == 1)
    #expect(device.notes.notes == writer.notes.notes)
    #expect(device.notes.state.staged.isEmpty && device.notes.state.sealed.isEmpty)
  }

  @Test func c5ASetThatOnePageCompletesIsAppliedAtOnce() throws {
    try write(5)
    let device = try Device(server, clock, delivery: .sealedSet)
    try device.sync()
    #expect(device.notes.calls.filter { $0.hasPrefix("apply") || $0.hasPrefix("stage") } == ["apply 6 0"])
  }

  @Test func m1FromThePageWithADeletionOnTheRunWaitsForTheSeal() throws {
    try write(25)
    let device = try Device(server, clock, limits: CloudLimits(entriesPerRequest: 10))
    try device.sync()
    for i in 0..<5 { writer.notes.delete("n\(i)", at: 5) }
    try writer.sync()
    for i in 5..<25 { writer.notes.set("n\(i)", "new", at: 6) }
    try writer.sync()
    device.notes.calls = []
    try device.sync()
    let steps = device.notes.calls.filter { $0 != "gather" && $0 != "batch" }
    #expect(steps == ["stage 5 5", "stage 10 0", "stage 5 0", "seal", "applySealed", "applySealed", "applySealed"])
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func c4ASealedSetIsAppliedAtLaunchWithoutNetwork() throws {
    try write(25)
    let device = try Device(server, clock, delivery: .sealedSet, limits: CloudLimits(entriesPerRequest: 10))
    device.notes.applyFailures = 3
    let result = try device.sync()
    #expect(result.failure != nil)
    #expect(device.notes.notes.isEmpty)
    device.relaunch()
    device.cloud.isOffline = true
    try device.sync()
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func c2APageThatCannotBeStoredMovesNoToken() throws {
    try write(5)
    let device = try Device(server, clock)
    device.notes.applyFailures = 3
    let result = try device.sync()
    #expect(result.failure.map { if case .store = $0 { true } else { false } } == true)
    #expect(try device.registry().token(Device.zone) == nil)
    #expect(device.events.events.contains { if case .diagnostic(.store, Device.zone) = $0 { true } else { false } })
    try device.sync()
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func e8TombstonesOfUnknownRecordsCostOneCallPerPage() throws {
    let device = try Device(server, clock)
    try device.sync()
    device.notes.calls = []
    try write(1_000, deleting: 1_000)
    try device.sync()
    let calls = device.notes.calls.filter { $0 != "gather" && $0 != "batch" }
    #expect(calls.count <= 3 * 5 + 1)
    #expect(device.notes.notes == ["0": "first"])
  }

  @Test func unknownTypesAreCountedAndLeftAlone() throws {
    let other = NotesCategory("other", type: "Other", zone: Device.zone)
    let both = try Device(server, clock, others: [other])
    other.set("x", "theirs", at: 1)
    try both.sync()
    let device = try Device(server, clock)
    let result = try device.sync()
    #expect(result.unclaimed == 1)
    #expect(device.notes.notes == ["0": "first"])
  }

  @Test func oneTokenForAllCategoriesOfAZone() throws {
    let other = NotesCategory("other", type: "Other", delivery: .sealedSet, zone: Device.zone)
    let a = try Device(server, clock, others: [other])
    a.notes.set("a", "one", at: 1)
    other.set("b", "two", at: 1)
    try a.sync()
    let reading = NotesCategory("other", type: "Other", delivery: .sealedSet, zone: Device.zone)
    let b = try Device(server, clock, others: [reading])
    reading.applyFailures = 3
    try b.sync()
    // One category could not store its part: nothing of the page is stored, and the token has not moved.
    #expect(b.notes.notes.isEmpty)
    #expect(try b.registry().token(Device.zone) == nil)
    try b.sync()
    #expect(b.notes.notes == ["0": "first", "a": "one"])
    #expect(reading.notes == ["b": "two"])
  }

  @Test func withoutAListEveryChangedZoneIsFetched() throws {
    let work = NotesCategory("work", type: "Work", zone: ZoneID(name: "work"))
    let a = try Device(server, clock, others: [work], allZones: true)
    work.set("w", "one", at: 1)
    try a.sync()
    let reading = NotesCategory("work", type: "Work", zone: ZoneID(name: "work"))
    let b = try Device(server, clock, others: [reading], allZones: true)
    try b.sync()
    #expect(reading.notes == ["w": "one"])
    #expect(b.notes.notes == ["0": "first"])
    b.cloud.clearLog()
    try b.sync()
    let fetches = b.cloud.log.filter { Self.isFetch($0.call) }
    #expect(fetches.isEmpty)
  }

  @Test func aListOfOneZonePaysForNoOther() throws {
    let device = try Device(server, clock)
    try device.sync()
    device.cloud.clearLog()
    try device.sync()
    #expect(device.cloud.log.count == 1)
    #expect(device.cloud.log.allSatisfy { Self.isFetch($0.call) })
  }

  // MARK: Snapshots

  func expire(_ device: Device, _ cause: CloudError.ExpiryCause?) {
    device.cloud.fail(.error(CloudError(.changeTokenExpired, "Sync token expired", expiryCause: cause))) { call in
      guard case .zoneChanges(_, let token) = call else { return false }
      return token != nil
    }
  }

  @Test func e47AnExpiredTokenRemovesExactlyTheDeletedRows() throws {
    try write(30)
    let device = try Device(server, clock, limits: CloudLimits(entriesPerRequest: 10))
    try device.sync()
    for i in 0..<12 { writer.notes.delete("n\(i)", at: 5) }
    try writer.sync()
    device.notes.set("n20", "mine", at: 9)
    device.notes.set("own", "mine", at: 9)
    expire(device, .retention)
    let result = try device.sync()
    #expect(result.receivedDeletions == 12)
    #expect(result.endedQuiet)
    try writer.sync()
    #expect(device.notes.notes == writer.notes.notes)
    #expect(device.notes.notes["n20"] == "mine")
    #expect(device.events.events.contains(.didFetchRecordZoneChanges(Device.zone, error: nil, isSnapshot: true)))
  }

  @Test func e47ASnapshotCutOffGoesOnAndSweeps() throws {
    try write(30)
    let device = try Device(server, clock, limits: CloudLimits(entriesPerRequest: 10))
    try device.sync()
    for i in 0..<12 { writer.notes.delete("n\(i)", at: 5) }
    try writer.sync()
    expire(device, .retention)
    device.cloud.script([nil, .lostRequest])
    try device.sync()
    device.relaunch()
    try device.sync()
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func aSnapshotOfASealedSetIsSealedAfterTheSweep() throws {
    try write(30)
    let device = try Device(server, clock, delivery: .sealedSet, limits: CloudLimits(entriesPerRequest: 10))
    try device.sync()
    for i in 0..<12 { writer.notes.delete("n\(i)", at: 5) }
    try writer.sync()
    device.notes.calls = []
    expire(device, .retention)
    try device.sync()
    let steps = device.notes.calls.filter { $0 != "gather" && $0 != "batch" }
    #expect(steps.filter { $0 == "seal" }.count == 1)
    #expect(!steps.contains { $0.hasPrefix("apply ") })
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test(arguments: [CloudError.ExpiryCause.epoch, .incarnation, nil])
  func l12LostHistorySweepsNothingAndAsks(cause: CloudError.ExpiryCause?) throws {
    let device = try Device(server, clock)
    try device.sync()
    writer.notes.delete("0", at: 5)
    try writer.sync()
    expire(device, cause)
    let result = try device.sync()
    #expect(result.condition == .decision)
    #expect(result.questions.map(\.cause) == [cause == .incarnation ? .incarnation : .epoch])
    #expect(device.notes.notes == ["0": "first"])
    device.cloud.clearLog()
    device.relaunch()
    #expect(try device.sync().condition == .decision)
    #expect(device.cloud.log.isEmpty)
    try device.session.decide(Device.zone, category: "notes", .recreateAndReupload)
    try device.sync()
    #expect(try device.serverTexts == ["0": "first"])
  }

  @Test func anOldTokenWithoutCauseIsSwept() throws {
    let device = try Device(server, clock)
    try device.sync()
    writer.notes.delete("0", at: 5)
    try writer.sync()
    clock.advance(seconds: 181 * 86_400)
    expire(device, nil)
    try device.sync()
    #expect(device.notes.notes.isEmpty)
  }

  @Test func resyncLosesNothing() throws {
    try write(5)
    let device = try Device(server, clock)
    try device.sync()
    device.notes.set("own", "mine", at: 9)
    var request = SyncRequest()
    request.resync = true
    let result = try device.session.sync(request)
    #expect(result.endedQuiet)
    try writer.sync()
    #expect(device.notes.notes == writer.notes.notes)
  }

  @Test func aRestoredServerIsNoticedAndNothingIsSwept() throws {
    let backup = try server.backup()
    try write(5)
    let device = try Device(server, clock)
    try device.sync()
    try server.restore(backup)
    let result = try device.sync()
    #expect(result.condition == .decision)
    #expect(result.questions.map(\.cause) == [.epoch])
    #expect(device.notes.notes == writer.notes.notes)
  }
}
