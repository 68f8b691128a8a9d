import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import StoreSupport
import Testing

@testable import CairnServerCore

/// What users' records take, and quotas.
@Suite(.everyStore) struct QuotaTests {
  private let world: World
  private var storage: any Storage { world.server.core.storage }
  private var users: UserDirectory { UserDirectory(storage: storage, clock: world.clock) }

  init() throws { world = try World() }

  private func used() throws -> Int64 { try users.usages()[0].usage.bytes }

  /// What the rows add up to, without what is kept along.
  private func counted() throws -> Int64 {
    guard EveryStore.kind == .memory, let storage = storage as? SQLiteStorage else { return try countedFromOutside() }
    return try #require(
      try storage.withMemoryConnection { connection in
        try connection.scalar(Self.sum)?.asInteger ?? -1
      })
  }

  /// The same in a store that others may read too.
  private func countedFromOutside() throws -> Int64 {
    if EveryStore.kind == .postgres {
      let sum = try PostgresCluster.shared().execute(
        """
        SELECT coalesce((SELECT sum(length(fields) + 100) FROM cairn.records r JOIN cairn.zones z ON z.key = r.zone
          WHERE died IS NULL AND deleted = 0), 0)
        + coalesce((SELECT sum(size) FROM cairn.asset_uses u JOIN cairn.assets USING (digest)
          JOIN cairn.zones z ON z.key = u.zone WHERE deleted = 0), 0)
        """, in: world.store.url)
      return try #require(Int64(sum[0]))
    }
    return try Connection(path: world.store.path, mode: .readOnly).scalar(Self.sum)?.asInteger ?? -1
  }

  private static let sum = """
    SELECT (SELECT ifnull(sum(length(fields) + 100), 0) FROM record JOIN zone ON zone.key = record.zone
      WHERE died IS NULL AND deleted = 0)
    + (SELECT ifnull(sum(size), 0) FROM asset_use JOIN asset USING (digest) JOIN zone ON zone.key = asset_use.zone
      WHERE deleted = 0)
    """

  @Test("web-services W39: over quota saves are QUOTA_EXCEEDED, a delete works, a later save works")
  func quota() throws {
    try world.save("a", ["t": .string("12345")])
    try world.save("b")
    let before = try used()
    try users.setQuota(before + 10, for: "anna")
    let refused = try world.run(.create, world.note("c"))
    #expect(refused.error?.code == .quotaExceeded)
    #expect(try world.stored("c") == nil)
    #expect(try used() == before)
    // A record that grows no more than there is room for, and one that shrinks.
    #expect(try world.run(.forceReplace, world.note("a", ["t": .string("123456789")])).error == nil)
    #expect(
      try world.run(.forceReplace, world.note("a", ["t": .string("1234567890123456789")])).error?.code == .quotaExceeded
    )
    #expect(try world.run(.forceReplace, world.note("a", ["t": .string("1")])).error == nil)
    #expect(try world.run(.delete, world.note("b")).isDeleted)
    #expect(try world.run(.create, world.note("c")).error == nil)
    try users.setQuota(nil, for: "anna")
    #expect(try world.run(.create, world.note("d")).error == nil)
    #expect(try used() == counted())
  }

  @Test("web-services W39: a quota below what is stored refuses saves and lets deletes through, in one request too")
  func belowUsage() throws {
    for name in ["a", "b", "c"] { try world.save(name, ["t": .string("text")]) }
    try users.setQuota(0, for: "anna")
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        RecordOperation(.create, world.note("d")), RecordOperation(.forceDelete, world.note("a")),
        RecordOperation(.forceReplace, world.note("b", ["t": .string("txt")])),
      ], atomic: false)
    #expect(outcomes.map { $0.error?.code } == [.quotaExceeded, nil, nil])
    // In an atomic request the one takes the others along.
    let atomic = try world.cloud.modify(
      in: world.zone,
      [RecordOperation(.forceDelete, world.note("b")), RecordOperation(.create, world.note("e"))], atomic: true)
    #expect(atomic.map { $0.error?.code } == [.atomicError, .quotaExceeded])
    #expect(try world.stored("b") != nil)
    #expect(try used() == counted())
  }

  @Test("web-services W39: a delete that is refused, or that fails with others, frees nothing for the saves after it")
  func refusedDelete() throws {
    let big = Fields(uniqueFields: [Field("t", .string(String(repeating: "x", count: 5_000)))])
    try world.save("kept", big)
    try world.save("child", ["r": .reference(Reference(recordName: "kept", action: .validate))])
    let before = try used()
    try users.setQuota(before + 1_000, for: "anna")
    for round in 0..<3 {
      let outcomes = try world.cloud.modify(
        in: world.zone,
        [
          RecordOperation(.forceDelete, world.note("kept")), RecordOperation(.create, world.note("new\(round)", big)),
          RecordOperation(
            .create,
            world.note("ref\(round)", ["r": .reference(Reference(recordName: "new\(round)", action: .validate))])),
        ], atomic: false)
      #expect(
        outcomes.map { $0.error?.code } == [.validatingReferenceError, .quotaExceeded, .validatingReferenceError])
    }
    #expect(try used() == before)
    #expect(try used() == counted())
    // One that is carried out frees its room.
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        RecordOperation(.forceDelete, world.note("child")), RecordOperation(.forceDelete, world.note("kept")),
        RecordOperation(.create, world.note("new", big)),
      ], atomic: true)
    #expect(outcomes.allSatisfy { $0.error == nil })
    #expect(try used() == counted())
  }

  @Test("web-services W39: a user over quota is given no upload address")
  func uploads() throws {
    try world.save("a")
    try users.setQuota(10, for: "anna")
    let refused = failure {
      _ = try world.server.core.uploadTargets(
        world.cloud.caller, world.cloud.scope, [AssetField(recordName: "x", recordType: "Note", fieldName: "f")])
    }
    #expect(refused?.code == .quotaExceeded)
  }

  @Test(
    "web-services W39: usage follows saves, deletes, cascades, assets, zones that go and come again, and users that go")
  func incremental() throws {
    #expect(try used() == 0)
    let target = AssetTarget(record: "a", type: "Note", field: "f")
    let asset = try world.upload([UInt8](repeating: 7, count: 5_000), for: target)
    try world.save("a", ["f": .asset(asset), "t": .string("x")])
    #expect(try used() > 5_100 && used() == counted())
    // Written back as it was read, without a receipt; then without the asset.
    let read = try #require(try world.stored("a"))
    try world.save("a", ["f": read.fields["f"] ?? .int64(0), "t": .string("xyz")])
    #expect(try used() > 5_100 && used() == counted())
    try world.save("a", ["t": .string("xyz")])
    #expect(try used() < 200 && used() == counted())
    try world.save("child", ["r": .reference(Reference(recordName: "a", action: .deleteSelf))])
    try world.save("other")
    #expect(try used() == counted())
    _ = try world.run(.delete, world.note("a"))
    #expect(try world.stored("child") == nil)
    #expect(try used() == 100 && used() == counted())
    try world.save("a", ["t": .string("again")])
    try world.save("a", ["t": .string("and again")])
    #expect(try used() == counted())
    _ = try world.cloud.deleteZones([world.zone])
    #expect(try used() == 0)
    _ = try world.cloud.createZones([world.zone])
    try world.save("a")
    #expect(try used() == 100 && used() == counted())
    try world.server.restart()
    #expect(try used() == 100)
    try users.remove("anna")
    _ = try users.add("anna")
    #expect(try used() == 0)
  }

  @Test("web-services section 3: the public database belongs to who created a record; its bytes count for that user")
  func publicDatabase() throws {
    let server = world.server.core
    let scope = DatabaseScope(container: "iCloud.test", kind: .public)
    let anna = world.cloud.caller
    let berta = try users.add("berta")
    func save(_ name: String, _ caller: Caller, _ kind: RecordOperation.Kind = .forceReplace) throws -> OperationOutcome
    {
      let record = Record(id: RecordID(name: name, zone: ZoneID(name: "_defaultZone")), type: "Post")
      return try server.modify(
        caller, scope, Modification(operations: [IncomingOperation(RecordOperation(kind, record))])
      ).outcomes[0]
    }
    let saved = try save("p", anna).saved()
    #expect(saved.created?.userRecordName == anna.recordName && saved.id.zone.owner == ZoneID.currentOwner)
    #expect(try save("p", berta).error?.code == .accessDenied)
    #expect(try save("p", berta, .forceDelete).error?.code == .accessDenied)
    #expect(try save("q", berta).error == nil)
    #expect(try users.usages().map(\.usage.bytes) == [100, 100])
    // Everybody reads the same records; an app without a user reads only.
    for caller in [anna, berta, Caller.anonymous] {
      let found = try server.lookup(caller, scope, in: ZoneID(name: "_defaultZone"), [LookupItem(name: "p")])
      #expect(try found.records[0].get().created?.userRecordName == anna.recordName)
    }
    #expect(failure { _ = try save("r", .anonymous) }?.code == .authenticationRequired)
    let key = AppCredential(kind: .serverKey, id: [UInt8](repeating: 3, count: 32), name: "job", created: 0)
    try AppDirectory(storage: storage).add(key)
    let stored = try #require(try server.appCredential(id: key.id))
    let updated = try save("p", stored.caller).saved()
    #expect(updated.modified?.userRecordName == "_" + String(repeating: "03", count: 16))
    #expect(try save("s", stored.caller).error == nil)
    let seen = try server.lookup(berta, scope, in: ZoneID(name: "_defaultZone"), [LookupItem(name: "s")])
    #expect(try seen.records[0].get().created?.userRecordName == "_" + String(repeating: "03", count: 16))
    let elsewhere = failure {
      _ = try server.zones(stored.caller, DatabaseScope(container: "iCloud.test", kind: .private))
    }
    #expect(elsewhere?.code == .authenticationFailed)
    #expect(
      failure { _ = try server.zones(.anonymous, DatabaseScope(container: "iCloud.test")) }?.code
        == .authenticationRequired)
  }

  @Test("credentials: names, keys and origins are checked; a number is never used again")
  func credentials() throws {
    let apps = AppDirectory(storage: storage, clock: world.clock)
    let id = { (byte: UInt8) in [UInt8](repeating: byte, count: 32) }
    var token = AppCredential(kind: .apiToken, id: id(1), name: "web", created: 0)
    token.switches = [.strictKeys, .listType]
    token.origins = ["https://app.example.org", "http://localhost:3000"]
    token.container = "iCloud.test"
    try apps.add(token)
    let stored = try #require(try apps.list(.apiToken).first)
    #expect(stored.switches == token.switches && stored.origins == token.origins && stored.container == "iCloud.test")
    #expect(stored.created == world.clock.now && stored.number > 0)
    token.id = id(2)
    #expect(failure { try apps.add(token) }?.code == .exists)
    token.name = "other"
    token.id = id(1)
    #expect(failure { try apps.add(token) }?.code == .exists)
    token.id = id(2)
    for origin in ["", "example.org", "https://", "https://a/b", "https://A.org", "https://a b", "javascript:x"] {
      token.origins = [origin]
      #expect(failure { try apps.add(token) }?.code == .badRequest, "\(origin)")
    }
    token.origins = ["*"]
    token.switches = [.largeBodyHash]
    #expect(failure { try apps.add(token) }?.code == .badRequest)
    token.switches = []
    token.container = "com.example"
    #expect(failure { try apps.add(token) }?.code == .badRequest)
    token.container = nil
    try apps.add(token)
    try apps.remove(.apiToken, named: "other")
    #expect(failure { try apps.remove(.serverKey, named: "web") }?.code == .notFound)
    try apps.add(token)
    #expect(try apps.list(.apiToken).map(\.number) == [3, 1])
  }
}
