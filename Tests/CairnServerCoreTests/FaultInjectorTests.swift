import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// The tools of CairnTesting do what they say: other tests lean on them.
@Suite struct FaultInjectorTests {
  private func save(_ cloud: any CloudDatabase, _ world: World, _ name: String) throws -> OperationOutcome {
    try cloud.modify(in: world.zone, [RecordOperation(.create, world.note(name))], atomic: true)[0]
  }

  @Test("a lost request has not happened, a lost answer has")
  func lost() throws {
    let world = try World()
    let cloud = FaultInjector(world.cloud)
    cloud.script([.lostRequest, .lostAnswer, nil])
    #expect(failure { _ = try save(cloud, world, "a") }?.code == .networkFailure)
    #expect(try world.stored("a") == nil)
    #expect(failure { _ = try save(cloud, world, "a") }?.code == .serverResponseLost)
    #expect(try world.stored("a") != nil)
    #expect(try save(cloud, world, "a").error?.code == .conflict)
    #expect(cloud.log.map(\.fault) == [.lostRequest, .lostAnswer, nil])
    #expect(cloud.sentOperations.map(\.record.id.name) == ["a", "a", "a"])
  }

  @Test("over quota saves fail and deletes work; atomic requests with a save do nothing", arguments: [false, true])
  func quota(_ atomic: Bool) throws {
    let world = try World()
    try world.save("old")
    let cloud = FaultInjector(world.cloud)
    cloud.fail(.quotaExceeded)
    let outcomes = try cloud.modify(
      in: world.zone, [RecordOperation(.create, world.note("a")), RecordOperation(.forceDelete, world.note("old"))],
      atomic: atomic)
    #expect(outcomes[0].error?.code == .quotaExceeded)
    #expect(outcomes[1].error?.code == (atomic ? .atomicError : nil))
    #expect(try (world.stored("old") != nil) == atomic)
  }

  @Test("rules match calls, offline comes first, heal ends everything")
  func rules() throws {
    let world = try World()
    let cloud = FaultInjector(world.cloud)
    cloud.fail(.throttled(retryAfter: 7), times: 2) { if case .zoneChanges = $0 { true } else { false } }
    #expect(try save(cloud, world, "a").error == nil)
    #expect(failure { _ = try cloud.zoneChanges(in: world.zone, since: nil) }?.retryAfter == 7)
    cloud.isOffline = true
    #expect(failure { _ = try cloud.zoneChanges(in: world.zone, since: nil) }?.code == .networkUnavailable)
    cloud.heal()
    #expect(try cloud.zoneChanges(in: world.zone, since: nil).records.count == 1)
  }

  @Test("the same seed gives the same faults")
  func seeded() throws {
    func faults(_ seed: UInt64) throws -> [FaultInjector.Fault?] {
      let world = try World()
      let cloud = FaultInjector(world.cloud, seed: seed)
      cloud.setRates(.init(lostRequest: 20, lostAnswer: 20, throttled: 10))
      for _ in 0..<50 { _ = try? cloud.zoneExists(world.zone) }
      return cloud.log.map(\.fault)
    }
    #expect(try faults(1) == faults(1))
    #expect(try faults(1) != faults(2))
    #expect(Set(try faults(1)).count == 4)
  }

  @Test("a cancelled cloud fails, its server goes on")
  func cancelled() throws {
    let world = try World()
    let other = try world.server.cloud(user: "anna")
    other.cancel()
    #expect(failure { _ = try other.currentUser() }?.code == .cancelled)
    #expect(try world.cloud.zoneExists(world.zone))
  }

  @Test("two worlds of the same seed are equal to the last tag and token")
  func deterministic() throws {
    func run() throws -> ([Record], ChangeToken) {
      let world = try World()
      for i in 0..<20 { try world.save("r\(i % 7)", ["n": .int64(Int64(i))]) }
      return (try world.cloud.allRecords(in: world.zone), try world.feed().token)
    }
    #expect(try run() == run())
  }
}
