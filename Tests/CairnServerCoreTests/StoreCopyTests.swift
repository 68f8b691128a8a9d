import CairnPostgres
import CairnRecords
import CairnSQLite
import CairnTesting
import Foundation
import StoreSupport
import Testing

@testable import CairnServerCore

/// Copies of whole stores.
@Suite struct StoreCopyTests {
  /// A store with something of everything.
  private struct Sample {
    let store: TestStore
    let assets = MemoryAssetStore()
    let clock = ManualClock()
    let scope = DatabaseScope(container: "iCloud.test")
    let zone = ZoneID(name: "Notes")
    var anna = Caller.anonymous
    /// Takes part in a share of Anna's.
    var ben = Caller.anonymous
    var sharedScope: DatabaseScope { DatabaseScope(container: scope.container, kind: .shared) }
    var sharedZone: ZoneID { ZoneID(name: zone.name, owner: anna.recordName) }

    init(_ kind: StoreKind) throws { store = try TestStore(kind) }

    /// Opens the store with a server, which begins an epoch.
    func serving<Result>(_ body: (CloudServer, any Storage) throws -> Result) throws -> Result {
      let storage = try store.open()
      let server = try CloudServer(storage: storage, assets: assets, clock: clock)
      defer { server.close() }
      return try body(server, storage)
    }

    func save(_ server: CloudServer, _ names: String..., parent: String? = nil, fields: Fields = [:]) throws {
      for name in names {
        let record = Record(id: RecordID(name: name, zone: zone), type: "Note", fields: fields, parent: parent)
        _ = try server.modify(
          anna, scope, Modification(operations: [IncomingOperation(RecordOperation(.forceReplace, record))])
        ).outcomes[0].saved()
      }
    }

    mutating func fill() throws {
      let (user, guest, scope, zone) = try serving { server, storage in
        let users = UserDirectory(storage: storage, clock: clock)
        _ = try users.add("gone")
        let user = try users.add("anna")
        try users.remove("gone")
        try users.addToken(hash: [UInt8](repeating: 7, count: 32), for: "anna")
        try users.setQuota(1_000_000, for: "anna")
        let guest = try users.add("ben")
        try users.setProfile(UserProfile(email: "ben@example.org", givenName: "Ben", isDiscoverable: false), for: "ben")
        return (user, guest, self.scope, self.zone)
      }
      (anna, ben) = (user, guest)
      let caller = user
      let me = self
      try serving { server, _ in
        for name in ["Old", "Notes"] { _ = try server.modifyZones(caller, scope, [.create(ZoneID(name: name))]) }
        _ = try server.modifyZones(caller, scope, [.delete(ZoneID(name: "Old"))])
        try me.save(server, "a", "b", "c", fields: ["n": .int64(1), "t": .string("text")])
        try me.save(
          server, "child",
          fields: ["r": .reference(Reference(recordName: "a", action: .deleteSelf))])
        _ = try server.modify(
          caller, scope,
          Modification(
            operations: [
              IncomingOperation(
                RecordOperation(.forceDelete, Record(id: RecordID(name: "b", zone: zone), type: "Note")))
            ]))
        let target = try server.uploadTargets(
          caller, scope, [AssetField(recordName: "x", recordType: "Note", fieldName: "f")])[0]
        let asset = try server.upload([1, 2, 3], to: target.path)
        try me.save(server, "x", fields: ["f": .asset(asset)])
        _ = try server.modifySubscriptions(caller, scope, [.create(Subscription(id: "s", kind: .database))])[0].get()
        try me.share(server)
      }
    }

    /// `shared` with `in` below it, and `out` that was there: with Ben, who has accepted, and with an address.
    private func share(_ server: CloudServer) throws {
      try save(server, "shared")
      try save(server, "in", "out", parent: "shared")
      var sharing = RecordSharing()
      sharing.root = RecordSharing.Root(name: "shared")
      sharing.participants = [
        ShareParticipant(UserIdentity(lookup: .userRecordName(ben.recordName)), permission: .readWrite),
        ShareParticipant(UserIdentity(lookup: .emailAddress("later@example.org")), permission: .readOnly),
      ]
      var share = Record(id: RecordID(name: "S", zone: zone), type: "cloudkit.share")
      share.sharing = sharing
      let saved = try server.modify(
        anna, scope, Modification(operations: [IncomingOperation(RecordOperation(.forceUpdate, share))])
      ).outcomes[0].saved()
      let guid = try #require(saved.sharing?.shortGUID)
      _ = try server.acceptShares(ben, scope, [ShareQuery(guid: guid)])[0].get()
      try save(server, "out")
    }

    /// Everything that a client sees.
    func picture(_ server: CloudServer) throws -> [String] {
      var options = RequestOptions()
      options.allTombstones = true
      let page = try server.changes(anna, scope, [ZoneFeedQuery(zone: zone)], options)[0].get()
      let zones = try server.databaseChanges(anna, scope, since: nil, options)
      let shared = try server.changes(ben, sharedScope, [ZoneFeedQuery(zone: sharedZone)], options)[0].get()
      let sharedZones = try server.databaseChanges(ben, sharedScope, since: nil, options)
      let guid = try server.read { try $0.participations(of: ben.key).first?.share.guid ?? "" }
      #expect(shared.entries.count == 4)
      return [
        "\(page.entries)", "\(page.token)", "\(zones.zones)", "\(zones.token)",
        "\(try server.subscriptions(anna, scope))", "\(String(describing: try server.user(named: "anna")))",
        "\(String(describing: try server.caller(tokenHash: [UInt8](repeating: 7, count: 32))))",
        "\(try server.read { try $0.usage(of: anna.key) })",
        "\(shared.entries)", "\(shared.token)", "\(sharedZones.zones)", "\(sharedZones.token)",
        "\(try server.resolveShares(anna, scope, [ShareQuery(guid: guid, wantsRoot: true)])[0].get())",
        "\(try server.read { try $0.profile(of: ben.key) })",
      ]
    }
  }

  private func copy(_ source: Sample, to target: Sample) throws -> StoreCopy.Summary {
    let (from, to) = (try source.store.open(), try target.store.open())
    defer {
      from.close()
      to.close()
    }
    return try StoreCopy(from: (from, source.assets), to: (to, target.assets)).run()
  }

  @Test("a copy shows clients what the store showed them, and their tokens and tags stay good there and back")
  func thereAndBack() throws {
    var first = try Sample(.file)
    try first.fill()
    let before = try first.serving { server, _ in try first.picture(server) }
    let token = try first.serving { server, _ in
      try server.changes(first.anna, first.scope, [ZoneFeedQuery(zone: first.zone)])[0].get().token
    }
    let sharedToken = try first.serving { server, _ in
      try server.changes(first.ben, first.sharedScope, [ZoneFeedQuery(zone: first.sharedZone)])[0].get().token
    }
    var last = first
    for kind in [StoreKind.postgres, .postgres, .file, .file] {
      var next = try Sample(kind)
      (next.anna, next.ben) = (first.anna, first.ben)
      let summary = try copy(last, to: next)
      #expect(summary.users == 2 && summary.databases == 2 && summary.zones == 3 && summary.assets == 1)
      #expect(try next.serving { server, _ in try next.picture(server) } == before)
      last = next
    }
    try last.serving { server, storage in
      try last.save(server, "new")
      let page = try server.changes(last.anna, last.scope, [ZoneFeedQuery(zone: last.zone, token: token)])[0].get()
      #expect(page.entries.count == 1)
      // Ben's token goes on, and so does the share.
      try last.save(server, "below", parent: "in")
      let shared = try server.changes(
        last.ben, last.sharedScope, [ZoneFeedQuery(zone: last.sharedZone, token: sharedToken)])[0].get()
      #expect(shared.entries.count == 1)
      // Keys are not given out again.
      #expect(try UserDirectory(storage: storage).add("berta").key > last.ben.key)
      #expect(
        try server.modifyZones(last.anna, last.scope, [.create(ZoneID(name: "More"))])[0].get().isDeleted == false)
      // References came along.
      let gone = try server.modify(
        last.anna, last.scope,
        Modification(
          operations: [
            IncomingOperation(
              RecordOperation(.forceDelete, Record(id: RecordID(name: "a", zone: last.zone), type: "Note")))
          ]))
      #expect(gone.outcomes[0].isDeleted)
      let after = try server.changes(last.anna, last.scope, [ZoneFeedQuery(zone: last.zone, token: page.token)])[0]
        .get()
      // The deletions of it and of what refers to it, and the record from above.
      #expect(after.entries.count == 3)
    }
    #expect(last.assets.count == 1)
  }

  @Test(
    "W23: tokens of a history that was undone before the copy expire in it", arguments: [StoreKind.file, .postgres])
  func undone(_ kind: StoreKind) throws {
    var first = try Sample(.postgres)
    try first.fill()
    var kept = try Sample(.file)
    (kept.anna, kept.ben) = (first.anna, first.ben)
    _ = try copy(first, to: kept)
    let undone = try first.serving { server, _ in
      try first.save(server, "y", "z")
      return try server.changes(first.anna, first.scope, [ZoneFeedQuery(zone: first.zone)])[0].get().token
    }
    // The copy is the backup that is restored, and copied again before anybody has started a server on it.
    var next = try Sample(kind)
    (next.anna, next.ben) = (first.anna, first.ben)
    _ = try copy(kept, to: next)
    let other = try copy(kept, to: try Sample(kind))
    #expect(other.users == 2)
    try next.serving { server, _ in
      for i in 0..<5 { try next.save(server, "new\(i)") }
      let query = ZoneFeedQuery(zone: next.zone, token: undone)
      let answer = try server.changes(next.anna, next.scope, [query])[0]
      guard case .failure(let error) = answer else {
        Issue.record("the token works")
        return
      }
      #expect(error.expiryCause == .epoch)
    }
  }

  @Test("a copy leaves nothing out: what this version does not know ends it, and the target stays empty")
  func unknownContent() throws {
    for damage in [
      "UPDATE database SET kind = 'strange'", "UPDATE database SET environment = 'strange'",
      "UPDATE schema_field SET environment = 'strange'", "UPDATE reference SET kind = 99",
    ] {
      var source = try Sample(.file)
      try source.fill()
      try Connection(path: source.store.path).execute(damage)
      let target = try Sample(.memory)
      let (from, to) = (try source.store.open(), try target.store.open())
      defer {
        from.close()
        to.close()
      }
      let error = failure { _ = try StoreCopy(from: (from, source.assets), to: (to, target.assets)).run() }
      #expect(error?.reason.contains("does not know") == true, "\(damage): \(String(describing: error))")
      #expect(try to.read { try $0.users() }.isEmpty)
    }
  }

  @Test("a copy into a store that has data is refused and changes nothing", arguments: [StoreKind.file, .postgres])
  func notEmpty(_ kind: StoreKind) throws {
    var source = try Sample(.file)
    try source.fill()
    var target = try Sample(kind)
    try target.fill()
    let before = try target.serving { server, _ in try target.picture(server) }
    #expect(failure { _ = try copy(source, to: target) }?.code == .exists)
    #expect(try target.serving { server, _ in try target.picture(server) } == before)
  }
}
