import CairnEngine
import CairnRecords
import Testing

/// One body over the server core in process and over loopback HTTP: what the engine sees is the same.
@Suite("A database over both routes")
struct ServedDatabaseTests {
  let zone = ZoneID(name: "Z")

  func pair(_ route: Route) throws -> (world: ServedWorld, a: any CloudDatabase, b: any CloudDatabase) {
    let world = try ServedWorld(route)
    let a = try world.database()
    #expect(try a.createZones([zone]) == [.success(zone)])
    return (world, a, try world.database())
  }

  func record(_ name: String, _ fields: Fields = ["n": .int64(1)], tag: ChangeTag? = nil) -> Record {
    Record(id: RecordID(name: name, zone: zone), type: "T", changeTag: tag, fields: fields)
  }

  func save(_ database: any CloudDatabase, _ record: Record, _ kind: RecordOperation.Kind = .create) throws -> ChangeTag
  {
    let outcomes = try database.modify(in: zone, [RecordOperation(kind, record)], atomic: false)
    guard case .saved(let saved)? = outcomes.first else {
      Issue.record("not saved: \(outcomes)")
      return ChangeTag("")
    }
    #expect(saved.id == record.id)
    return try #require(saved.changeTag)
  }

  /// The whole feed.
  func feed(_ database: any CloudDatabase, since token: ChangeToken? = nil) throws -> [ZonePage] {
    var pages = [try database.zoneChanges(in: zone, since: token)]
    while let last = pages.last, last.moreComing {
      pages.append(try database.zoneChanges(in: zone, since: last.token))
    }
    return pages
  }

  @Test("the identity is the same on every connection", arguments: Route.allCases)
  func identity(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    #expect(try a.currentUser() == b.currentUser())
    #expect(try a.currentUser().hasPrefix("_"))
  }

  @Test("zones come, are listed, and go", arguments: Route.allCases)
  func zones(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    #expect(try a.createZones([zone]) == [.success(zone)])
    #expect(try b.zoneExists(zone))
    #expect(try b.zoneExists(ZoneID(name: "none")) == false)
    let first = try b.databaseChanges(since: nil)
    #expect(first.changed == [zone] && first.deleted.isEmpty && !first.moreComing)
    #expect(try a.deleteZones([zone]) == [.success(zone)])
    #expect(try b.databaseChanges(since: first.token).deleted == [zone])
    #expect(try b.zoneExists(zone) == false)
    let error = #expect(throws: CloudError.self) { try b.zoneChanges(in: zone, since: nil) }
    #expect(error?.code == .zoneNotFound)
  }

  @Test("W13: every type and extreme arrives unchanged", arguments: Route.allCases)
  func types(route: Route) throws {
    let (world, a, b) = try pair(route)
    var location = Location(latitude: 46.5, longitude: -7.25)
    location.altitude = 0.1
    let fields: Fields = [
      "text": .string("\"\\\n\u{0}ß🏔/"), "empty": .string(""), "max": .int64(.max), "min": .int64(.min),
      "odd": .int64(9_007_199_254_740_993), "tenth": .double(0.1), "tiny": .double(.leastNonzeroMagnitude),
      "huge": .double(.greatestFiniteMagnitude), "minus": .double(-0.0), "bytes": .bytes([0, 255]), "none": .bytes([]),
      "time": .timestamp(1_700_000_000_000.5), "ref": .reference(Reference(recordName: "r")),
      "place": .location(location), "list": .list(.string, [.string("a"), .string("")]),
      "ints": .list(.int64, [.int64(.min)]), "secret": .encrypted(.string("s")), "hidden": .encrypted(.bytes([1])),
    ]
    defer { withExtendedLifetime(world) {} }
    let tag = try save(a, record("r", fields))
    let pages = try feed(b)
    let fetched = try #require(pages.first?.records.first)
    #expect(fetched.changeTag == tag && fetched.type == "T")
    for field in fields { #expect(fetched.fields[field.name] == field.value, "\(field.name)") }
    guard case .double(let minus)? = fetched.fields["minus"] else {
      Issue.record("no double")
      return
    }
    #expect(minus.sign == .minus)
    #expect(try b.lookup(in: zone, names: ["r"]) == [.success(fetched)])
  }

  @Test("W8: a conflict carries the whole server record", arguments: Route.allCases)
  func conflict(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    let first = try save(a, record("r", ["n": .int64(1), "other": .string("kept")]))
    let second = try save(b, record("r", ["n": .int64(2)], tag: first), .update)
    #expect(first != second)
    for kind in [RecordOperation.Kind.update, .create] {
      let operation = RecordOperation(kind, record("r", ["n": .int64(3)], tag: kind == .update ? first : nil))
      let outcomes = try a.modify(in: zone, [operation], atomic: false)
      guard case .failed(_, let error)? = outcomes.first else {
        Issue.record("no failure: \(outcomes)")
        continue
      }
      #expect(error.code == .conflict)
      #expect(error.serverRecord?.changeTag == second && error.serverRecord?.id.zone == zone)
      #expect(error.serverRecord?.fields["n"] == .int64(2) && error.serverRecord?.fields["other"] == .string("kept"))
    }
  }

  @Test("tombstone-time: a delete arrives with its type and the client's own time", arguments: Route.allCases)
  func deletion(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    let tag = try save(a, record("r"))
    let before = try #require(try feed(b).last)
    let operation = RecordOperation(.delete, record("r", [:], tag: tag), deleteTime: 1_234_567)
    #expect(try a.modify(in: zone, [operation], atomic: false) == [.deleted(RecordID(name: "r", zone: zone))])
    let after = try feed(b, since: before.token)
    #expect(
      after.flatMap(\.deletions) == [
        RecordDeletion(id: RecordID(name: "r", zone: zone), type: "T", time: 1_234_567)
      ])
    #expect(try b.lookup(in: zone, names: ["r"]).map { result in (try? result.get()) == nil } == [true])
  }

  @Test("W9, W10: atomic stores nothing beside a failure, non-atomic the good ones", arguments: Route.allCases)
  func atomic(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    let bad = RecordOperation(.update, record("missing", tag: ChangeTag("x")))
    let good = RecordOperation(.create, record("good"))
    func codes(_ outcomes: [OperationOutcome]) -> [CloudError.Code?] {
      outcomes.map { if case .failed(_, let error) = $0 { error.code } else { nil } }
    }
    #expect(codes(try a.modify(in: zone, [good, bad], atomic: true)) == [.atomicError, .notFound])
    #expect(try feed(b).flatMap(\.records).isEmpty)
    #expect(codes(try a.modify(in: zone, [good, bad], atomic: false)) == [nil, .notFound])
    #expect(try feed(b).flatMap(\.records).map(\.id.name) == ["good"])
  }

  @Test("W19, W42: 2,500 records in pages; the caught-up token is stable", arguments: Route.allCases)
  func paging(route: Route) throws {
    let (world, a, b) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    _ = try a.currentUser()
    #expect(a.limits.entriesPerRequest == 1000)
    let names = (0..<2500).map { "r\($0)" }
    for start in stride(from: 0, to: names.count, by: 1000) {
      let operations = names[start..<min(start + 1000, names.count)].map { RecordOperation(.create, record($0)) }
      let outcomes = try a.modify(in: zone, operations, atomic: false)
      #expect(outcomes.allSatisfy { if case .saved = $0 { true } else { false } })
    }
    let pages = try feed(b)
    #expect(pages.flatMap(\.records).map(\.id.name).sorted() == names.sorted())
    #expect(pages.count >= 3)
    let end = try #require(pages.last?.token)
    #expect(
      try feed(b, since: end) == [ZonePage(zone: zone, records: [], deletions: [], token: end, moreComing: false)])
    #expect(
      try b.lookup(in: zone, names: ["r7", "none", "r8"]).map { (try? $0.get())?.id.name } == ["r7", nil, "r8"])
  }

  @Test("W22: a token that is none is an expired one", arguments: Route.allCases)
  func badToken(route: Route) throws {
    let (world, a, _) = try pair(route)
    defer { withExtendedLifetime(world) {} }
    for text in ["garbage", "AAAA"] {
      let zoneError = #expect(throws: CloudError.self) { try a.zoneChanges(in: zone, since: ChangeToken(text)) }
      let databaseError = #expect(throws: CloudError.self) { try a.databaseChanges(since: ChangeToken(text)) }
      // In process the code is the core's own; rule 4 of section 13 is the HTTP client's.
      let expected: CloudError.Code = route == .loopback ? .changeTokenExpired : .badRequest
      #expect(zoneError?.code == expected && databaseError?.code == expected)
    }
  }
}
