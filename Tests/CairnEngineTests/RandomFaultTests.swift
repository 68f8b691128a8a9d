import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Devices that edit, crash and meet every kind of fault, by a seed. At the end all agree (engine E10, E33, E34, E48).
@Suite struct RandomFaultTests {
  /// One device whose inputs are recorded.
  final class Actor {
    let clock: ManualClock
    let cloud: FaultInjector
    let plain: InMemoryCloud
    let store = MemoryStore()
    let notes: NotesCategory
    let events = EventLog()
    let seed: UInt64
    var settings: SyncSettings
    var session: SyncSession?
    /// Inputs of the present session, and the rows that it was opened on.
    var log: [(Input, Moment)] = []
    var openedOn: [String: String] = [:]

    init(_ server: InMemoryServer, _ clock: ManualClock, seed: UInt64, delivery: CategoryDelivery, atomic: Bool) throws
    {
      self.clock = clock
      self.seed = seed
      settings = SyncSettings()
      settings.atomicByZone = atomic
      settings.sweepChunk = 3
      plain = try server.cloud(user: "anna", limits: CloudLimits(entriesPerRequest: 4))
      cloud = FaultInjector(plain, seed: seed)
      notes = NotesCategory(delivery: delivery, zone: Device.zone)
      store.members = [notes]
      relaunch()
    }

    func relaunch() {
      log = []
      openedOn = store.rows
      let session = SyncSession(
        cloud: cloud, store: store, categories: [notes], zones: [Device.zone], settings: settings, time: clock,
        randomness: SeededRandomness(seed: seed), observer: events)
      session.inputLog = { [unowned self] input, moment in log.append((input, moment)) }
      self.session = session
    }

    func sync(manual: Bool) throws -> SyncResult {
      guard let session else { return SyncResult() }
      return try session.sync(SyncRequest(isManual: manual))
    }
  }

  func expireTokens(_ actor: Actor) {
    let error = CloudError(.changeTokenExpired, "expired", expiryCause: .retention)
    actor.cloud.fail(.error(error)) { call in
      guard case .zoneChanges(_, let token) = call else { return false }
      return token != nil
    }
  }

  func turn(_ actor: Actor, _ random: SeededRandomness, _ clock: ManualClock) throws {
    clock.advance(milliseconds: Int64(1 + random.below(20_000)))
    let key = "k\(random.below(8))"
    switch random.below(12) {
    case 0...3: actor.notes.set(key, "v\(random.below(1_000))", at: clock.wallClock)
    case 4: actor.notes.delete(key, at: clock.wallClock)
    case 5: actor.relaunch()
    case 6: actor.store.failures = random.below(5)
    case 7: if random.chance(percent: 30) { expireTokens(actor) }
    default:
      _ = try actor.sync(manual: random.chance(percent: 50))
      let faults = EventOrder.faults(actor.events.events)
      try #require(faults.isEmpty, "seed \(actor.seed): \(faults)")
      actor.events.events = []
    }
  }

  @Test(arguments: [(CategoryDelivery.pages, false), (.pages, true), (.sealedSet, false)])
  func e34e33o2DevicesConvergeWhateverHappens(_ delivery: CategoryDelivery, _ atomic: Bool) throws {
    let seed = UInt64.random(in: 0..<1_000_000)
    for run in 0..<12 {
      let runSeed = seed &+ UInt64(run)
      let clock = ManualClock()
      let server = try InMemoryServer(clock: clock)
      let random = SeededRandomness(seed: runSeed)
      let actors = try (0..<3).map {
        try Actor(server, clock, seed: runSeed &+ UInt64($0 * 1_000), delivery: delivery, atomic: atomic)
      }
      for actor in actors {
        actor.cloud.setRates(.init(lostRequest: 8, lostAnswer: 8, throttled: 4, temporary: 4))
        // Some servers tell where their feed stood, others leave it to the echo.
        actor.cloud.hidesPositions = random.chance(percent: 30)
      }
      for _ in 0..<250 { try turn(actors[random.below(3)], random, clock) }
      try settle(actors, clock)
      for actor in actors {
        #expect(actor.notes.pendingCount == 0, "seed \(seed) run \(run)")
        #expect(actor.notes.notes == actors[0].notes.notes, "seed \(seed) run \(run)")
      }
      let names = try actors[0].plain.allRecords(in: Device.zone).map(\.id.name)
      #expect(names.map { String($0.dropFirst(5)) } == actors[0].notes.notes.keys.sorted(), "seed \(seed) run \(run)")
    }
  }

  func settle(_ actors: [Actor], _ clock: ManualClock) throws {
    for actor in actors {
      actor.cloud.heal()
      actor.store.failures = 0
    }
    for _ in 0..<6 {
      clock.advance(seconds: 90_000)
      for actor in actors { _ = try actor.sync(manual: true) }
    }
  }

  @Test(arguments: [false, true])
  func e48TheSameInputsGiveTheSameEffects(_ hidesPositions: Bool) throws {
    let seed = UInt64.random(in: 0..<1_000_000)
    let clock = ManualClock()
    let server = try InMemoryServer(clock: clock)
    let random = SeededRandomness(seed: seed)
    let actor = try Actor(server, clock, seed: seed, delivery: .pages, atomic: false)
    actor.cloud.setRates(.init(lostRequest: 8, lostAnswer: 8, throttled: 4, temporary: 4))
    actor.cloud.hidesPositions = hidesPositions
    for i in 0..<120 {
      clock.advance(seconds: 40)
      actor.notes.set("k\(random.below(8))", "v\(i)", at: clock.wallClock)
      if random.chance(percent: 20) { actor.notes.delete("k\(random.below(8))", at: clock.wallClock) }
      _ = try actor.sync(manual: true)
    }
    func replay() throws -> [[Effect]] {
      let configuration = try #require(actor.session?.configuration)
      let prefix = SyncSession.prefix(nil)
      var rows: [String: String] = [:]
      for (key, value) in actor.openedOn { rows[String(key.dropFirst(prefix.count))] = value }
      let start = Moment(wall: 0, uptime: 0, random: 0)
      var machine = try SyncStateMachine(configuration: configuration, rows: rows, now: start)
      return actor.log.map { input, moment in
        let effects = machine.step(input, now: moment)
        #expect(machine.brokenInvariants().isEmpty, "seed \(seed): \(input)")
        return effects
      }
    }
    let first = try replay()
    #expect(first.count > 300)
    #expect(try replay() == first, "seed \(seed)")
  }

  @Test func e10ARebuiltEngineLosesNoQueuedChange() throws {
    let clock = ManualClock()
    let server = try InMemoryServer(clock: clock)
    let device = try Device(server, clock)
    device.cloud.isOffline = true
    for i in 0..<50 {
      device.notes.set("n\(i)", "x", at: 1)
      if i % 5 == 0 {
        try device.sync()
        device.relaunch()
      }
    }
    device.cloud.isOffline = false
    #expect(try device.sync().saved == 50)
  }
}
