import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

/// Guards that hold even where the engine, or the order of things, would mostly do it for them.
@Suite struct AccountsBorderTests {
  private static let scope = ScopeID.identity("u")

  private func apply(_ records: [Record], to state: inout ScopeState) {
    state.stage(records, [])
    state.seal()
    _ = state.applySealed(bindings: [:], scope: Self.scope, now: 0)
  }

  // MARK: Tombstones

  @Test("accounts.md A25, A87: an account of a lost zone that is deleted here stays dead")
  func deadOfALostZone() {
    var state = ScopeState()
    apply([Make.tombstone(Make.id(1))], to: &state)
    state.stage([Make.account(Make.id(1))], [])
    state.forgetServer()
    state.seal()
    _ = state.applySealed(bindings: [:], scope: Self.scope, now: 0)
    #expect(state.accounts.isEmpty && state.violations.isEmpty)
  }

  @Test("accounts.md A27, A35: a choice of a deleted account is the fallback, not the choice before")
  func deadChoice() {
    var state = ScopeState()
    apply([Make.tombstone(Make.id(1)), Make.account(Make.id(2)), Make.context(Make.id(2))], to: &state)
    #expect(state.choices[.main] == Make.id(2))
    apply([Make.context(Make.id(1), time: 2_000)], to: &state)
    #expect(state.choices[.main] == nil)
  }

  @Test("accounts.md A82, A83: the choice of a deleted account is not pending after a refill")
  func deadChoiceAfterRefill() {
    var state = ScopeState()
    apply([Make.account(Make.id(1)), Make.context(Make.id(1))], to: &state)
    state.remove(Make.id(1), bindings: [:], scope: Self.scope)
    state.forgetServer()
    state.refill()
    #expect(state.tombstones[Make.id(1)]?.isPending == true)
    #expect(state.contexts[.main]?.send.isPending == false && state.pendingCount == 1)

    // Deleted by another device.
    var other = ScopeState()
    apply([Make.account(Make.id(1)), Make.context(Make.id(1))], to: &other)
    apply([Make.tombstone(Make.id(1))], to: &other)
    other.forgetServer()
    other.refill()
    #expect(other.contexts[.main]?.send.isPending == false && other.pendingCount == 1)

    // The tombstone has come, and is not applied yet.
    var waiting = ScopeState()
    apply([Make.account(Make.id(1)), Make.context(Make.id(1))], to: &waiting)
    waiting.stage([Make.tombstone(Make.id(1))], [])
    waiting.forgetServer()
    waiting.refill()
    #expect(waiting.contexts[.main]?.local != nil && waiting.contexts[.main]?.send.isPending == false)
  }

  @Test("accounts.md A88, A24: every confirmed fact that a full fetch lacks is sent again")
  func unseen() {
    var state = ScopeState()
    let (live, instance) = (Make.id(1), Make.instance(3))
    apply(
      [Make.account(live), Make.tombstone(Make.id(2)), Make.marker(instance), Make.context(live)], to: &state)
    #expect(state.pendingCount == 0)
    var seen = state
    seen.stage(
      [Make.account(live), Make.tombstone(Make.id(2)), Make.marker(instance), Make.context(live)], [])
    seen.requeueUnseen()
    #expect(seen.pendingCount == 0)
    state.requeueUnseen()
    #expect(state.accounts[live]?.send.isPending == true && state.tombstones[Make.id(2)]?.isPending == true)
    #expect(state.markers[instance]?.isPending == true && state.contexts[.main]?.send.isPending == true)
  }

  // MARK: Sending

  @Test("accounts.md A76, A81: a marker waits while its account is refused for good")
  func markerOfARefusedAccount() throws {
    let world = try TestWorld()
    let device = try world.device()
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "mastodon", url: "https://x.example", flag: true)
    ]
    _ = try device.credentials.replace(
      Credential(userName: "ada", secret: Data("old".utf8), revision: "1"), for: .legacy(TestDevice.instance))
    device.entryFaults.refuse { $0.record.type == RecordKey.Kind.account ? CloudError(.badRequest, "no") : nil }
    for _ in 0..<2 { try device.sync() }
    #expect(try device.state().markers[TestDevice.instance]?.isPending == true)
    #expect(try world.names().isEmpty)
  }

  @Test("accounts.md A78, A84: before a fetch only tombstones go")
  func beforeAFetch() throws {
    let world = try TestWorld()
    let device = try world.device()
    let (dead, live) = (try device.add("a"), try device.add("b"))
    try device.sync()
    try device.core.remove(dead)
    try device.core.edit(live, AccountEdit(label: "edited"))
    let category = try #require(device.syncer?.category)
    try category.begin(as: device.cloud.currentUser())
    var request = BatchRequest(limits: CloudLimits(), now: world.clock.wallClock, isManual: true, deletesOnly: false)
    request.hasFetched = false
    let first = try category.nextBatch(in: TestWorld.zone, request)
    #expect(first?.entries.map(\.operation.record.id.name) == ["tombstone-\(dead)"])
    request.excluded = ["tombstone-\(dead)": .unsent]
    #expect(try category.nextBatch(in: TestWorld.zone, request) == nil)
    request.hasFetched = true
    #expect(try category.nextBatch(in: TestWorld.zone, request) != nil)
  }

  @Test("accounts.md A6: an edit made before a newer format came does not go over it")
  func editUnderANewerFormat() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1), label: "known"))
    try device.sync()
    try device.core.edit(Make.id(1), AccountEdit(label: "mine"))
    var newer = Make.account(Make.id(1), label: "newer", time: 5_000)
    newer.fields["formatVersion"] = .int64(2)
    try world.put(newer)
    device.cloud.clearLog()
    for _ in 0..<2 { try device.sync() }
    #expect(device.sentNames.isEmpty)
    #expect(try world.records()["account-\(Make.id(1))"]?.fields["label"] == .string("newer"))
  }

  @Test("accounts.md A6, A83: unknown fields are part of what is sent, also to a new zone")
  func unknownFields() throws {
    var record = Make.account(Make.id(1))
    record.fields["colour"] = .string("blue")
    guard case .account(let content) = AccountRecordCodec.read(record) else {
      Issue.record("the record is not read as an account")
      return
    }
    let written = AccountRecordCodec.account(content, nil, in: TestWorld.zone)
    #expect(written.fields["colour"] == .string("blue"))
  }

  // MARK: Receiving

  @Test("accounts.md A39, A40: what is not sealed stays staged while a sealed set is applied")
  func onlyTheSealed() {
    var state = ScopeState()
    state.stage([Make.account(Make.id(1))], [])
    state.seal()
    state.stage([Make.account(Make.id(2))], [])
    _ = state.applySealed(bindings: [:], scope: Self.scope, now: 0)
    #expect(Set(state.accounts.keys) == [Make.id(1)])
    #expect(state.staged.values.map(\.name) == ["account-\(Make.id(2))"])
  }

  @Test(
    "accounts.md A44, A48: a sealed set waits while the category is off or the identity is not activated",
    arguments: [(true, true), (true, false), (false, true)])
  func sealedSetWaits(isActivated: Bool, isEnabled: Bool) {
    var device = DeviceState(writer: "w", marker: "m", identity: .user("u"))
    device.hasNeed = false
    var state = AccountsState(device: device)
    state[Self.scope].settings.isActivated = isActivated
    state[Self.scope].settings.isEnabled = isEnabled
    state[Self.scope].stage([Make.account(Make.id(1))], [])
    state[Self.scope].seal()
    _ = state.applySealed(Self.scope, now: 0)
    #expect(state[Self.scope].accounts.isEmpty == !(isActivated && isEnabled))
    #expect(state[Self.scope].staged.isEmpty == (isActivated && isEnabled))
  }

  @Test("accounts.md A33, A42: an older value of the register changes nothing when it comes again")
  func olderRegisterValue() {
    var state = ScopeState()
    apply(
      [Make.account(Make.id(1)), Make.account(Make.id(2)), Make.context(Make.id(2), time: 2_000)], to: &state)
    apply([Make.context(Make.id(1), time: 1_000)], to: &state)
    #expect(state.choices[.main] == Make.id(2) && state.contexts[.main]?.value?.stamp.time == 2_000)
  }

  // MARK: Needs

  @Test("accounts.md A56: a copy that was started twice before it synced still knows what it may have missed")
  func needOfACopy() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    device.marker = "2"
    for _ in 0..<2 {
      try device.relaunch()
      #expect(try device.device().hasNeed)
    }
    try device.sync()
    #expect(try !device.device().hasNeed)
  }

  // MARK: Generations

  private var page: ZonePage {
    ZonePage(
      zone: TestWorld.zone, records: [Make.account(Make.id(1))], deletions: [], token: ChangeToken("t"),
      moreComing: false)
  }

  @Test("accounts.md A60, A64: a session that began before A→B→A writes nothing after it")
  func sessionOfBefore() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    let category = try #require(device.syncer?.category)
    let user = try device.cloud.currentUser()
    try category.begin(as: user)
    try device.core.identityChanged(to: .none)
    try device.core.identityChanged(to: .user(user))
    #expect(throws: AccountsError.identityChanged) { try category.stage(page, now: 0) }
    #expect(try device.state().staged.isEmpty)
  }

  @Test("accounts.md A61, A63: a session of another user than the store's does nothing")
  func sessionOfAnother() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    let category = try #require(device.syncer?.category)
    try category.begin(as: "another")
    #expect(try !category.isEnabled())
    #expect(throws: AccountsError.identityChanged) { try category.stage(page, now: 0) }
    #expect(try device.state().staged.isEmpty)
  }

  /// A core whose secure store can be interrupted.
  private func interrupted(_ world: TestWorld) throws -> (AccountsCore, HookedCredentials) {
    let credentials = HookedCredentials()
    let configuration = AccountsConfiguration(
      path: world.folder.file("interrupted.sqlite"), identity: .user("u"), time: world.clock,
      randomness: SeededRandomness(seed: 1))
    return (try AccountsCore(configuration, credentials: credentials), credentials)
  }

  private let login = NewLogin(
    instanceID: TestDevice.instance, service: "mastodon", instanceURL: "https://x.example", userName: "ada")
  private let secret = Credential(userName: "ada", secret: Data([1]))

  @Test("accounts.md A60: a sign-in during which A→B→A happened notes no success")
  func signInOfBefore() throws {
    let world = try TestWorld()
    let (core, credentials) = try interrupted(world)
    credentials.beforeReplace {
      do {
        try core.identityChanged(to: .none)
        try core.identityChanged(to: .user("u"))
      } catch { Issue.record("\(error)") }
    }
    #expect(throws: AccountsError.identityChanged) { try core.add(login, credential: secret) }
    #expect(try core.file.read()[Self.scope].accounts.values.map(\.isPendingCredential) == [true])
  }

  @Test("accounts.md A15: a credential that is stored while its account is deleted goes with it")
  func credentialOfADeletedAccount() throws {
    let world = try TestWorld()
    let (core, credentials) = try interrupted(world)
    credentials.beforeReplace {
      do { for account in core.snapshot.accounts { try core.remove(account.id) } } catch { Issue.record("\(error)") }
    }
    #expect(throws: AccountsError.self) { try core.add(login, credential: secret) }
    #expect(credentials.inner.keys.isEmpty && core.snapshot.accounts.isEmpty)
    #expect(try core.file.read()[Self.scope].cleanups.isEmpty)
  }

  // MARK: Legacy logins

  @Test("accounts.md A18: a flag is no evidence before a fetch that began after it was seen")
  func flagWithoutAFetch() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "s", url: "https://x.example", flag: true)
    ]
    for _ in 0..<3 { #expect(try device.core.migrateLegacyLogins().waiting == [TestDevice.instance]) }
    #expect(device.live.isEmpty)
    try device.sync()
    #expect(device.live == [AccountID(migratedFrom: TestDevice.instance)])
  }

  // MARK: Private caches

  @Test("accounts.md A60, A71: an answer that lands after A→B→A fills nothing")
  func answerOfBefore() async throws {
    let world = try TestWorld()
    let device = try world.device()
    let (id, user, core) = (try device.add(), try device.cloud.currentUser(), device.core)
    let file = URL(fileURLWithPath: world.folder.file("cache.json"))
    let cache = try PrivateCache<String>(file: file, store: core)
    let key = PrivateCacheKey(account: id, name: "home")
    let late = try await cache.refresh(key) {
      try core.identityChanged(to: .user("another"))
      try core.identityChanged(to: .user(user))
      return "late"
    }
    #expect(try late == nil && cache.value(for: key) == nil)
  }
}
