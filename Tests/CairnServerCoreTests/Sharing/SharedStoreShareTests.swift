import CairnPostgres
import CairnRecords
import CairnTesting
import StoreSupport
import Testing

@testable import CairnServerCore

/// Sharing where two servers have one store in PostgreSQL.
@Suite struct SharedStoreShareTests {
  private let world: ShareWorld
  private let other: InMemoryServer

  init() throws {
    world = try EveryStore.$kind.withValue(.postgres) { try ShareWorld() }
    other = try InMemoryServer(
      storage: try world.store.open(), clock: world.clock, randomness: SeededRandomness(seed: 2))
    try world.save(world.anna, "root")
  }

  private func save(_ who: Caller, _ name: String, at core: CloudServer) throws {
    let request = Modification(
      operations: [IncomingOperation(RecordOperation(.create, world.record(who, name, parent: "root")))])
    if let error = try core.modify(who, world.scope(who), request).outcomes[0].error { throw error }
  }

  @Test("web-services W37: owner and participants write through two servers at once, and each gets everything")
  func writers() throws {
    let (world, other) = (world, other)
    try world.share("root", accepted: [(world.ben, .readWrite), (world.cleo, .readWrite)])
    let tokens = try [world.ben, world.cleo].map { try world.feed($0).token }
    let writers = [world.anna, world.ben, world.cleo]
    try onThreads(6) { number in
      let core = number < 3 ? world.core : other.core
      for i in 0..<10 { try save(writers[number % 3], "w\(number)-\(i)", at: core) }
    }
    for (who, token) in zip([world.ben, world.cleo], tokens) {
      #expect(try world.feed(who, since: token).records.count == 60)
      #expect(try world.zones(who).zones == ["Notes"])
    }
    try world.checkInvariants()
  }

  @Test("web-services section 12: a participant who is taken out in the middle of a write writes nothing after that")
  func takenOut() throws {
    let (world, other) = (world, other)
    try world.share("root", accepted: [(world.ben, .readWrite)])
    for round in 0..<5 {
      let guid = try world.share("root", with: [world.invitation(world.ben)])
      try world.accept(world.ben, guid)
      try onThreads(2) { number in
        if number == 0 {
          try world.share("root", with: [])
        } else {
          for i in 0..<20 {
            do { try save(world.ben, "r\(round)-\(i)", at: other.core) } catch let error as CloudError {
              #expect([.accessDenied, .zoneNotFound].contains(error.code), "\(error)")
            }
          }
        }
      }
      let count = try world.feed(world.anna).records.count
      #expect(throws: CloudError.self) { try save(world.ben, "late\(round)", at: world.core) }
      #expect(try world.feed(world.anna).records.count == count)
      try world.checkInvariants()
    }
  }

  @Test("web-services section 12: a user who is removed in the middle of accepting takes part in nothing afterwards")
  func removed() throws {
    let (world, other) = (world, other)
    let guid = try world.share("root", open: .readWrite)
    for round in 0..<8 {
      let user = try world.server.caller("guest\(round)")
      try onThreads(2) { number in
        if number == 0 {
          try UserDirectory(storage: world.storage, clock: world.clock).remove(user.name)
        } else {
          // It may come too late.
          do { _ = try other.core.acceptShares(user, ShareWorld.open, [ShareQuery(guid: guid)]) } catch is CloudError {}
        }
      }
      #expect(try world.storage.read { try $0.participations(of: user.key) } == [])
    }
    #expect(try world.storage.read { try $0.shares(.guid(guid)).count } == 1)
    try world.checkInvariants()
  }

  @Test("a store of format 1 is brought up to date when it is opened")
  func format() throws {
    let store = try TestStore(.postgres)
    let first = try store.open()
    _ = try UserDirectory(storage: first).add("anna")
    first.close()
    for statement in [
      "DROP TABLE cairn.shares, cairn.share_participants, cairn.share_entries, cairn.devices, cairn.usage_days",
      """
      ALTER TABLE cairn.users DROP COLUMN email, DROP COLUMN given_name, DROP COLUMN family_name,
        DROP COLUMN discoverable
      """,
      "UPDATE cairn.store SET format = 1",
    ] {
      try PostgresCluster.shared().execute(statement, in: store.url)
    }
    let storage = try store.open()
    defer { storage.close() }
    let users = UserDirectory(storage: storage)
    #expect(try users.profile("anna") == UserProfile())
    try users.setProfile(UserProfile(email: "Anna@example.org"), for: "anna")
    #expect(try storage.read { try $0.user(email: "anna@example.org")?.name } == "anna")
    _ = try users.add("ben")
    #expect(failure { try users.setProfile(UserProfile(email: "anna@example.org"), for: "ben") }?.code == .exists)
  }
}
