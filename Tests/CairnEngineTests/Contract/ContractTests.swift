import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// The contract of categories, C1–C8 and C12, kept by a category that knows only the public interface.
@Suite struct ContractTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: SettingsDevice

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try SettingsDevice(server, clock)
    try writer.settings.set("a", "1", at: 1)
    try writer.sync()
  }

  func write(_ count: Int, at time: Int64 = 2) throws {
    for i in 0..<count { try writer.settings.set("k\(i)", "v\(i)", at: time) }
    try writer.sync()
  }

  @Test func c1ChangeAndOutboxRowAreOneTransaction() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    device.file.diesAt = device.file.transactions + 1
    #expect(throws: SettingsFile.PowerCut.self) { try device.settings.set("b", "x", at: 5) }
    device.relaunch()
    #expect(try device.settings.values() == ["a": "1"])
    #expect(try device.settings.pending().isEmpty)
    try device.settings.set("b", "x", at: 5)
    device.relaunch()
    #expect(try device.sync().saved == 1)
  }

  @Test func c1OnlyTheRevisionThatWasSentIsConfirmed() throws {
    try writer.settings.set("a", "2", at: 5)
    let settings = writer.settings
    let isFirst = Flag()
    writer.cloud.setAfter { [box = Handed(settings)] call in
      guard SettingsDevice.isSend(call), isFirst.takes() else { return }
      do { try box.value.set("a", "3", at: 6) } catch { Issue.record(error) }
    }
    let result = try writer.sync()
    #expect(result.saved == 2)
    #expect(try writer.serverValues["a"] == "3")
    #expect(try writer.settings.pending().isEmpty)
  }

  @Test func c1AFailedSendLeavesTheOutboxRow() throws {
    try writer.settings.set("a", "2", at: 5)
    writer.cloud.fail(.lostAnswer, where: SettingsDevice.isSend)
    try writer.sync()
    writer.relaunch()
    #expect(try writer.settings.pending() == ["a"])
    try writer.sync()
    #expect(try writer.settings.pending().isEmpty)
  }

  @Test func c2WhatCannotBeStagedMovesNoToken() throws {
    try write(25)
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try write(25, at: 3)
    let before = try device.token
    device.settings.onStage = { throw SettingsFile.PowerCut() }
    let result = try device.sync()
    #expect(result.failure != nil)
    #expect(try device.token == before)
    #expect(try device.settings.stagedCount(isSealed: false) == 0)
    device.settings.onStage = nil
    #expect(try device.sync().failure == nil)
    #expect(try device.settings.values() == writer.settings.values())
  }

  @Test func c3AZoneErrorAppliesNothingAndKeepsTheStaging() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try write(25)
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync()
    #expect(try device.settings.values() == ["a": "1"])
    #expect(try device.settings.stagedCount(isSealed: false) == 20)
    #expect(try device.settings.stagedCount(isSealed: true) == 0)
  }

  @Test func c4UnsealedLeftoversAreCompletedByAFetchAndSealedOnesNeedNone() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try write(25)
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync()
    device.relaunch()
    device.settings.onApply = { throw SettingsFile.PowerCut() }
    try device.sync()
    #expect(try device.settings.stagedCount(isSealed: true) == 25)
    #expect(try device.settings.values() == ["a": "1"])
    device.relaunch()
    device.cloud.isOffline = true
    try device.sync()
    #expect(try device.settings.values() == writer.settings.values())
    #expect(try device.settings.stagedCount(isSealed: true) == 0)
  }

  @Test func c5ApplyingAndClearingAreOneTransaction() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try write(25)
    // Dies in the transaction that applies: three pages, then that one.
    device.settings.onApply = { [device] in device.file.diesAt = 1 }
    try device.sync()
    device.relaunch()
    #expect(try device.settings.values() == ["a": "1"])
    #expect(try device.settings.stagedCount(isSealed: true) == 25)
    try device.sync()
    #expect(try device.settings.values().count == 26)
    #expect(try device.settings.stagedCount(isSealed: true) == 0)
  }

  /// C5: staging is a join.
  @Test func c5AnyOrderAndRepetitionOfVersionsGiveTheSame() throws {
    let old = record("k", "old", clock: 1, tag: "t1")
    let new = record("k", "new", clock: 2, tag: "t2")
    for versions in [[old, new], [new, old], [new, old, new], [old, old, new], [new, new, old]] {
      let category = SettingsCategory(try SettingsFile())
      for version in versions {
        let page = ZonePage(
          zone: category.zone, records: [version], deletions: [], token: ChangeToken("t"), moreComing: true)
        try category.stage(page, now: 1)
      }
      try category.seal(category.zone)
      _ = try category.applySealed(in: category.zone, now: 1)
      #expect(try category.values() == ["k": "new"])
    }
  }

  func record(_ key: String, _ value: String, clock: Int64, tag: String) -> Record {
    var record = Record(
      id: RecordID(name: SettingsCategory.recordName(key), zone: SettingsDevice.zone), type: SettingsCategory.type)
    record.changeTag = ChangeTag(tag)
    record.fields = ["value": .string(value), "clock": .int64(clock)]
    return record
  }

  /// C6 and E22: a trigger of the file refuses what comes.
  @Test func c6e22ARefusedRecordIsParkedVisibleAndAppliedAfterRepair() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try device.settings.sql.execute(
      """
      CREATE TRIGGER short BEFORE INSERT ON setting WHEN new.value = 'long'
      BEGIN SELECT RAISE(ABORT, 'too long'); END
      """)
    try writer.settings.set("b", "long", at: 3)
    try writer.settings.set("c", "fine", at: 3)
    try writer.sync()
    let before = try device.token
    #expect(try device.sync().failure == nil)
    #expect(try device.token != before)
    #expect(try device.settings.values() == ["a": "1", "c": "fine"])
    #expect(try device.settings.parked() == ["b": "too long"])
    device.relaunch()
    #expect(try device.settings.parked() == ["b": "too long"])
    try device.settings.sql.execute("DROP TRIGGER short")
    clock.advance(seconds: 60)
    try device.sync()
    #expect(try device.settings.values() == writer.settings.values())
    #expect(try device.settings.parked().isEmpty)
  }

  /// C6 and E30: no attempt before its time, and each waits longer than the one before.
  @Test func c6e30ParkedRecordsAreRetriedWithBackoff() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try device.settings.sql.execute(
      "CREATE TRIGGER no BEFORE INSERT ON setting WHEN new.value = 'x' BEGIN SELECT RAISE(ABORT, 'no'); END")
    try writer.settings.set("b", "x", at: 3)
    try writer.sync()
    try device.sync()
    var tries: [Int] = []
    for second in 1...30 {
      clock.advance(seconds: 1)
      device.settings.clearCalls()
      try device.sync(.all, manual: false)
      if device.settings.calls.contains("retry b") { tries.append(second) }
    }
    #expect(tries == [2, 6, 14, 30])
  }

  @Test func c7AConflictIsJoinedWithoutWaitingForASeal() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try writer.settings.set("a", "theirs", at: 9)
    try writer.sync()
    try write(25)
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync(.fetchOnly)
    #expect(try device.settings.stagedCount(isSealed: false) > 0)
    clock.advance(seconds: 60)
    try device.settings.set("a", "mine", at: 5)
    device.cloud.fail(.lostRequest, times: 9, where: SettingsDevice.isFetch)
    try device.sync(.sendOnly)
    #expect(try device.settings.values()["a"] == "theirs")
    #expect(try device.settings.stagedCount(isSealed: false) > 0)
  }

  @Test func c7SavedRecordsComeBackToTheJoin() throws {
    let echo = EchoingCloud(writer.plain)
    let session = SyncSession(
      cloud: echo, store: writer.file, categories: writer.categories, zones: [SettingsDevice.zone], time: clock,
      randomness: SeededRandomness(seed: 1))
    try writer.settings.set("a", "mine", at: 5)
    echo.replaced = "rewritten by the server"
    _ = try session.sync()
    #expect(try writer.settings.values()["a"] == "rewritten by the server")
  }

  @Test func c8AChangeWaitsUntilWhatItNeedsIsConfirmed() throws {
    try writer.settings.set("p", "parent", at: 5)
    try writer.settings.set("p/child", "x", at: 5)
    writer.cloud.clearLog()
    writer.cloud.fail(.quotaExceeded, where: SettingsDevice.isSend)
    try writer.sync(.all, manual: false)
    #expect(try writer.settings.pending() == ["p", "p/child"])
    #expect(writer.cloud.sentOperations.map(\.record.id.name) == ["setting-p"])
    // The gate is recomputed from what is stored.
    writer.relaunch()
    writer.cloud.clearLog()
    try writer.sync()
    let sent = writer.cloud.log.compactMap { request -> [String]? in
      if case .modify(_, let operations, _) = request.call { operations.map(\.record.id.name) } else { nil }
    }
    #expect(sent == [["setting-p"], ["setting-p/child"]])
  }

  @Test func c8ANewIncarnationClosesTheGate() throws {
    try writer.settings.set("p", "parent", at: 5)
    try writer.settings.set("p/child", "x", at: 5)
    try writer.sync()
    _ = try writer.plain.deleteZones([SettingsDevice.zone])
    writer.cloud.clearLog()
    try writer.sync()
    try writer.sync()
    let sent = writer.cloud.log.compactMap { request -> [String]? in
      if case .modify(_, let operations, _) = request.call { operations.map(\.record.id.name) } else { nil }
    }
    #expect(sent == [["setting-a", "setting-p"], ["setting-p/child"]])
    #expect(try writer.serverValues == ["a": "1", "p": "parent", "p/child": "x"])
  }

  @Test func c12ARebuiltEngineKeepsOutboxStagingParkedAndChoices() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    try write(25)
    try device.settings.setEnabled(false)
    try device.settings.set("mine", "m", at: 9)
    try device.sync()
    device.relaunch()
    #expect(try device.settings.pending() == ["mine"])
    #expect(try device.settings.stagedCount(isSealed: true) == 25)
    #expect(try device.settings.isOn == false)
    #expect(try device.sync().saved == 0)
    try device.settings.setEnabled(true)
    try device.sync()
    #expect(try device.settings.values().count == 27)
    #expect(try device.serverValues["mine"] == "m")
  }
}
