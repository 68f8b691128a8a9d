import CairnEngine
import CairnRecords
import CairnServerCore
import CairnTesting
import Testing

/// Web-services section 5 beyond its table.
@Suite(.everyStore) struct ModifyRulesTests {
  private func operations(_ world: World) -> [RecordOperation] {
    [
      RecordOperation(.create, world.note("new")), RecordOperation(.create, world.note("taken")),
      RecordOperation(.forceReplace, world.note("other", ["n": .int64(1)])),
      RecordOperation(.forceDelete, world.note("gone")),
    ]
  }

  @Test("W9: not atomic: good operations stay stored beside a failed one, entries in order")
  func notAtomic() throws {
    let world = try World()
    try world.save("taken")
    try world.save("gone")
    let outcomes = try world.cloud.modify(in: world.zone, operations(world), atomic: false)
    #expect(try outcomes[0].saved().id.name == "new")
    #expect(outcomes[1].error?.code == .conflict)
    #expect(try outcomes[2].saved().id.name == "other")
    #expect(outcomes[3].isDeleted)
    #expect(try world.cloud.allRecords(in: world.zone).map(\.id.name) == ["new", "other", "taken"])
  }

  @Test("W10: atomic: nothing stored, the culprit keeps its code, the others get ATOMIC_ERROR")
  func atomic() throws {
    let world = try World()
    try world.save("taken")
    try world.save("gone")
    let before = try world.feed()
    let outcomes = try world.cloud.modify(in: world.zone, operations(world), atomic: true)
    #expect(outcomes.map { $0.error?.code } == [.atomicError, .conflict, .atomicError, .atomicError])
    let after = try world.feed()
    #expect(after.records == before.records && after.token == before.token)
  }

  @Test("W10: the default zone is never atomic")
  func defaultZone() throws {
    let world = try World()
    let zone = ZoneID(name: "_defaultZone")
    try world.run(.create, world.note("taken"), in: zone)
    let outcomes = try world.cloud.modify(
      in: zone, [RecordOperation(.create, world.note("taken")), RecordOperation(.create, world.note("new"))],
      atomic: true)
    #expect(outcomes[0].error?.code == .conflict)
    #expect(try outcomes[1].saved().id.name == "new")
  }

  @Test("W10: an atomic request that fails teaches the schema nothing")
  func atomicSchema() throws {
    let world = try World()
    try world.save("taken")
    _ = try world.cloud.modify(
      in: world.zone,
      [RecordOperation(.create, world.note("taken")), RecordOperation(.create, world.note("x", ["n": .string("s")]))],
      atomic: true)
    #expect(try world.run(.create, world.note("x", ["n": .int64(1)])).saved().fields["n"] == .int64(1))
  }

  @Test("W11: too many operations and repeated names refuse the request; nothing is stored")
  func requestLimits() throws {
    let world = try World()
    let many = (0..<201).map { RecordOperation(.create, world.note("r\($0)")) }
    #expect(failure { _ = try world.cloud.modify(in: world.zone, many, atomic: false) }?.code == .badRequest)
    let twice = [
      RecordOperation(.create, world.note("a")), RecordOperation(.create, world.note("b")),
      RecordOperation(.forceDelete, world.note("a")),
    ]
    #expect(failure { _ = try world.cloud.modify(in: world.zone, twice, atomic: false) }?.code == .badRequest)
    #expect(try world.cloud.allRecords(in: world.zone) == [])
    #expect(try world.cloud.modify(in: world.zone, Array(many.prefix(200)), atomic: true).count == 200)
  }

  @Test("W11: an oversized record fails its entry only")
  func oversized() throws {
    let world = try World()
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        RecordOperation(.create, world.note("big", ["b": .bytes([UInt8](repeating: 7, count: 1_000_001))])),
        RecordOperation(.create, world.note("small")),
      ], atomic: false)
    #expect(outcomes[0].error?.code == .badRequest)
    #expect(try outcomes[1].saved().id.name == "small")
  }

  @Test(
    "W11: names are ASCII, at most 255 bytes, without leading underscore",
    arguments: ["_a", "é", String(repeating: "x", count: 256), "a\nb"])
  func names(_ name: String) throws {
    let world = try World()
    #expect(try world.run(.create, world.note(name)).error?.code == .badRequest)
  }

  @Test("W42: page=1000 lets 1000 operations through, and no more")
  func page() throws {
    let world = try World(limits: CloudLimits(entriesPerRequest: 1_000))
    let many = (0..<1_001).map { RecordOperation(.create, world.note("r\($0)")) }
    #expect(failure { _ = try world.cloud.modify(in: world.zone, many, atomic: true) }?.code == .badRequest)
    _ = try world.cloud.modify(in: world.zone, Array(many.prefix(1_000)), atomic: true)
    #expect(try world.cloud.zoneChanges(in: world.zone, since: nil).records.count == 1_000)
  }

  @Test("W42: conflicts carry the server's record where it is asked for, and only there")
  func conflictRecord() throws {
    let world = try World()
    let stored = try world.save("a", ["title": .string("server")])
    #expect(try world.run(.create, world.note("a")).error?.serverRecord == stored)
    let request = Modification(operations: [IncomingOperation(RecordOperation(.create, world.note("a")))])
    let plain = try world.server.core.modify(world.cloud.caller, world.cloud.scope, request)
    #expect(plain.outcomes[0].error?.code == .conflict)
    #expect(plain.outcomes[0].error?.serverRecord == nil)
  }

  @Test("W42: a tombstone has the client's time of the delete, or the server's where none was given")
  func tombstoneTime() throws {
    let world = try World()
    try world.save("a")
    try world.save("b")
    _ = try world.cloud.modify(
      in: world.zone,
      [RecordOperation(.forceDelete, world.note("a"), deleteTime: 42), RecordOperation(.forceDelete, world.note("b"))],
      atomic: true)
    let token = try world.feed().token
    try world.save("c")
    try world.run(.forceDelete, world.note("c"))
    let page = try world.cloud.zoneChanges(in: world.zone, since: token)
    #expect(page.deletions.map(\.time) == [world.clock.now])
    #expect(page.deletions.map(\.type) == ["Note"])
    let options = RequestOptions(allTombstones: true)
    let all = try world.server.core.changes(
      world.cloud.caller, world.cloud.scope, [ZoneFeedQuery(zone: world.zone)], options)[0].get()
    let times = all.entries.map { if case .tombstone(let end) = $0 { end.modified.timestamp } else { Int64(-1) } }
    #expect(times == [42, world.clock.now, world.clock.now])
  }

  @Test("W42: a restored server never gives a tag again, though positions repeat")
  func tagsAfterRestore() throws {
    let world = try World()
    guard let backup = try world.backup() else { return }
    let first = try world.save("a", ["n": .int64(1)])
    try world.restore(backup)
    let second = try world.save("a", ["n": .int64(2)])
    #expect(first.changeTag != second.changeTag)
    let stale = try world.run(.update, world.note("a", ["n": .int64(3)], tag: first.changeTag))
    #expect(stale.error?.code == .conflict)
  }

  @Test("W31: lookup hit and miss in one call; no keys give no fields")
  func lookup() throws {
    let world = try World()
    try world.save("a", ["title": .string("t"), "n": .int64(1)])
    let core = world.server.core
    let items = [LookupItem(name: "a"), LookupItem(name: "b"), LookupItem(name: "a", desiredKeys: ["n"])]
    let found = try core.lookup(world.cloud.caller, world.cloud.scope, in: world.zone, items, desiredKeys: []).records
    #expect(try found[0].get().fields == [:])
    #expect(throws: CloudError(.notFound, "Record not found")) { try found[1].get() }
    #expect(try found[2].get().fields == ["n": .int64(1)])
  }

  @Test("W26: a missing zone fails its entries")
  func missingZone() throws {
    let world = try World()
    let zone = ZoneID(name: "Nowhere")
    #expect(try world.run(.create, world.note("a"), in: zone).error?.code == .zoneNotFound)
    #expect(
      try world.cloud.lookup(in: zone, names: ["a"])
        == [.failure(CloudError(.zoneNotFound, "Zone 'Nowhere' does not exist"))])
  }

  @Test("users see their own zones only")
  func isolation() throws {
    let world = try World()
    try world.save("a")
    let other = try world.server.cloud(user: "bob")
    #expect(failure { _ = try other.zoneChanges(in: world.zone, since: nil) }?.code == .zoneNotFound)
    #expect(try other.databaseChanges(since: nil).changed == [])
    let elsewhere = try world.server.cloud(user: "anna", container: "iCloud.other")
    #expect(try elsewhere.zoneExists(world.zone) == false)
    let named = ZoneID(name: "Notes", owner: world.cloud.caller.recordName)
    #expect(failure { _ = try other.zoneChanges(in: named, since: nil) }?.code == .zoneNotFound)
    #expect(try world.cloud.zoneChanges(in: named, since: nil).records.count == 1)
  }
}
