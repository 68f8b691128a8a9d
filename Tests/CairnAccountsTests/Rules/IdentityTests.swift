import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct IdentityTests {
  @Test(
    "accounts.md S52, A60, A64, A56: a fetch begun under one identity writes nothing under another, nor after A→B→A")
  func s52SwitchDuringAFetch() throws {
    for comesBack in [false, true] {
      let world = try TestWorld()
      let device = try world.device("anna")
      try world.put(Make.tombstone(Make.id(2)), "anna")
      try device.sync()
      try world.put(Make.account(Make.id(1)), "anna")
      let anna = try device.cloud.currentUser()
      let core = device.core
      let once = Once()
      device.cloud.setAfter { call in
        guard case .zoneChanges = call, once.first() else { return }
        do {
          try core.identityChanged(to: .user("other"))
          if comesBack { try core.identityChanged(to: .user(anna)) }
        } catch { Issue.record("\(error)") }
      }
      let before = try device.core.file.read().scopes[.identity(anna)]
      let report = try device.sync()
      device.cloud.setAfter(nil)
      #expect(report.result.failure == .replaced)
      let state = try device.core.file.read()
      #expect(state[.identity("other")].accounts.isEmpty && state[.identity("other")].staged.isEmpty)
      #expect(state[.identity(anna)].accounts == before?.accounts && state[.identity(anna)].staged.isEmpty)
      try device.relaunch(identity: .user(anna))
      device.cloud.clearLog()
      try device.sync()
      #expect(device.live == [Make.id(1)])
      #expect(device.fullFetches == 1)
    }
  }

  @Test("accounts.md S53, A61, A59: no account and no tag of one identity is ever sent under another")
  func s53NoTagTravels() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    let id = try device.add("secret-user")
    try device.sync()
    try device.core.edit(id, AccountEdit(label: "unsent"))
    try device.signIn("bob")
    #expect(device.live.isEmpty)
    let other = try device.add("bobs")
    try device.sync()
    #expect(try world.names("bob") == ["account-\(other)"])
    #expect(!"\(device.cloud.log)".contains("secret-user") && !"\(device.cloud.log)".contains(id.rawValue))
    try device.signIn("anna")
    #expect(device.live == [id])
    try device.sync()
    #expect(try world.records("anna")["account-\(id)"]?.fields["label"] == .string("unsent"))
    #expect(try !world.names("anna").contains("account-\(other)"))
  }

  @Test("accounts.md S54, A62: an unresolved identity shows nothing, applies nothing and sends nothing")
  func s54Unresolved() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.relaunch(identity: .unresolved)
    #expect(device.core.snapshot.scope == nil && device.live.isEmpty)
    #expect(throws: AccountsError.unresolvedIdentity) { try device.add() }
    #expect(device.syncer == nil)
    try device.relaunch(identity: .user(try device.cloud.currentUser()))
    #expect(device.live == [id])
  }

  @Test("accounts.md S55, A63: of several switches the latest wins")
  func s55LatestWins() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    let before = device.core.snapshot.generation
    try device.core.identityChanged(to: .unresolved)
    try device.core.identityChanged(to: .user("b"))
    try device.core.identityChanged(to: .user("c"))
    #expect(device.core.snapshot.scope == .identity("c"))
    #expect(device.core.snapshot.generation == before + 3)
  }

  @Test("accounts.md A63: an engine whose server knows another user sends and applies nothing")
  func anotherUser() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    try device.add()
    let wrong = try AccountsSync(
      device.core, cloud: try world.cloud("bob"), zone: TestWorld.zone, user: try device.cloud.currentUser())
    let report = try wrong.sync()
    guard case .anotherUser? = report.result.failure else {
      Issue.record("\(String(describing: report.result.failure))")
      return
    }
    #expect(try world.names("bob").isEmpty)
  }

  @Test("accounts.md S56, A11, A67: equal instance IDs of two identities mix neither data nor credentials")
  func s56EqualInstances() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "s", url: "https://x.example", flag: true)
    ]
    _ = try device.credentials.replace(
      Credential(userName: "ada", secret: Data("annas".utf8), revision: "1"), for: .legacy(TestDevice.instance))
    try device.sync()
    let id = AccountID(migratedFrom: TestDevice.instance)
    #expect(device.live == [id])
    try world.put(Make.account(id, user: "ada"), "bob")
    try device.signIn("bob")
    try device.sync()
    #expect(device.live == [id])
    #expect(try device.core.needsCredentials(id) == .yes)
    try device.core.reauthenticate(id, credential: Credential(userName: "ada", secret: Data("bobs".utf8)))
    try device.signIn("anna")
    guard case .found(let credential) = try device.core.credential(for: id) else {
      Issue.record("the legacy item is anna's")
      return
    }
    #expect(credential.secret == Data("annas".utf8))
  }

  @Test("accounts.md A65: signing out hides an identity's accounts, signing in again restores them, unsent ones too")
  func signOutAndBack() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    let id = try device.add()
    try device.signOut()
    #expect(device.live.isEmpty)
    try device.relaunch()
    try device.signIn("anna")
    #expect(device.live == [id])
    try device.sync()
    #expect(try world.names("anna") == ["account-\(id)"])
  }

  @Test(
    "accounts.md A66, A68: local accounts move only when adopted, once, with marker and credential, past tombstones")
  func adoption() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    try device.signOut()
    let kept = try device.add("kept")
    let dead = try device.add("dead")
    let removed = try device.add("removed")
    try device.core.remove(removed)
    try device.core.select(kept)
    try world.put(Make.tombstone(dead), "anna")
    try device.signIn("anna")
    #expect(device.live.isEmpty)
    #expect(throws: AccountsError.notActivated) { try device.core.adoptLocalAccounts() }
    try device.sync()
    #expect(try device.core.adoptLocalAccounts().map(\.id) == [kept])
    #expect(device.choice == kept)
    #expect(try device.core.needsCredentials(kept) == .no)
    #expect(!device.credentials.has(.account(.local, kept)))
    try device.sync()
    #expect(try world.names("anna") == ["account-\(kept)", "context-main", "tombstone-\(dead)"])
    try device.signIn("bob")
    try device.sync()
    #expect(try device.core.adoptLocalAccounts().map(\.id) == [dead])
    #expect(try !world.names("bob").contains("account-\(kept)"))
  }

  @Test("accounts.md A68: a known identity is there when the store is made, before any observer")
  func scopeAtOnce() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.relaunch()
    #expect(device.core.snapshot.accounts.map(\.id) == [id])
  }
}
