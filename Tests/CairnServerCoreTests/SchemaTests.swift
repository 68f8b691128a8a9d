import CairnEngine
import CairnRecords
import CairnServerCore
import CairnTesting
import Testing

/// Schema memory of web-services section 7.
@Suite(.everyStore) struct SchemaTests {
  /// Saves one field that came without type.
  private func untyped(_ world: World, _ name: String, _ value: FieldValue) throws -> OperationOutcome {
    let operation = RecordOperation(.forceReplace, world.note(name, ["f": value]))
    let request = Modification(operations: [IncomingOperation(operation, untypedFields: ["f"])])
    return try world.server.core.modify(world.cloud.caller, world.cloud.scope, request).outcomes[0]
  }

  private func typed(_ world: World, _ name: String, _ value: FieldValue) throws -> OperationOutcome {
    try world.run(.forceReplace, world.note(name, ["f": value]))
  }

  private func field(_ world: World, _ name: String) throws -> FieldValue? { try world.stored(name)?.fields["f"] }

  @Test("W15: typed BYTES, then untyped base64 is answered as BYTES; other text is refused")
  func bytes() throws {
    let world = try World()
    _ = try typed(world, "a", .bytes([1, 2, 3]))
    #expect(try untyped(world, "b", .string("BAUG")).saved().fields["f"] == .bytes([4, 5, 6]))
    #expect(try untyped(world, "c", .string("no base64!")).error?.code == .badRequest)
  }

  @Test("W15: untyped 2 then 2.5 make DOUBLE, also of what was stored before")
  func numbers() throws {
    let world = try World()
    #expect(try untyped(world, "a", .int64(2)).saved().fields["f"] == .int64(2))
    #expect(try untyped(world, "b", .double(2.5)).saved().fields["f"] == .double(2.5))
    #expect(try untyped(world, "c", .int64(3)).saved().fields["f"] == .double(3))
    #expect(try field(world, "a") == .double(2))
    let page = try world.cloud.zoneChanges(in: world.zone, since: nil)
    #expect(page.records.map { $0.fields["f"] } == [.double(2), .double(2.5), .double(3)])
    try world.server.restart()
    #expect(try field(world, "a") == .double(2))
  }

  @Test("W15: a provisional STRING yields to explicit BYTES, a firm one does not")
  func yielding() throws {
    let world = try World()
    _ = try untyped(world, "a", .string("AQID"))
    #expect(try typed(world, "b", .bytes([9])).error == nil)
    #expect(try field(world, "a") == .bytes([1, 2, 3]))
    #expect(try typed(world, "c", .string("x")).error?.code == .badRequest)
    #expect(try typed(world, "d", .timestamp(1)).error?.code == .badRequest)
  }

  @Test("W15: a provisional STRING that is no base64 yields to nothing, whichever record has it")
  func onlyText() throws {
    for texts in [["no base64!"], ["AQID", "no base64!"], ["no base64!", "AQID"]] {
      let world = try World()
      for (i, text) in texts.enumerated() { #expect(try untyped(world, "a\(i)", .string(text)).error == nil) }
      let error = try #require(try typed(world, "b", .bytes([9])).error)
      #expect(error.code == .badRequest && error.reason.contains("STRING") && error.reason.contains("BYTES"))
      for (i, text) in texts.enumerated() { #expect(try field(world, "a\(i)") == .string(text)) }
    }
    let world = try World()
    _ = try untyped(world, "a", .list(.string, [.string("AQID"), .string("?")]))
    #expect(try typed(world, "b", .list(.bytes, [.bytes([9])])).error?.code == .badRequest)
  }

  @Test("W15: a provisional INT64 yields to DOUBLE and TIMESTAMP", arguments: [FieldValue.double(1), .timestamp(1)])
  func yieldingNumbers(_ value: FieldValue) throws {
    let world = try World()
    _ = try untyped(world, "a", .int64(7))
    #expect(try typed(world, "b", value).error == nil)
    #expect(try typed(world, "c", .int64(1)).error?.code == .badRequest)
  }

  @Test("W16: an explicit type that differs is refused, naming both")
  func mismatch() throws {
    let world = try World()
    _ = try typed(world, "a", .string("x"))
    let error = try typed(world, "b", .int64(1)).error
    #expect(error?.code == .badRequest)
    #expect(error?.reason.contains("STRING") == true && error?.reason.contains("INT64") == true)
    #expect(try typed(world, "b", .list(.string, [])).error?.code == .badRequest)
    #expect(try world.stored("b") == nil)
  }

  @Test("W16: a locked schema refuses unknown types and fields")
  func locked() throws {
    let world = try World()
    _ = try typed(world, "a", .string("x"))
    var settings = ServerSettings()
    settings.lockedEnvironments = [.production]
    let other = try World(settings: settings)
    #expect(try other.run(.create, other.note("a")).error?.code == .badRequest)
  }

  @Test("section 7: nulls and empty arrays teach nothing")
  func nothingLearned() throws {
    let world = try World()
    _ = try world.run(.create, world.note("a", ["f": nil]))
    #expect(try untyped(world, "b", .list(.string, [])).error == nil)
    #expect(try typed(world, "c", .int64(1)).error == nil)
    #expect(try untyped(world, "d", .list(.string, [])).error?.code == .badRequest)
  }

  @Test("W14: null fields are absent from answers, in every kind of save")
  func nulls() throws {
    let world = try World()
    try world.save("a", ["f": .string("x"), "g": .int64(1)])
    let updated = try world.run(.forceUpdate, world.note("a", ["f": nil])).saved()
    #expect(updated.fields == ["g": .int64(1)])
    #expect(try world.stored("a")?.fields == ["g": .int64(1)])
    #expect(try world.run(.forceReplace, world.note("a", ["f": .string("y")])).saved().fields == ["f": .string("y")])
  }

  @Test("W13: every field type comes back as it was stored")
  func roundTrip() throws {
    let world = try World()
    var location = Location(latitude: 46.5, longitude: -7.25)
    location.altitude = 4_478
    location.timestamp = 0
    let fields: Fields = [
      "string": .string("Matterhorn \u{1F3D4}\0"), "empty": .string(""), "int": .int64(.min), "max": .int64(.max),
      "double": .double(-0.0), "tiny": .double(.leastNonzeroMagnitude), "bytes": .bytes([0, 255]),
      "noBytes": .bytes([]),
      "time": .timestamp(-62_135_596_800_000.5),
      "reference": .reference(Reference(recordName: "x", zone: ZoneID(name: "z", owner: "o"))),
      "asset": .asset(try world.upload([1, 2, 3], for: AssetTarget(record: "a", type: "Note", field: "asset"))),
      "location": .location(location),
      "strings": .list(.string, [.string("a"), .string("")]), "numbers": .list(.int64, [.int64(1), .int64(-1)]),
      "none": .list(.bytes, []), "secret": .encrypted(.string("s")), "secretBytes": .encrypted(.bytes([1])),
    ]
    // An asset comes back with an address and without its receipt.
    func plain(_ fields: Fields?) -> Fields? {
      guard var fields, case .asset(var asset)? = fields["asset"] else { return fields }
      (asset.receipt, asset.downloadURL) = (nil, nil)
      fields["asset"] = .asset(asset)
      return fields
    }
    #expect(plain(try world.save("a", fields).fields) == plain(fields))
    #expect(plain(try world.stored("a")?.fields) == plain(fields))
    #expect(try world.cloud.zoneChanges(in: world.zone, since: nil).records.map { plain($0.fields) } == [plain(fields)])
  }
}
