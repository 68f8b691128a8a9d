import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// A power cut at every write and a loss at every request of a category's first sync, and random lives of several
/// devices (engine C1–C12, E18).
@Suite struct ContractCrashTests {
  struct World {
    let clock = ManualClock()
    let server: InMemoryServer
    let writer: SettingsDevice
    let device: SettingsDevice

    init(_ demand: BootstrapDemand) throws {
      server = try InMemoryServer(clock: clock)
      writer = try SettingsDevice(server, clock)
      for i in 0..<25 { try writer.settings.set("k\(i)", "v\(i)", at: 1) }
      try writer.sync()
      device = try SettingsDevice(server, clock, page: 10) { [SettingsCategory($0, bootstrap: demand)] }
      try device.settings.set("k1", "mine", at: 9)
      try device.settings.set("p", "1", at: 9)
      try device.settings.set("p/q", "2", at: 9)
    }

    /// After a crash: of the foreign set everything is there or nothing (C3, C5), and row and outbox agree (C1).
    func checkBorder(_ place: String) throws {
      let foreign = try device.settings.values().keys.count { $0.hasPrefix("k") && $0 != "k1" }
      #expect(foreign == 0 || foreign == 24, "\(place): \(foreign) of a set are applied")
      for key in ["k1", "p", "p/q"] {
        let isSent = try device.serverValues[key] == device.settings.values()[key]
        #expect(try isSent || device.settings.pending().contains(key), "\(place): \(key) is neither pending nor sent")
      }
    }

    func end(_ place: String) throws {
      device.cloud.heal()
      device.relaunch()
      for _ in 0..<3 {
        clock.advance(seconds: 90_000)
        try device.sync()
        try writer.sync()
      }
      #expect(try device.settings.values() == writer.settings.values(), "\(place)")
      #expect(try device.serverValues == device.settings.values(), "\(place)")
      #expect(try device.settings.values()["k1"] == "mine", "\(place)")
      #expect(try device.settings.values().count == 27, "\(place)")
      #expect(try device.settings.pending().isEmpty, "\(place)")
      #expect(try device.settings.stagedCount(isSealed: true) == 0, "\(place)")
      #expect(try device.settings.stagedCount(isSealed: false) == 0, "\(place)")
      #expect(try device.status() == .current, "\(place)")
    }
  }

  @Test(arguments: [BootstrapDemand.own, .whereMissed])
  func e18EveryWriteMayBeTheLast(_ demand: BootstrapDemand) throws {
    let whole = try World(demand)
    let before = whole.device.file.transactions
    try whole.device.sync()
    let count = whole.device.file.transactions - before
    #expect(count >= 8)
    try whole.end("whole")
    for step in 1...count {
      let world = try World(demand)
      world.device.file.diesAt = world.device.file.transactions + step
      _ = try world.device.sync()
      #expect(EventOrder.faults(world.device.events.events).isEmpty, "transaction \(step)")
      world.device.relaunch()
      try world.checkBorder("transaction \(step)")
      try world.end("transaction \(step)")
    }
  }

  @Test(arguments: [BootstrapDemand.own, .whereMissed])
  func everyRequestMayBeLost(_ demand: BootstrapDemand) throws {
    let whole = try World(demand)
    try whole.device.sync()
    let count = whole.device.cloud.log.count
    for step in 0..<count {
      for fault in [FaultInjector.Fault.lostRequest, .lostAnswer, .error(CloudError(.accessDenied, "no"))] {
        let world = try World(demand)
        world.device.cloud.script(Array(repeating: nil, count: step) + [fault])
        _ = try world.device.sync()
        #expect(EventOrder.faults(world.device.events.events).isEmpty, "request \(step) \(fault)")
        world.device.relaunch()
        try world.checkBorder("request \(step) \(fault)")
        try world.end("request \(step) \(fault)")
      }
    }
  }

  // MARK: Random lives

  @Test(arguments: 0..<120) func randomLivesConverge(seed: UInt64) throws {
    let random = SeededRandomness(seed: seed)
    let clock = ManualClock()
    let server = try InMemoryServer(clock: clock)
    let demand: BootstrapDemand = random.chance(percent: 50) ? .own : .whereMissed
    let delivery: CategoryDelivery = random.chance(percent: 50) ? .sealedSet : .pages
    let devices = try (0..<3).map { _ in
      try SettingsDevice(server, clock, page: 3) { [SettingsCategory($0, delivery: delivery, bootstrap: demand)] }
    }
    for step in 0..<60 {
      clock.advance(seconds: Int64(random.below(30)))
      try act(devices[random.below(3)], random, Int64(step))
    }
    for device in devices {
      device.cloud.heal()
      device.relaunch()
      try device.settings.setEnabled(true)
    }
    for _ in 0..<6 {
      clock.advance(seconds: 90_000)
      for device in devices {
        let result = try device.sync()
        #expect(result.failure == nil, "seed \(seed)")
      }
    }
    let values = try devices[0].serverValues
    for (index, device) in devices.enumerated() {
      #expect(try device.settings.values() == values, "seed \(seed), device \(index)")
      #expect(try device.settings.pending().isEmpty, "seed \(seed), device \(index)")
      #expect(try device.status() == .current, "seed \(seed), device \(index)")
      device.cloud.clearLog()
      #expect(try device.sync().endedQuiet, "seed \(seed), device \(index)")
      #expect(device.cloud.sentOperations.isEmpty, "seed \(seed), device \(index)")
    }
  }

  private func act(_ device: SettingsDevice, _ random: SeededRandomness, _ time: Int64) throws {
    let keys = ["a", "b", "c", "a/x", "b/y"]
    let key = keys[random.below(keys.count)]
    switch random.below(20) {
    case 0..<7: try device.settings.set(key, "\(time)", at: time)
    case 7: try device.settings.set(key, nil, at: time)
    case 8: try device.settings.setEnabled(random.chance(percent: 60))
    case 9: try SyncSession.raiseNeed(of: "settings", in: device.file)
    case 10: device.relaunch()
    case 11:
      device.file.diesAt = device.file.transactions + 1 + random.below(8)
      _ = try device.sync()
      device.relaunch()
    case 12:
      device.cloud.setAfter { [generation = device.generation] _ in generation.raise() }
      _ = try device.sync()
      device.cloud.setAfter(nil)
      device.relaunch()
    case 13 where random.chance(percent: 30): _ = try device.plain.deleteZones([SettingsDevice.zone])
    default:
      if random.chance(percent: 50) {
        device.cloud.setRates(.init(lostRequest: 10, lostAnswer: 10, throttled: 5, temporary: 5))
      }
      _ = try device.sync(random.chance(percent: 20) ? .sendOnly : .all, manual: random.chance(percent: 70))
      device.cloud.setRates(nil)
    }
  }
}
