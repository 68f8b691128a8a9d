import CairnRecords
import Testing

@testable import CairnWire

@Suite("Codecs, both directions")
struct RoundTripTests {
  let zone = ZoneID(name: "Notes")

  static var styles: [WireStyle] {
    var strings = WireStyle()
    strings.numbers = .strings
    strings.writesOwnerName = true
    return [WireStyle(), .client, strings]
  }

  @Test("W13: every field type comes back, in every number style; seeded", arguments: 0..<30 as Range<UInt64>)
  func answers(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let records = (0..<20).map { random.record("r\($0)", zone: zone) }
    for style in Self.styles {
      var writer = JSONWriter()
      writer.beginZones()
      writer.beginZonePage(zone, style)
      for record in records { writer.record(record, style) }
      writer.endZonePage(token: ChangeToken("tok"), moreComing: true)
      writer.endZones()
      let page = try ZoneChangesAnswer.decode(writer.bytes, zone: zone, trustsDeletionTimes: false).get()
      #expect(page.records == records, "seed \(seed)")
      #expect(page.token.rawValue == "tok" && page.moreComing)
    }
  }

  @Test("operations come back with nulls, tags and delete times; seeded", arguments: 0..<30 as Range<UInt64>)
  func requests(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var style = WireStyle.client
    style.tombstoneTime = true
    let operations = (0..<20).map { i -> RecordOperation in
      var record = random.record("r\(i)", zone: zone)
      record.created = nil
      record.modified = nil
      if Bool.random(using: &random) { record.changeTag = nil }
      if Bool.random(using: &random) { record.fields.set("nothing", nil) }
      let kind = RecordOperation.Kind.allCases.randomElement(using: &random) ?? .create
      guard kind.isDelete else { return RecordOperation(kind, record) }
      record.fields = Fields()
      record.parent = nil
      record.modified = RecordStamp(timestamp: Int64(i))
      return RecordOperation(kind, record, deleteTime: Int64(i))
    }
    var writer = JSONWriter()
    ModifyRequest.encode(zone: zone, operations, atomic: false, style: style, into: &writer)
    let request = try ModifyRequest(decoding: writer.bytes)
    #expect(request.operations.map(\.operation) == operations, "seed \(seed)")
    #expect(request.operations.allSatisfy { $0.untyped.isEmpty && $0.problem == nil })
    #expect(!request.atomic && request.numbersAsStrings && request.desiredKeys == [] && request.zone == zone)
  }

  @Test("mutated and cut input gives an error or a value, never a crash; seeded", arguments: 0..<8 as Range<UInt64>)
  func mutations(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var writer = JSONWriter()
    writer.beginZones()
    writer.beginZonePage(zone, WireStyle())
    for i in 0..<3 { writer.record(random.record("r\(i)", zone: zone), WireStyle()) }
    writer.endZonePage(token: ChangeToken("tok"), moreComing: false)
    writer.endZones()
    let answer = writer.bytes
    var request = JSONWriter()
    let operations = (0..<3).map { RecordOperation(.update, random.record("r\($0)", zone: zone)) }
    ModifyRequest.encode(zone: zone, operations, atomic: true, into: &request)
    for body in [answer, request.bytes] {
      for cut in stride(from: 0, to: body.count, by: 7) { decodeAll(Array(body.prefix(cut))) }
      for _ in 0..<150 {
        var copy = body
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          let place = Int.random(in: 0..<copy.count, using: &random)
          switch Int.random(in: 0...2, using: &random) {
          case 0: copy[place] = UInt8.random(in: 0...255, using: &random)
          case 1: copy.remove(at: place)
          default: copy.insert("{}[]\":,0-.eEtn\\u".utf8.randomElement(using: &random) ?? 0, at: place)
          }
        }
        decodeAll(copy)
      }
    }
    for cut in 0..<answer.count {
      #expect(throws: WireError.self) { try JSONValue(parsing: Array(answer.prefix(cut))) }
    }
  }

  private func decodeAll(_ body: [UInt8]) {
    _ = try? ModifyRequest(decoding: body)
    _ = try? LookupRequest(decoding: body)
    _ = try? ZoneChangesRequest(decoding: body)
    _ = try? ZonesModifyRequest(decoding: body)
    _ = try? ZoneChangesAnswer.decode(body, zone: zone, trustsDeletionTimes: true)
    _ = try? LookupAnswer.decode(body, zone: zone, names: ["r0", "r1", "r2"])
    _ = try? DatabaseChangesAnswer.decode(body)
    _ = try? ZonesAnswer.decode(body)
    _ = try? UserAnswer(decoding: body)
    _ = try? RequestFailure.decode(body)
  }
}
