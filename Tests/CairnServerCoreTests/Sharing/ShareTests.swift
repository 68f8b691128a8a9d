import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// Shares: made, accepted, left and ended (web-services section 12).
@Suite(.everyStore) struct ShareTests {
  private let world: ShareWorld

  init() throws {
    world = try ShareWorld()
    try world.save(world.anna, "root")
    try world.save(world.anna, "child", parent: "root")
    try world.save(world.anna, "grandchild", parent: "child")
    try world.save(world.anna, "other")
  }

  @Test("web-services W37: share a root, accept as second user, the zone is in the shared database with owner")
  func shareAndAccept() throws {
    let guid = try world.share("root", with: [world.invitation(world.ben)])
    #expect(try world.zones(world.ben).zones == [])
    #expect(try world.stored(world.ben, "child") == nil)
    let resolved = try world.accept(world.ben, guid)
    #expect(resolved.zone == ZoneID(name: "Notes", owner: world.anna.recordName))
    #expect(resolved.rootName == "root")
    #expect(resolved.database == .shared)
    #expect(resolved.participant.status == .accepted)
    #expect(resolved.participant.permission == .readWrite)
    #expect(resolved.participant.kind == .user)
    #expect(try world.core.zones(world.ben, ShareWorld.shared).map(\.id) == [resolved.zone])
    #expect(try world.zones(world.ben).zones == ["Notes"])
    #expect(Set(try world.feed(world.ben).records) == ["root", "child", "grandchild", "S-root"])
    #expect(try world.stored(world.ben, "other") == nil)
    #expect(try world.stored(world.ben, "grandchild")?.id.zone == resolved.zone)
    try world.checkInvariants()
  }

  @Test("web-services W37: an uninvited user with the GUID is refused, by resolve and by accept, and sees nothing")
  func uninvited() throws {
    let guid = try world.share("root", accepted: [(world.ben, .readWrite)])
    #expect(failure { try world.accept(world.cleo, guid) }?.code == .accessDenied)
    let resolved = try world.core.resolveShares(world.cleo, ShareWorld.open, [ShareQuery(guid: guid)])[0]
    #expect(throws: CloudError.self) { try resolved.get() }
    #expect(try world.zones(world.cleo).zones == [])
    #expect(failure { try world.feed(world.cleo) }?.code == .zoneNotFound)
    #expect(try world.save(world.cleo, "child", parent: "root").error?.code == .zoneNotFound)
    #expect(failure { try world.accept(world.cleo, "guess") }?.code == .notFound)
    let anonymous = failure { _ = try world.core.resolveShares(.anonymous, ShareWorld.open, [ShareQuery(guid: guid)]) }
    #expect(anonymous?.code == .authenticationRequired)
  }

  @Test("web-services section 12: a GUID alone opens a share with public permission, until that ends")
  func publicPermission() throws {
    let guid = try world.share("root", open: .readOnly, with: [world.invitation(world.ben)])
    #expect(try world.zones(world.cleo).zones == [])
    let resolved = try world.core.resolveShares(
      world.cleo, ShareWorld.open, [ShareQuery(guid: guid, wantsRoot: true)])[0].get()
    #expect(resolved.participant.status == .unknown)
    #expect(resolved.participant.kind == .publicUser)
    #expect(resolved.root?.id.name == "root")
    // A stranger is not told who else takes part.
    #expect(resolved.share.sharing?.participants?.map(\.kind) == [.owner])
    // Looking is not coming.
    #expect(try world.zones(world.cleo).zones == [])
    #expect(try world.accept(world.cleo, guid).participant.permission == .readOnly)
    #expect(try world.stored(world.cleo, "S-root")?.sharing?.participants?.map(\.kind) == [.owner, .publicUser])
    #expect(try world.save(world.cleo, "child", ["t": .string("x")]).error?.code == .accessDenied)
    try world.share("root", open: .readWrite)
    #expect(try world.save(world.cleo, "child", ["t": .string("x")]).error == nil)
    let token = try world.zones(world.cleo).token
    try world.share("root", open: SharePermission.none)
    #expect(try world.zones(world.cleo, since: token).zones == ["-Notes"])
    #expect(try world.stored(world.cleo, "child") == nil)
    #expect(failure { try world.accept(world.cleo, guid) }?.code == .accessDenied)
    // Another container does not know the GUID.
    let elsewhere = DatabaseScope(container: "iCloud.other", kind: .public)
    try world.share("root", open: .readOnly)
    let found = try world.core.resolveShares(world.cleo, elsewhere, [ShareQuery(guid: guid)])[0]
    #expect(failure { _ = try found.get() }?.code == .notFound)
  }

  @Test("web-services section 12: root and share carry each other, the short GUID, participants, owner and the caller")
  func answers() throws {
    let before = try #require(try world.stored(world.anna, "root"))
    let guid = try world.share("root", with: [world.invitation(world.ben, .readOnly)])
    let root = try #require(try world.stored(world.anna, "root"))
    #expect(root.sharing?.share == RecordID(name: "S-root", zone: ZoneID(name: "Notes", owner: world.anna.recordName)))
    #expect(root.sharing?.shortGUID == guid)
    // What answers say has changed, so the tag has.
    #expect(root.changeTag != before.changeTag)
    let share = try #require(try world.stored(world.anna, "S-root")?.sharing)
    #expect(share.root?.name == "root")
    #expect(share.publicPermission == SharePermission.none)
    #expect(share.participants?.map(\.kind) == [.owner, .user])
    #expect(share.participants?.map(\.status) == [.accepted, .invited])
    #expect(share.owner?.identity.userRecordName == world.anna.recordName)
    #expect(share.currentUserParticipant?.kind == .owner)
    try world.accept(world.ben, guid)
    let seen = try #require(try world.stored(world.ben, "S-root")?.sharing)
    #expect(seen.currentUserParticipant?.identity.userRecordName == world.ben.recordName)
    #expect(seen.currentUserParticipant?.permission == .readOnly)
    #expect(seen.currentUserParticipant?.status == .accepted)
    // The owner's other devices learn that somebody has come.
    #expect(try world.stored(world.anna, "S-root")?.sharing?.participants?.last?.status == .accepted)
  }

  @Test("web-services section 12: createShortGUID gives a root its short GUID, which its share takes over")
  func shortGUID() throws {
    var wish = world.record(world.anna, "root")
    wish.sharing = RecordSharing()
    wish.sharing?.createsShortGUID = true
    let saved = try world.modify(world.anna, [RecordOperation(.forceUpdate, wish)])[0].saved()
    let guid = try #require(saved.sharing?.shortGUID)
    #expect(guid.utf8.count == 22)
    #expect(saved.sharing?.share == nil)
    #expect(failure { try world.accept(world.ben, guid) }?.code == .notFound)
    #expect(try world.modify(world.anna, [RecordOperation(.forceUpdate, wish)])[0].saved().sharing?.shortGUID == guid)
    #expect(try world.share("root", open: .readOnly) == guid)
    #expect(try world.accept(world.ben, guid).rootName == "root")
    try world.checkInvariants()
  }

  @Test("web-services section 12: root and share may be saved together, in any order, and in any case of the type")
  func together() throws {
    var share = world.shareRecord(world.anna, "S", of: "new", open: .readOnly, nil)
    share.type = "CloudKit.Share"
    let root = world.record(world.anna, "new")
    let outcomes = try world.modify(
      world.anna, [RecordOperation(.create, share), RecordOperation(.create, root)], atomic: true)
    let guid = try #require(try outcomes[0].saved().sharing?.shortGUID)
    #expect(try outcomes[0].saved().type == "cloudkit.share")
    #expect(try outcomes[1].saved().sharing?.share?.name == "S")
    try world.accept(world.ben, guid)
    #expect(Set(try world.feed(world.ben).records) == ["new", "S"])
    try world.checkInvariants()
  }

  @Test("web-services section 12: a share without root, with a missing or a taken one, or a wrong tag is refused")
  func refusals() throws {
    func code(_ record: Record) throws -> CloudError.Code? {
      try world.modify(world.anna, [RecordOperation(.forceUpdate, record)])[0].error?.code
    }
    #expect(try code(world.shareRecord(world.anna, "S", of: nil, nil)) == .badRequest)
    #expect(try code(world.shareRecord(world.anna, "S", of: "nothing", nil)) == .badRequest)
    var stale = world.shareRecord(world.anna, "S", of: "root", nil)
    stale.sharing?.root?.changeTag = ChangeTag("old")
    #expect(try code(stale) == .conflict)
    try world.share("root")
    #expect(try code(world.shareRecord(world.anna, "S", of: "root", nil)) == .badRequest)
    #expect(try code(world.shareRecord(world.anna, "S-root", of: "other", nil)) == .badRequest)
    #expect(try code(world.shareRecord(world.anna, "S", of: "S-root", nil)) == .badRequest)
    let stranger = ShareParticipant(UserIdentity(lookup: .userRecordName("_nobody")))
    #expect(try code(world.shareRecord(world.anna, "S", of: "other", [stranger])) == .badRequest)
    #expect(
      try code(world.shareRecord(world.anna, "S", of: "other", [ShareParticipant(UserIdentity())])) == .badRequest)
    let mighty = world.invitation(world.ben, .unknown)
    #expect(try code(world.shareRecord(world.anna, "S", of: "other", [mighty])) == .badRequest)
    #expect(try world.stored(world.anna, "S") == nil)
    try world.save(world.anna, "loose", zone: "_defaultZone")
    #expect(try code(world.shareRecord(world.anna, "S", of: "loose", nil, zone: "_defaultZone")) == .badRequest)
    try world.checkInvariants()
  }

  @Test("web-services section 12: a participant who deletes the share leaves it; the owner who deletes it ends it")
  func leavingAndEnding() throws {
    let guid = try world.share("root", accepted: [(world.ben, .readOnly), (world.cleo, .readWrite)])
    let (benToken, cleoToken) = (try world.zones(world.ben).token, try world.zones(world.cleo).token)
    #expect(try world.delete(world.ben, "S-root").isDeleted)
    #expect(try world.zones(world.ben, since: benToken).zones == ["-Notes"])
    #expect(failure { try world.feed(world.ben) }?.code == .zoneNotFound)
    #expect(try world.stored(world.anna, "S-root")?.sharing?.participants?.count == 2)
    #expect(failure { try world.accept(world.ben, guid) }?.code == .accessDenied)
    #expect(try world.stored(world.cleo, "child") != nil)
    #expect(try world.delete(world.anna, "S-root").isDeleted)
    #expect(try world.zones(world.cleo, since: cleoToken).zones == ["-Notes"])
    #expect(try world.stored(world.cleo, "child") == nil)
    #expect(try world.stored(world.anna, "root")?.sharing == nil)
    #expect(failure { try world.accept(world.cleo, guid) }?.code == .notFound)
    // A new share has a new GUID: what the old one opened stays closed.
    #expect(try world.share("root", open: .readOnly) != guid)
    try world.checkInvariants()
  }

  @Test("web-services section 12: the share goes with its root, with its zone and with its owner")
  func endings() throws {
    try world.share("root", accepted: [(world.ben, .readWrite)])
    try world.share("other", accepted: [(world.cleo, .readWrite)])
    let benToken = try world.zones(world.ben).token
    #expect(try world.delete(world.anna, "root").error?.code == .validatingReferenceError)
    try world.modify(
      world.anna,
      ["grandchild", "child", "root"].map { RecordOperation(.forceDelete, world.record(world.anna, $0)) }, atomic: true)
    #expect(try world.zones(world.ben, since: benToken).zones == ["-Notes"])
    #expect(try world.stored(world.anna, "S-root") == nil)
    #expect(try world.feed(world.cleo).records.sorted() == ["S-other", "other"])
    _ = try world.core.modifyZones(world.anna, ShareWorld.own, [.delete(ZoneID(name: "Notes"))])
    #expect(try world.zones(world.cleo, since: nil).zones == [])
    try world.makeZone("Notes")
    try world.save(world.anna, "again")
    #expect(failure { try world.feed(world.cleo) }?.code == .zoneNotFound)
    try world.share("again", accepted: [(world.ben, .readWrite)])
    let token = try world.zones(world.ben).token
    try world.users.remove("anna")
    #expect(try world.zones(world.ben, since: token).zones == ["-Notes"])
    #expect(try world.storage.read { try $0.participations(of: world.ben.key) }.isEmpty)
  }

  @Test("web-services section 12: a participant who is removed, by the owner or from the server, loses the zone")
  func removals() throws {
    try world.share("root", accepted: [(world.ben, .readWrite), (world.cleo, .readWrite)])
    let token = try world.zones(world.ben).token
    try world.share("root", with: [world.invitation(world.cleo)])
    #expect(try world.zones(world.ben, since: token).zones == ["-Notes"])
    #expect(try world.save(world.ben, "child").error?.code == .zoneNotFound)
    let before = try #require(try world.stored(world.anna, "S-root")?.changeTag)
    try world.users.remove("cleo")
    let share = try #require(try world.stored(world.anna, "S-root"))
    #expect(share.sharing?.participants?.count == 1)
    #expect(share.changeTag != before)
    try world.checkInvariants()
  }

  @Test("web-services section 12: an invitation by e-mail finds its user now or later, and shows them to no stranger")
  func email() throws {
    try world.users.setProfile(
      UserProfile(email: "Ben@Example.org", givenName: "Ben", isDiscoverable: false), for: "ben")
    let guests = ["ben@example.ORG", "cleo@example.org"].map {
      ShareParticipant(UserIdentity(lookup: .emailAddress($0)), permission: .readOnly)
    }
    let guid = try world.share("root", with: guests)
    let ben = try #require(try world.stored(world.anna, "S-root")?.sharing?.participants?[1])
    #expect(ben.identity.userRecordName == nil)
    #expect(ben.identity.lookup == .emailAddress("ben@example.org"))
    try world.accept(world.ben, guid)
    #expect(try world.stored(world.anna, "S-root")?.sharing?.participants?[1].identity.givenName == "Ben")
    #expect(failure { try world.accept(world.cleo, guid) }?.code == .accessDenied)
    try world.users.setProfile(UserProfile(email: "cleo@example.org"), for: "cleo")
    try world.accept(world.cleo, guid)
    #expect(try world.stored(world.cleo, "child") != nil)
    // Others see who takes part, not by which address.
    let seen = try #require(try world.stored(world.cleo, "S-root")?.sharing?.participants)
    #expect(seen[1].identity.givenName == "Ben" && seen[1].identity.lookup == nil)
    // The list that was read can be written back: nobody has to accept again.
    let list = try #require(try world.stored(world.anna, "S-root")?.sharing?.participants)
    try world.share("root", with: list)
    #expect(try world.stored(world.ben, "child") != nil)
    #expect(try world.stored(world.cleo, "child") != nil)
  }

  @Test("web-services section 12: nobody is invited by a text that is no e-mail address")
  func noAddress() throws {
    for text in ["", "ben", "ben@", "@example.org", "a b@example.org", "a@b@c", "a\n@example.org"] {
      let guest = ShareParticipant(UserIdentity(lookup: .emailAddress(text)), permission: .readOnly)
      let share = world.shareRecord(world.anna, "S-root", of: "root", [guest])
      let error = try world.modify(world.anna, [RecordOperation(.forceUpdate, share)])[0].error
      #expect(error?.code == .badRequest, "\(text)")
    }
    #expect(try world.stored(world.anna, "S-root") == nil)
  }

  @Test("web-services section 12: an update with parent null takes a record, and what is below it, out of a share")
  func noParent() throws {
    try world.share("root", accepted: [(world.ben, .readWrite)])
    #expect(try world.stored(world.ben, "child") != nil)
    let token = try world.feed(world.ben).token
    // Without the key it stays.
    try world.save(world.anna, "child")
    #expect(try world.stored(world.ben, "child") != nil)
    var record = world.record(world.anna, "child")
    record.sharing = RecordSharing()
    record.sharing?.removesParent = true
    #expect(try world.modify(world.anna, [RecordOperation(.forceUpdate, record)])[0].error == nil)
    #expect(try world.stored(world.anna, "child")?.parent == nil)
    #expect(try world.stored(world.ben, "child") == nil)
    #expect(try world.feed(world.ben, since: token).deletions.contains("child"))
    // A participant can't take one out.
    try world.save(world.anna, "other", parent: "root")
    var theirs = world.record(world.ben, "other")
    theirs.sharing = record.sharing
    #expect(try world.modify(world.ben, [RecordOperation(.forceUpdate, theirs)])[0].error?.code == .accessDenied)
  }

  @Test("web-services section 12: an administrator changes who takes part, others don't")
  func administrators() throws {
    var ben = world.invitation(world.ben)
    ben.kind = .administrator
    let guid = try world.share("root", with: [ben])
    try world.accept(world.ben, guid)
    let wider = world.shareRecord(world.ben, "S-root", of: "root", [ben, world.invitation(world.cleo)])
    #expect(try world.modify(world.ben, [RecordOperation(.forceUpdate, wider)])[0].error == nil)
    try world.accept(world.cleo, guid)
    let mine = world.shareRecord(world.cleo, "S-root", of: "root", open: .readWrite, nil)
    #expect(try world.modify(world.cleo, [RecordOperation(.forceUpdate, mine)])[0].error?.code == .accessDenied)
    let another = world.shareRecord(world.ben, "S-child", of: "child", open: .readWrite, nil)
    #expect(try world.modify(world.ben, [RecordOperation(.create, another)])[0].error?.code == .accessDenied)
  }

  @Test("web-services W38: users are found by e-mail and record name, those who do not want it are absent")
  func discovery() throws {
    try world.users.setProfile(
      UserProfile(email: "ben@example.org", givenName: "Ben", familyName: "Berg"), for: "ben")
    try world.users.setProfile(UserProfile(email: "cleo@example.org", isDiscoverable: false), for: "cleo")
    let found = try world.core.discover(
      world.anna,
      [
        .emailAddress("BEN@example.org"), .emailAddress("cleo@example.org"), .emailAddress("no@example.org"),
        .userRecordName(world.ben.recordName), .userRecordName(world.cleo.recordName), .phoneNumber("1"),
      ])
    #expect(found.map(\.userRecordName) == [world.ben.recordName, world.ben.recordName])
    #expect(found.first?.familyName == "Berg")
    #expect(found.first?.lookup == .emailAddress("BEN@example.org"))
    #expect(failure { _ = try world.core.discover(.anonymous, []) }?.code == .authenticationRequired)
    let taken = failure { try world.users.setProfile(UserProfile(email: "ben@example.org"), for: "cleo") }
    #expect(taken?.code == .exists)
    #expect(failure { try world.users.setProfile(UserProfile(email: "ben"), for: "ben") }?.code == .badRequest)
  }
}
