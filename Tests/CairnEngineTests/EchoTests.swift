import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Own changes do not come back where the server tells where its feed stood (engine section 6; web-services section 15,
/// `feed-position`).
@Suite struct EchoTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(_ limits: CloudLimits = CloudLimits(), others: [NotesCategory] = []) throws -> Device {
    let device = try Device(server, clock, others: others, limits: limits)
    device.notes.set("0", "first", at: 1)
    try device.sync()
    return device
  }

  static func isModify(_ call: FaultInjector.Call) -> Bool { if case .modify = call { true } else { false } }

  @Test func e27ASecondSyncReceivesNothingOfWhatTheFirstSent() throws {
    let device = try ready(CloudLimits(entriesPerRequest: 10))
    for i in 0..<35 { device.notes.set("n\(i)", "x", at: 2) }
    for i in 0..<5 { device.notes.set("n\(i)", "y", at: 3) }
    let first = try device.sync()
    #expect(first.saved == 35 && first.received == 0)
    device.notes.delete("n3", at: 4)
    #expect(try device.sync().deleted == 1)
    device.relaunch()
    device.cloud.clearLog()
    let second = try device.sync()
    #expect(second.received == 0 && second.receivedDeletions == 0 && second.endedQuiet)
    #expect(second.requests == 1)
    let token = try device.registry().token(Device.zone)
    #expect(try device.plain.zoneChanges(in: Device.zone, since: token).token == token)
  }

  @Test func e27WithoutTheExtensionEchoesComeBeforeTheEndAndChangeNothing() throws {
    let device = try ready()
    device.cloud.hidesPositions = true
    device.notes.set("a", "x", at: 2)
    let first = try device.sync()
    #expect(first.received == 1 && first.saved == 1 && first.endedQuiet)
    let second = try device.sync()
    #expect(second.received == 0 && second.saved == 0 && second.requests == 1)
  }

  @Test func aForeignChangeBetweenFetchAndModifyIsNotSkipped() throws {
    let device = try ready()
    let other = try Device(server, clock)
    try other.sync()
    device.notes.set("mine", "x", at: 2)
    device.notes.set("mine too", "x", at: 2)
    device.notes.maxBatch = 1
    other.notes.set("theirs", "x", at: 2)
    device.cloud.setBefore { [device = Unchecked(device), other = Unchecked(other)] call in
      guard Self.isModify(call) else { return }
      device.value.cloud.setBefore(nil)
      _ = try? other.value.sync()
    }
    // The token stays where it was, so the closing fetch brings theirs and both echoes.
    let result = try device.sync()
    #expect(result.saved == 2 && result.received == 3 && result.endedQuiet)
    #expect(device.notes.notes["theirs"] == "x")
    #expect(try device.sync().received == 0)
    // From then on the token moves again.
    device.notes.set("mine", "y", at: 5)
    try device.sync()
    #expect(try device.sync().received == 0)
  }

  @Test func aForeignChangeBetweenTwoBatchesStopsTheTokenThere() throws {
    let device = try ready()
    let other = try Device(server, clock)
    try other.sync()
    for key in ["a", "b", "c"] { device.notes.set(key, "x", at: 2) }
    device.notes.maxBatch = 1
    other.notes.set("theirs", "x", at: 2)
    device.cloud.clearLog()
    device.cloud.setBefore { [cloud = device.cloud, other = Unchecked(other)] call in
      guard Self.isModify(call), cloud.log.filter({ Self.isModify($0.call) }).count == 2 else { return }
      _ = try? other.value.sync()
    }
    // "a" is behind the token; theirs, "b" and "c" are ahead of it.
    let result = try device.sync()
    #expect(result.saved == 3 && result.received == 3)
    #expect(device.notes.notes == other.notes.notes.merging(["a": "x", "b": "x", "c": "x"]) { $1 })
  }

  @Test func aLostAnswerLeavesTheTokenToTheEcho() throws {
    let device = try ready()
    device.notes.set("a", "x", at: 2)
    let before = try device.registry().token(Device.zone)
    device.cloud.fail(.lostAnswer, where: Self.isModify)
    try device.sync()
    #expect(try device.registry().token(Device.zone) == before)
    clock.advance(seconds: 3_600)
    try device.sync()
    #expect(device.notes.pendingCount == 0)
    #expect(try device.sync().received == 0)
    #expect(try device.serverTexts["a"] == "x")
  }

  @Test func theTokenMovesWithTheSettlementOrNotAtAll() throws {
    let device = try ready()
    device.notes.set("a", "x", at: 2)
    let before = try device.registry().token(Device.zone)
    device.notes.settleFailures = 3
    try device.sync()
    #expect(try device.registry().token(Device.zone) == before)
    #expect(device.notes.pendingCount == 1)
  }

  @Test func withoutAFetchTheTokenStays() throws {
    let device = try ready()
    device.notes.set("a", "x", at: 2)
    let before = try device.registry().token(Device.zone)
    #expect(try device.sync(.sendOnly).saved == 1)
    #expect(try device.registry().token(Device.zone) == before)
    #expect(try device.sync().received == 1)
  }

  @Test func categoriesOfOneZoneShareTheMovedToken() throws {
    let other = NotesCategory("other", type: "Other", delivery: .sealedSet, zone: Device.zone)
    let device = try ready(others: [other])
    device.notes.set("a", "x", at: 2)
    other.set("b", "y", at: 2)
    #expect(try device.sync().saved == 2)
    #expect(try device.sync().received == 0)
    let reading = NotesCategory("other", type: "Other", delivery: .sealedSet, zone: Device.zone)
    let reader = try Device(server, clock, others: [reading])
    try reader.sync()
    reading.set("c", "z", at: 3)
    try reader.sync()
    #expect(try device.sync().received == 1)
    #expect(other.notes == ["b": "y", "c": "z"])
  }

  @Test func aChangeTheDeviceDidNotLearnOfIsFetched() throws {
    // The answer says that the record is stored, but not under which tag.
    let entry = OutgoingEntry(
      operation: RecordOperation(.create, Record(id: RecordID(name: "Note:a", zone: Device.zone), type: "Note")),
      revision: 1)
    let request = BatchRequest(limits: CloudLimits(), now: 1, isManual: true, deletesOnly: false)
    let (start, end) = (ChangeToken("1"), ChangeToken("2"))
    func delta(_ tag: ChangeTag?) -> StateDelta {
      var send = ZoneSend(
        zone: Device.zone, category: 0, request: request, settings: SyncSettings(), attempts: [:], cap: 10, start: start
      )
      let moment = Moment(wall: 1, uptime: 1, random: 1)
      _ = send.step(.batch(OutgoingBatch(zone: Device.zone, entries: [entry])), ZoneRegistry(), moment)
      var record = entry.operation.record
      record.changeTag = tag
      let answer = EngineAnswer.outcomes([.saved(record)], FeedStep(before: start, after: end))
      guard case .task(let task) = send.step(answer, ZoneRegistry(), moment) else { return [:] }
      return task.delta
    }
    let key = StoredKeys.zone(Device.zone, .token)
    #expect(delta(ChangeTag("t"))[key] == .some("2"))
    #expect(delta(nil)[key] == nil)
  }
}
