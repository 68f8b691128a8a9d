import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Before a call ends, the zone's token covers what the call has confirmed: else a server that is restored to a backup
/// from before it would lose it unnoticed (tables L12; engine section 6).
@Suite struct ClosingFetchTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(_ limits: CloudLimits = CloudLimits(), hidesPositions: Bool = false) throws -> Device {
    let device = try Device(server, clock, limits: limits)
    device.cloud.hidesPositions = hidesPositions
    device.notes.set("0", "first", at: 1)
    try device.sync()
    device.cloud.clearLog()
    return device
  }

  static func isFetch(_ call: FaultInjector.Call) -> Bool { if case .zoneChanges = call { true } else { false } }

  /// Somebody else's change reaches the server just before the device's next save.
  func interpose(_ other: Device, before device: Device) {
    device.cloud.setBefore { [cloud = device.cloud, other = Unchecked(other)] call in
      guard EchoTests.isModify(call) else { return }
      cloud.setBefore(nil)
      _ = try? other.value.sync()
    }
  }

  func expectEpoch(_ device: Device, keeping notes: [String: String]) throws {
    let result = try device.sync()
    #expect(result.condition == .decision)
    #expect(result.questions.map(\.cause) == [.epoch])
    #expect(device.notes.notes == notes)
    try device.session.decide(Device.zone, category: "notes", .recreateAndReupload)
    try device.sync()
    #expect(try device.serverTexts == notes)
  }

  @Test(arguments: [false, true], [false, true])
  func l12ARestoreToBeforeASaveIsNoticed(hidesPositions: Bool, isForeignBetween: Bool) throws {
    let device = try ready(hidesPositions: hidesPositions)
    let other = try Device(server, clock)
    try other.sync()
    let backup = try server.backup()
    device.notes.set("a", "mine", at: 2)
    var notes = ["0": "first", "a": "mine"]
    if isForeignBetween {
      other.notes.set("b", "theirs", at: 2)
      interpose(other, before: device)
      notes["b"] = "theirs"
    }
    #expect(try device.sync().endedQuiet)
    try server.restore(backup)
    try expectEpoch(device, keeping: notes)
  }

  @Test(arguments: [false, true])
  func l12ARestoreToBeforeADeleteIsNoticed(hidesPositions: Bool) throws {
    let device = try ready(hidesPositions: hidesPositions)
    let backup = try server.backup()
    device.notes.delete("0", at: 2)
    #expect(try device.sync().deleted == 1)
    try server.restore(backup)
    #expect(try device.sync().questions.map(\.cause) == [.epoch])
  }

  @Test(arguments: [false, true])
  func l12ARestoreAfterTheFirstSyncOfAllIsNoticed(hidesPositions: Bool) throws {
    let first = try Device(server, clock)
    try first.sync()
    let maker = try Device(server, clock)
    maker.notes.set("0", "first", at: 1)
    try maker.sync()
    let backup = try server.backup()
    first.cloud.hidesPositions = hidesPositions
    first.notes.set("a", "mine", at: 2)
    #expect(try first.sync().endedQuiet)
    try server.restore(backup)
    try expectEpoch(first, keeping: ["0": "first", "a": "mine"])
  }

  @Test func onlyWhatTheTokenDoesNotCoverCostsARequest() throws {
    for hides in [false, true] {
      let device = try ready(CloudLimits(entriesPerRequest: 10), hidesPositions: hides)
      #expect(try device.sync().requests == 1)
      for i in 0..<30 { device.notes.set("n\(i)", "\(hides)", at: hides ? 3 : 2) }
      device.cloud.clearLog()
      try device.sync()
      // Without positions: the fetch before, and one after all batches, of which the echoes fill three pages.
      #expect(device.cloud.log.filter { Self.isFetch($0.call) }.count == (hides ? 1 + 3 : 1))
      #expect(device.cloud.log.filter { EchoTests.isModify($0.call) }.count == 3)
      #expect(try device.sync().requests == 1)
    }
  }

  @Test func aCallThatOnlySendsFetchesNothing() throws {
    let device = try ready(hidesPositions: true)
    device.notes.set("a", "mine", at: 2)
    let result = try device.sync(.sendOnly)
    #expect(result.saved == 1 && result.requests == 1)
  }

  @Test func whatTheClosingFetchGivesToSendIsSentByTheSameCall() throws {
    let device = try ready(hidesPositions: true)
    device.notes.set("a", "mine", at: 2)
    device.cloud.setAfter { [notes = Unchecked(device.notes), cloud = device.cloud] call in
      guard Self.isFetch(call), cloud.log.contains(where: { EchoTests.isModify($0.call) }) else { return }
      cloud.setAfter(nil)
      notes.value.set("b", "late", at: 3)
    }
    let result = try device.sync()
    #expect(result.saved == 2 && result.endedQuiet)
    #expect(device.cloud.log.filter { Self.isFetch($0.call) }.count == 3)
    let faults = EventOrder.faults(device.events.events)
    #expect(faults.isEmpty, "\(faults)")
  }

  @Test func aCallEndsThoughEveryFetchGivesSomethingToSend() throws {
    let device = try ready(hidesPositions: true)
    device.cloud.setAfter { [notes = Unchecked(device.notes)] call in
      if Self.isFetch(call) { notes.value.set("a", "again", at: 2) }
    }
    let result = try device.sync()
    let calls = device.cloud.log.map(\.call)
    let rounds = SyncSettings().fruitlessRounds
    #expect(calls.filter { EchoTests.isModify($0) }.count == rounds)
    #expect(calls.filter { Self.isFetch($0) }.count == rounds + 1)
    // The last word is a fetch: what was confirmed is covered all the same.
    #expect(calls.last.map { Self.isFetch($0) } == true)
    #expect(result.failure == nil && !result.endedQuiet)
  }

  @Test func aClosingFetchThatFailsIsAFailureOfTheCallAndTakesNothingBack() throws {
    let device = try ready(hidesPositions: true)
    device.notes.set("a", "mine", at: 2)
    device.cloud.script([nil, nil, .lostRequest])
    let result = try device.sync()
    #expect(result.saved == 1 && !result.endedQuiet && result.condition == .offline)
    #expect(device.notes.pendingCount == 0)
    clock.advance(seconds: 3_600)
    device.cloud.clearLog()
    #expect(try device.sync().endedQuiet)
    #expect(device.cloud.sentOperations.isEmpty)
  }

  @Test func afterAFailedSendNothingIsAsked() throws {
    let device = try ready(CloudLimits(entriesPerRequest: 1), hidesPositions: true)
    device.notes.set("a", "mine", at: 2)
    device.notes.set("b", "mine", at: 2)
    device.cloud.script([nil, nil, .lostRequest])
    let result = try device.sync()
    #expect(result.saved == 1 && result.requests == 3)
    #expect(device.cloud.log.count == 3)
  }
}
