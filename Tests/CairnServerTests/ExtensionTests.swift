import CairnServerCore
import CairnWire
import Testing

@testable import CairnServer

/// The extensions of web-services section 15 over the wire.
@Suite("Cairn extensions")
struct ExtensionTests {
  @Test("W41: each extension is absent unless requested; W42: each delivers its key", arguments: Transport.allCases)
  func extensions(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a")
    try peer.save("b")
    let token = try peer.changes()["syncToken"]?.string
    let create = #"{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}"#
    #expect(try peer.modify(create)[0]["serverRecord"] == nil)
    #expect(try peer.modify(create, query: "cairn=conflict-record")[0]["serverRecord"]?["recordName"]?.string == "a")
    let delete = #"{"operationType":"forceDelete","record":{"recordName":"a","modified":{"timestamp":42}}}"#
    let other = #"{"operationType":"forceDelete","record":{"recordName":"b","modified":{"timestamp":43}}}"#
    try peer.modify(delete, query: "cairn=tombstone-time")
    try peer.modify(other)
    let typed = try peer.changes(token, query: "cairn=tombstone-type").list("records")[0]
    #expect(typed.keys == ["recordName", "deleted", "zoneID", "recordType", "recordChangeTag"])
    let timed = try peer.changes(token, query: "cairn=tombstone-time").list("records")
    #expect(timed.map { $0["modified"]?["timestamp"] } == [.integer(42), .integer(peer.clock.now)])
    #expect(timed[0]["modified"]?["userRecordName"]?.string?.hasPrefix("_") == true)
    #expect(try peer.changes().names == [])
    #expect(try peer.changes(query: "cairn=tombstone-all").names == ["a", "b"])
    #expect(try peer.post("changes/database").list("zones")[0]["syncToken"] == nil)
    let zone = try peer.post("changes/database", query: "cairn=zone-token").list("zones")[0]
    #expect(try peer.changes(zone["syncToken"]?.string).names == [])
    let features = try peer.post("zones/list").headers["x-cairn-features"]
    #expect(
      features
        == "conflict-record,tombstone-type,tombstone-time,tombstone-all,expired-code,zone-token,feed-position,page=2000,gzip"
    )
  }

  @Test("W41, W42: feed-position tells where the feed stood before and after", arguments: Transport.allCases)
  func feedPosition(_ transport: Transport) throws {
    let peer = try Peer(transport)
    func save(_ name: String, _ zone: String = "Notes", query: String) throws -> Peer.Reply {
      try peer.post(
        "records/modify",
        #"{"zoneID":{"zoneName":"\#(zone)"},"operations":[{"operationType":"create","record":{"recordName":"\#(name)","recordType":"Note"}}]}"#,
        query: query)
    }
    let start = try peer.changes()["syncToken"]?.string
    let plain = try save("a", query: "")
    #expect(plain["previousSyncToken"] == nil && plain["syncToken"] == nil)
    let before = try peer.changes()["syncToken"]?.string
    let asked = try save("b", query: "cairn=feed-position")
    #expect(asked["previousSyncToken"]?.string == before && before != start)
    #expect(asked["syncToken"]?.string == (try peer.changes()["syncToken"]?.string))
    #expect(try peer.changes(asked["previousSyncToken"]?.string).names == ["b"])
    #expect(try peer.changes(asked["syncToken"]?.string).names == [])
    let both = try save("c", query: "getCurrentSyncToken=true&cairn=feed-position")
    #expect(both["previousSyncToken"] == asked["syncToken"])
    #expect(both["syncToken"]?.string == (try peer.changes()["syncToken"]?.string))
    let refused = try save("c", query: "cairn=feed-position")
    #expect(refused["previousSyncToken"] == both["syncToken"] && refused["syncToken"] == both["syncToken"])
    let missing = try save("a", "Nowhere", query: "cairn=feed-position")
    #expect(missing["previousSyncToken"] == nil && missing["syncToken"] == nil)
  }

  @Test("W42: gzip request bodies are accepted; answers are gzip where asked", arguments: Transport.allCases)
  func gzip(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let text = String(repeating: "rock ", count: 1_000)
    let body =
      #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note","fields":{"t":{"value":"\#(text)"}}}}]}"#
    let packed = try #require(Gzip.compress(Array(body.utf8)))
    let reply = try peer.call(
      "POST", Peer.path + "records/modify", query: "ckSession=a%2Bb%2Fc%3D%3D",
      ["Content-Encoding": "gzip", "Accept-Encoding": "deflate, gzip"], packed)
    #expect(reply.headers["content-encoding"] == "gzip" && reply.body.count < 1_000)
    #expect(reply.list("records").first?.field("t").0 == .string(text))
    let broken = try peer.call(
      "POST", Peer.path + "records/modify", query: "ckSession=a%2Bb%2Fc%3D%3D", ["Content-Encoding": "gzip"],
      Array(packed.dropLast(9)))
    #expect(broken.status == 400 && broken.code == "BAD_REQUEST")
    let bomb = try #require(Gzip.compress([UInt8](repeating: 32, count: 64 << 20)))
    let refused = try peer.call(
      "POST", Peer.path + "records/modify", query: "ckSession=a%2Bb%2Fc%3D%3D", ["Content-Encoding": "gzip"], bomb)
    #expect(refused.status == 400 && refused.code == "BAD_REQUEST")
  }
}
