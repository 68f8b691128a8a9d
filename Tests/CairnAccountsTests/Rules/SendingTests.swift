import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Synchronization
import Testing

@testable import CairnAccounts

@Suite struct SendingTests {
  /// A device with a strong legacy login on the instance.
  private func legacy(_ world: TestWorld) throws -> (TestDevice, AccountID) {
    let device = try world.device()
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "mastodon", url: "https://x.example", flag: true)
    ]
    _ = try device.credentials.replace(
      Credential(userName: "ada", secret: Data("old".utf8), revision: "1"), for: .legacy(TestDevice.instance))
    return (device, AccountID(migratedFrom: TestDevice.instance))
  }

  @Test("accounts.md S63, A76, A81: a marker waits while its account can't be saved, and goes when it can")
  func s63MarkerWaitsForItsAccount() throws {
    let world = try TestWorld()
    let (device, id) = try legacy(world)
    device.entryFaults.refuse { operation in
      operation.record.type == RecordKey.Kind.account ? CloudError(.quotaExceeded, "full") : nil
    }
    for _ in 0..<3 { try device.sync() }
    #expect(try world.names().isEmpty)
    #expect(try device.state().accounts[id]?.send.isPending == true)
    device.entryFaults.refuse(nil)
    try world.settle([device], rounds: 2)
    #expect(try world.names() == ["account-\(id)", "marker-\(TestDevice.instance)"])
    let batches = device.sentBatches.filter { $0.contains("marker-\(TestDevice.instance)") }
    #expect(batches.allSatisfy { !$0.contains("account-\(id)") })
  }

  @Test("accounts.md A81: an account that is refused for good stays, is told, and holds its choice back")
  func refusedAccount() async throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.core.select(id)
    let events = device.core.eventStreams.stream()
    device.entryFaults.refuse { $0.record.type == RecordKey.Kind.account ? CloudError(.badRequest, "no") : nil }
    let report = try device.sync()
    #expect(report.state == "paused" && report.status.waiting["account-\(id)"] == "rejected")
    #expect(device.live == [id] && device.choice == id)
    #expect(try world.names().isEmpty)
    for await event in events {
      #expect(event == .saveFailed(id, reason: "rejected"))
      break
    }
    device.entryFaults.refuse(nil)
    try device.core.edit(id, AccountEdit(label: "repaired"))
    try device.sync(manual: false)
    #expect(try world.names() == ["account-\(id)", "context-main"])
  }

  @Test("accounts.md S64, A77: the account is confirmed before its choice leaves, in a request of its own")
  func s64ChoiceAfterAccount() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.core.select(id)
    try device.sync()
    #expect(device.sentBatches == [["account-\(id)"], ["context-main"]])
  }

  @Test("accounts.md S65, A82: of choices that wait for an account only the latest is sent")
  func s65OnlyTheLatestChoice() throws {
    let world = try TestWorld()
    let device = try world.device()
    let other = try device.add("bob")
    try device.sync()
    let id = try device.add()
    try device.core.select(id)
    try device.core.select(other)
    try device.core.select(id)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.sentNames.count { $0 == "context-main" } == 1)
    #expect(try world.records()["context-main"]?.fields["accountID"] == .string(id.rawValue))
  }

  @Test(
    "accounts.md S66, A20, A30, A76: a migrated account deleted before its first save leaves tombstone, then marker")
  func s66MigratedAndDeleted() throws {
    let world = try TestWorld()
    let (device, id) = try legacy(world)
    device.entryFaults.refuse { $0.record.type == RecordKey.Kind.account ? CloudError(.tryAgainLater, "later") : nil }
    try device.sync()
    try device.core.remove(id)
    device.entryFaults.refuse(nil)
    device.cloud.clearLog()
    world.clock.advance(seconds: 7_200)
    try device.sync()
    #expect(device.sentBatches == [["tombstone-\(id)"], ["marker-\(TestDevice.instance)"]])
    #expect(try world.names() == ["tombstone-\(id)", "marker-\(TestDevice.instance)"])
  }

  @Test("accounts.md S67, A80: an edit made during a send is sent next")
  func s67EditDuringASend() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    let core = device.core
    device.cloud.setAfter { call in
      guard case .modify = call else { return }
      do { try core.edit(id, AccountEdit(label: "during")) } catch { Issue.record("\(error)") }
    }
    try device.sync()
    device.cloud.setAfter(nil)
    try device.sync()
    #expect(try world.records()["account-\(id)"]?.fields["label"] == .string("during"))
    #expect(try device.core.status().pending == 0)
  }

  @Test("accounts.md S68, A80, C11: what was committed is sent after a relaunch, without any word from the engine")
  func s68RelaunchBeforeTheFirstSend() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.relaunch()
    try device.sync()
    #expect(try world.names() == ["account-\(id)"])
  }

  @Test("accounts.md S69, A85: a conflict that comes without the server's record is looked up, joined and sent")
  func s69ConflictWithoutRecord() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try world.settle([a, b], rounds: 2)
    try a.core.edit(id, AccountEdit(label: "label"))
    try a.sync()
    try b.core.edit(id, AccountEdit(position: 7))
    // b's fetch is kept from seeing a's edit, so that its save meets it.
    let asked = CloudError(.conflict, "changed")
    let box = Once()
    b.entryFaults.refuse { $0.record.type == RecordKey.Kind.account && box.first() ? asked : nil }
    try b.sync()
    let stored = try #require(try world.records()["account-\(id)"])
    #expect(stored.fields["label"] == .string("label") && stored.fields["position"] == .double(7))
    #expect(b.cloud.log.contains { if case .lookup = $0.call { true } else { false } })
  }

  @Test("accounts.md S70, A81: twenty conflicts in a row do not lose a tombstone")
  func s70TombstoneSurvivesConflicts() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try world.settle([a, b], rounds: 2)
    try a.core.remove(id)
    let count = Counter()
    a.entryFaults.refuse { operation in
      guard operation.record.type == RecordKey.Kind.tombstone, count.next() <= 20 else { return nil }
      return CloudError(.conflict, "changed")
    }
    for _ in 0..<30 {
      world.clock.advance(seconds: 7_200)
      try a.sync()
    }
    try b.sync()
    #expect(try world.names().contains("tombstone-\(id)"))
    #expect(b.live.isEmpty)
  }

  @Test("accounts.md A78: tombstones go first, before anything else that waits")
  func tombstonesGoFirst() throws {
    let world = try TestWorld()
    let device = try world.device()
    let dead = try device.add("dead")
    try device.sync()
    try device.core.remove(dead)
    let new = try device.add("new")
    try device.core.select(new)
    device.cloud.clearLog()
    try device.sync()
    #expect(device.sentBatches == [["tombstone-\(dead)"], ["account-\(new)"], ["context-main"]])
  }

  @Test("accounts.md A79, A77, C13: a gated choice waits in the outbox, and its gate is recomputed at launch")
  func gateAfterRelaunch() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    try device.core.select(id)
    // The account is confirmed, then the process ends before the choice is sent.
    device.cloud.fail(.offline, times: 1) { call in
      guard case .modify(_, let operations, _) = call else { return false }
      return operations.contains { $0.record.type == RecordKey.Kind.context }
    }
    try device.sync()
    #expect(try world.names() == ["account-\(id)"])
    try device.relaunch()
    try device.sync()
    #expect(try world.names() == ["account-\(id)", "context-main"])
    #expect(device.sentNames.count { $0 == "account-\(id)" } == 1)
  }

  @Test("accounts.md A84: nothing is sent before a fetch that succeeded, not even by a call that only sends")
  func fetchComesFirst() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.add()
    device.cloud.fail(.offline, times: 1) { if case .zoneChanges = $0 { true } else { false } }
    try device.sync()
    #expect(device.sentNames.isEmpty)
    try device.relaunch()
    device.cloud.clearLog()
    try device.sync(.sendOnly)
    let calls = device.cloud.log.map(\.call)
    let fetch = calls.firstIndex { if case .zoneChanges = $0 { true } else { false } }
    let save = calls.firstIndex { if case .modify = $0 { true } else { false } }
    #expect(fetch != nil && save != nil && fetch! < save!)
  }

  @Test("accounts.md C12, A3: a save whose answer was lost is confirmed by its own record")
  func lostAnswer() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add()
    device.cloud.fail(.lostAnswer, times: 1) { if case .modify = $0 { true } else { false } }
    try device.sync()
    try device.sync()
    let report = try device.sync()
    #expect(report.quiet && report.status.pending == 0)
    #expect(try device.state().accounts[id]?.send.isConfirmed == true)
  }
}

/// True the first time that it is asked.
final class Once: Sendable {
  private let isDone = Mutex(false)
  func first() -> Bool {
    isDone.withLock { done in
      defer { done = true }
      return !done
    }
  }
}

final class Counter: Sendable {
  private let value = Mutex(0)
  func next() -> Int {
    value.withLock {
      $0 += 1
      return $0
    }
  }
}
