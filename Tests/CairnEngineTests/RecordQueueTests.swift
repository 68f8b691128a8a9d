import CairnEngine
import CairnRecords
import CairnTesting
import Testing

/// An app with a delegate and the engine's queue (engine sections 2, 5 and 6), through the public interface.
@Suite struct RecordQueueTests {
  static let zone = ZoneID(name: "cairn")

  /// An app that keeps its records in a dictionary.
  final class App: RecordQueueDelegate, Rollbackable {
    struct Failed: Error {}
    struct State {
      var texts: [String: String] = [:]
      var tags: [String: ChangeTag] = [:]
    }

    var state = State()
    var provides: [String: ProvidedRecord] = [:]
    var throwsFor: Set<String> = []
    var ranks: [String: Int] = [:]
    var sent: [SentQueueChanges] = []
    var asked: [String] = []
    var onSent: ((SentQueueChanges) throws -> Void)?
    var fetchFailures = 0

    func mark() -> () -> Void {
      let before = state
      return { [unowned self] in state = before }
    }

    func record(for id: RecordID) throws -> ProvidedRecord {
      asked.append(id.name)
      if throwsFor.contains(id.name) { throw Failed() }
      if let provided = provides[id.name] { return provided }
      guard let text = state.texts[id.name] else { return .gone }
      let record = Record(id: id, type: "Note", changeTag: state.tags[id.name], fields: ["text": .string(text)])
      return .record(record)
    }

    func handleFetched(_ page: ZonePage) throws {
      if fetchFailures > 0 {
        fetchFailures -= 1
        throw Failed()
      }
      for record in page.records { take(record) }
      for deletion in page.deletions {
        state.texts[deletion.id.name] = nil
        state.tags[deletion.id.name] = nil
      }
    }

    private func take(_ record: Record) {
      if case .string(let text)? = record.fields["text"] { state.texts[record.id.name] = text }
      state.tags[record.id.name] = record.changeTag
    }

    func handleSent(_ sent: SentQueueChanges) throws {
      self.sent.append(sent)
      for record in sent.savedRecords { state.tags[record.id.name] = record.changeTag }
      for id in sent.deletedRecordIDs { state.tags[id.name] = nil }
      try onSent?(sent)
    }

    func handleZoneLost(_ zone: ZoneID, _ loss: ZoneLoss) throws { state.tags = [:] }
    func handleZoneAnswer(_ zone: ZoneID, _ answer: ZoneLossAnswer) throws {}
    func rank(of change: PendingState.RecordZoneChange) -> Int? {
      if ranks.isEmpty { return nil }
      switch change {
      case .saveRecord(let id), .deleteRecord(let id): return ranks[id.name] ?? 0
      }
    }
    func confirmedRecords(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
      let names = state.tags.keys.sorted().filter { $0 > cursor ?? "" }.prefix(limit)
      return names.map { RecordID(name: $0, zone: zone) }
    }
  }

  final class Device {
    let clock: ManualClock
    let cloud: FaultInjector
    let plain: InMemoryCloud
    let store = MemoryStore()
    let app = App()
    private(set) var queue: RecordQueueCategory
    private(set) var session: SyncSession

    init(_ server: InMemoryServer, _ clock: ManualClock) throws {
      self.clock = clock
      plain = try server.cloud(user: "anna")
      cloud = FaultInjector(plain)
      store.members = [app]
      queue = RecordQueueCategory(store: store, zones: [RecordQueueTests.zone], delegate: app)
      session = Self.session(cloud, store, queue, clock)
    }

    private static func session(
      _ cloud: FaultInjector, _ store: MemoryStore, _ queue: RecordQueueCategory, _ clock: ManualClock
    ) -> SyncSession {
      SyncSession(
        cloud: cloud, store: store, categories: [queue], zones: [RecordQueueTests.zone], time: clock,
        randomness: SeededRandomness(seed: 4))
    }

    func relaunch() {
      queue = RecordQueueCategory(store: store, zones: [RecordQueueTests.zone], delegate: app)
      session = Self.session(cloud, store, queue, clock)
    }

    func set(_ names: String..., text: String = "x") throws {
      for name in names { app.state.texts[name] = text }
      try queue.add(names.map { .saveRecord(RecordQueueTests.id($0)) })
    }

    func delete(_ name: String) throws {
      app.state.texts[name] = nil
      try queue.add([.deleteRecord(RecordQueueTests.id(name))])
    }

    @discardableResult
    func sync(manual: Bool = true) throws -> SyncResult { try session.sync(SyncRequest(.all, isManual: manual)) }

    var serverTexts: [String: FieldValue?] {
      get throws {
        Dictionary(
          uniqueKeysWithValues: try plain.allRecords(in: RecordQueueTests.zone).map { ($0.id.name, $0.fields["text"]) })
      }
    }
    var sentNames: [String] { cloud.sentOperations.map(\.record.id.name) }
  }

  static func id(_ name: String) -> RecordID { RecordID(name: name, zone: zone) }

  let clock = ManualClock()
  let server: InMemoryServer
  let a: Device
  let b: Device

  init() throws {
    server = try InMemoryServer(clock: clock)
    a = try Device(server, clock)
    b = try Device(server, clock)
  }

  @Test func changesTravelAndTheQueueEmpties() throws {
    try a.set("n1", "n2")
    #expect(try a.sync().saved == 2)
    #expect(try a.queue.pendingRecordZoneChanges.isEmpty)
    try b.sync()
    #expect(b.app.state.texts == ["n1": "x", "n2": "x"])
    try b.delete("n1")
    try b.set("n2", text: "y")
    try b.sync()
    try a.sync()
    #expect(a.app.state.texts == ["n2": "y"])
    #expect(try a.sync().endedQuiet)
  }

  @Test func s1S2e1AnAddedChangeIsDurableAtOnceAndKeepsItsPlace() throws {
    try a.set("n1", "n2", "n3")
    try a.delete("n1")
    a.relaunch()
    let id = Self.id
    #expect(
      try a.queue.pendingRecordZoneChanges == [.deleteRecord(id("n1")), .saveRecord(id("n2")), .saveRecord(id("n3"))])
  }

  @Test func e19AnEntryOfAnUnknownTableLeavesTheOrderOfTheOthers() throws {
    try a.set("n1", "unknown", "n2", "broken", "gated", "n3")
    a.app.provides["unknown"] = .unavailable(.schema, retryAt: nil)
    a.app.throwsFor = ["broken"]
    a.app.provides["gated"] = .gated
    let result = try a.sync(manual: false)
    #expect(result.saved == 3)
    #expect(a.sentNames == ["n1", "n2", "n3"])
    #expect(try a.queue.summary.blocked == [.schema: 1, .unavailable: 1, .gated: 1])
    // A retry time is no reason to hurry, and a gate has none.
    try a.sync(manual: false)
    #expect(a.sentNames == ["n1", "n2", "n3"])
    a.app.provides = [:]
    a.app.throwsFor = []
    clock.advance(seconds: 61)
    try a.sync(manual: false)
    #expect(a.sentNames == ["n1", "n2", "n3", "unknown", "broken"])
    try a.queue.release([Self.id("gated")])
    try a.sync(manual: false)
    #expect(try a.queue.pendingRecordZoneChanges.isEmpty)
    #expect(try a.serverTexts.count == 6)
  }

  @Test func goneLeavesTheQueueWithoutADelete() throws {
    try a.set("n1", "n2")
    a.app.state.texts["n1"] = nil
    try a.sync()
    #expect(a.sentNames == ["n2"])
    #expect(a.app.sent.map(\.skipped) == [[Self.id("n1")]])
    #expect(try a.queue.pendingRecordZoneChanges.isEmpty)
  }

  @Test func ranksComeBeforeTheOrderOfTheQueue() throws {
    try a.set("child", "late", "parent")
    a.app.ranks = ["parent": 1, "child": 2, "late": 2]
    try a.sync()
    #expect(a.sentNames == ["parent", "child", "late"])
  }

  @Test func e2AChangeAddedInTheSentHandlerIsSentByTheSameCall() throws {
    try a.set("n1")
    let isFirst = Flag()
    a.app.onSent = { [a] _ in if isFirst.takes() { try a.set("n2") } }
    #expect(try a.sync().saved == 2)
  }

  @Test func aConflictIsTheAppsAndBlocksUntilItIsAddedAgain() throws {
    try a.set("n1", text: "base")
    try a.sync()
    try b.sync()
    try b.set("n1", text: "theirs")
    try b.sync()
    try a.set("n1", text: "mine")
    _ = try a.session.sync(SyncRequest(.sendOnly))
    let failure = try #require(a.app.sent.last?.failedSaves.first)
    guard case .conflict(let theirs) = failure.result else {
      Issue.record("no conflict but \(failure.result)")
      return
    }
    #expect(theirs.fields["text"] == .string("theirs"))
    #expect(try a.queue.summary.blocked == [.rejected: 1])
    a.cloud.clearLog()
    try a.sync()
    #expect(a.sentNames.isEmpty)
    a.app.state.tags["n1"] = theirs.changeTag
    try a.set("n1", text: "merged")
    #expect(try a.sync().saved == 1)
    #expect(try a.serverTexts["n1"] == .string("merged"))
  }

  @Test func aHandlerThatThrowsHasNotStoredTheEvent() throws {
    try b.set("n1")
    try b.sync()
    a.app.fetchFailures = 3
    #expect(try a.sync().failure != nil)
    #expect(try a.session.registry().token(Self.zone) == nil)
    try a.set("n2")
    a.app.onSent = { _ in throw App.Failed() }
    try a.sync()
    // The server has it, the queue still, too: sent again, it meets itself.
    #expect(try a.queue.pendingRecordZoneChanges == [.saveRecord(Self.id("n2"))] || a.queue.summary.inFlight == 1)
    a.app.onSent = { [a] sent in
      for failure in sent.failedSaves {
        guard case .conflict(let record) = failure.result else { continue }
        a.app.state.tags[failure.id.name] = record.changeTag
        try a.queue.remove([.saveRecord(failure.id)])
      }
    }
    a.relaunch()
    try a.sync()
    try a.sync()
    #expect(try a.queue.pendingRecordZoneChanges.isEmpty)
    #expect(try a.serverTexts.count == 2)
  }

  @Test func aRolledBackTransactionLeavesQueueAndMemoryTheSame() throws {
    try a.set("n1")
    struct Undo: Error {}
    #expect(throws: Undo.self) {
      try a.store.transaction {
        try a.queue.add([.saveRecord(Self.id("n2"))])
        throw Undo()
      }
    }
    #expect(try a.queue.pendingRecordZoneChanges == [.saveRecord(Self.id("n1"))])
    a.relaunch()
    #expect(try a.queue.pendingRecordZoneChanges == [.saveRecord(Self.id("n1"))])
  }

  @Test func aSnapshotSweepsWhatTheAppHasConfirmed() throws {
    try a.set("n1", "n2", "n3")
    try a.sync()
    try b.sync()
    try b.delete("n2")
    try b.sync()
    var request = SyncRequest()
    request.resync = true
    _ = try a.session.sync(request)
    #expect(a.app.state.texts.keys.sorted() == ["n1", "n3"])
  }

  @Test func s8DeletingTheZoneAbandonsItsChanges() throws {
    try a.set("n1")
    try a.sync()
    try a.set("n2")
    try a.session.add([.deleteZone(Self.zone)])
    try a.sync()
    #expect(try a.queue.pendingRecordZoneChanges.isEmpty)
  }
}
