import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct TombstoneTests {
  private func pair() throws -> (TestWorld, TestDevice, TestDevice, AccountID) {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try a.sync()
    try b.sync()
    #expect(b.live == [id])
    return (world, a, b, id)
  }

  @Test("accounts.md S19, A25: an edit made offline on another device does not revive a deleted account, either order")
  func s19EditOfADeletedAccountIsDropped() throws {
    for editorFirst in [false, true] {
      let (world, a, b, id) = try pair()
      try a.core.remove(id)
      try b.core.edit(id, AccountEdit(label: "late"))
      try b.core.select(id)
      for device in editorFirst ? [b, a] : [a, b] { try device.sync() }
      try world.settle([a, b])
      #expect(a.live.isEmpty && b.live.isEmpty)
      #expect(a.choice == nil && b.choice == nil)
      #expect(try world.names().contains("tombstone-\(id)"))
      if !editorFirst { #expect(try world.records()["account-\(id)"]?.fields["label"] == nil) }
    }
  }

  @Test(
    "accounts.md S20, A26: a vanished record holds an edit back, and is inserted again only after a fetch without tombstone"
  )
  func s20UnknownItemIsHeldBack() throws {
    let (world, _, b, id) = try pair()
    try world.delete("account-\(id)")
    try b.core.edit(id, AccountEdit(label: "mine"))
    b.cloud.clearLog()
    try b.sync()
    #expect(b.live == [id])
    #expect(try world.records()["account-\(id)"]?.fields["label"] == .string("mine"))
    let log = b.cloud.log.map(\.call)
    let saves = log.indices.filter { if case .modify = log[$0] { true } else { false } }
    let fetches = log.indices.filter { if case .zoneChanges = log[$0] { true } else { false } }
    #expect(saves.count == 2 && fetches.contains { saves[0] < $0 && $0 < saves[1] })
  }

  @Test("accounts.md S20, A26: where the fetch shows a tombstone nothing is inserted")
  func s20UnknownItemWithTombstoneIsDropped() throws {
    let (world, _, b, id) = try pair()
    try b.core.edit(id, AccountEdit(label: "mine"))
    // The zone is fetched first in every call: the deletion comes between fetch and save.
    b.cloud.setBefore { [world] call in
      guard case .modify = call else { return }
      do {
        try world.delete("account-\(id)")
        try world.put(Make.tombstone(id))
      } catch { Issue.record("\(error)") }
    }
    try b.sync()
    b.cloud.setBefore(nil)
    #expect(b.live.isEmpty)
    #expect(try !world.names().contains("account-\(id)"))
  }

  @Test("accounts.md S21, A25: a joined copy of a conflict is not sent when the tombstone comes before")
  func s21JoinedCopyIsNotSent() throws {
    let (world, _, b, id) = try pair()
    var state = try b.state()
    _ = state.edit(id, AccountEdit(label: "mine"), EditMoment(now: 5, writer: "b"))
    let entries = state.nextBatch(
      in: TestWorld.zone, request, ScopeState.Permission(mayInsert: true, isFetched: true))
    var counts = ScopeState.Settled()
    var server = Make.account(id, label: "theirs", time: 1)
    server.changeTag = ChangeTag("9")
    state.settle(
      try #require(entries.first), .conflict(server), bindings: [:], scope: .identity("u"), now: 0, &counts)
    #expect(state.accounts[id]?.send.isPending == true)
    state.stage([Make.tombstone(id)], [])
    #expect(state.nextBatch(in: TestWorld.zone, request, .init(mayInsert: true, isFetched: true)).isEmpty)
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    #expect(state.accounts.isEmpty && state.violations.isEmpty)
    _ = world
  }

  private var request: BatchRequest {
    BatchRequest(limits: CloudLimits(), now: 0, isManual: true, deletesOnly: false)
  }

  @Test("accounts.md S22, A38: of an account and its tombstone in one page no observer sees the account")
  func s22AccountAndTombstoneInOnePage() async throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    try world.put(Make.account(Make.id(1)))
    try world.put(Make.tombstone(Make.id(1)))
    let stream = device.core.snapshotStreams.stream()
    try device.sync()
    device.core.snapshotStreams.send(device.core.snapshot)
    for await snapshot in stream {
      #expect(snapshot.accounts.isEmpty)
      break
    }
    #expect(device.live.isEmpty)
  }

  @Test("accounts.md S23, A31: a tombstone of an unknown account blocks it when it arrives later")
  func s23UnknownTombstone() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.tombstone(Make.id(1)))
    try device.sync()
    world.clock.advance(seconds: 300_000)
    try world.put(Make.account(Make.id(1), time: world.clock.wallClock))
    try device.sync()
    #expect(device.live.isEmpty)
  }

  @Test("accounts.md S24, A25: an edit by a clock a year fast does not revive")
  func s24FastClock() throws {
    let world = try TestWorld()
    let a = try world.device(skew: 365 * 86_400_000)
    let b = try world.device()
    let id = try a.add()
    try world.settle([a, b])
    try b.core.remove(id)
    try b.sync()
    try a.core.edit(id, AccountEdit(label: "future"))
    try world.settle([a, b])
    #expect(a.live.isEmpty && b.live.isEmpty)
  }

  @Test("accounts.md S25, A30: deleted while its first save is in flight, an account gets a tombstone")
  func s25DeletedInFlight() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    let core = a.core
    a.cloud.setAfter { call in
      guard case .modify = call else { return }
      do { if core.snapshot.accounts.contains(where: { $0.id == id }) { try core.remove(id) } } catch {
        Issue.record("\(error)")
      }
    }
    try a.sync()
    a.cloud.setAfter(nil)
    try world.settle([a, b])
    #expect(try world.names().contains("tombstone-\(id)"))
    #expect(a.live.isEmpty && b.live.isEmpty)
  }

  @Test("accounts.md A30: an account that was never handed over goes without a tombstone; a migrated one never")
  func tombstonesOnlyWhereNeeded() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.core.remove(id)
    try device.sync()
    #expect(try world.names().isEmpty)
  }

  @Test("accounts.md A30, A83: an account that was only ever fetched gets a tombstone also after its zone was lost")
  func fetchedThenZoneLost() throws {
    let (world, a, b, id) = try pair()
    _ = try world.cloud().deleteZones([TestWorld.zone])
    b.cloud.fail(.offline, times: 100) { if case .modify = $0 { true } else { false } }
    try b.sync()
    b.cloud.heal()
    try b.core.remove(id)
    try world.settle([b, a])
    #expect(try world.names().contains("tombstone-\(id)"))
    #expect(a.live.isEmpty)
  }

  @Test("accounts.md S26, A24, A43: neither a physical deletion nor a full fetch without it deletes an account")
  func s26AbsenceIsNoDeletion() throws {
    let (world, _, b, id) = try pair()
    try world.delete("account-\(id)")
    try b.sync()
    #expect(b.live == [id])
    var request = SyncRequest()
    request.resync = true
    _ = try b.syncer?.sync(request)
    #expect(b.live == [id])
  }

  @Test("accounts.md S27, A43, A3: a tombstone or marker that was physically deleted is sent again")
  func s27DeletedTombstoneComesBack() throws {
    let (world, a, b, id) = try pair()
    try a.core.remove(id)
    try world.put(Make.marker(Make.instance(5)))
    try world.put(Make.tombstone(AccountID(migratedFrom: Make.instance(5))))
    try world.settle([a, b])
    try world.delete("tombstone-\(id)")
    try world.delete("marker-\(Make.instance(5))")
    try a.sync()
    #expect(try world.names().isSuperset(of: ["tombstone-\(id)", "marker-\(Make.instance(5))"]))
    #expect(a.live.isEmpty)
  }

  @Test("accounts.md S28, A3, A25, A27, A42: every order of account, tombstone, context and marker gives one state")
  func s28EveryOrder() throws {
    let id = AccountID(migratedFrom: TestDevice.instance)
    let records = [
      Make.account(id, label: "1", time: 10), Make.account(id, label: "2", time: 20), Make.tombstone(id),
      Make.context(id, time: 99), Make.marker(TestDevice.instance),
    ]
    var states: Set<String> = []
    for order in permutations(Array(records.indices)) {
      for cut in 0...records.count {
        var state = ScopeState()
        state.settings.isActivated = true
        for (step, index) in order.enumerated() {
          state.stage([records[index]], [])
          if step == cut || step == order.count - 1 {
            state.seal()
            _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
          }
          #expect(state.violations.isEmpty)
        }
        #expect(state.accounts.isEmpty && state.choices.isEmpty)
        states.insert(
          "\(state.tombstones.keys) \(state.markers.keys) \(String(describing: state.contexts[.main]?.value))")
      }
    }
    #expect(states.count == 1)
  }

  private func permutations(_ items: [Int]) -> [[Int]] {
    guard items.count > 1 else { return [items] }
    return items.indices.flatMap { index in
      var rest = items
      let first = rest.remove(at: index)
      return permutations(rest).map { [first] + $0 }
    }
  }

  @Test(
    "accounts.md A28, A15: one commit makes the tombstone, takes the account and its choice and owes the credential")
  func removalIsOneCommit() throws {
    let (_, a, _, id) = try pair()
    try a.core.select(id)
    a.credentials.setAvailable(false)
    let before = a.border.commits
    try a.core.remove(id)
    #expect(a.border.commits == before + 1)
    let state = try a.state()
    #expect(state.tombstones[id]?.isPending == true && state.accounts.isEmpty && state.choices.isEmpty)
    #expect(state.cleanups[id] != nil && state.contexts[.main]?.local == nil)
    // The intent is retried when the store is open again.
    #expect(a.credentials.has(.account(try a.scope, id)))
    a.credentials.setAvailable(true)
    try a.relaunch()
    try a.core.runIntents()
    #expect(!a.credentials.has(.account(try a.scope, id)))
    #expect(try a.state().cleanups.isEmpty)
  }

  @Test("accounts.md A9: signing in again after a deletion makes a new account")
  func signingInAgainIsNew() throws {
    let (world, a, b, id) = try pair()
    try a.core.remove(id)
    try a.sync()
    let again = try a.add()
    #expect(again != id)
    try world.settle([a, b])
    #expect(b.live == [again])
  }

  @Test("accounts.md A32, S71: a device refills all its tombstones before anything else")
  func tombstonesLeadARefill() throws {
    let (world, a, b, id) = try pair()
    let kept = try a.add("bob")
    try a.core.remove(id)
    try world.settle([a, b])
    _ = try world.cloud().deleteZones([TestWorld.zone])
    b.cloud.clearLog()
    try b.sync()
    #expect(b.sentNames.first == "tombstone-\(id)")
    try world.settle([a, b])
    #expect(try world.names().isSuperset(of: ["tombstone-\(id)", "account-\(kept)"]))
    #expect(try !world.names().contains("account-\(id)"))
  }
}
