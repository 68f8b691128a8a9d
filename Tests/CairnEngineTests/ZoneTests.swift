import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Engine section 12, S8 and tables L11.
@Suite struct ZoneTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func ready(others: [NotesCategory] = []) throws -> Device {
    let device = try Device(server, clock, others: others)
    device.notes.set("a", "one", at: 1)
    try device.sync()
    return device
  }

  func removeZone(_ device: Device) throws { _ = try device.plain.deleteZones([Device.zone]) }

  @Test func e12e37AVanishedZoneRaisesOneQuestionAndDestroysNothing() throws {
    let device = try ready()
    try removeZone(device)
    device.notes.set("b", "two", at: 2)
    let first = try device.sync()
    #expect(first.condition == .decision)
    #expect(first.questions == [ZoneQuestion(zone: Device.zone, category: "notes", cause: .deleted)])
    #expect(device.notes.notes == ["a": "one", "b": "two"])
    #expect(device.notes.pendingCount == 1)
    device.relaunch()
    device.cloud.clearLog()
    #expect(try device.sync().condition == .decision)
    #expect(device.cloud.log.isEmpty)
    #expect(try device.plain.zoneExists(Device.zone) == false)
    let asked = device.events.events.filter { if case .decisionNeeded = $0 { true } else { false } }
    // Once when it was found, and again at the launch.
    #expect(asked.count == 2)
  }

  @Test func e37AZoneMissedWhileSendingAsksToo() throws {
    let device = try ready()
    try removeZone(device)
    device.notes.set("b", "two", at: 2)
    let result = try device.sync(.sendOnly)
    #expect(result.condition == .decision)
    #expect(device.notes.notes == ["a": "one", "b": "two"])
    #expect(device.notes.calls.filter { $0 == "lost deleted" }.count == 1)
  }

  @Test func e12AZoneThatVanishesBetweenDatabaseAndZoneFetchIsOneDeletion() throws {
    let work = ZoneID(name: "work")
    let others = NotesCategory("work", type: "Work", zone: work)
    let device = try Device(server, clock, others: [others], allZones: true)
    device.notes.set("a", "one", at: 1)
    others.set("w", "two", at: 1)
    try device.sync()
    // Somebody changes the zone, and deletes it after the database was asked.
    let other = try Device(server, clock)
    other.notes.set("b", "three", at: 2)
    try other.sync()
    device.cloud.setAfter { [plain = device.plain, cloud = device.cloud] call in
      guard case .databaseChanges = call else { return }
      cloud.setAfter(nil)
      _ = try? plain.deleteZones([Device.zone])
    }
    let result = try device.sync()
    #expect(result.questions.map(\.zone) == [Device.zone])
    #expect(device.notes.notes == ["a": "one"])
    #expect(EventOrder.faults(device.events.events).isEmpty)
    // The other zone goes on, and nothing is asked twice.
    others.set("w", "four", at: 5)
    let next = try device.sync()
    #expect(next.saved == 1)
    #expect(next.questions.count == 1)
    #expect(device.notes.calls.filter { $0 == "lost deleted" }.count == 1)
  }

  @Test func aZoneDeletedElsewhereIsFoundInTheDatabaseFeed() throws {
    let device = try Device(server, clock, allZones: true)
    device.notes.set("a", "one", at: 1)
    try device.sync()
    try removeZone(device)
    #expect(try device.sync().condition == .decision)
    #expect(device.notes.notes == ["a": "one"])
  }

  @Test func recreateAndReuploadMeetsWhatOthersPutThere() throws {
    let device = try ready()
    try removeZone(device)
    try device.sync()
    let other = try Device(server, clock)
    other.notes.set("z", "theirs", at: 3)
    try other.sync()
    // A zone made again by another device does not answer the question.
    #expect(try device.sync().condition == .decision)
    try device.session.decide(Device.zone, category: "notes", .recreateAndReupload)
    device.relaunch()
    let result = try device.sync()
    #expect(result.endedQuiet)
    #expect(try device.serverTexts == ["a": "one", "z": "theirs"])
    #expect(device.notes.notes == ["a": "one", "z": "theirs"])
  }

  @Test func keepLocalSendsAndFetchesNothing() throws {
    let device = try ready()
    try removeZone(device)
    try device.sync()
    try device.session.decide(Device.zone, category: "notes", .keepLocal)
    device.cloud.clearLog()
    let result = try device.sync()
    #expect(result.condition == .paused(.zoneGone))
    #expect(device.cloud.log.isEmpty)
    #expect(device.notes.notes == ["a": "one"])
    // A later decision ends it.
    try device.session.decide(Device.zone, category: "notes", .recreateAndReupload)
    #expect(try device.sync().condition == .ready)
    #expect(try device.serverTexts == ["a": "one"])
  }

  @Test func deleteLocalTakesWhatTheZoneHolds() throws {
    let device = try ready()
    try removeZone(device)
    try device.sync()
    let other = try Device(server, clock)
    other.notes.set("z", "theirs", at: 3)
    try other.sync()
    try device.session.decide(Device.zone, category: "notes", .deleteLocal)
    try device.sync()
    #expect(device.notes.notes == ["z": "theirs"])
  }

  @Test func aCategoryWithItsOwnPolicyRefillsWhileTheOthersAreHeld() throws {
    let accounts = NotesCategory("accounts", type: "Account", zone: Device.zone)
    accounts.lossPolicy = .recreateAndReupload
    let device = try ready(others: [accounts])
    accounts.set("x", "secret", at: 1)
    try device.sync()
    try removeZone(device)
    let result = try device.sync()
    #expect(result.condition == .decision)
    #expect(result.questions.map(\.category) == ["notes"])
    #expect(try device.plain.allRecords(in: Device.zone).map(\.id.name) == ["Account:x"])
    // The zone exists again: the notes stay held until they are answered.
    #expect(try device.sync().condition == .decision)
    #expect(device.notes.notes == ["a": "one"])
    try device.session.decide(Device.zone, category: "notes", .recreateAndReupload)
    #expect(try device.sync().endedQuiet)
    #expect(try device.plain.allRecords(in: Device.zone).map(\.id.name) == ["Account:x", "Note:a"])
    #expect(accounts.notes == ["x": "secret"])
  }

  @Test func s8DeletingAZoneHereAsksNothingAndAbandonsItsChanges() throws {
    let device = try ready()
    device.notes.set("b", "two", at: 2)
    try device.session.add([.deleteZone(Device.zone)])
    device.relaunch()
    let result = try device.sync()
    #expect(result.saved == 0)
    #expect(result.questions.isEmpty)
    #expect(try device.plain.zoneExists(Device.zone) == false)
    let sent = device.events.events.compactMap { event -> SentDatabaseChanges? in
      if case .sentDatabaseChanges(let sent) = event { sent } else { nil }
    }
    #expect(sent.last?.deleted == [Device.zone])
    #expect(sent.last?.abandoned == 1)
    #expect(try device.session.pending().pendingDatabaseChanges.isEmpty)
  }

  @Test func s8ALaterSaveZoneFreesTheChanges() throws {
    let device = try ready()
    device.notes.set("b", "two", at: 2)
    try device.session.add([.deleteZone(Device.zone), .saveZone(Device.zone)])
    try device.sync()
    #expect(try device.serverTexts == ["a": "one", "b": "two"])
  }

  @Test func zoneChangesSurviveAFailedRequest() throws {
    let device = try ready()
    try device.session.add([.saveZone(ZoneID(name: "more"))])
    device.cloud.fail(.lostRequest) { if case .createZones = $0 { true } else { false } }
    try device.sync()
    device.relaunch()
    #expect(try device.session.pending().pendingDatabaseChanges == [.saveZone(ZoneID(name: "more"))])
    try device.sync()
    #expect(try device.plain.zoneExists(ZoneID(name: "more")))
    #expect(try device.session.pending().zones.isEmpty)
  }
}
