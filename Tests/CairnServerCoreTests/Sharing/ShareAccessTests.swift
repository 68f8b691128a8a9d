import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// What participants may write, and what everybody is told (web-services section 12).
@Suite(.everyStore) struct ShareAccessTests {
  private let world: ShareWorld

  init() throws {
    world = try ShareWorld()
    for (name, parent) in [("root", nil), ("child", "root"), ("leaf", "child"), ("other", nil)] as [(String, String?)] {
      try world.save(world.anna, name, parent: parent)
    }
  }

  @Test("web-services W37: READ_ONLY reads and writes nothing, READ_WRITE writes below the root only")
  func permissions() throws {
    try world.share("root", accepted: [(world.ben, .readOnly), (world.cleo, .readWrite)])
    let before = try world.feed(world.anna).records.count
    for outcome in [
      try world.save(world.ben, "child", ["t": .string("x")]), try world.save(world.ben, "new", parent: "child"),
      try world.delete(world.ben, "leaf"), try world.save(world.ben, "root"),
      try world.save(world.cleo, "other", ["t": .string("x")]), try world.delete(world.cleo, "other"),
      try world.save(world.cleo, "orphan"), try world.save(world.cleo, "stray", parent: "other"),
      try world.save(world.cleo, "stray", parent: "nothing"), try world.save(world.cleo, "stray", parent: "S-root"),
      try world.delete(world.cleo, "root"), try world.save(world.cleo, "other", kind: .create),
    ] {
      #expect(outcome.error?.code == .accessDenied)
    }
    #expect(try world.feed(world.anna).records.count == before)
    #expect(try world.save(world.cleo, "child", ["t": .string("x")]).error == nil)
    #expect(try world.save(world.cleo, "new", parent: "leaf").error == nil)
    #expect(try world.save(world.cleo, "root", ["t": .string("r")]).error == nil)
    #expect(try world.delete(world.cleo, "new").isDeleted)
    let child = try #require(try world.stored(world.anna, "child"))
    #expect(child.modified?.userRecordName == world.cleo.recordName)
    #expect(child.created?.userRecordName == world.anna.recordName)
    try world.checkInvariants()
  }

  @Test("web-services section 12: a parent may come with the same request, and fails with it")
  func parentsTogether() throws {
    try world.share("root", accepted: [(world.cleo, .readWrite)])
    func create(_ name: String, _ parent: String) -> RecordOperation {
      RecordOperation(.create, world.record(world.cleo, name, parent: parent))
    }
    let good = try world.modify(world.cleo, [create("b", "a"), create("a", "root")], atomic: true)
    #expect(good.allSatisfy { $0.error == nil })
    let bad = try world.modify(world.cleo, [create("d", "c"), create("c", "other")])
    #expect(bad.allSatisfy { $0.error?.code == .accessDenied })
    try world.checkInvariants()
  }

  @Test("web-services section 12: participants move records between what they may write, not out of it")
  func moves() throws {
    try world.share("root", accepted: [(world.cleo, .readWrite)])
    try world.share("other", accepted: [(world.cleo, .readOnly)])
    let replaced = try world.save(world.cleo, "leaf", kind: .forceReplace)
    #expect(replaced.error?.code == .accessDenied)
    #expect(try world.save(world.cleo, "leaf", parent: "other").error?.code == .accessDenied)
    #expect(try world.save(world.cleo, "root", parent: "leaf").error?.code == .accessDenied)
    #expect(try world.save(world.cleo, "leaf", parent: "root").error == nil)
    try world.share("other", with: [world.invitation(world.cleo, .readWrite)])
    #expect(try world.save(world.cleo, "child", parent: "other").error == nil)
    try world.checkInvariants()
  }

  @Test("web-services section 12: references and cascades reach nothing that is not shared")
  func references() throws {
    try world.share("root", accepted: [(world.cleo, .readWrite)])
    func refers(_ action: Reference.Action, _ target: String) -> Fields {
      ["r": .reference(Reference(recordName: target, action: action))]
    }
    #expect(
      try world.save(world.cleo, "leaf", refers(.validate, "other")).error?.code == .validatingReferenceError)
    #expect(
      try world.save(world.cleo, "leaf", refers(.deleteSelf, "other")).error?.code == .validatingReferenceError)
    #expect(try world.save(world.cleo, "leaf", refers(.validate, "child")).error == nil)
    // What the owner has put there may stay.
    try world.save(world.anna, "leaf", refers(.validate, "other"))
    #expect(try world.save(world.cleo, "leaf", ["t": .string("x")]).error == nil)
    // Nothing goes along that the caller could not delete itself, and nothing of it is told.
    try world.save(world.anna, "secret", refers(.deleteSelf, "child"))
    try world.save(world.anna, "child2", parent: "root")
    try world.save(world.anna, "secret2", refers(.validate, "child2"))
    try world.delete(world.anna, "leaf")
    #expect(try world.delete(world.cleo, "child").error?.code == .accessDenied)
    let refused = try #require(try world.delete(world.cleo, "child2").error)
    #expect(refused.code == .validatingReferenceError)
    #expect(!refused.reason.contains("secret2"))
    #expect(try world.stored(world.anna, "secret") != nil)
  }

  @Test("web-services section 5: a record cannot become its own ancestor")
  func circles() throws {
    func move(_ name: String, _ parent: String) -> RecordOperation {
      RecordOperation(.forceUpdate, world.record(world.anna, name, parent: parent))
    }
    #expect(try world.modify(world.anna, [move("root", "leaf")])[0].error?.code == .badRequest)
    #expect(try world.modify(world.anna, [move("a", "b"), move("b", "a")]).contains { $0.error?.code == .badRequest })
    #expect(try world.modify(world.anna, [move("self", "self")])[0].error?.code == .badRequest)
    #expect(try world.stored(world.anna, "self") == nil)
  }

  @Test("web-services section 12: queries, look-ups and tokens of the shared database know only what is shared")
  func reading() throws {
    try world.save(world.anna, "child", ["n": .int64(1)])
    try world.save(world.anna, "other", ["n": .int64(2)])
    try world.share("root", accepted: [(world.ben, .readOnly)])
    for zone in [world.zone(world.ben), nil] {
      for sort in [[], [QuerySort(.field("n"))]] {
        let query = RecordQuery(recordType: "Note", sort: sort)
        let page = try world.core.query(world.ben, ShareWorld.shared, QueryRun(query, in: zone))
        #expect(Set(page.records.map(\.id.name)) == ["root", "child", "leaf"])
        #expect(page.records.allSatisfy { $0.id.zone == world.zone(world.ben) })
      }
    }
    let own = try world.core.query(world.ben, ShareWorld.own, QueryRun(RecordQuery(recordType: "Note"), in: nil))
    #expect(own.records.isEmpty)
    let outcome = try world.core.lookup(
      world.ben, ShareWorld.shared, in: world.zone(world.ben), [LookupItem(name: "leaf")], wantsToken: true)
    #expect(outcome.token == (try world.feed(world.ben).token))
    #expect(
      failure { _ = try world.core.modifyZones(world.ben, ShareWorld.shared, [.create(ZoneID(name: "x"))]) }?.code
        == .accessDenied)
  }

  @Test("web-services section 12: assets of a share are the owner's, and so is their quota")
  func assetsAndQuota() throws {
    try world.share("root", accepted: [(world.cleo, .readWrite)])
    let target = try world.core.uploadTargets(
      world.cleo, ShareWorld.shared, [AssetField(recordName: "leaf", recordType: "Note", fieldName: "photo")])[0]
    let upload = try world.core.beginUpload(String(target.path.dropFirst(CloudServer.uploadPath.utf8.count)))
    try [UInt8](repeating: 7, count: 1_000).withUnsafeBytes { try upload.append($0) }
    let received = Awaited<Result<Asset, CloudError>>()
    upload.finish { received.set($0) }
    let before = try world.users.usages()
    #expect(try world.save(world.cleo, "leaf", ["photo": .asset(received.wait().get())]).error == nil)
    let after = try world.users.usages()
    #expect(after[0].usage.bytes >= before[0].usage.bytes + 1_000)
    #expect(after[2].usage.bytes == 0)
    for who in [world.anna, world.cleo] {
      guard case .asset(let asset)? = try world.stored(who, "leaf")?.fields["photo"] else {
        Issue.record("no asset")
        continue
      }
      let path = try #require(asset.downloadURL)
      _ = try world.core.download(String(path.dropFirst(CloudServer.downloadPath.utf8.count)))
    }
    try world.users.setQuota(after[0].usage.bytes, for: "anna")
    #expect(try world.save(world.cleo, "more", parent: "root").error?.code == .quotaExceeded)
  }

  @Test("web-services section 12: no upload address for a zone that is not shared, or in which nothing may be changed")
  func uploadsElsewhere() throws {
    try world.share("root", accepted: [(world.ben, .readOnly), (world.cleo, .readWrite)])
    try world.makeZone("Secret")
    let field = [AssetField(recordName: "leaf", recordType: "Note", fieldName: "photo")]
    let asked = { (who: Caller, zone: ZoneID) in
      failure { _ = try world.core.uploadTargets(who, ShareWorld.shared, in: zone, field) }?.code
    }
    #expect(asked(world.cleo, world.zone(world.cleo)) == nil)
    #expect(asked(world.ben, world.zone(world.ben)) == .accessDenied)
    for zone in [
      world.zone(world.cleo, "Secret"), world.zone(world.cleo, "None"), ZoneID(name: CloudServer.defaultZoneName),
    ] {
      #expect(asked(world.cleo, zone) == .zoneNotFound)
    }
  }

  @Test("web-services section 11: owner and participants are told of each other's changes, of what is shared only")
  func notifications() throws {
    let guid = try world.share("root", accepted: [(world.ben, .readWrite)])
    let app = { (who: Caller) in try world.core.addCourier(who, ShareWorld.own) }
    let (anna, ben) = (try app(world.anna), try app(world.ben))
    _ = try app(world.cleo)
    func subscribe(_ who: Caller, _ subscription: Subscription) throws {
      _ = try world.core.modifySubscriptions(who, world.scope(who), [.create(subscription)])[0].get()
    }
    try subscribe(world.anna, Subscription(id: "all", kind: .database))
    try subscribe(world.ben, Subscription(id: "all", kind: .database))
    try subscribe(world.ben, Subscription(id: "zone", kind: .zone, zone: world.zone(world.ben)))
    func news(_ token: String) -> [CloudNotification] {
      var found: [CloudNotification] = []
      while true {
        let answer = Awaited<PollAnswer>()
        let poll = world.core.poll(token) { answer.set($0) }
        if let poll { world.core.notifications.timeOut(poll) }
        guard case .notification(_, let one) = answer.wait() else { return found }
        found.append(one)
      }
    }
    try world.save(world.ben, "child", ["t": .string("x")])
    #expect(news(anna).map(\.zone) == [ZoneID(name: "Notes", owner: world.anna.recordName)])
    _ = news(ben)
    try world.save(world.anna, "other", ["t": .string("x")])
    #expect(news(ben).isEmpty)
    _ = news(anna)
    try world.save(world.anna, "leaf", ["t": .string("x")])
    #expect(Set(news(ben).map(\.subscription)) == ["all", "zone"])
    _ = news(anna)
    try world.share("root", with: [world.invitation(world.ben), world.invitation(world.cleo)])
    _ = (news(anna), news(ben))
    try world.accept(world.cleo, guid)
    #expect(news(anna).count == 1)
    _ = news(ben)
    try world.delete(world.anna, "S-root")
    #expect(news(ben).map(\.subscription).contains("all"))
    // The subscription of the zone went with it.
    #expect(try world.core.subscriptions(world.ben, ShareWorld.shared).map(\.id) == ["all"])
  }
}
