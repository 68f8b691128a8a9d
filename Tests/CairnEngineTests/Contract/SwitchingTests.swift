import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// A category that is off (engine C9; accounts A44–A47).
@Suite struct SwitchingTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: SettingsDevice
  let device: SettingsDevice

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try SettingsDevice(server, clock)
    device = try SettingsDevice(server, clock)
    try writer.settings.set("a", "1", at: 1)
    try writer.sync()
    try device.sync()
  }

  func changeElsewhere() throws {
    try writer.settings.set("b", "new", at: 5)
    try writer.settings.set("a", nil, at: 5)
    try writer.sync()
  }

  @Test func c9WhatComesIsStagedAndSealedAndNotApplied() throws {
    try device.settings.setEnabled(false)
    try changeElsewhere()
    let before = try device.token
    #expect(try device.sync().failure == nil)
    #expect(try device.settings.values() == ["a": "1"])
    #expect(try device.settings.stagedCount(isSealed: true) == 2)
    // The token moves: what is staged is safe.
    #expect(try device.token != before)
  }

  @Test(arguments: [false, true]) func c9SwitchingOnAppliesTheStagingWithoutNetwork(relaunches: Bool) throws {
    try device.settings.setEnabled(false)
    try changeElsewhere()
    try device.sync()
    if relaunches { device.relaunch() }
    device.cloud.isOffline = true
    try device.settings.setEnabled(true)
    try device.sync()
    #expect(try device.settings.values() == ["b": "new"])
    #expect(try device.settings.stagedCount(isSealed: true) == 0)
  }

  @Test func c9APendingSaveIsKeptAndNotSent() throws {
    try device.settings.set("mine", "m", at: 5)
    try device.settings.setEnabled(false)
    device.cloud.clearLog()
    let result = try device.sync()
    #expect(result.saved == 0)
    #expect(device.cloud.sentOperations.isEmpty)
    #expect(try device.settings.pending() == ["mine"])
    device.relaunch()
    try device.sync()
    #expect(try device.settings.pending() == ["mine"])
    try device.settings.setEnabled(true)
    #expect(try device.sync().saved == 1)
    #expect(try device.serverValues["mine"] == "m")
  }

  @Test func c9EnablingAppliesThenRevalidatesThenSends() throws {
    try device.settings.setEnabled(false)
    try changeElsewhere()
    try device.sync()
    try device.settings.set("mine", "m", at: 5)
    try device.sync()
    // An outbox row whose setting is gone: only the category can know that it must not be sent.
    try device.settings.queue("ghost", "save")
    try device.settings.setEnabled(true)
    device.settings.clearCalls()
    device.cloud.clearLog()
    try device.sync()
    let steps = device.settings.calls.filter { $0.hasPrefix("applySealed") || $0 == "revalidate" }
    #expect(steps == ["applySealed 2", "revalidate"])
    #expect(device.cloud.sentOperations.map(\.record.id.name) == ["setting-mine"])
    #expect(try device.settings.pending().isEmpty)
    // Once: the next call finds it on.
    device.settings.clearCalls()
    try device.sync()
    #expect(!device.settings.calls.contains("revalidate"))
  }

  @Test func c9TheOtherCategoriesOfTheZoneGoOn() throws {
    let both = try SettingsDevice(server, clock) {
      [SettingsCategory($0), SettingsCategory($0, name: "other")]
    }
    let notes = NotesCategory(zone: SettingsDevice.zone)
    let session = SyncSession(
      cloud: both.plain, store: both.file, categories: [both.settings, notes], zones: [SettingsDevice.zone],
      time: clock, randomness: SeededRandomness(seed: 3))
    _ = try session.sync()
    try both.settings.setEnabled(false)
    try both.settings.set("x", "1", at: 3)
    notes.set("n", "text", at: 3)
    #expect(try session.sync().saved == 1)
    #expect(try both.settings.pending() == ["x"])
  }

  @Test func c9SwitchedOffWhileACallRunsItSendsNoMoreBatches() throws {
    try device.settings.set("p", "1", at: 5)
    try device.settings.set("p/q", "2", at: 5)
    device.cloud.setAfter { [box = Handed(device.settings)] call in
      guard SettingsDevice.isSend(call) else { return }
      do { try box.value.setEnabled(false) } catch { Issue.record(error) }
    }
    #expect(try device.sync().saved == 1)
    #expect(try device.settings.pending() == ["p/q"])
  }

  @Test func c9RefillWaitsUntilTheCategoryIsOnAgain() throws {
    try device.settings.setEnabled(false)
    _ = try device.plain.deleteZones([SettingsDevice.zone])
    device.cloud.clearLog()
    try device.sync()
    try device.sync()
    #expect(device.cloud.sentOperations.isEmpty)
    #expect(try device.plain.zoneExists(SettingsDevice.zone) == false)
    #expect(try device.settings.values() == ["a": "1"])
    try device.settings.setEnabled(true)
    try device.sync()
    #expect(try device.serverValues == ["a": "1"])
  }
}
