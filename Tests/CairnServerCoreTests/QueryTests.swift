import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// Web-services section 9, over the core.
@Suite(.everyStore) struct QueryTests {
  private func pages(_ world: World, _ query: RecordQuery, limit: Int, zone: ZoneID?) throws -> [String] {
    var run = QueryRun(query, in: zone)
    run.resultsLimit = limit
    run.desiredKeys = []
    var names: [String] = []
    while true {
      let page = try world.server.core.query(world.cloud.caller, world.cloud.scope, run)
      names += page.records.map(\.id.name)
      guard let marker = page.marker else { return names }
      run.marker = marker
    }
  }

  @Test("W29: pages of any size are the sorted records, with random values", arguments: [UInt64(7), 99])
  func randomOrder(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let world = try World()
    var all: [(name: String, n: Int64?, s: String?)] = []
    for i in 0..<150 {
      let n = Int.random(in: 0..<4, using: &generator) == 0 ? nil : Int64.random(in: -3...3, using: &generator)
      // Texts that differ only behind the bytes that count are tied.
      let s =
        Int.random(in: 0..<3, using: &generator) == 0
        ? nil : String(repeating: "é", count: Int.random(in: 0...2, using: &generator) * 70) + "\(i % 5)"
      let name = "r\(UInt32.random(in: 0...9_999_999, using: &generator))-\(i)"
      try world.save(name, ["n": n.map { .int64($0) }, "s": s.map { .string($0) }])
      all.append((name, n, s))
    }
    func key(_ text: String?) -> [UInt8] { text.map { [1] + $0.utf8.prefix(256) } ?? [] }
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
      let expected = all.sorted { a, b in
        if a.n != b.n { return (a.n ?? .min < b.n ?? .min) == first }
        let (x, y) = (key(a.s), key(b.s))
        if x != y { return x.lexicographicallyPrecedes(y) == second }
        return a.name < b.name
      }.map(\.name)
      let query = RecordQuery(
        recordType: "Note",
        sort: [QuerySort(.field("n"), ascending: first), QuerySort(.field("s"), ascending: second)])
      for limit in [1, 7, 200] {
        #expect(try pages(world, query, limit: limit, zone: world.zone) == expected, "seed \(seed), \(limit)")
        #expect(try pages(world, query, limit: limit, zone: nil) == expected, "seed \(seed), \(limit)")
      }
    }
  }

  @Test(
    "section 6: a filter on users means the caller by __defaultOwner__ and _defaultOwner",
    arguments: [
      "__defaultOwner__", "_defaultOwner",
    ])
  func callersOwn(_ word: String) throws {
    let world = try World()
    let other = try world.server.cloud(user: "berta")
    let scope = DatabaseScope(container: world.cloud.scope.container, kind: .public)
    for (name, caller) in [("a", world.cloud.caller), ("b", other.caller)] {
      let record = Record(id: RecordID(name: name, zone: ZoneID(name: "_defaultZone")), type: "Note")
      _ = try world.server.core.modify(
        caller, scope, Modification(operations: [IncomingOperation(RecordOperation(.create, record))]))
    }
    for field in [SystemField.createdUserRecordName, .modifiedUserRecordName] {
      for (comparator, value) in [
        (Comparator.equals, FieldValue.string(word)),
        (.equals, .reference(Reference(recordName: word, action: .none))),
        (.isIn, .list(.string, [.string(word)])),
      ] {
        let query = RecordQuery(recordType: "Note", filters: [QueryFilter(comparator, .system(field), value)])
        let run = QueryRun(query, in: ZoneID(name: "_defaultZone"))
        #expect(try world.server.core.query(other.caller, scope, run).records.map(\.id.name) == ["b"], "\(comparator)")
      }
    }
  }

  @Test("W29: records that go or come between pages disturb no other; short pages go on")
  func changesBetweenPages() throws {
    var settings = ServerSettings()
    settings.rowsPerScan = 3
    let world = try World(settings: settings)
    for i in 0..<9 { try world.save("r\(i)", ["n": .int64(Int64(i % 2))]) }
    let odd = RecordQuery(recordType: "Note", filters: [QueryFilter(.equals, .field("n"), .int64(1))])
    #expect(try pages(world, odd, limit: 10, zone: world.zone) == ["r1", "r3", "r5", "r7"])
    var run = QueryRun(RecordQuery(recordType: "Note", sort: [QuerySort(.field("n"))]), in: world.zone)
    run.resultsLimit = 2
    let first = try world.server.core.query(world.cloud.caller, world.cloud.scope, run)
    #expect(first.records.map(\.id.name) == ["r0", "r2"])
    try world.run(.forceDelete, world.note("r2"))
    try world.save("r3a", ["n": .int64(0)])
    run.marker = first.marker
    let second = try world.server.core.query(world.cloud.caller, world.cloud.scope, run)
    #expect(second.records.map(\.id.name) == ["r3a", "r4"])
  }

  @Test("a query is stored and read again as it was")
  func storedForm() throws {
    let query = RecordQuery(
      recordType: "Note",
      filters: [
        QueryFilter(.near, .field("p"), .location(Location(latitude: 1, longitude: 2)), distance: 3),
        QueryFilter(.isIn, isNegated: true, .system(.recordName), .list(.string, [.string("a")]), isTyped: false),
      ])
    #expect(RecordQuery(encodedFilters: query.encoded) == query)
    #expect(RecordQuery(encodedFilters: [1, 2, 3]) == nil)
  }
}

private struct SeededGenerator: RandomNumberGenerator {
  private let source: SeededRandomness

  init(seed: UInt64) { source = SeededRandomness(seed: seed) }

  mutating func next() -> UInt64 { source.next() }
}
