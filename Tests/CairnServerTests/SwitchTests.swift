import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// Compatibility switches and quotas as clients see them (web-services sections 12 and 14).
@Suite struct SwitchTests {
  private let lists =
    #"{"l":{"value":["a","b"],"type":"STRING_LIST"},"n":{"value":[1,2],"type":"INT64_LIST"},"t":{"value":"x"}}"#

  @Test(
    "web-services W17: listType=LIST leaves no typed list in any answer; LIST is accepted on write",
    arguments: Transport.allCases)
  func listType(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let app = "ckAPIToken=" + (try AccessTests.token(peer, switches: [.listType]))
    try peer.save("a", lists)
    let bodies = [
      (
        "records/modify",
        #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"forceUpdate","record":{"recordName":"a","recordType":"Note","fields":{"l":{"value":["c"],"type":"LIST"},"new":{"value":[1.5],"type":"LIST"}}}}]}"#
      ),
      ("records/lookup", #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"a"}]}"#),
      ("records/query", #"{"zoneID":{"zoneName":"Notes"},"query":{"recordType":"Note"}}"#),
      ("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Notes"}}]}"#),
      ("records/changes", #"{"zoneID":{"zoneName":"Notes"}}"#),
      (
        "records/modify",
        #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}]}"#
      ),
    ]
    for (operation, body) in bodies {
      let switched = try peer.post(operation, body, query: app + "&cairn=conflict-record")
      let text = String(decoding: switched.body, as: UTF8.self)
      #expect(switched.status == 200 && text.contains(#""LIST""#) && !text.contains("_LIST"), "\(operation)")
    }
    // Without the switch they have their types, the written ones too.
    let plain = try peer.post("records/lookup", bodies[1].1).list("records").first
    #expect(plain?.field("l").0 == .array([.string("c")]))
    #expect(
      plain?.field("l").1 == "STRING_LIST" && plain?.field("n").1 == "INT64_LIST"
        && plain?.field("new").1 == "DOUBLE_LIST")
  }

  @Test("section 14: ownerName stands in zone IDs under the switch, and is always read", arguments: Transport.allCases)
  func ownerName(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let app = "ckAPIToken=" + (try AccessTests.token(peer, switches: [.ownerName]))
    try peer.save("a")
    let me = try #require(try peer.get("users/caller")["userRecordName"]?.string)
    let body = #"{"zones":[{"zoneID":{"zoneName":"Notes","ownerName":"\#(me)"}}]}"#
    let page = try #require(try peer.post("changes/zone", body, query: app).list("zones").first)
    #expect(
      page["zoneID"]?["ownerName"]?.string == me && page.list("records").first?["zoneID"]?["ownerName"]?.string == me)
    let listed = try peer.get("zones/list", query: app).list("zones")
    #expect(listed.allSatisfy { $0["zoneID"]?["ownerName"]?.string == me })
    #expect(try peer.post("changes/zone", body).list("zones").first?["zoneID"]?["ownerName"] == nil)
    let other = #"{"zones":[{"zoneID":{"zoneName":"Notes","ownerName":"_00000000000000000000000000000000"}}]}"#
    #expect(try peer.post("changes/zone", other).list("zones").first?.code == "ZONE_NOT_FOUND")
  }

  @Test("section 14: strictKeys leaves only the keys that strict clients know", arguments: Transport.allCases)
  func strictKeys(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let app = "ckAPIToken=" + (try AccessTests.token(peer, switches: [.strictKeys]))
    let all = "&cairn=conflict-record,tombstone-type,tombstone-time,zone-token,feed-position,expired-code,tombstone-all"
    try peer.save("a")
    try peer.save("b")
    let start = try #require(try peer.changes()["syncToken"]?.string)
    try peer.delete("b")
    for query in [app, app + all] {
      let zones = try peer.get("zones/list", query: query).list("zones")
      #expect(
        zones.allSatisfy {
          $0.keys.isSubset(of: ["zoneID", "syncToken"])
            && $0["zoneID"]?.keys == ["zoneName", "ownerRecordName", "zoneType"]
        })
      let failed = try #require(
        try peer.modify(#"{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}"#, query: query)
          .first)
      #expect(failed.keys == ["recordName", "serverErrorCode", "reason"])
      let page = try peer.changes(start, query: query)
      #expect(page.list("records").map(\.keys) == [["recordName", "deleted", "zoneID"]])
      let changes = try peer.post("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Notes"}}]}"#, query: query)
      #expect(changes.json.keys == ["zones"])
      let database = try peer.post("changes/database", "{}", query: query)
      #expect(database.list("zones").allSatisfy { $0.keys == ["zoneID"] })
      let saved = try peer.post("records/modify", #"{"zoneID":{"zoneName":"Notes"},"operations":[]}"#, query: query)
      #expect(saved.json.keys == ["records"])
    }
    #expect(try peer.get("zones/list").list("zones").first?.keys.contains("atomic") == true)
  }

  @Test(
    "web-services W39: over quota a save is an entry with QUOTA_EXCEEDED, inside HTTP 200",
    arguments: Transport.allCases)
  func quota(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a")
    try UserDirectory(storage: peer.storage).setQuota(150, for: "anna")
    #expect(try peer.save("b").code == "QUOTA_EXCEEDED")
    try peer.delete("a")
    #expect(try peer.save("b").code == nil)
    #expect(try peer.save("c").code == "QUOTA_EXCEEDED")
    let upload = try peer.post(
      "assets/upload", #"{"zoneID":{"zoneName":"Notes"},"tokens":[{"recordType":"Note","fieldName":"f"}]}"#)
    #expect(upload.status == 200)
    try UserDirectory(storage: peer.storage).setQuota(100, for: "anna")
    #expect(
      try peer.post("assets/upload", #"{"tokens":[{"recordType":"Note","fieldName":"f"}]}"#).code == "QUOTA_EXCEEDED")
  }
}
