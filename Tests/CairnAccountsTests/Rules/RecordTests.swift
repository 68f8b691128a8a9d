import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct RecordTests {
  @Test("accounts.md A2, A5: names are pure functions of the key, in lower case whatever is read")
  func namesAreFunctionsOfTheKey() {
    let upper = AccountID("ABCDEF00-0000-4000-8000-00000000000A")
    #expect(upper?.rawValue == "abcdef00-0000-4000-8000-00000000000a")
    #expect(RecordKey(name: "account-ABCDEF00-0000-4000-8000-00000000000A") == upper.map { .account($0) })
    for key: RecordKey in [.account(Make.id(1)), .marker(Make.instance(2)), .tombstone(Make.id(3)), .context(.main)] {
      #expect(RecordKey(name: key.name) == key)
      #expect(key.name == key.name.lowercased())
    }
    #expect(RecordKey(name: "account-1") == nil)
    #expect(RecordKey(name: "context-Ä") == nil)
  }

  @Test(
    "accounts.md A5, engine C6: a record whose name and fields disagree is parked for good, not overwritten, and told")
  func disagreementIsParked() async throws {
    let world = try TestWorld()
    let device = try world.device()
    var wrong = Make.account(Make.id(1))
    wrong.id.name = "account-\(Make.id(2))"
    try world.put(wrong)
    let events = device.core.eventStreams.stream()
    let report = try device.sync()
    for await event in events {
      #expect(event == .recordParked(name: wrong.id.name, .disagreement))
      break
    }
    #expect(device.live.isEmpty)
    #expect(report.status.parked == 1)
    let parked = try device.state().parked
    #expect(parked["account-\(Make.id(2))"]?.reason == .disagreement)
    #expect(try world.records()[wrong.id.name]?.fields["accountID"] == .string(Make.id(1).rawValue))
    #expect(device.sentNames.isEmpty)
  }

  @Test("accounts.md A6: unknown fields of a known type survive an edit here")
  func unknownFieldsSurvive() throws {
    let world = try TestWorld()
    let device = try world.device()
    var record = Make.account(Make.id(1), label: "old")
    record.fields["colour"] = .string("blue")
    try world.put(record)
    try device.sync()
    try device.core.edit(Make.id(1), AccountEdit(label: "new"))
    try device.sync()
    let stored = try #require(try world.records()["account-\(Make.id(1))"])
    #expect(stored.fields["colour"] == .string("blue"))
    #expect(stored.fields["label"] == .string("new"))
  }

  @Test("accounts.md A6: a newer format stays staged, counts as known, is not editable and not overwritten")
  func newerFormatIsWithheld() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1), label: "known"))
    try device.sync()
    var newer = Make.account(Make.id(1), label: "newer", time: 5_000)
    newer.fields["formatVersion"] = .int64(2)
    try world.put(newer)
    var unseen = Make.account(Make.id(2))
    unseen.fields["formatVersion"] = .int64(9)
    try world.put(unseen)
    try device.sync()
    #expect(device.live == [Make.id(1)])
    #expect(throws: AccountsError.notEditable(Make.id(1))) {
      try device.core.edit(Make.id(1), AccountEdit(label: "mine"))
    }
    #expect(try device.state().isKnown(Make.id(2)))
    #expect(try !device.state().isFree(Make.id(2), instances: []))
    #expect(try device.sync().status.parked == 2)
    #expect(try world.records()["account-\(Make.id(1))"]?.fields["label"] == .string("newer"))
    try device.relaunch()
    #expect(try device.state().isWithheld(Make.id(1)))
  }

  @Test("accounts.md A5, A6: a later version that can be read takes the place of one that could not")
  func repairedRecords() throws {
    let world = try TestWorld()
    let device = try world.device()
    var broken = Make.account(Make.id(1))
    broken.fields["service"] = nil
    var newer = Make.account(Make.id(2))
    newer.fields["formatVersion"] = .int64(2)
    for record in [broken, newer] { try world.put(record) }
    #expect(try device.sync().status.parked == 2)
    for number in 1...2 { try world.put(Make.account(Make.id(number), label: "good", time: 9_000)) }
    #expect(try device.sync().status.parked == 0)
    #expect(device.live == [Make.id(1), Make.id(2)])
    try device.core.edit(Make.id(2), AccountEdit(label: "mine"))
    try device.sync()
    #expect(try world.records()["account-\(Make.id(2))"]?.fields["label"] == .string("mine"))
  }

  @Test(
    "accounts.md A1, A38: beside another category, on the app's one engine and another store, accounts work the same")
  func sharedEngine() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try a.sync()
    let store = PlainStore()
    let category = AccountsCategory(b.core, zone: TestWorld.zone, store: store)
    let session = SyncSession(
      cloud: b.cloud, store: store, categories: [OtherCategory(), category], zones: [TestWorld.zone],
      expectedUser: try b.cloud.currentUser(), time: b.time, randomness: SeededRandomness(seed: 3))
    _ = try session.sync()
    #expect(b.live == [id])
    let mine = try b.add("bob")
    #expect(try session.sync().saved == 1)
    try a.core.remove(id)
    try a.sync()
    _ = try session.sync()
    #expect(b.live == [mine] && a.live == [mine])
    #expect(try b.core.file.engineRows().isEmpty)
  }

  @Test("accounts.md A6: markers and tombstones count by name at any version")
  func newerTombstoneKills() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1)))
    try device.sync()
    var tombstone = Make.tombstone(Make.id(1))
    tombstone.fields = ["formatVersion": .int64(7)]
    try world.put(tombstone)
    try device.sync()
    #expect(device.live.isEmpty)
  }

  @Test("accounts.md A4: an instance's address loses user info, query and fragment, built or received")
  func addressesHoldNoSecret() throws {
    #expect(InstanceURL.cleaned("HTTPS://ada:pw@X.example/path/?token=t#frag") == "https://x.example/path")
    #expect(InstanceURL.holdsMore("https://x.example/@ada") == false)
    let world = try TestWorld()
    let device = try world.device()
    var record = Make.account(Make.id(1))
    record.fields["instanceURL"] = .string("https://ada:hunter2@x.example/?token=hunter2")
    try world.put(record)
    try device.sync()
    #expect(device.core.snapshot.accounts.first?.instanceURL == "https://x.example")
    try device.core.edit(Make.id(1), AccountEdit(label: "mine"))
    try device.sync()
    let stored = try #require(try world.records()["account-\(Make.id(1))"])
    #expect(!"\(stored.fields)".contains("hunter2"))
  }

  @Test("accounts.md A4: no record and no print of a credential shows the secret")
  func secretsAreNowhere() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add(secret: "hunter2")
    try device.core.select(id)
    try device.sync()
    for record in try world.records().values { #expect(!"\(record)".contains("hunter2")) }
    let credential = Credential(userName: "ada", secret: Data("hunter2".utf8))
    var text = ""
    dump(credential, to: &text)
    #expect(!"\(credential) \(String(reflecting: credential)) \(text)".contains("hunter2"))
    let file = try Data(contentsOf: URL(fileURLWithPath: device.path))
    #expect(file.range(of: Data("hunter2".utf8)) == nil)
  }

  @Test("accounts.md A34: a time beyond the format's ceiling is parked; a clock beyond its ceiling is capped")
  func ceilings() throws {
    #expect(StampClock.formatCeiling - StampClock.clockCeiling >= 1 << 32)
    #expect(StampClock.time(now: .max, newestSeen: 0) == StampClock.clockCeiling)
    #expect(StampClock.time(now: 5, newestSeen: StampClock.clockCeiling) == StampClock.clockCeiling + 1)
    var record = Make.context(Make.id(1))
    record.fields["time"] = .int64(StampClock.formatCeiling + 1)
    guard case .unreadable(.time) = AccountRecordCodec.read(record) else {
      Issue.record("a time above the ceiling was read")
      return
    }
    record.fields["time"] = .int64(StampClock.formatCeiling)
    guard case .context = AccountRecordCodec.read(record) else {
      Issue.record("the ceiling itself is valid")
      return
    }
  }

  @Test("accounts.md A1: the category claims its four types in its zone and nothing else")
  func claims() throws {
    let world = try TestWorld()
    let device = try world.device()
    let category = try #require(device.syncer?.category)
    for type in RecordKey.Kind.all { #expect(category.claims(type: type, name: "x", in: TestWorld.zone)) }
    #expect(!category.claims(type: "Note", name: "account-\(Make.id(1))", in: TestWorld.zone))
    #expect(category.claims(type: nil, name: "tombstone-\(Make.id(1))", in: TestWorld.zone))
    #expect(!category.claims(type: "Account", name: "account-\(Make.id(1))", in: ZoneID(name: "other")))
  }
}
