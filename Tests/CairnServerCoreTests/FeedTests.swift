import CairnEngine
import CairnRecords
import CairnServerCore
import CairnTesting
import ProcessSupport
import Testing

/// Change feeds and tokens of web-services section 8.
@Suite(.everyStore) struct FeedTests {
  @Test(
    "W19: pages of one equal one page, down to the token; the same token gives the same answer, also after a restart")
  func pages() throws {
    let world = try World()
    for i in 0..<7 { try world.save("r\(i)", ["n": .int64(Int64(i))]) }
    try world.run(.forceDelete, world.note("r3"))
    try world.save("r0")
    let one = try world.feed()
    let single = try world.feed(size: 1)
    #expect(one.records == ["r1", "r2", "r4", "r5", "r6", "r0"])
    #expect(single == one)
    #expect(one.token.rawValue.utf8.count == 48)
    let middle = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [limited(world, 2)])[0].get()
      .token
    let before = try world.feed(since: middle)
    try world.server.restart()
    #expect(try world.feed(since: middle) == before)
    #expect(try world.feed() == one)
    #expect(try world.feed(since: one.token) == ([], [], one.token))
  }

  private func limited(_ world: World, _ limit: Int) -> ZoneFeedQuery {
    var query = ZoneFeedQuery(zone: world.zone)
    query.resultsLimit = limit
    return query
  }

  @Test("W20: a record that changed five times appears once, at its latest position")
  func once() throws {
    let world = try World()
    for i in 0..<5 {
      try world.save("a", ["n": .int64(Int64(i))])
      try world.save("b\(i)")
    }
    #expect(try world.feed().records == ["b0", "b1", "b2", "b3", "a", "b4"])
  }

  @Test("W21: no tombstone of earlier deletions without a token; a deletion between pages does show")
  func tombstones() throws {
    let world = try World()
    for name in ["a", "b", "c", "d"] { try world.save(name) }
    try world.run(.forceDelete, world.note("b"))
    let first = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [limited(world, 2)])[0].get()
    #expect(first.moreComing)
    try world.run(.forceDelete, world.note("a"))
    let rest = try world.feed(since: first.token)
    #expect(rest.records == ["d"])
    #expect(rest.deletions == ["a"])
    #expect(try world.feed() == (["c", "d"], [], rest.token))
  }

  @Test("W42: tombstone-all replays retained tombstones, also over many pages and after pruning")
  func allTombstones() throws {
    let world = try World()
    for name in ["a", "b", "c"] { try world.save(name) }
    for name in ["a", "b"] { try world.run(.forceDelete, world.note(name)) }
    var query = limited(world, 1)
    var deletions: [String] = []
    while true {
      let page = try world.server.core.changes(
        world.cloud.caller, world.cloud.scope, [query], RequestOptions(allTombstones: true))[0].get()
      for case .tombstone(let end) in page.entries { deletions.append(end.id.name) }
      query.token = page.token
      if !page.moreComing { break }
    }
    #expect(deletions == ["a", "b"])
    #expect(try query.token == world.feed().token)
  }

  @Test("W22: garbage, truncated tokens and those of another namespace have their answers")
  func badTokens() throws {
    let world = try World()
    try world.save("a")
    let zoneToken = try world.feed().token.rawValue
    let databaseToken = try world.cloud.databaseChanges(since: nil).token.rawValue
    func zone(_ token: String) -> CloudError? {
      failure { _ = try world.cloud.zoneChanges(in: world.zone, since: ChangeToken(token)) }
    }
    func database(_ token: String) -> CloudError? {
      failure { _ = try world.cloud.databaseChanges(since: ChangeToken(token)) }
    }
    let unknown = CloudError(.badRequest, "Unknown sync continuation type")
    #expect(zone("garbage") == unknown)
    #expect(zone(databaseToken) == unknown)
    #expect(database(zoneToken) == unknown)
    #expect(database("AQAAAWSe") == unknown)
    for count in 4..<48 {
      #expect(zone(String(zoneToken.prefix(count))) == CloudError(.badRequest, "Invalid continuation format"))
    }
    var damaged = Array(zoneToken)
    damaged[20] = damaged[20] == "A" ? "B" : "A"
    #expect(zone(String(damaged)) == CloudError(.badRequest, "Invalid continuation format"))
    #expect(zone("") == nil)
  }

  @Test("W23: a token older than the retention expires, a younger one does not")
  func retention() throws {
    let world = try World()
    try world.save("a")
    let old = try world.feed().token
    try world.run(.forceDelete, world.note("a"))
    try world.save("b")
    let young = try world.feed().token
    world.clock.advance(milliseconds: world.server.settings.tombstoneRetention + 1)
    try world.server.core.pruneTombstones()
    let error = failure { _ = try world.feed(since: old) }
    #expect(error == CloudError(.changeTokenExpired, "Sync token expired", expiryCause: .retention))
    #expect(try world.feed(since: young).records == [])
    #expect(try world.feed().records == ["b"])
  }

  @Test("W23: writes prune too, so that no tombstone outlives the retention by much")
  func pruningOnWrite() throws {
    let world = try World()
    try world.save("a")
    let old = try world.feed().token
    try world.run(.forceDelete, world.note("a"))
    world.clock.advance(milliseconds: world.server.settings.tombstoneRetention + 1)
    try world.save("b")
    // Behind the write, in a job of its own.
    #expect(eventually { failure { _ = try world.feed(since: old) }?.expiryCause == .retention })
  }

  @Test("W23: a token of an earlier incarnation of the zone expires")
  func incarnation() throws {
    let world = try World()
    try world.save("a")
    let token = try world.feed().token
    _ = try world.cloud.deleteZones([world.zone])
    #expect(failure { _ = try world.feed(since: token) }?.code == .zoneNotFound)
    _ = try world.cloud.createZones([world.zone])
    #expect(
      failure { _ = try world.feed(since: token) }
        == CloudError(.changeTokenExpired, "Sync token expired", expiryCause: .incarnation))
  }

  @Test("W23: tokens of a history that a restore undid expire, older ones do not")
  func restore() throws {
    let world = try World()
    try world.save("a")
    let kept = try world.feed().token
    let keptDatabase = try world.cloud.databaseChanges(since: nil).token
    guard let backup = try world.backup() else { return }
    try world.save("b")
    let undone = try world.feed().token
    let undoneDatabase = try world.cloud.databaseChanges(since: nil).token
    try world.restore(backup)
    // New history reaches the undone position again: the number alone would not tell.
    for name in ["x", "y", "z"] { try world.save(name) }
    #expect(failure { _ = try world.feed(since: undone) }?.expiryCause == .epoch)
    #expect(try world.feed(since: kept).records == ["x", "y", "z"])
    #expect(failure { _ = try world.cloud.databaseChanges(since: undoneDatabase) }?.expiryCause == .epoch)
    #expect(try world.cloud.databaseChanges(since: keptDatabase).changed == [world.zone])
  }

  @Test("W23: a run that began in an undone history expires, though its position is older")
  func restoreInsideRun() throws {
    let world = try World()
    for name in ["a", "b"] { try world.save(name) }
    guard let backup = try world.backup() else { return }
    for name in ["c", "d", "e"] { try world.save(name) }
    let page = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [limited(world, 1)])[0].get()
    try world.restore(backup)
    try world.run(.forceDelete, world.note("a"))
    #expect(failure { _ = try world.feed(since: page.token) }?.expiryCause == .epoch)
  }

  @Test("W24: with writers between pages, the union of the pages equals the final state", arguments: 1...20)
  func writersBetweenPages(_ seed: UInt64) throws {
    let world = try World()
    let random = SeededRandomness(seed: seed)
    func change() throws {
      let name = "r\(random.below(30))"
      if random.chance(percent: 30) {
        try world.run(.forceDelete, world.note(name))
      } else {
        try world.save(name, ["n": .int64(Int64(random.below(1_000)))])
      }
    }
    for _ in 0..<60 { try change() }
    var known: [String: Record] = [:]
    var query = limited(world, 3)
    while true {
      let page = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get()
      for entry in page.entries {
        switch entry {
        case .record(let record): known[record.id.name] = record
        case .tombstone(let end): known[end.id.name] = nil
        }
      }
      query.token = page.token
      if !page.moreComing { break }
      if random.chance(percent: 70) { try change() }
    }
    let final = try world.cloud.allRecords(in: world.zone)
    #expect(known.values.map(\.changeTag).count == final.count, "seed \(seed)")
    for record in final { #expect(known[record.id.name]?.changeTag == record.changeTag, "seed \(seed)") }
  }

  @Test("W25: changes/database reports created, changed and deleted zones; a quiet call reports none")
  func database() throws {
    let world = try World()
    let other = ZoneID(name: "Other")
    _ = try world.cloud.createZones([other])
    let start = try world.cloud.databaseChanges(since: nil)
    #expect(start.changed == [world.zone, other] && start.deleted == [] && !start.moreComing)
    #expect(
      try world.cloud.databaseChanges(since: start.token)
        == DatabasePage(changed: [], deleted: [], token: start.token, moreComing: false))
    try world.save("a")
    let second = try world.cloud.databaseChanges(since: start.token)
    #expect(second.changed == [world.zone] && second.deleted == [])
    _ = try world.cloud.deleteZones([other])
    let third = try world.cloud.databaseChanges(since: second.token)
    #expect(third.changed == [] && third.deleted == [other])
    #expect(try world.cloud.databaseChanges(since: nil).deleted == [])
    _ = try world.cloud.createZones([other])
    #expect(try world.cloud.databaseChanges(since: third.token).changed == [other])
  }

  @Test("W28: a re-created zone starts empty; the default zone cannot be deleted")
  func recreated() throws {
    let world = try World()
    for i in 0..<50 { try world.save("a\(i)") }
    _ = try world.cloud.deleteZones([world.zone])
    _ = try world.cloud.createZones([world.zone])
    #expect(try world.cloud.allRecords(in: world.zone) == [])
    try world.save("a1")
    #expect(try world.feed().records == ["a1"])
    let result = try world.cloud.deleteZones([ZoneID(name: "_defaultZone")])[0]
    #expect(throws: CloudError(.badRequest, "The default zone cannot be deleted")) { try result.get() }
  }

  @Test("section 8: desired types are exact, tombstones included; a page may be empty with more coming")
  func desiredTypes() throws {
    var settings = ServerSettings()
    settings.rowsPerScan = 5
    let world = try World(settings: settings)
    let start = try world.feed().token
    for i in 0..<12 { try world.run(.create, world.note("n\(i)")) }
    try world.run(.create, world.note("t", type: "Task"))
    try world.run(.create, world.note("u", type: "Task"))
    try world.run(.forceDelete, world.note("u"))
    var query = ZoneFeedQuery(zone: world.zone, token: start)
    query.desiredTypes = ["Task"]
    var names: [String] = []
    var emptyPages = 0
    while true {
      let page = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get()
      if page.entries.isEmpty, page.moreComing { emptyPages += 1 }
      for entry in page.entries {
        switch entry {
        case .record(let record): names.append(record.id.name)
        case .tombstone(let end): names.append("-" + end.id.name)
        }
      }
      query.token = page.token
      if !page.moreComing { break }
    }
    #expect(names == ["t", "-u"])
    #expect(emptyPages > 0)
  }

  @Test(
    "section 8: a run in reverse gives every record once, newest first, and ends where it began",
    arguments: [1, 2, 3, 9])
  func reversePages(limit: Int) throws {
    let world = try World()
    let core = world.server.core
    for i in 0..<7 { try world.save("r\(i)") }
    try world.run(.forceDelete, world.note("r3"))
    var query = limited(world, limit)
    query.reverse = true
    var names: [String] = []
    var pages = 0
    while true {
      let page = try core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get()
      #expect(page.entries.count <= limit)
      for entry in page.entries { if case .record(let record) = entry { names.append(record.id.name) } }
      query.token = page.token
      // What changes during the run comes after it.
      if pages == 0 {
        try world.save("new")
        try world.run(.forceDelete, world.note("r1"))
      }
      pages += 1
      if !page.moreComing { break }
    }
    // The record that died during the run had been given out where the first page was that long.
    #expect(names.filter { $0 != "r1" } == ["r6", "r5", "r4", "r2", "r0"] && Set(names).count == names.count)
    query.reverse = false
    let rest = try core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get()
    let changes = rest.entries.map { entry in
      switch entry {
      case .record(let record): record.id.name
      case .tombstone(let end): "-" + end.id.name
      }
    }
    #expect(changes == Array(["new", "-r1"].prefix(limit)) && rest.moreComing == (limit < 2))
  }

  @Test("section 8: reverse gives newest first; it begins without a token")
  func reverse() throws {
    let world = try World()
    for name in ["a", "b", "c"] { try world.save(name) }
    var query = limited(world, 2)
    query.reverse = true
    let page = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get()
    let names = page.entries.map { if case .record(let record) = $0 { record.id.name } else { "" } }
    #expect(names == ["c", "b"] && page.moreComing)
    query.token = try world.cloud.zoneChanges(in: world.zone, since: nil).token
    let error = failure { _ = try world.server.core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get() }
    #expect(error?.code == .badRequest)
  }

  @Test("memory: a page ends when its fields reach the limit of bytes")
  func pageBytes() throws {
    var settings = ServerSettings()
    settings.bytesPerPage = 10_000
    let world = try World(settings: settings)
    for i in 0..<10 { try world.save("r\(i)", ["b": .bytes([UInt8](repeating: 1, count: 4_000))]) }
    let page = try world.cloud.zoneChanges(in: world.zone, since: nil)
    #expect(page.records.count == 3 && page.moreComing)
    #expect(try world.cloud.allRecords(in: world.zone).count == 10)
  }
}
