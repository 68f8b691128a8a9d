import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import Testing

@testable import CairnAccounts

@Suite struct ReceivingTests {
  @Test("accounts.md S35, A39: the success of another zone applies nothing")
  func s35OtherZone() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    let category = try #require(device.syncer?.category)
    try category.stage(page([Make.account(Make.id(1))]), now: 0)
    #expect(try !category.applySealed(in: ZoneID(name: "other"), now: 0))
    #expect(device.live.isEmpty)
    #expect(try category.hasUnsealedRecords(in: TestWorld.zone))
    #expect(try !category.hasUnsealedRecords(in: ZoneID(name: "other")))
  }

  private func page(_ records: [Record]) -> ZonePage {
    ZonePage(zone: TestWorld.zone, records: records, deletions: [], token: ChangeToken("1"), moreComing: true)
  }

  @Test("accounts.md A39: a zone error after a page applies nothing and keeps the staging")
  func zoneErrorKeepsStaging() throws {
    let world = try TestWorld()
    let device = try world.device(entries: 2)
    try device.sync()
    for number in 1...5 { try world.put(Make.account(Make.id(number))) }
    device.cloud.script([nil, nil, .offline])
    try device.sync()
    #expect(device.live.isEmpty)
    #expect(try device.state().staged.count > 0)
    try device.relaunch()
    #expect(device.live.isEmpty)
    try device.sync()
    #expect(device.live.count == 5)
  }

  @Test("accounts.md S36, A40, C4, C10: what is sealed is shown after a relaunch without network")
  func s36SealedIsAppliedOffline() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    try device.core.file.change { state in
      guard let scope = state.scope else { return }
      state[scope].stage([Make.account(Make.id(1))], [])
      state[scope].seal()
    }
    try device.relaunch()
    device.cloud.isOffline = true
    try device.sync()
    #expect(device.live == [Make.id(1)])
  }

  @Test("accounts.md S37, A37, C1: where staging fails no token moves, and everything comes again")
  func s37StagingFails() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    try world.put(Make.account(Make.id(1)))
    // The commit that would store the page, whichever it is, fails; so do the tries after it.
    device.border.diesAt = device.border.commits + 1
    _ = try? device.sync()
    #expect(device.live.isEmpty)
    try device.relaunch()
    try device.sync()
    #expect(device.live == [Make.id(1)])
  }

  @Test("accounts.md S38, A42, C2, C6: replays and old versions after new ones change nothing and send nothing")
  func s38Replays() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1), label: "old", time: 10))
    try device.sync()
    let old = try #require(try world.records()["account-\(Make.id(1))"])
    try world.put(Make.account(Make.id(1), label: "new", time: 20))
    try device.sync()
    let category = try #require(device.syncer?.category)
    let before = try device.state().accounts
    for _ in 0..<3 {
      try category.apply(page(Array(try world.records().values)), now: 0)
      try category.apply(page([old]), now: 0)
    }
    #expect(try device.state().accounts[Make.id(1)]?.content == before[Make.id(1)]?.content)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.sentNames.isEmpty)
    #expect(try device.core.status().pending == 0)
  }

  @Test(
    "accounts.md S39, A56: staging that can't be read raises a need; accounts stay, and the bootstrap brings the rest")
  func s39CorruptStaging() throws {
    let world = try TestWorld()
    let device = try world.device()
    try world.put(Make.account(Make.id(1)))
    try device.sync()
    try world.put(Make.account(Make.id(2)))
    try device.core.file.change { state in
      guard let scope = state.scope else { return }
      state[scope].stage([Make.account(Make.id(3))], [])
    }
    let result = try Programs.runSQL(
      "UPDATE cairn_accounts SET value = '{broken' WHERE key LIKE 'staged/%'", in: device.path)
    #expect(result.status == 0, "\(result)")
    try device.relaunch()
    #expect(device.live == [Make.id(1)])
    #expect(try device.device().hasNeed)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 1)
    #expect(device.live == [Make.id(1), Make.id(2)])
    #expect(try !device.device().hasNeed)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.fullFetches == 0)
  }

  @Test("accounts.md A41, C3: records staged without a seal force a fetch")
  func unsealedLeftovers() throws {
    let world = try TestWorld()
    try world.put(Make.tombstone(Make.id(9)))
    let device = try world.device()
    try device.sync()
    try device.core.file.change { state in
      guard let scope = state.scope else { return }
      state[scope].stage([Make.account(Make.id(1))], [])
    }
    try device.relaunch()
    #expect(try device.state().hasUnsealedRecords)
    try device.sync()
    #expect(device.live == [Make.id(1)])
    #expect(try device.state().staged.isEmpty)
  }

  @Test("accounts.md A38, C5: a set is applied in the order tombstones, markers, accounts, contexts, in one commit")
  func oneSet() throws {
    var state = ScopeState()
    state.stage(
      [Make.context(Make.id(1)), Make.account(Make.id(1)), Make.account(Make.id(2)), Make.tombstone(Make.id(2))], [])
    state.seal()
    _ = state.applySealed(bindings: [:], scope: .identity("u"), now: 0)
    #expect(state.choices[.main] == Make.id(1))
    #expect(state.accounts.keys.sorted() == [Make.id(1)])
    #expect(state.staged.isEmpty && state.violations.isEmpty)
  }
}

@Suite struct OffTests {
  private func pair() throws -> (TestWorld, TestDevice, TestDevice, AccountID) {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add("old")
    try world.settle([a, b], rounds: 2)
    return (world, a, b, id)
  }

  @Test("accounts.md S40, S41, A44: what comes while off is kept and applied from staging alone, also after a relaunch")
  func s40OffThenOnWithoutNetwork() throws {
    for relaunches in [false, true] {
      let (_, a, b, old) = try pair()
      try b.core.setEnabled(false)
      let new = try a.add("new")
      try a.core.remove(old)
      try a.core.select(new)
      try a.sync()
      let report = try b.sync()
      #expect(report.state == "paused")
      #expect(b.live == [old] && b.choice == nil)
      if relaunches { try b.relaunch() }
      b.cloud.isOffline = true
      try b.core.setEnabled(true)
      #expect(b.live == [new] && b.choice == new)
    }
  }

  @Test("accounts.md S42, A45: a pending save is neither sent nor lost while off")
  func s42PendingWhileOff() throws {
    let (world, _, b, old) = try pair()
    let id = try b.add("mine")
    try b.core.setEnabled(false)
    try b.core.edit(old, AccountEdit(label: "off"))
    try b.sync()
    #expect(try !world.names().contains("account-\(id)"))
    try b.relaunch()
    try b.core.setEnabled(true)
    try b.sync()
    #expect(try world.names().contains("account-\(id)"))
    #expect(try world.records()["account-\(old)"]?.fields["label"] == .string("off"))
  }

  @Test("accounts.md A45, A25: an edit made while off is dropped when a tombstone came meanwhile")
  func editOfADeletedAccount() throws {
    let (world, a, b, old) = try pair()
    try b.core.setEnabled(false)
    try b.core.edit(old, AccountEdit(label: "off"))
    try a.core.remove(old)
    try a.sync()
    try b.sync()
    #expect(b.live == [old])
    try b.core.setEnabled(true)
    #expect(b.live.isEmpty)
    try b.sync()
    #expect(try world.records()["account-\(old)"]?.fields["label"] == nil)
  }

  @Test("accounts.md A47: a deletion while off holds here at once, is shown as unpublished, and is published later")
  func deletionWhileOff() throws {
    let (world, a, b, old) = try pair()
    try b.core.setEnabled(false)
    try b.core.remove(old)
    #expect(b.live.isEmpty && b.core.snapshot.unpublishedDeletions == [old])
    try b.sync()
    #expect(try !world.names().contains("tombstone-\(old)"))
    try b.core.setEnabled(true)
    try world.settle([b, a])
    #expect(a.live.isEmpty && b.core.snapshot.unpublishedDeletions.isEmpty)
  }

  @Test("accounts.md A58: with sync off before the first sync the accounts are usable at once")
  func offFromTheStart() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.core.setEnabled(false)
    let id = try device.add()
    try device.core.select(id)
    #expect(device.live == [id] && device.choice == id)
    try device.sync()
    #expect(try world.names().isEmpty)
  }
}
