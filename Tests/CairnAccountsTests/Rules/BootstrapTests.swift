import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct BootstrapTests {
  /// A device whose engine's token was moved past the accounts by a release that did not know them.
  private func upgraded(_ world: TestWorld) throws -> TestDevice {
    let device = try world.device()
    try device.syncAsOlderRelease()
    return device
  }

  private func token(_ device: TestDevice) throws -> String? {
    try device.core.file.engineRows().first { $0.key.hasSuffix("/token") && $0.key.contains("/z/") }?.value
  }

  @Test("accounts.md S43, A48, A49: an upgrade fetches everything by itself and leaves the engine's token alone")
  func s43Upgrade() throws {
    let world = try TestWorld()
    let a = try world.device()
    let id = try a.add()
    try a.core.select(id)
    try a.sync()
    let b = try upgraded(world)
    let before = try token(b)
    #expect(before != nil)
    b.cloud.clearLog()
    try b.sync()
    #expect(b.live == [id] && b.choice == id)
    #expect(try token(b) == before)
  }

  @Test("accounts.md S44, A50, C9: a crash between pages shows nothing in between; the relaunch finishes")
  func s44CrashOnAPage() throws {
    let world = try TestWorld()
    for number in 1...6 { try world.put(Make.account(Make.id(number))) }
    let device = try world.device(entries: 2)
    for _ in 0..<40 {
      device.border.diesAt = device.border.commits + 2
      do { try device.sync() } catch {}
      let live = device.live.count
      #expect(live == 0 || live == 6)
      try device.relaunch()
      if device.live.count == 6 { break }
    }
    try device.sync()
    #expect(device.live.count == 6)
    #expect(try device.state().settings.isActivated)
  }

  @Test(
    "accounts.md S45, A50, A51, A48: an error on a page leaves the identity without bootstrap, uploads and migrations")
  func s45ErrorOnAPage() throws {
    let world = try TestWorld()
    for number in 1...5 { try world.put(Make.account(Make.id(number))) }
    let device = try world.device(entries: 2)
    let mine = try device.add()
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.otherInstance, service: "s", url: "https://o.example", flag: true)
    ]
    _ = try device.credentials.replace(
      Credential(userName: "o", secret: Data([1])), for: .legacy(TestDevice.otherInstance))
    device.cloud.fail(.offline, times: 1) { if case .zoneChanges(_, .some) = $0 { true } else { false } }
    try device.sync()
    #expect(try !device.state().settings.isActivated)
    #expect(device.live == [mine] && device.sentNames.isEmpty)
    try device.sync()
    #expect(device.live.count == 7)
    #expect(try world.names().contains("account-\(mine)"))
  }

  @Test("accounts.md S46, A42, A53: a newer version from the engine wins over an older one of the bootstrap")
  func s46TwoSources() throws {
    var state = ScopeState()
    state.stage([Make.account(Make.id(1), label: "newer", time: 20)], [])
    state.stage([Make.account(Make.id(1), label: "older", time: 10)], [])
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    #expect(state.accounts[Make.id(1)]?.content.text("label") == "newer")
  }

  @Test("accounts.md S47, A54, A62, C7, C8: records that come while the identity is not resolved are not lost")
  func s47UnresolvedWhileDelivered() throws {
    let world = try TestWorld()
    try world.put(Make.tombstone(Make.id(9)))
    let device = try world.device()
    try device.sync()
    try world.put(Make.account(Make.id(1)))
    let user = try device.cloud.currentUser()
    let core = device.core
    device.cloud.setAfter { call in
      guard case .zoneChanges = call else { return }
      do { try core.identityChanged(to: .unresolved) } catch { Issue.record("\(error)") }
    }
    try device.sync()
    #expect(device.core.snapshot.scope == nil)
    device.cloud.setAfter(nil)
    device.cloud.clearLog()
    try device.relaunch(identity: .user(user))
    #expect(device.live.isEmpty)
    try device.sync()
    #expect(device.live == [Make.id(1)])
    #expect(device.fullFetches == 1)
  }

  @Test("accounts.md A52: a token that expires between pages of the bootstrap begins it again")
  func expiredTokenWhilePaging() throws {
    let world = try TestWorld()
    for number in 1...5 { try world.put(Make.account(Make.id(number))) }
    let device = try world.device(entries: 2)
    device.cloud.fail(.error(CloudError(.changeTokenExpired, "expired")), times: 1) {
      if case .zoneChanges(_, .some) = $0 { true } else { false }
    }
    try device.sync()
    #expect(device.live.count == 5)
    #expect(try device.state().settings.isActivated)
  }

  @Test("accounts.md A46: an older release that ran while the category was off raises a need on re-enable")
  func olderReleaseWhileOff() throws {
    let world = try TestWorld()
    try world.put(Make.tombstone(Make.id(9)))
    let device = try world.device()
    try device.sync()
    try device.core.setEnabled(false)
    try device.sync()
    try world.put(Make.account(Make.id(1)))
    try device.syncAsOlderRelease()
    try device.relaunch()
    try device.core.setEnabled(true)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1)
    #expect(device.live == [Make.id(1)])
  }

  @Test("accounts.md S48, A54, A55: a need belongs to no identity: each bootstraps again when it comes")
  func s48NeedOfAll() throws {
    let world = try TestWorld()
    for user in ["anna", "bob"] { try world.put(Make.tombstone(Make.id(1)), user) }
    let device = try world.device("anna")
    try device.sync()
    try device.signIn("bob")
    try device.sync()
    try SyncSession.raiseNeed(of: "accounts", in: device.core.engineStore)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1)
    try device.signIn("anna")
    try device.sync()
    #expect(device.fullFetches == 1)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 0)
  }

  @Test("accounts.md S49, A56, A90: after a downgrade that consumed a record, the upgrade notices and fetches all")
  func s49Downgrade() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    try world.put(Make.account(Make.id(1)))
    try device.syncAsOlderRelease()
    try device.relaunch()
    try device.sync()
    #expect(device.live == [Make.id(1)])
  }

  @Test("accounts.md S50, A51: a missing zone is an empty success, a refused sign-in is none")
  func s50NoZone() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    device.cloud.fail(.authenticationFailed, times: 10)
    let refused = try device.sync()
    #expect(refused.state == "signedOut")
    #expect(try !device.state().settings.isActivated)
    device.cloud.heal()
    try device.sync()
    #expect(try world.names() == ["account-\(id)"])
  }

  @Test("accounts.md S51, A49, A50: five launches make exactly one bootstrap, beside the engine's own first fetch")
  func s51OneBootstrap() throws {
    let world = try TestWorld()
    try world.put(Make.account(Make.id(1)))
    let device = try world.device()
    for _ in 0..<5 {
      try device.sync()
      try device.relaunch()
    }
    #expect(device.fullFetches == 2)
  }

  @Test("accounts.md A57: activated but not current, updates and tombstones go, first saves wait for the bootstrap")
  func notCurrent() throws {
    let permission = ScopeState.Permission(mayInsert: false, isFetched: true)
    var state = ScopeState()
    state.stage([Make.account(Make.id(1)), Make.account(Make.id(2))], [])
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    let moment = EditMoment(now: 5, writer: "w")
    _ = state.edit(Make.id(1), AccountEdit(label: "x"), moment)
    state.remove(Make.id(2), bindings: [:], scope: .identity("u"))
    state.add(
      NewLogin(instanceID: TestDevice.instance, service: "s", instanceURL: "https://x.example", userName: "n"),
      id: Make.id(3), moment)
    let request = BatchRequest(limits: CloudLimits(), now: 0, isManual: true, deletesOnly: false)
    let first = state.nextBatch(in: TestWorld.zone, request, permission).map(\.operation.record.id.name)
    #expect(first == ["tombstone-\(Make.id(2))"])
    var excluding = request
    excluding.excluded = [first[0]: .unsent]
    let second = state.nextBatch(in: TestWorld.zone, excluding, permission).map(\.operation.record.id.name)
    #expect(second == ["account-\(Make.id(1))"])
  }

  @Test("accounts.md A58, A66: without identity the local scope works at once and sends nothing")
  func localScope() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.signOut()
    let id = try device.add()
    try device.core.select(id)
    #expect(device.live == [id] && device.choice == id)
    #expect(device.syncer == nil)
    #expect(try device.core.status().pending == 0)
  }

  @Test("accounts.md A56: a copy of the profile renews its writer and bootstraps")
  func clone() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1)))
    try device.sync()
    let writer = try device.device().writer
    device.marker = "2"
    try device.relaunch()
    #expect(try device.device().writer != writer)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1 && device.live == [Make.id(1)])
  }
}
