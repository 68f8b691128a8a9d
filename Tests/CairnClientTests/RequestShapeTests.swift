import CairnEngine
import CairnRecords
import CairnWire
import Testing

@testable import CairnClient

@Suite("What the client sends")
struct RequestShapeTests {
  static let caller = BrokenNetworkTests.caller
  let zone = ZoneID(name: "Z")

  func database(_ responder: TinyResponder) throws -> WebServicesDatabase {
    WebServicesDatabase(
      ServiceOptions(server: try ServerURL(parsing: "http://127.0.0.1:\(responder.port)"), token: "a+b/c="))
  }

  static let emptyPage =
    #"{"zones":[{"zoneID":{"zoneName":"Z","ownerRecordName":"_u"},"records":[],"syncToken":"s1","moreComing":false}]}"#

  @Test("W5, W41: token encoded once; extensions only where announced; one connection")
  func extensions() throws {
    let announced =
      "X-Cairn-Features: conflict-record, tombstone-type, tombstone-time, expired-code, feed-position, page=400, gzip, new"
    let responder = try TinyResponder([
      .answer(200, headers: [announced], body: Self.caller), .answer(200, body: Self.emptyPage),
    ])
    defer { responder.stop() }
    let database = try database(responder)
    #expect(database.limits.entriesPerRequest == 200)
    let page = try database.zoneChanges(in: zone, since: ChangeToken("s0"))
    #expect(page == ZonePage(zone: zone, records: [], deletions: [], token: ChangeToken("s1"), moreComing: false))
    #expect(database.limits.entriesPerRequest == 400)
    let heads = responder.requests.map(\.head)
    #expect(
      heads.first?.hasPrefix(
        "GET /database/1/iCloud.cairn/production/public/users/caller?ckWebAuthToken=a%2Bb%2Fc%3D HTTP/1.1") == true)
    #expect(
      heads.last?.hasPrefix(
        "POST /database/1/iCloud.cairn/production/private/changes/zone?ckWebAuthToken=a%2Bb%2Fc%3D"
          + "&cairn=conflict-record%2Ctombstone-type%2Ctombstone-time%2Cexpired-code%2Cfeed-position%2Cpage%3D400 HTTP/1.1"
      ) == true)
    #expect(
      String(decoding: responder.requests[1].body, as: UTF8.self)
        == #"{"numbersAsStrings":true,"zones":[{"zoneID":{"zoneName":"Z"},"syncToken":"s0","resultsLimit":400}]}"#)
    #expect(responder.connectionCount == 1)
  }

  @Test("without announcement nothing is requested, and tombstone times are not believed")
  func apple() throws {
    let body = Self.emptyPage.replacing(
      "\"records\":[]", with: #""records":[{"recordName":"a","deleted":true,"modified":{"timestamp":5}}]"#)
    let responder = try TinyResponder([.answer(200, body: Self.caller), .answer(200, body: body)])
    defer { responder.stop() }
    let page = try database(responder).zoneChanges(in: zone, since: nil)
    #expect(page.deletions == [RecordDeletion(id: RecordID(name: "a", zone: zone))])
    #expect(responder.requests.allSatisfy { !$0.head.contains("cairn=") })
    #expect(!String(decoding: responder.requests[1].body, as: UTF8.self).contains("syncToken"))
  }

  @Test("section 3: a token in an answer replaces the used one")
  func rotation() throws {
    let responder = try TinyResponder([
      .answer(200, headers: ["X-Apple-CloudKit-Web-Auth-Token: next/1"], body: Self.caller),
      .answer(200, body: Self.emptyPage),
    ])
    defer { responder.stop() }
    _ = try database(responder).zoneChanges(in: zone, since: nil)
    #expect(responder.requests[1].head.contains("ckWebAuthToken=next%2F1 "))
  }

  @Test("rule 4: BAD_REQUEST is an expired token where a token was sent, in an entry or for the request")
  func expired() throws {
    let failure = #"{"serverErrorCode":"BAD_REQUEST","reason":"Unknown sync continuation type"}"#
    let entry =
      #"{"zones":[{"zoneID":{"zoneName":"Z"},"serverErrorCode":"BAD_REQUEST","reason":"Sync token expired"}]}"#
    let cause =
      #"{"zones":[{"zoneID":{"zoneName":"Z"},"serverErrorCode":"CHANGE_TOKEN_EXPIRED","reason":"x","cause":"epoch"}]}"#
    let responder = try TinyResponder([
      .answer(200, body: Self.caller), .answer(400, body: failure), .answer(200, body: entry),
      .answer(200, body: cause),
      .answer(400, body: failure),
    ])
    defer { responder.stop() }
    let database = try database(responder)
    let token = ChangeToken("s")
    #expect(throws: CloudError(.changeTokenExpired, "Unknown sync continuation type")) {
      try database.databaseChanges(since: token)
    }
    #expect(throws: CloudError(.changeTokenExpired, "Sync token expired")) {
      try database.zoneChanges(in: zone, since: token)
    }
    #expect(throws: CloudError(.changeTokenExpired, "x", expiryCause: .epoch)) {
      try database.zoneChanges(in: zone, since: token)
    }
    #expect(throws: CloudError(.badRequest, "Unknown sync continuation type")) {
      try database.databaseChanges(since: nil)
    }
  }

  @Test("rule 3: EXISTS on creating a zone is success; entries keep their order; zones are named by the caller")
  func zones() throws {
    let answer = """
      {"zones":[{"zoneID":{"zoneName":"A"},"serverErrorCode":"EXISTS"},{"zoneID":{"zoneName":"B","ownerRecordName":"_u"}},
      {"zoneID":{"zoneName":"C"},"serverErrorCode":"ACCESS_DENIED","reason":"no"}]}
      """
    let responder = try TinyResponder([
      .answer(200, body: Self.caller), .answer(200, body: answer),
      .answer(200, body: #"{"zones":[{"zoneID":{"zoneName":"A"},"serverErrorCode":"ZONE_NOT_FOUND","reason":"no"}]}"#),
      .answer(
        200, body: #"{"zones":[{"zoneID":{"zoneName":"A","ownerRecordName":"_u"}}],"syncToken":"d","moreComing":true}"#),
    ])
    defer { responder.stop() }
    let database = try database(responder)
    let names = ["A", "B", "C"].map { ZoneID(name: $0) }
    #expect(
      try database.createZones(names) == [
        .success(names[0]), .success(names[1]), .failure(CloudError(.accessDenied, "no")),
      ])
    #expect(try database.zoneExists(names[0]) == false)
    #expect(
      try database.databaseChanges(since: nil)
        == DatabasePage(changed: [names[0]], deleted: [], token: ChangeToken("d"), moreComing: true))
  }

  @Test("gzip answers are unpacked, also where the length is not known before")
  func gzip() throws {
    let packed = try #require(Gzip.compress(Array(Self.caller.utf8)))
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(packed.count)\r\n\r\n"
    let responder = try TinyResponder([.bytes(Array(head.utf8) + packed)])
    defer { responder.stop() }
    let options = ServiceOptions(server: try ServerURL(parsing: "http://127.0.0.1:\(responder.port)"), token: "t")
    let transport = CurlTransport(caFile: nil, acceptsGzip: true)
    #expect(try WebServicesDatabase(options, transport: transport).currentUser() == "_u")
    #expect(responder.requests[0].head.contains("Accept-Encoding: gzip"))
  }

  @Test("options never show their tokens")
  func redaction() throws {
    let options = ServiceOptions(
      server: .apple, container: "iCloud.x", token: "TOPSECRET", apiToken: "APISECRET")
    var dumped = "\(options) \(String(reflecting: options))"
    dump(options, to: &dumped)
    #expect(!dumped.contains("SECRET"))
  }
}
