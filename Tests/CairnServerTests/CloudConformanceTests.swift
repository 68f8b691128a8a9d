import CairnClient
import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// The cloud in memory and the real client over HTTP give the engine the same answers, to the last tag and token.
@Suite struct CloudConformanceTests {
  /// Two servers with equal clocks and random numbers, one spoken to in memory, one over a socket.
  final class Pair {
    let clock = ManualClock()
    let memory: InMemoryCloud
    let http: WebServicesDatabase
    private let server: RunningServer

    init() throws {
      memory = try InMemoryServer(clock: clock, randomness: SeededRandomness(seed: 7)).cloud(user: "anna")
      let storage = try SQLiteStorage.inMemory()
      let random = SeededRandomness(seed: 7)
      server = try RunningServer.start(
        storage: storage, listen: ListenAddress(port: 0), clock: clock, randomness: random)
      let users = UserDirectory(storage: storage, clock: clock, randomness: random)
      _ = try users.add("anna")
      try users.addToken(hash: WebAuthToken.hash("secret"), for: "anna")
      http = WebServicesDatabase(ServiceOptions(server: try ServerURL(parsing: server.url), token: "secret"))
    }

    deinit { server.stop() }

    /// Asks both and expects the same.
    func both<Answer: Equatable>(
      _ comment: Comment, _ body: (any CloudDatabase) throws -> Answer, view: (Answer) -> Answer = { $0 }
    ) throws -> Answer {
      let first = Result { try body(memory) }
      let second = Result { try body(http) }
      switch (first, second) {
      case (.success(let a), .success(let b)): #expect(view(a) == view(b), comment)
      case (.failure(let a as CloudError), .failure(let b as CloudError)):
        #expect(a.code == b.code && a.expiryCause == b.expiryCause, comment)
      default: Issue.record("\(comment): \(first) and \(second)")
      }
      return try first.get()
    }
  }

  /// A save's answer may carry fewer fields over HTTP, because the client asks for none.
  private func withoutFields(_ report: ModifyReport) -> ModifyReport {
    var report = report
    report.outcomes = report.outcomes.map { outcome in
      guard case .saved(var record) = outcome else { return outcome }
      record.fields = [:]
      return .saved(record)
    }
    return report
  }

  private func randomOperation(
    _ random: SeededRandomness, _ zone: ZoneID, _ tags: [String: ChangeTag]
  ) -> RecordOperation {
    let name = "r\(random.below(12))"
    let kinds = RecordOperation.Kind.allCases
    let kind = kinds[random.below(kinds.count)]
    var fields: Fields = ["n": .int64(Int64(bitPattern: random.next())), "s": .string("\(random.next())")]
    if random.chance(percent: 30) { fields.set("s", nil) }
    if random.chance(percent: 30) {
      let actions = [Reference.Action.none, .validate, .deleteSelf]
      fields.set("r", .reference(Reference(recordName: "r\(random.below(12))", action: actions[random.below(3)])))
    }
    let tag = random.chance(percent: 70) ? tags[name] : random.chance(percent: 50) ? ChangeTag("zz") : nil
    let record = Record(id: RecordID(name: name, zone: zone), type: "Note", changeTag: tag, fields: fields)
    return RecordOperation(kind, record, deleteTime: kind.isDelete && random.chance(percent: 50) ? 1_234 : nil)
  }

  @Test("random operations, pages and zones: both ways agree", arguments: 1...6)
  func agree(_ seed: UInt64) throws {
    let pair = try Pair()
    let random = SeededRandomness(seed: seed)
    let zone = ZoneID(name: "Z")
    _ = try pair.both("user") { try $0.currentUser() }
    _ = try pair.both("create") { try $0.createZones([zone, ZoneID(name: "_bad")]).map { try? $0.get() } }
    var tags: [String: ChangeTag] = [:]
    var token: ChangeToken?
    var databaseToken: ChangeToken?
    for step in 0..<40 {
      pair.clock.advance(milliseconds: 10)
      let comment = Comment(rawValue: "seed \(seed) step \(step)")
      var operations: [RecordOperation] = []
      for _ in 0..<(1 + random.below(5)) {
        let operation = randomOperation(random, zone, tags)
        if !operations.contains(where: { $0.record.id == operation.record.id }) { operations.append(operation) }
      }
      let atomic = random.chance(percent: 50)
      let outcomes = try pair.both(
        comment, { try $0.modifyReportingPosition(in: zone, operations, atomic: atomic) }, view: withoutFields
      ).outcomes
      for case .saved(let record) in outcomes { tags[record.id.name] = record.changeTag }
      if random.chance(percent: 30) {
        let page = try pair.both(comment) { try $0.zoneChanges(in: zone, since: token) }
        token = random.chance(percent: 20) ? nil : page.token
        databaseToken = try pair.both(comment) { try $0.databaseChanges(since: databaseToken) }.token
      }
      if random.chance(percent: 20) {
        let names = (0..<12).map { "r\($0)" }
        _ = try pair.both(comment) { try $0.lookup(in: zone, names: names) }
      }
      if random.chance(percent: 3) {
        _ = try pair.both(comment) { try $0.deleteZones([zone]).map { try? $0.get() } }
        _ = try pair.both(comment) { try $0.zoneExists(zone) }
        _ = try pair.both(comment) { try $0.createZones([zone]).map { try? $0.get() } }
        _ = try? pair.both(comment) { try $0.zoneChanges(in: zone, since: token) }
        token = nil
      }
    }
    _ = try pair.both("end") { try $0.zoneChanges(in: zone, since: nil) }
  }
}
