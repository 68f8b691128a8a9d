import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Every step of one busy sync fails once: each transaction, each request before it happens, each answer. What follows
/// must come to the same end (engine E1, E10, E18; C2–C5).
@Suite struct CrashTests {
  /// A device with edits, a foreign edit, a conflict and foreign deletions ahead of it, in small pages.
  struct World {
    let clock = ManualClock()
    let server: InMemoryServer
    let device: Device
    let other: Device

    init(_ delivery: CategoryDelivery) throws {
      server = try InMemoryServer(clock: clock)
      let limits = CloudLimits(entriesPerRequest: 3)
      other = try Device(server, clock, limits: limits)
      device = try Device(server, clock, delivery: delivery, limits: limits)
      for i in 0..<10 { other.notes.set("n\(i)", "base", at: 1) }
      try other.sync()
      try device.sync()
      for i in 0..<3 { other.notes.delete("n\(i)", at: 5) }
      for i in 3..<6 { other.notes.set("n\(i)", "theirs", at: 5) }
      try other.sync()
      device.notes.set("n0", "mine, late", at: 9)
      device.notes.set("n1", "mine, early", at: 2)
      device.notes.set("n3", "mine", at: 9)
      device.notes.delete("n4", at: 9)
      device.notes.delete("n9", at: 9)
      for i in 0..<5 { device.notes.set("new\(i)", "x", at: 9) }
      device.cloud.clearLog()
    }

    /// Everything heals; both devices sync until quiet.
    func end() throws -> [String: String] {
      device.cloud.heal()
      device.store.diesAt = nil
      device.relaunch()
      for _ in 0..<3 {
        clock.advance(seconds: 90_000)
        try device.sync()
        try other.sync()
      }
      #expect(device.notes.pendingCount == 0)
      #expect(device.notes.state.staged.isEmpty && device.notes.state.sealed.isEmpty)
      #expect(device.notes.notes == other.notes.notes)
      #expect(try device.serverTexts == device.notes.notes)
      return device.notes.notes
    }
  }

  static let wanted: [String: String] = [
    "n0": "mine, late", "n3": "mine", "n5": "theirs", "n6": "base", "n7": "base", "n8": "base", "new0": "x",
    "new1": "x", "new2": "x", "new3": "x", "new4": "x",
  ]

  @Test(arguments: [CategoryDelivery.pages, .sealedSet])
  func everyTransactionMayBeTheLast(_ delivery: CategoryDelivery) throws {
    let whole = try World(delivery)
    let before = whole.device.store.transactions
    try whole.device.sync(.all)
    let count = whole.device.store.transactions - before
    #expect(count >= 5)
    #expect(try whole.end() == Self.wanted)
    for step in 1...count {
      let world = try World(delivery)
      world.device.store.diesAt = world.device.store.transactions + step
      _ = try world.device.sync()
      let faults = EventOrder.faults(world.device.events.events)
      #expect(faults.isEmpty, "transaction \(step): \(faults)")
      #expect(try world.end() == Self.wanted, "transaction \(step)")
    }
  }

  @Test(arguments: [CategoryDelivery.pages, .sealedSet], [SyncRequest.Scope.all, .sendOnly])
  func everyRequestMayBeLost(_ delivery: CategoryDelivery, _ scope: SyncRequest.Scope) throws {
    let whole = try World(delivery)
    try whole.device.sync(scope)
    let count = whole.device.cloud.log.count
    #expect(count >= 5)
    for step in 0..<count {
      for fault in [FaultInjector.Fault.lostRequest, .lostAnswer, .throttled(retryAfter: 5)] {
        let world = try World(delivery)
        world.device.cloud.script(Array(repeating: nil, count: step) + [fault])
        let result = try world.device.sync(scope)
        #expect(!result.endedQuiet, "request \(step) \(fault)")
        let faults = EventOrder.faults(world.device.events.events)
        #expect(faults.isEmpty, "request \(step) \(fault): \(faults)")
        #expect(try world.end() == Self.wanted, "request \(step) \(fault)")
      }
    }
  }
}
