import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// Bootstrap, need and epoch (engine C10; accounts A48–A57).
@Suite struct BootstrapTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: SettingsDevice

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try SettingsDevice(server, clock)
    for i in 0..<25 { try writer.settings.set("k\(i)", "v\(i)", at: 1) }
    try writer.sync()
  }

  /// A session without the settings category, on the same file: its token passes by their records.
  func older(_ device: SettingsDevice) -> SyncSession {
    SyncSession(
      cloud: device.cloud, store: device.file, categories: [NotesCategory(zone: SettingsDevice.zone)],
      zones: [SettingsDevice.zone], time: clock, randomness: SeededRandomness(seed: 5))
  }

  @Test(arguments: [BootstrapDemand.own, .whereMissed])
  func c10ACategoryThatCameLaterGetsAllAndTheEnginesTokenIsLeftAlone(_ demand: BootstrapDemand) throws {
    let device = try SettingsDevice(server, clock, page: 10) { [SettingsCategory($0, bootstrap: demand)] }
    _ = try older(device).sync()
    let token = try device.token
    #expect(token != nil)
    device.relaunch()
    device.cloud.clearLog()
    // The engine's own fetch fails: what the bootstrap does to the token shows.
    device.cloud.fail(.lostRequest) { [token] in if case .zoneChanges(_, token) = $0 { true } else { false } }
    try device.sync()
    #expect(try device.token == token)
    #expect(device.fullFetches == 1)
    #expect(try device.settings.values() == writer.settings.values())
    #expect(try device.status() == .current)
    #expect(device.settings.calls.filter { $0 == "seal" || $0 == "bootstrapped" } == ["seal", "bootstrapped"])
  }

  @Test func c10WithoutOwnDemandTheFirstFetchCounts() throws {
    let device = try SettingsDevice(server, clock) { [SettingsCategory($0, bootstrap: .whereMissed)] }
    try device.sync()
    device.relaunch()
    try device.sync()
    #expect(device.fullFetches == 1)
    #expect(try device.status() == .current)
  }

  @Test func c10FiveLaunchesMakeOneBootstrap() throws {
    let device = try SettingsDevice(server, clock)
    for _ in 0..<5 {
      try device.sync()
      device.relaunch()
    }
    // The bootstrap, and the engine's own first fetch.
    #expect(device.fullFetches == 2)
  }

  @Test func c10NothingIsAppliedOrSentBeforeItIsComplete() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.settings.set("mine", "m", at: 5)
    try device.settings.set("k2", nil, at: 5)
    device.cloud.script([nil, .error(CloudError(.accessDenied, "no"))])
    let failed = try device.sync()
    #expect(failed.failure != nil)
    #expect(try device.status() == .notActivated)
    #expect(try device.settings.values() == ["mine": "m"])
    #expect(device.cloud.sentOperations.isEmpty)
    #expect(try device.settings.pending() == ["k2", "mine"])
    // The engine's own fetch came through all the same; its pages wait with those of the bootstrap.
    #expect(try device.token != nil)
    #expect(try device.settings.stagedCount(isSealed: true) == 0)
    let done = try device.sync()
    #expect(done.failure == nil && done.saved == 1)
    #expect(try device.settings.values().count == 26)
    #expect(try device.settings.stagedCount(isSealed: false) == 0)
  }

  @Test func c10ACrashBetweenPagesGoesOnFromItsOwnToken() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync()
    #expect(try device.settings.values().isEmpty)
    device.relaunch()
    clock.advance(seconds: 60)
    device.cloud.clearLog()
    try device.sync(.fetchOnly)
    // The rest of the bootstrap is one page; the engine's own fetch has three.
    #expect(device.cloud.log.count { SettingsDevice.isFetch($0.call) } == 4)
    #expect(device.fullFetches == 1)
    #expect(try device.settings.values() == writer.settings.values())
  }

  @Test func c10AnExpiredTokenBeginsAnew() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    device.cloud.script([nil, .error(CloudError(.changeTokenExpired, "expired"))])
    try device.sync(.fetchOnly)
    #expect(try device.status() == .current)
    #expect(try device.settings.values() == writer.settings.values())
    #expect(device.fullFetches == 3)
  }

  @Test func c10AConfirmedMissingZoneIsAnEmptySuccess() throws {
    let empty = try InMemoryServer(clock: clock)
    let device = try SettingsDevice(empty, clock)
    try device.settings.set("first", "1", at: 1)
    #expect(try device.sync().saved == 1)
    #expect(try device.status() == .current)
  }

  @Test(arguments: [CloudError.Code.authenticationFailed, .networkFailure, .accessDenied, .internalError])
  func c10AnotherErrorIsNoSuccess(_ code: CloudError.Code) throws {
    let empty = try InMemoryServer(clock: clock)
    let device = try SettingsDevice(empty, clock)
    device.cloud.fail(.error(CloudError(code, "no")), where: SettingsDevice.isFetch)
    try device.sync()
    #expect(try device.status() == .notActivated)
    clock.advance(seconds: 3_600)
    try device.sync()
    #expect(try device.status() == .current)
  }

  @Test func c10ANeedRaisedDuringABootstrapIsNotClearedByIt() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    let isFirst = Flag()
    device.cloud.setAfter { [box = Handed(device.file)] call in
      guard SettingsDevice.isFetch(call), isFirst.takes() else { return }
      do { try SyncSession.raiseNeed(of: "settings", in: box.value) } catch { Issue.record(error) }
    }
    try device.sync()
    #expect(try device.status() == .activated)
    #expect(device.fullFetches == 2)
    try device.sync()
    #expect(try device.status() == .current)
    #expect(device.fullFetches == 3)
  }

  @Test func c10ANeedRaisedWhileABootstrapIsCutOffIsNotClearedByItsRest() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    device.cloud.script([nil, nil, .lostRequest])
    try device.sync()
    try SyncSession.raiseNeed(of: "settings", in: device.file)
    device.relaunch()
    clock.advance(seconds: 60)
    try device.sync()
    #expect(try device.status() == .activated)
    try device.sync()
    #expect(try device.status() == .current)
  }

  @Test func c10ANeedSurvivesARelaunchAndIsCounted() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try SyncSession.raiseNeed(of: "settings", in: device.file)
    try SyncSession.raiseNeed(of: "settings", in: device.file)
    device.relaunch()
    #expect(try device.status() == .activated)
    // Staging was lost: what it held is fetched again.
    try device.settings.sql.execute("DELETE FROM setting WHERE key = 'k3'")
    try device.settings.sql.execute("DELETE FROM confirmed WHERE key = 'k3'")
    try device.sync()
    #expect(try device.status() == .current)
    #expect(try device.settings.values() == writer.settings.values())
  }

  @Test func c10WhileANeedIsOpenUpdatesGoAndTheCategoryKnows() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try SyncSession.raiseNeed(of: "settings", in: device.file)
    device.cloud.fail(.error(CloudError(.badRequest, "no")), times: 3) {
      if case .zoneChanges(_, nil) = $0 { true } else { false }
    }
    try device.settings.set("k1", "edited", at: 9)
    try device.settings.set("new", "x", at: 9)
    let result = try device.sync()
    #expect(result.saved == 1)
    #expect(device.settings.requests.last?.isCurrent == false)
    #expect(try device.serverValues["k1"] == "edited")
    #expect(try device.settings.pending() == ["new"])
    try device.sync()
    try device.sync()
    #expect(try device.sync().failure == nil)
    #expect(try device.settings.pending().isEmpty)
  }

  @Test func c10ASessionWithoutTheCategoryRaisesANeed() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    device.relaunch()
    try writer.settings.set("fresh", "x", at: 9)
    try writer.sync()
    _ = try older(device).sync()
    device.relaunch()
    device.cloud.clearLog()
    let result = try device.sync()
    #expect(result.failure == nil)
    #expect(try device.settings.values()["fresh"] == "x")
    #expect(device.fullFetches == 1)
  }

  @Test func c10ACopyOnAnotherDeviceIsNoticed() throws {
    let device = try SettingsDevice(server, clock)
    device.deviceName = "phone"
    device.relaunch()
    try device.sync()
    device.deviceName = "copy"
    device.relaunch()
    #expect(try device.status() == .current)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1)
  }

  /// Absence is a hint, the look-up proves (engine section 8).
  @Test func c10ABootstrapOfAKnownZoneSweepsWhatIsGone() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try writer.settings.set("k7", nil, at: 9)
    try writer.sync()
    try SyncSession.raiseNeed(of: "settings", in: device.file)
    try device.sync()
    #expect(try device.settings.values() == writer.settings.values())
    #expect(try device.settings.values().count == 24)
  }

  /// Accounts A37.
  @Test func c10FailedStagingRaisesANeed() throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    for i in 0..<25 { try writer.settings.set("k\(i)", "w\(i)", at: 5) }
    try writer.sync()
    device.settings.onStage = { throw SettingsFile.PowerCut() }
    try device.sync()
    #expect(try device.status() == .activated)
    device.settings.onStage = nil
    device.cloud.clearLog()
    try device.sync()
    #expect(try device.status() == .current)
    #expect(device.fullFetches == 1)
    #expect(try device.settings.values() == writer.settings.values())
  }

  /// Engine section 6, accounts A84.
  @Test func aCategoryMayWantAFetchBeforeTheFirstSendAfterEveryStartAndReconnect() throws {
    let device = try SettingsDevice(server, clock) { file in
      let settings = SettingsCategory(file)
      settings.fetchesBeforeSending = true
      return [settings]
    }
    try device.sync()
    func sendOnly(_ key: String) throws -> Bool {
      try device.settings.set(key, "x", at: 9)
      device.cloud.clearLog()
      try device.sync(.sendOnly)
      #expect(device.settings.requests.last?.hasFetched == true)
      return device.cloud.log.contains { SettingsDevice.isFetch($0.call) }
    }
    #expect(try sendOnly("a") == false)
    device.relaunch()
    #expect(try sendOnly("b"))
    #expect(try sendOnly("c") == false)
    try device.session.noteReconnect()
    #expect(try sendOnly("d"))
    // Where that fetch fails, nothing is sent.
    device.relaunch()
    device.cloud.fail(.error(CloudError(.accessDenied, "no")), where: SettingsDevice.isFetch)
    try device.settings.set("e", "x", at: 9)
    device.cloud.clearLog()
    try device.sync(.sendOnly)
    #expect(device.cloud.sentOperations.isEmpty)
  }

  @Test func c10ALostZoneRaisesANeed() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    _ = try device.plain.deleteZones([SettingsDevice.zone])
    device.settings.clearCalls()
    #expect(try device.sync().failure == nil)
    #expect(
      device.settings.calls.filter { $0.hasPrefix("lost") || $0 == "bootstrapped" } == ["lost deleted", "bootstrapped"])
    #expect(try device.status() == .current)
    #expect(try device.serverValues == writer.settings.values())
  }
}

/// Generation (engine C11; accounts A56, A60, A64).
@Suite struct GenerationTests {
  let clock = ManualClock()
  let server: InMemoryServer
  let writer: SettingsDevice

  init() throws {
    server = try InMemoryServer(clock: clock)
    writer = try SettingsDevice(server, clock)
    for i in 0..<25 { try writer.settings.set("k\(i)", "v\(i)", at: 1) }
    try writer.sync()
  }

  static func dump(_ device: SettingsDevice) throws -> [String] {
    try ["setting", "outbox", "confirmed", "staged", "parked", "engine"].flatMap { table in
      try device.settings.sql.rows("SELECT * FROM \(table)").map { "\(table) \($0)" }
        .filter { !$0.contains("engine//epoch/") }.sorted()
    }
  }

  /// A switch while the fetch waits: the stores are as before, and the records that came raise a need.
  @Test(arguments: 1...4) func c11AChangeWhileWaitingWritesNothing(request: Int) throws {
    let device = try SettingsDevice(server, clock, page: 10)
    try device.sync()
    for i in 0..<25 { try writer.settings.set("k\(i)", "w\(i)", at: 5) }
    try writer.sync()
    try device.settings.set("mine", "m", at: 5)
    let count = Counter()
    let before = Handed(Box<[String]>([]))
    device.cloud.setBefore { [box = Handed(device)] call in
      guard count.next() == request else { return }
      do { before.value.value = try Self.dump(box.value) } catch { Issue.record(error) }
      box.value.generation.raise()
    }
    let result = try device.sync()
    #expect(result.failure == .replaced)
    #expect(try Self.dump(device) == before.value.value)
    #expect(EventOrder.faults(device.events.events).isEmpty)
    #expect(throws: SyncFailure.replaced) { try device.sync() }
    device.cloud.setBefore(nil)
    device.relaunch()
    try device.sync()
    #expect(try device.settings.values().count == 26)
    #expect(try device.settings.values()["k3"] == "w3")
    #expect(try device.serverValues["mine"] == "m")
  }

  @Test func c11DiscardedRecordsRaiseANeed() throws {
    let device = try SettingsDevice(server, clock)
    try device.sync()
    try writer.settings.set("k1", "new", at: 5)
    try writer.sync()
    device.cloud.setAfter { [generation = device.generation] call in
      if SettingsDevice.isFetch(call) { generation.raise() }
    }
    try device.sync()
    #expect(try device.status() == .activated)
    device.cloud.setAfter(nil)
    device.relaunch()
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1)
    #expect(try device.settings.values()["k1"] == "new")
  }
}

/// Counts calls.
final class Counter: Sendable {
  private let number = Box(0)
  func next() -> Int {
    number.value += 1
    return number.value
  }
}

/// A value to share with a closure.
final class Box<Value>: @unchecked Sendable {
  // Used on one thread only.
  var value: Value
  init(_ value: Value) { self.value = value }
}
