import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

/// Engine S1–S9.
@Suite struct PendingQueueTests {
  let zone = ZoneID(name: "z/%")
  func id(_ name: String) -> RecordID { RecordID(name: name, zone: zone) }

  /// Names that may be taken now, in order.
  func take(_ state: inout PendingState, _ now: Int64 = 0) -> [String] {
    state.takeRecords(in: zone, limit: 10, now: now)?.items.map { "\($0.kind.rawValue) \($0.id.name)" } ?? []
  }

  @Test func s1s2OneEntryPerRecordAtItsPlace() {
    var state = PendingState()
    state.add([.saveRecord(id("a")), .saveRecord(id("b")), .saveRecord(id("a")), .deleteRecord(id("a"))])
    #expect(state.pendingRecordZoneChanges == [.deleteRecord(id("a")), .saveRecord(id("b"))])
  }

  @Test func s3ZonesFollowTheSameRules() {
    var state = PendingState()
    let other = ZoneID(name: "y")
    state.add([.saveZone(zone), .saveZone(other), .deleteZone(zone)])
    #expect(state.pendingDatabaseChanges == [.deleteZone(zone), .saveZone(other)])
  }

  @Test func s4AChangeDuringAFlightIsAnEntryOfItsOwn() throws {
    var state = PendingState()
    state.add([.saveRecord(id("a")), .saveRecord(id("b"))])
    let taken = state.takeRecords(in: zone, limit: 1, now: 0)
    let batch = try #require(taken)
    #expect(batch.items.map(\.id) == [id("a")])
    state.add([.deleteRecord(id("a"))])
    #expect(state.pendingRecordZoneChanges == [.saveRecord(id("b")), .deleteRecord(id("a"))])
    // Not sent before the older one is settled.
    #expect(take(&state) == ["save b"])
    state.records.settle(id("a"), batch: batch.number, .success)
    #expect(take(&state) == ["delete a"])
  }

  @Test func s4ARetriedChangeHasItsOldPlaceOrYieldsToANewer() throws {
    var state = PendingState()
    state.add([.saveRecord(id("a")), .saveRecord(id("b")), .saveRecord(id("c"))])
    let taken = state.takeRecords(in: zone, limit: 2, now: 0)
    let batch = try #require(taken)
    state.add([.deleteRecord(id("b"))])
    for item in batch.items { state.records.settle(item.id, batch: batch.number, .retry(nil)) }
    #expect(
      state.pendingRecordZoneChanges == [.saveRecord(id("a")), .saveRecord(id("c")), .deleteRecord(id("b"))])
  }

  @Test func s4AResultOfAnOlderBatchIsIgnored() throws {
    var state = PendingState()
    state.add([.saveRecord(id("a"))])
    let first = state.takeRecords(in: zone, limit: 1, now: 0)
    let batch = try #require(first)
    state.records.settle(id("a"), batch: batch.number, .retry(nil))
    #expect(take(&state) == ["save a"])
    state.records.settle(id("a"), batch: batch.number, .success)
    #expect(state.records.inFlight == 1)
  }

  @Test func s5RemoveTouchesPendingEntriesOnly() {
    var state = PendingState()
    state.add([.saveRecord(id("a"))])
    _ = state.takeRecords(in: zone, limit: 1, now: 0)
    state.remove([.saveRecord(id("a"))])
    #expect(state.records.inFlight == 1)
    state.add([.saveRecord(id("b"))])
    state.remove([.deleteRecord(id("b"))])
    #expect(state.pendingRecordZoneChanges == [.saveRecord(id("b"))])
    state.remove([.saveRecord(id("b"))])
    #expect(state.pendingRecordZoneChanges.isEmpty)
  }

  @Test func s7BlockedEntriesStayAndAreCounted() {
    var state = PendingState()
    state.add([.saveRecord(id("a")), .deleteRecord(id("b"))])
    state.records.block(id("a"), Blocked(.quota, retryAt: 100))
    #expect(take(&state, 99) == ["delete b"])
    #expect(state.records.summary.blocked == [.quota: 1])
    #expect(state.records.summary.nextRetry == 100)
    // S2: the same kind again does not end a wait for quota.
    state.add([.saveRecord(id("a"))])
    #expect(take(&state, 99).isEmpty)
    #expect(take(&state, 100) == ["save a"])
  }

  @Test func handedOverEntriesWaitForTheCategory() throws {
    var state = PendingState()
    state.add([.saveRecord(id("a")), .saveRecord(id("b"))])
    let taken = state.takeRecords(in: zone, limit: 2, now: 0)
    let batch = try #require(taken)
    state.add([.saveRecord(id("b"))])
    for item in batch.items { state.records.settle(item.id, batch: batch.number, .handedOver(.rejected)) }
    #expect(take(&state, 1 << 40).isEmpty)
    state.records.releaseHeld(id("b"))
    #expect(take(&state) == ["save b"])
    state.add([.saveRecord(id("a"))])
    #expect(take(&state) == ["save a"])
  }

  @Test func s8RecordChangesWaitForAZonesDeletion() {
    var state = PendingState()
    state.add([.saveRecord(id("a"))])
    state.add([.deleteZone(zone)])
    #expect(take(&state).isEmpty)
    var freed = state
    freed.add([.saveZone(zone)])
    #expect(take(&freed) == ["save a"])
    _ = state.zones.take(limit: 1, now: 0)
    #expect(take(&state).isEmpty)
    let abandoned = state.zoneDeletionConfirmed(zone)
    #expect(abandoned == [id("a")])
    #expect(state.records.isEmpty)
  }

  @Test func aStateThatCannotBeReadIsAnError() {
    #expect(throws: PendingQueue<RecordID>.Unreadable.self) {
      try PendingState(rows: ["q/r/_defaultOwner/z/a": "x 1"])
    }
  }

  @Test func e7AChangeWritesLittleInALongQueue() throws {
    var state = PendingState()
    for i in 0..<120_000 { state.add([.saveRecord(id("record-\(i)"))]) }
    let rows = state.takeDelta().compactMapValues { $0 }
    #expect(rows.count == 120_000)
    var opened = try PendingState(rows: rows)
    #expect(opened.records.count == 120_000)
    opened.add([.saveRecord(id("one more"))])
    let delta = opened.takeDelta()
    let bytes = delta.reduce(0) { $0 + $1.key.utf8.count + ($1.value?.utf8.count ?? 0) }
    #expect(bytes < 1_024)
  }

  // MARK: Against a model

  /// The rules, told in the plainest way: an array of pending entries and one of those in flight.
  struct Model {
    struct Entry: Equatable {
      var name: Int
      var kind: PendingKind
      var place: Int
      var isBlocked = false
    }
    var pending: [Entry] = []
    var flights: [(entry: Entry, batch: Int64)] = []
    var held: Set<Int> = []
    var place = 0

    mutating func add(_ kind: PendingKind, _ name: Int) {
      if let i = pending.firstIndex(where: { $0.name == name }) {
        if pending[i].kind != kind || pending[i].isBlocked { pending[i].isBlocked = false }
        pending[i].kind = kind
      } else {
        place += 1
        pending.append(Entry(name: name, kind: kind, place: place))
      }
    }

    mutating func take(_ limit: Int, _ batch: Int64) -> [Int] {
      let free = pending.filter { entry in
        !entry.isBlocked && !held.contains(entry.name) && !flights.contains { $0.entry.name == entry.name }
      }
      for entry in free.prefix(limit) {
        pending.removeAll { $0.name == entry.name }
        flights.append((entry, batch))
      }
      return free.prefix(limit).map(\.name)
    }

    mutating func settle(_ name: Int, _ result: FlightResult) {
      guard let i = flights.firstIndex(where: { $0.entry.name == name }) else { return }
      var entry = flights.remove(at: i).entry
      let hasNewer = pending.contains { $0.name == name }
      switch result {
      case .success: return
      case .retry: break
      case .handedOver:
        if hasNewer { held.insert(name) }
        entry.isBlocked = true
      }
      if !hasNewer { pending.append(entry) }
      pending.sort { $0.place < $1.place }
    }

    mutating func recover() {
      for flight in flights where !pending.contains(where: { $0.name == flight.entry.name }) {
        pending.append(flight.entry)
      }
      flights = []
      held = []
      pending.sort { $0.place < $1.place }
    }
  }

  @Test func s1ToS9HoldAgainstAModel() throws {
    let seed = UInt64.random(in: 0..<1_000_000)
    for run in 0..<60 {
      let random = SeededRandomness(seed: seed &+ UInt64(run))
      var model = Model()
      var queue = PendingQueue<RecordID>(prefix: "q/r/")
      var rows: [String: String] = [:]
      for step in 0..<200 {
        try turn(random, &model, &queue, &rows)
        let got = queue.pending.map { "\($0.id.name) \($0.kind.rawValue)" }
        let wanted = model.pending.map { "\($0.name) \($0.kind.rawValue)" }
        try #require(got == wanted, "seed \(seed) run \(run) step \(step)")
        try #require(queue.count == model.pending.count && queue.inFlight == model.flights.count, "seed \(seed)")
        try #require(queue.brokenInvariants().isEmpty, "seed \(seed) run \(run) step \(step)")
        let summary = queue.summary
        try #require(
          summary.blocked[.rejected, default: 0] == model.pending.filter(\.isBlocked).count, "seed \(seed)")
      }
    }
  }

  private func turn(
    _ random: SeededRandomness, _ model: inout Model, _ queue: inout PendingQueue<RecordID>,
    _ rows: inout [String: String]
  ) throws {
    let name = random.below(12)
    let record = id("\(name)")
    switch random.below(10) {
    case 0...3:
      let kind: PendingKind = random.chance(percent: 60) ? .save : .delete
      model.add(kind, name)
      queue.add(kind, record)
    case 4:
      model.pending.removeAll { $0.name == name }
      model.held.remove(name)
      queue.remove(record)
    case 5, 6:
      let limit = 1 + random.below(5)
      let batch = queue.take(limit: limit, now: 0)
      let wanted = model.take(limit, batch?.number ?? 0)
      #expect(wanted == batch?.items.compactMap { Int($0.id.name) } ?? [])
    case 7:
      guard let flight = model.flights.first else { return }
      let result: FlightResult = [.success, .retry(nil), .handedOver(.rejected)][random.below(3)]
      model.settle(flight.entry.name, result)
      queue.settle(id("\(flight.entry.name)"), batch: flight.batch, result)
    case 8:
      model.held.remove(name)
      queue.releaseHeld(record)
    default:
      // A crash: what was committed is read again.
      for (key, value) in queue.takeDelta() { rows[key] = value }
      queue = try PendingQueue(prefix: "q/r/", rows: rows)
      model.recover()
      queue.recover()
    }
  }
}
