import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// Accounts (engine section 11, O7, E42, E43; tables L9, L10; accounts A58–A68).
@Suite struct AccountTests {
  /// A device whose user may change: one file, one cloud per user.
  final class Device {
    let clock: ManualClock
    let server: InMemoryServer
    let file: SettingsFile
    let settings: SettingsCategory
    let events = EventLog()
    let generation = EngineGeneration()
    let clouds: [String: FaultInjector]
    private(set) var account: AccountSession

    init(_ server: InMemoryServer, _ clock: ManualClock, file: SettingsFile? = nil, asksToAdopt: Bool = false) throws {
      self.server = server
      self.clock = clock
      let file = try file ?? SettingsFile()
      self.file = file
      let settings = SettingsCategory(file)
      settings.asksToAdopt = asksToAdopt
      self.settings = settings
      var clouds: [String: FaultInjector] = [:]
      for name in ["anna", "bert"] {
        let plain = try server.cloud(user: name)
        clouds[try plain.currentUser()] = FaultInjector(plain)
      }
      self.clouds = clouds
      account = AccountSession(
        store: file, categories: [settings], generation: generation, observer: events
      ) { [clouds, events] user, generation in
        guard let cloud = clouds[user] else { throw SettingsFile.PowerCut() }
        return SyncSession(
          cloud: cloud, store: file, categories: [settings], zones: [SettingsDevice.zone], expectedUser: user,
          generation: generation, time: clock, randomness: SeededRandomness(seed: 9), observer: events)
      }
    }

    func cloud(_ user: String) throws -> FaultInjector { try #require(clouds[user]) }

    func serverKeys(_ user: String) throws -> [String] {
      guard try cloud(user).zoneExists(SettingsDevice.zone) else { return [] }
      var page = try cloud(user).zoneChanges(in: SettingsDevice.zone, since: nil)
      page.records.sort { $0.id.name < $1.id.name }
      return page.records.map { SettingsCategory.key($0.id.name) }
    }
  }

  let clock = ManualClock()
  let server: InMemoryServer
  let device: Device
  let anna: String
  let bert: String

  init() throws {
    server = try InMemoryServer(clock: clock)
    device = try Device(server, clock)
    anna = try server.cloud(user: "anna").currentUser()
    bert = try server.cloud(user: "bert").currentUser()
  }

  @Test func firstLaunchWithAnAccountIsASignIn() throws {
    #expect(try device.account.resolve(.user(anna)) == .signIn(current: anna))
    #expect(device.events.events == [.accountChange(.signIn(current: anna))])
    #expect(try device.account.resolve(.user(anna)) == nil)
    // Several changes while the app was closed are one.
    let later = try Device(server, clock, file: device.file)
    #expect(try later.account.resolve(.user(bert)) == .switchAccounts(previous: anna, current: bert))
    #expect(try AccountSession.lastIdentity(in: device.file) == .user(bert))
  }

  @Test func withoutAnAccountTheEngineIsDormant() throws {
    #expect(throws: SyncFailure.unresolvedAccount) { try device.account.sync() }
    try device.account.resolve(.none)
    #expect(throws: SyncFailure.noAccount) { try device.account.sync() }
    try device.settings.set("a", "local", at: 1)
    #expect(try device.settings.values(of: "") == ["a": "local"])
    #expect(try device.cloud(anna).log.isEmpty)
  }

  /// O7: the change comes after every event of the old identity and before every one of the new, also when it happens
  /// in the middle of a call.
  @Test func o7AccountChangePrecedesTheNewIdentityAndEndsTheOld() throws {
    try device.account.resolve(.user(anna))
    try device.settings.set("a", "1", at: 1)
    try device.account.sync()
    try device.settings.set("a", "2", at: 2)
    device.events.events = []
    try device.cloud(anna).setAfter { [generation = device.generation] _ in generation.raise() }
    #expect(try device.account.sync().failure == .replaced)
    let old = device.events.events.count
    try device.account.resolve(.user(bert))
    #expect(device.events.events[old] == .accountChange(.switchAccounts(previous: anna, current: bert)))
    try device.account.sync()
    #expect(EventOrder.faults(device.events.events).isEmpty)
    #expect(device.events.events.count { if case .accountChange = $0 { true } else { false } } == 1)
    #expect(device.events.events.count > old + 1)
  }

  /// E43, and nothing of one identity is ever used under another (C11, accounts A61).
  @Test func e43ASwitchErasesNothingAndSetsTheQueueAside() throws {
    try device.account.resolve(.user(anna))
    try device.settings.set("a", "anna's", at: 1)
    try device.account.sync()
    try device.settings.set("a", "edited", at: 2)
    try device.settings.set("b", "unsent", at: 2)
    try device.account.resolve(.user(bert))
    try device.account.sync()
    #expect(try device.serverKeys(bert).isEmpty)
    #expect(try device.cloud(bert).sentOperations.isEmpty)
    #expect(try device.settings.values(of: anna) == ["a": "edited", "b": "unsent"])
    #expect(try device.settings.pending(of: anna) == ["a", "b"])
    try device.settings.set("a", "bert's", at: 3)
    try device.account.sync()
    // Back again: the queue resumes with its tags, tokens and all.
    try device.account.resolve(.user(anna))
    try device.cloud(anna).clearLog()
    #expect(try device.account.sync().saved == 2)
    #expect(try device.settings.values() == ["a": "edited", "b": "unsent"])
    let full = try device.cloud(anna).log.count { if case .zoneChanges(_, nil) = $0.call { true } else { false } }
    #expect(full == 0)
    let kinds = try device.cloud(anna).sentOperations.map(\.kind)
    #expect(kinds == [.update, .create])
    #expect(try device.settings.values(of: bert) == ["a": "bert's"])
  }

  @Test func e43SignOutKeepsEverything() throws {
    try device.account.resolve(.user(anna))
    try device.settings.set("a", "1", at: 1)
    #expect(try device.account.resolve(.none) == .signOut(previous: anna))
    #expect(try device.settings.values(of: anna) == ["a": "1"])
    #expect(try device.settings.pending(of: anna) == ["a"])
    #expect(try device.account.resolve(.user(anna)) == .signIn(current: anna))
    #expect(try device.account.sync().saved == 1)
  }

  /// A category that keeps one set of rows, as tables do: what is edited while nobody is signed in waits.
  @Test func e42EditsAndDeletesWhileSignedOutReachTheServer() throws {
    let store = MemoryStore()
    let notes = NotesCategory(zone: SettingsDevice.zone)
    store.members = [notes]
    let plain = try server.cloud(user: "anna")
    let cloud = FaultInjector(plain)
    let account = AccountSession(store: store, categories: [notes]) { [clock] user, generation in
      SyncSession(
        cloud: cloud, store: store, categories: [notes], zones: [SettingsDevice.zone], expectedUser: user,
        generation: generation, time: clock, randomness: SeededRandomness(seed: 9))
    }
    try account.resolve(.user(anna))
    notes.set("a", "1", at: 1)
    notes.set("b", "1", at: 1)
    _ = try account.sync()
    try account.resolve(.none)
    notes.set("a", "2", at: 2)
    notes.delete("b", at: 2)
    #expect(throws: SyncFailure.noAccount) { try account.sync() }
    try account.resolve(.user(anna))
    let result = try account.sync()
    #expect(result.saved == 1 && result.deleted == 1)
    let records = try plain.allRecords(in: SettingsDevice.zone)
    #expect(records.map(\.fields["text"]) == [.string("2")])
  }

  /// E42, where the server refuses the token instead.
  @Test func e42EditsWhileTheTokenIsRefusedReachTheServer() throws {
    try device.account.resolve(.user(anna))
    try device.settings.set("a", "1", at: 1)
    try device.settings.set("b", "1", at: 1)
    try device.account.sync()
    try device.cloud(anna).fail(.authenticationFailed, times: 2)
    try device.settings.set("a", "2", at: 2)
    try device.settings.set("b", nil, at: 2)
    #expect(try device.account.sync().condition == .signedOut)
    #expect(try device.settings.pending() == ["a", "b"])
    #expect(try device.account.sync().condition == .signedOut)
    let result = try device.account.sync()
    #expect(result.saved == 1 && result.deleted == 1 && result.condition == .ready)
  }

  @Test func unresolvedAppliesAndSendsNothing() throws {
    try device.account.resolve(.user(anna))
    try device.account.sync()
    try device.settings.set("a", "1", at: 1)
    try device.account.resolve(.unresolved)
    try device.cloud(anna).clearLog()
    #expect(throws: SyncFailure.unresolvedAccount) { try device.account.sync() }
    #expect(try device.cloud(anna).log.isEmpty)
    // The same user after all: no change, nothing lost.
    #expect(try device.account.resolve(.user(anna)) == nil)
    #expect(try device.account.sync().saved == 1)
  }

  @Test func aSwitchThatCannotBeStoredLeavesTheIdentityUnresolved() throws {
    try device.account.resolve(.user(anna))
    device.file.diesAt = 1
    #expect(throws: SettingsFile.PowerCut.self) { try device.account.resolve(.user(bert)) }
    #expect(throws: SyncFailure.unresolvedAccount) { try device.account.sync() }
    device.file.diesAt = nil
    #expect(try AccountSession.lastIdentity(in: device.file) == .user(anna))
    #expect(try device.account.resolve(.user(bert)) == .switchAccounts(previous: anna, current: bert))
  }

  @Test func theServersUserMustBeTheOneExpected() throws {
    let wrong = try server.cloud(user: "bert")
    let session = SyncSession(
      cloud: wrong, store: device.file, categories: [device.settings], zones: [SettingsDevice.zone],
      expectedUser: anna, time: clock, randomness: SeededRandomness(seed: 9))
    #expect(try session.sync().failure == .anotherUser(bert))
  }

  // MARK: The engine on its own thread

  func engine(_ device: Device) -> SyncEngine {
    SyncEngine(
      automaticallySync: false, time: clock, randomness: SeededRandomness(seed: 1), generation: device.generation
    ) { [box = Handed(device)] in box.value.account }
  }

  @Test func anEngineServesWhoeverIsSignedIn() async throws {
    let engine = engine(device)
    await #expect(throws: SyncFailure.unresolvedAccount) { try await engine.sync() }
    engine.noteAccount(.user(anna))
    try await engine.sync()
    try device.settings.set("a", "anna's", at: 1)
    #expect(try await engine.sync().saved == 1)
    engine.noteAccount(.none)
    await #expect(throws: SyncFailure.noAccount) { try await engine.sync() }
    // Of several changes in a row the last wins.
    engine.noteAccount(.user(anna))
    engine.noteAccount(.user(bert))
    engine.noteAccount(.user(anna))
    #expect(try await engine.sync().failure == nil)
    #expect(try device.settings.values(of: anna) == ["a": "anna's"])
    #expect(try device.cloud(bert).sentOperations.isEmpty)
    engine.close()
  }

  /// A63: the call under way is discarded, and its records raise a need (C11).
  @Test func aSwitchDuringACallDiscardsIt() async throws {
    let engine = engine(device)
    engine.noteAccount(.user(anna))
    try await engine.sync()
    try device.settings.set("a", "anna's", at: 1)
    try device.cloud(anna).setAfter { [bert] call in
      if SettingsDevice.isSend(call) { engine.noteAccount(.user(bert)) }
    }
    await #expect(throws: SyncFailure.replaced) { try await engine.sync() }
    try device.cloud(anna).setAfter(nil)
    try await engine.sync()
    #expect(try device.settings.pending(of: anna) == ["a"])
    #expect(try device.serverKeys(bert).isEmpty)
    engine.noteAccount(.user(anna))
    try await engine.sync()
    #expect(try device.settings.pending(of: anna).isEmpty)
    #expect(try device.serverKeys(anna) == ["a"])
    engine.close()
  }

  // MARK: Changes made without an identity

  @Test func l9ChangesOfNobodyAreAdoptedOnceAfterTheBootstrap() throws {
    let device = try Device(server, clock, asksToAdopt: true)
    try device.account.resolve(.none)
    try device.settings.set("mine", "local", at: 1)
    try device.account.resolve(.user(anna))
    device.settings.clearCalls()
    #expect(try device.account.sync().saved == 1)
    let steps = device.settings.calls.filter { $0 == "bootstrapped" || $0.hasPrefix("adoption") }
    #expect(steps == ["bootstrapped", "adoption by \(anna)"])
    #expect(try device.settings.values(of: "").isEmpty)
    #expect(try device.settings.values(of: anna) == ["mine": "local"])
    // Asked once per sign-in, and nothing is left for the next user.
    device.settings.clearCalls()
    try device.account.sync()
    #expect(!device.settings.calls.contains { $0.hasPrefix("adoption") })
    try device.account.resolve(.user(bert))
    try device.account.sync()
    #expect(try device.serverKeys(bert).isEmpty)
  }

  @Test func l9WithoutABootstrapNothingIsAdopted() throws {
    let device = try Device(server, clock, asksToAdopt: true)
    try device.account.resolve(.none)
    try device.settings.set("mine", "local", at: 1)
    try device.account.resolve(.user(anna))
    try device.cloud(anna).fail(.error(CloudError(.accessDenied, "no"))) {
      if case .zoneChanges = $0 { true } else { false }
    }
    try device.account.sync()
    #expect(try device.settings.values(of: "") == ["mine": "local"])
    try device.account.sync()
    #expect(try device.settings.values(of: anna) == ["mine": "local"])
  }

  @Test(arguments: [AdoptionChoice.keepLocal, .undecided])
  func l9KeptLocalOrUndecidedNothingMoves(_ choice: AdoptionChoice) throws {
    let device = try Device(server, clock, asksToAdopt: true)
    device.settings.adoptionChoice = choice
    try device.account.resolve(.none)
    try device.settings.set("mine", "local", at: 1)
    try device.account.resolve(.user(anna))
    for _ in 0..<2 { try device.account.sync() }
    #expect(try device.settings.values(of: "") == ["mine": "local"])
    let asked = device.settings.calls.count { $0.hasPrefix("adoption") }
    #expect(asked == (choice == .undecided ? 2 : 1))
  }
}
