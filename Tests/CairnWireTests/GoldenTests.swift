import CairnRecords
import Foundation
import Testing

@testable import CairnWire

/// The files in Golden are the format: a change of what is written must change them, and they must stay readable.
@Suite("Golden files of the wire format")
struct GoldenTests {
  static let owner = "_0123456789abcdef0123456789abcdef"
  static let zone = ZoneID(name: "Notes", owner: owner)
  static let own = ZoneID(name: "Notes")

  static func bytes(_ name: String) throws -> [UInt8] {
    let url = try #require(Bundle.module.url(forResource: "Golden/\(name)", withExtension: "json"))
    return try [UInt8](Data(contentsOf: url)).filter { $0 != UInt8(ascii: "\n") }
  }

  static func check(_ name: String, _ body: (inout JSONWriter) -> Void) throws {
    var writer = JSONWriter()
    body(&writer)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self) == String(decoding: try bytes(name), as: UTF8.self), "\(name)")
  }

  static var location: Location {
    var location = Location(latitude: 46.5, longitude: -7.25)
    location.altitude = 3_454
    location.timestamp = 1_700_000_000_000.5
    return location
  }

  static func record(in zone: ZoneID, changeTag: String = "1h") -> Record {
    Record(
      id: RecordID(name: "notes:7", zone: zone), type: "notes", changeTag: ChangeTag(changeTag),
      fields: [
        "text": .string("Hütte \"A\"\n🏔"), "empty": .string(""), "small": .int64(-7),
        "large": .int64(9_007_199_254_740_993),
        "real": .double(0.1), "whole": .double(3), "bytes": .bytes([0, 255, 16, 131]), "none": .bytes([]),
        "time": .timestamp(1_700_000_000_000), "fraction": .timestamp(-0.5),
        "ref": .reference(Reference(recordName: "folders:1")),
        "far": .reference(Reference(recordName: "x", zone: ZoneID(name: "Other"), action: .deleteSelf)),
        "file": .asset(Asset(fileChecksum: "c1", size: 5, receipt: "r1")), "place": .location(location),
        "texts": .list(.string, [.string("a"), .string("b")]), "numbers": .list(.int64, []),
        "secret": .encrypted(.string("s")), "secretBytes": .encrypted(.bytes([1])),
      ],
      created: RecordStamp(timestamp: 1_700_000_000_000, userRecordName: owner, deviceID: "2"),
      modified: RecordStamp(timestamp: 1_700_000_009_000, userRecordName: owner, deviceID: "2"), parent: "folders:1")
  }

  static var operations: [RecordOperation] {
    var changed = record(in: own)
    changed.created = nil
    changed.modified = nil
    changed.fields.set("gone", nil)
    return [
      RecordOperation(.update, changed),
      RecordOperation(
        .delete, Record(id: RecordID(name: "notes:8", zone: own), type: "notes", changeTag: ChangeTag("2")),
        deleteTime: 1_700_000_000_001),
      RecordOperation(.create, Record(id: RecordID(name: "notes:9", zone: own), type: "notes")),
    ]
  }

  static var extended: WireStyle {
    var style = WireStyle()
    style.conflictRecord = true
    style.tombstoneType = true
    style.tombstoneTime = true
    return style
  }

  @Test("records/modify, request")
  func modifyRequest() throws {
    var style = WireStyle.client
    style.tombstoneTime = true
    try Self.check("modify-request") {
      ModifyRequest.encode(zone: Self.own, Self.operations, atomic: true, style: style, into: &$0)
    }
    let request = try ModifyRequest(decoding: try Self.bytes("modify-request"))
    var expected = Self.operations
    expected[1].record.modified = RecordStamp(timestamp: 1_700_000_000_001)
    #expect(request.operations.map(\.operation) == expected)
  }

  @Test("records/modify, answer: saved, deleted, conflict with the server's record, other failures")
  func modifyAnswer() throws {
    let server = Self.record(in: Self.zone, changeTag: "1i")
    let outcomes: [OperationOutcome] = [
      .failed(
        RecordID(name: "notes:7", zone: Self.zone),
        CloudError(.conflict, "client oplock error updating record", serverRecord: server)),
      .deleted(RecordID(name: "notes:8", zone: Self.zone)),
      .failed(RecordID(name: "notes:9", zone: Self.zone), CloudError(.throttled, "slow down", retryAfter: 2.5)),
    ]
    try Self.check("modify-answer") {
      ModifyAnswer.encode(
        outcomes, style: Self.extended, desiredKeys: [], syncToken: ChangeToken("tok"), into: &$0)
    }
    let decoded = try ModifyAnswer.decode(try Self.bytes("modify-answer"), to: Self.operations)
    let serverRecord = Self.record(in: Self.own, changeTag: "1i")
    #expect(decoded.position == nil, "one token alone tells nothing")
    #expect(
      decoded.outcomes == [
        .failed(
          Self.operations[0].record.id,
          CloudError(.conflict, "client oplock error updating record", serverRecord: serverRecord)),
        .deleted(Self.operations[1].record.id),
        .failed(Self.operations[2].record.id, CloudError(.throttled, "slow down", retryAfter: 2.5)),
      ])
  }

  @Test("records/modify, answer with feed-position")
  func modifyAnswerPosition() throws {
    let step = FeedStep(before: ChangeToken("tok1"), after: ChangeToken("tok2"))
    let outcomes: [OperationOutcome] = [.deleted(RecordID(name: "notes:8", zone: Self.zone))]
    try Self.check("modify-answer-position") {
      ModifyAnswer.encode(outcomes, style: Self.extended, syncToken: ChangeToken("tok3"), position: step, into: &$0)
    }
    let decoded = try ModifyAnswer.decode(try Self.bytes("modify-answer-position"), to: [Self.operations[1]])
    #expect(decoded.position == step)
    #expect(decoded.outcomes == [.deleted(Self.operations[1].record.id)])
  }

  @Test("changes/zone, answer: records, tombstones with extensions, a failed zone")
  func zoneChangesAnswer() throws {
    let deletion = RecordDeletion(id: RecordID(name: "notes:8", zone: Self.zone), type: "notes", time: 5)
    try Self.check("zone-changes-answer") {
      $0.beginZones()
      $0.beginZonePage(Self.zone, Self.extended)
      $0.record(Self.record(in: Self.zone), Self.extended)
      $0.tombstone(
        deletion, changeTag: ChangeTag("2"), modified: RecordStamp(timestamp: 5, userRecordName: Self.owner),
        Self.extended)
      $0.tombstone(deletion, changeTag: ChangeTag("2"), WireStyle())
      $0.endZonePage(token: ChangeToken("tok"), moreComing: true)
      $0.endZones()
    }
    let page = try ZoneChangesAnswer.decode(
      try Self.bytes("zone-changes-answer"), zone: Self.own, trustsDeletionTimes: true
    ).get()
    let id = RecordID(name: "notes:8", zone: Self.own)
    #expect(page.records == [Self.record(in: Self.own)])
    #expect(page.deletions == [RecordDeletion(id: id, type: "notes", time: 5), RecordDeletion(id: id)])

    var expired = CloudError(.changeTokenExpired, "Sync token expired", expiryCause: .epoch)
    try Self.check("zone-changes-expired") {
      $0.beginZones()
      $0.failedZone(Self.zone, expired, WireStyle())
      $0.endZones()
    }
    let failure = try ZoneChangesAnswer.decode(
      try Self.bytes("zone-changes-expired"), zone: Self.own, trustsDeletionTimes: false)
    #expect(failure == .failure(expired))
    expired.code = .badRequest
    var writer = JSONWriter()
    writer.failedZone(Self.zone, expired, WireStyle())
    #expect(!String(decoding: writer.bytes, as: UTF8.self).contains("cause"), "W41: only with expired-code")
  }

  @Test("switches of section 14: LIST, ownerName, strings for numbers, strict keys")
  func switches() throws {
    var style = WireStyle()
    style.numbers = .strings
    style.namesListsLIST = true
    style.writesOwnerName = true
    style.strictKeys = true
    try Self.check("switches-answer") {
      $0.beginRecords()
      $0.record(Self.record(in: Self.zone), style, desiredKeys: ["large", "real", "texts", "time", "far"])
      $0.failedRecord("a", CloudError(.tryAgainLater, "later", retryAfter: 3), style)
      $0.endRecords()
    }
  }

  @Test("feeds and zones, requests and answers")
  func zones() throws {
    var query = ZoneChangesQuery(zone: Self.own, syncToken: "t\"1", resultsLimit: 100)
    query.desiredKeys = []
    query.desiredRecordTypes = ["notes"]
    query.reverse = false
    try Self.check("zone-changes-request") { ZoneChangesRequest.encode([query], into: &$0) }
    #expect(try ZoneChangesRequest(decoding: try Self.bytes("zone-changes-request")).zones == [query])

    let page = DatabasePage(
      changed: [Self.zone], deleted: [ZoneID(name: "Old", owner: Self.owner)], token: ChangeToken("d1"),
      moreComing: false)
    try Self.check("database-changes-answer") {
      DatabaseChangesAnswer.encode(page, style: WireStyle(), into: &$0)
    }
    #expect(try DatabaseChangesAnswer.decode(try Self.bytes("database-changes-answer")) == page)
    try Self.check("zones-changes-answer") {
      DatabaseChangesAnswer.encode(
        page, style: WireStyle(), zoneTokens: [Self.zone: ChangeToken("z1")], asZonesChanges: true, into: &$0)
    }
    #expect(try DatabaseChangesAnswer.decode(try Self.bytes("zones-changes-answer")) == page)

    let entries = [
      ZoneEntry(zone: .defaultZone, isAtomic: false), ZoneEntry(zone: Self.zone, syncToken: ChangeToken("z1")),
      ZoneEntry(zone: ZoneID(name: "Old"), isAtomic: false, isDeleted: true),
      ZoneEntry(
        zone: ZoneID(name: "x"), isAtomic: false, error: CloudError(.zoneNotFound, "Zone 'x' does not exist")),
    ]
    try Self.check("zones-answer") { ZonesAnswer.encode(entries, style: WireStyle(), into: &$0) }
    #expect(try ZonesAnswer.decode(try Self.bytes("zones-answer")) == entries)

    let operations: [ZonesModifyRequest.Operation] = [.create(Self.own), .delete(Self.zone)]
    try Self.check("zones-modify-request") { ZonesModifyRequest.encode(operations, into: &$0) }
    #expect(try ZonesModifyRequest(decoding: try Self.bytes("zones-modify-request")).operations == operations)
    try Self.check("zones-lookup-request") { ZonesLookupRequest.encode([Self.own, Self.zone], into: &$0) }
    #expect(try ZonesLookupRequest(decoding: try Self.bytes("zones-lookup-request")).zones == [Self.own, Self.zone])
    try Self.check("lookup-request") { LookupRequest.encode(zone: Self.own, names: ["a", "b"], into: &$0) }
    #expect(try LookupRequest(decoding: try Self.bytes("lookup-request")).items.map(\.name) == ["a", "b"])
  }

  @Test("users and failed requests")
  func usersAndFailures() throws {
    let user = UserAnswer(userRecordName: Self.owner, firstName: "Ada", lastName: nil)
    try Self.check("users-caller") { user.encodeCaller(into: &$0) }
    try Self.check("users-current") { user.encodeCurrent(into: &$0) }
    #expect(try UserAnswer(decoding: try Self.bytes("users-caller")) == user)
    #expect(try UserAnswer(decoding: try Self.bytes("users-current")) == user)

    let error = CloudError(.authenticationRequired, "request needs authorization", redirectURL: "https://s.example/1")
    #expect(RequestFailure.encode(error, uuid: "u-1") == (try Self.bytes("request-failure")))
    #expect(try RequestFailure.decode(try Self.bytes("request-failure")) == error)
  }
}
