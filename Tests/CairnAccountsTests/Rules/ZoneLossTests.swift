import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct AccountsZoneLossTests {
  private func filled() throws -> (TestWorld, TestDevice, TestDevice, AccountID, AccountID) {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let (live, dead) = (try a.add("live"), try a.add("dead"))
    try a.core.select(live)
    try world.settle([a, b], rounds: 2)
    try a.core.remove(dead)
    try world.settle([a, b], rounds: 2)
    return (world, a, b, live, dead)
  }

  @Test("accounts.md S71, A87, A83, C20: a reset zone is refilled in order; a device that was away revives nothing")
  func s71Reset() throws {
    let (world, a, b, live, dead) = try filled()
    let away = try world.device()
    try world.put(Make.account(dead))
    try world.delete("tombstone-\(dead)")
    try away.sync()
    #expect(away.live.contains(dead))
    _ = try world.cloud().deleteZones([TestWorld.zone])
    a.cloud.clearLog()
    try a.sync()
    #expect(a.sentNames == ["tombstone-\(dead)", "account-\(live)", "context-main"])
    try world.settle([away, b, a])
    #expect(away.live == [live] && b.live == [live] && a.choice == live)
    #expect(try world.names() == ["tombstone-\(dead)", "account-\(live)", "context-main"])
  }

  @Test("accounts.md A83, A86, C20: a refill that was cut off goes on in order")
  func cutOffRefill() throws {
    let (world, a, _, live, dead) = try filled()
    _ = try world.cloud().deleteZones([TestWorld.zone])
    let count = Counter()
    a.cloud.fail(.offline, times: 100) { call in
      guard case .modify = call else { return false }
      return count.next() > 1
    }
    try a.sync()
    #expect(try world.names() == ["tombstone-\(dead)"])
    a.cloud.heal()
    try a.relaunch()
    try world.settle([a], rounds: 2)
    #expect(try world.names() == ["tombstone-\(dead)", "account-\(live)", "context-main"])
  }

  @Test("accounts.md A83, A87, A32: what was staged from a lost zone holds, and confirms nothing in the new one")
  func stagedFromALostZone() throws {
    var state = ScopeState()
    state.stage([Make.account(Make.id(1)), Make.account(Make.id(2)), Make.context(Make.id(1))], [])
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    state.remove(Make.id(2), bindings: [:], scope: .identity("u"))
    // The own tombstone and others' facts come back staged; then the zone is lost before they are applied.
    state.stage(
      [
        Make.tombstone(Make.id(2)), Make.tombstone(Make.id(3)), Make.account(Make.id(4)),
        Make.account(Make.id(1), label: "new", time: 9_000), Make.context(Make.id(4), time: 9_000),
        Make.marker(Make.instance(5)),
      ], [])
    state.forgetServer()
    state.refill()
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    #expect(state.tombstones.values.allSatisfy { $0.isPending && !$0.isConfirmed } && state.tombstones.count == 2)
    #expect(state.accounts.values.allSatisfy { $0.send.isPending && !$0.send.isConfirmed } && state.accounts.count == 2)
    #expect(state.markers[Make.instance(5)]?.isPending == true)
    #expect(state.choices[.main] == Make.id(4) && state.contexts[.main]?.send.isPending == true)
    #expect(state.violations.isEmpty && state.staged.isEmpty)
  }

  @Test("accounts.md S72, A86: after an encrypted-data reset every fact is sent again, as unconfirmed")
  func s72EncryptedReset() throws {
    let (_, a, _, live, dead) = try filled()
    let category = try #require(a.syncer?.category)
    #expect(category.policy(for: .encryptedDataReset) == .recreateAndReupload)
    try category.zoneLost(TestWorld.zone, .encryptedDataReset, now: 0)
    let state = try a.state()
    #expect(state.accounts[live]?.send.isConfirmed == false && state.accounts[live]?.send.tag == nil)
    #expect(state.accounts[live]?.send.isPending == true && state.tombstones[dead]?.isPending == true)
    #expect(state.contexts[.main]?.send.isPending == true)
  }

  @Test("accounts.md S73, A86: after a purge local accounts stay and nothing is sent without consent")
  func s73Purge() throws {
    for reuploads in [true, false] {
      let (world, a, _, live, dead) = try filled()
      let category = try #require(a.syncer?.category)
      #expect(category.policy(for: .purged) == .ask)
      try category.zoneLost(TestWorld.zone, .purged, now: 0)
      try category.answerZoneLoss(TestWorld.zone, .recreateAndReupload, now: 0)
      #expect(a.live == [live])
      a.cloud.clearLog()
      let report = try a.sync()
      #expect(a.sentNames.isEmpty && report.state == "paused")
      try a.core.resumeAfterPurge(reupload: reuploads)
      try world.settle([a], rounds: 2)
      #expect(a.sentNames.isEmpty == !reuploads)
      if reuploads { #expect(a.sentNames.first == "tombstone-\(dead)") }
    }
  }

  @Test("accounts.md A86: after a purge without reupload a later choice goes with the account that it names")
  func laterChangesGoWithWhatTheyNeed() throws {
    let world = try TestWorld()
    let device = try world.device()
    let (x, y) = (try device.add("x"), try device.add("y"))
    try device.sync()
    let category = try #require(device.syncer?.category)
    for name in try world.names() { try world.delete(name) }
    try category.zoneLost(TestWorld.zone, .purged, now: 0)
    try device.core.resumeAfterPurge(reupload: false)
    try world.settle([device], rounds: 2)
    #expect(try world.names().isEmpty)
    try device.core.select(y)
    try world.settle([device], rounds: 3)
    #expect(try world.names() == ["account-\(y)", "context-main"])
    #expect(device.live == [x, y])
  }

  @Test("accounts.md S74, A87: a zone that is missing at a save is really made again")
  func s74ZoneIsCreated() throws {
    let (world, a, _, live, _) = try filled()
    try a.core.edit(live, AccountEdit(label: "again"))
    let once = Once()
    a.cloud.setBefore { call in
      guard case .modify = call, once.first() else { return }
      do { _ = try world.cloud().deleteZones([TestWorld.zone]) } catch { Issue.record("\(error)") }
    }
    try a.sync()
    a.cloud.setBefore(nil)
    try world.settle([a], rounds: 2)
    #expect(a.cloud.log.contains { if case .createZones = $0.call { true } else { false } })
    #expect(try world.records()["account-\(live)"]?.fields["label"] == .string("again"))
  }

  @Test("accounts.md A32, A87, A25: a server restored from a backup gets its tombstones back and revives nothing")
  func restoredServer() throws {
    let (world, a, b, live, dead) = try filled()
    let backup = try world.server.backup()
    try b.core.edit(live, AccountEdit(label: "after"))
    try a.core.remove(live)
    let new = try a.add("new")
    try world.settle([a, b], rounds: 2)
    try world.server.restore(backup)
    let fresh = try world.device()
    try world.settle([a, b, fresh], rounds: 5)
    #expect(try world.names().isSuperset(of: ["tombstone-\(live)", "tombstone-\(dead)", "account-\(new)"]))
    for device in [a, b, fresh] { #expect(device.live == [new] && device.choice == nil) }
  }

  @Test("accounts.md S75, A89: a deletion right before a rebuilt engine's sync is sent")
  func s75RebuildAfterDelete() throws {
    let (world, a, _, live, _) = try filled()
    try a.core.remove(live)
    try a.relaunch()
    try a.sync()
    #expect(try world.names().contains("tombstone-\(live)"))
  }

  @Test("accounts.md A88, A24: what a full fetch of a current zone lacks is sent again, tombstones included")
  func olderReleaseRefilled() throws {
    let (world, a, _, live, dead) = try filled()
    for name in try world.names() { try world.delete(name) }
    try SyncSession.raiseNeed(of: "accounts", in: a.core.engineStore)
    a.cloud.clearLog()
    try world.settle([a], rounds: 2)
    #expect(try world.names() == ["tombstone-\(dead)", "account-\(live)", "context-main"])
    #expect(a.sentNames.first == "tombstone-\(dead)")
    #expect(a.live == [live])
  }

  @Test("accounts.md S76, A91, A92: an older release's logout leaves the account, with a badge")
  func s76LogoutElsewhere() throws {
    let world = try TestWorld()
    let device = try world.device()
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "s", url: "https://x.example", flag: true)
    ]
    let key = CredentialKey.legacy(TestDevice.instance)
    _ = try device.credentials.replace(Credential(userName: "ada", secret: Data([1]), revision: "1"), for: key)
    try device.sync()
    let id = AccountID(migratedFrom: TestDevice.instance)
    #expect(try device.core.needsCredentials(id) == .no)
    device.keyValues.instances = []
    _ = try device.credentials.delete(key)
    try world.settle([device], rounds: 2)
    #expect(device.live == [id])
    #expect(try device.core.needsCredentials(id) == .yes)
  }
}
