import CairnRecords
import CairnTesting
import Synchronization
import Testing

@testable import CairnServerCore

/// Web-services section 11, over the core.
@Suite(.everyStore) struct NotificationTests {
  /// A world with one address for notifications.
  private struct Listener {
    let world: World
    let courier: String

    init(_ settings: ServerSettings = ServerSettings(), _ subscriptions: Subscription...) throws {
      world = try World(settings: settings)
      courier = try world.server.core.addCourier(world.cloud.caller, world.cloud.scope)
      for result in try world.server.core.modifySubscriptions(
        world.cloud.caller, world.cloud.scope, subscriptions.map { .create($0) })
      { _ = try result.get() }
    }

    /// Everything that has not been fetched.
    func drain() -> [CloudNotification] {
      var found: [CloudNotification] = []
      while true {
        let answer = Mutex<CloudNotification?>(nil)
        let poll = world.server.core.notifications.poll(courier) { result in
          if case .notification(_, let notification) = result { answer.withLock { $0 = notification } }
        }
        if let poll { world.server.core.notifications.timeOut(poll) }
        guard let next = answer.withLock({ $0 }) else { return found }
        found.append(next)
      }
    }
  }

  private func query(_ events: Set<Subscription.Event>, zone: String? = nil, once: Bool = false) -> Subscription {
    Subscription(
      id: "q", kind: .query, zone: zone.map { ZoneID(name: $0) },
      query: RecordQuery(recordType: "Note", filters: [QueryFilter(.equals, .field("n"), .int64(1))]), firesOn: events,
      firesOnce: once)
  }

  @Test("W36: a query's subscription fires on its events, for records that meet the query")
  func queryEvents() throws {
    let listener = try Listener(ServerSettings(), query([.create, .update, .delete]))
    let world = listener.world
    try world.save("a", ["n": .int64(1)])
    try world.save("b", ["n": .int64(2)])
    try world.save("b", ["n": .int64(1)])
    try world.run(.forceDelete, world.note("a"))
    try world.run(.forceReplace, world.note("c", ["n": .int64(1)], type: "Other"))
    let found = listener.drain().compactMap { $0.change.map { "\($0.record)\($0.event.rawValue)" } }
    #expect(found == ["a1", "b2", "a3"])
    try world.save("b", ["n": .int64(3)])
    #expect(listener.drain().isEmpty)
  }

  @Test("W36: events that were not named, and other zones, do not fire; firesOnce ends with the first")
  func limits() throws {
    let creates = try Listener(ServerSettings(), query([.delete], zone: "Notes"))
    try creates.world.save("a", ["n": .int64(1)])
    try creates.world.run(
      .forceReplace, Record(id: RecordID(name: "x", zone: .init(name: "_defaultZone")), type: "Note"),
      in: ZoneID(name: "_defaultZone"))
    #expect(creates.drain().isEmpty)
    let once = try Listener(ServerSettings(), query([.create], once: true))
    try once.world.save("a", ["n": .int64(1)])
    try once.world.save("b", ["n": .int64(1)])
    #expect(once.drain().count == 1)
    #expect(try once.world.server.core.subscriptions(once.world.cloud.caller, once.world.cloud.scope).isEmpty)
  }

  @Test("W35: zones and databases fire once however often they change; failed requests and others' changes never")
  func zones() throws {
    let listener = try Listener(
      ServerSettings(), Subscription(id: "d", kind: .database),
      Subscription(id: "z", kind: .zone, zone: ZoneID(name: "Notes")))
    let world = listener.world
    for i in 0..<5 { try world.save("a", ["n": .int64(Int64(i))]) }
    #expect(listener.drain().map(\.subscription) == ["d", "z"])
    try world.run(.create, world.note("a"))
    #expect(listener.drain().isEmpty)
    _ = try world.cloud.createZones([ZoneID(name: "New")])
    _ = try world.cloud.createZones([ZoneID(name: "New")])
    #expect(listener.drain().map(\.zone.name) == ["New"])
    _ = try world.cloud.deleteZones([ZoneID(name: "New")])
    #expect(listener.drain().map(\.zone.name) == ["New"])
    let other = try world.server.cloud(user: "berta")
    _ = try other.createZones([world.zone])
    let far = try world.server.cloud(user: "anna", container: "iCloud.far")
    _ = try far.createZones([world.zone])
    #expect(listener.drain().isEmpty)
    _ = try world.server.core.modifySubscriptions(
      far.caller, far.scope, [.create(Subscription(id: "f", kind: .database))])
    try world.server.core.joinCourier(listener.courier, far.caller, far.scope)
    _ = try far.createZones([ZoneID(name: "Second")])
    #expect(listener.drain().map(\.container) == ["iCloud.far"])
    #expect(
      failure { try world.server.core.joinCourier(listener.courier, other.caller, other.scope) }?.code == .badRequest)
  }

  @Test("W35: a full queue becomes one entry per zone")
  func fullQueue() throws {
    var settings = ServerSettings()
    settings.notificationsPerCourier = 4
    let listener = try Listener(settings, query([.create]))
    for i in 0..<5 { try listener.world.save("a\(i)", ["n": .int64(1)]) }
    let found = listener.drain()
    #expect(found.map(\.change) == [nil] && found.map(\.zone.name) == ["Notes"])
  }

  @Test("addresses and waiting polls of a user are bounded; unknown addresses and a closed hub are told apart")
  func bounds() throws {
    var settings = ServerSettings()
    settings.couriersPerUser = 2
    settings.waitingPolls = 1
    let listener = try Listener(settings)
    let core = listener.world.server.core
    let (caller, scope) = (listener.world.cloud.caller, listener.world.cloud.scope)
    let answers = Mutex<[String]>([])
    func poll(_ courier: String) {
      core.notifications.poll(courier) { result in
        answers.withLock {
          switch result {
          case .busy: $0.append("busy")
          case .unknown: $0.append("unknown")
          case .nothing: $0.append("nothing")
          case .notification: $0.append("notification")
          }
        }
      }
    }
    poll(listener.courier)
    let second = try core.addCourier(caller, scope)
    poll(second)
    #expect(answers.withLock { $0 } == ["busy"])
    // The first was used longest ago.
    _ = try core.addCourier(caller, scope)
    #expect(answers.withLock { $0 } == ["busy", "unknown"])
    poll(listener.courier)
    poll(second)
    #expect(core.notifications.waiting == 1)
    core.notifications.close()
    poll(second)
    #expect(answers.withLock { $0 } == ["busy", "unknown", "unknown", "busy", "busy"])
    #expect(!core.notifications.hasListener(NotificationHub.App(caller, scope)))
  }
}
