import CairnRecords
import CairnServerCore
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// What a user, an app or a stranger tries with what belongs to others.
@Suite struct TrespassTests {
  /// Anna, who trespasses, and Berta, who has a zone with a record, an asset and a subscription.
  private final class Two {
    let peer: Peer
    let berta = "ckWebAuthToken=berta"
    let bertaName: String
    let bertaPath = Peer.path
    private(set) var syncToken = ""
    private(set) var asset: JSONValue = .null
    private(set) var downloadPath = ""

    init(_ transport: Transport) throws {
      peer = try Peer(transport)
      let users = UserDirectory(storage: peer.storage)
      bertaName = try users.add("berta").recordName
      try users.addToken(hash: WebAuthToken.hash("berta"), for: "berta")
      _ = try asBerta(
        "zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Secret"}}}]}"#)
      let upload = try asBerta(
        "assets/upload",
        #"{"zoneID":{"zoneName":"Secret"},"tokens":[{"recordName":"s","recordType":"Note","fieldName":"f"}]}"#)
      let url = try #require(upload.list("tokens").first?["url"]?.string)
      let sent = try peer.call("POST", Self.path(url), query: "", [:], Array("TOPSECRET bytes".utf8))
      asset = try #require(sent["singleFile"])
      let dictionary = String(decoding: asset.encoded, as: UTF8.self)
      _ = try asBerta(
        "records/modify",
        #"{"zoneID":{"zoneName":"Secret"},"operations":[{"operationType":"create","record":{"recordName":"s","recordType":"Note","fields":{"t":{"value":"TOPSECRET"},"f":{"value":\#(dictionary),"type":"ASSETID"}}}}]}"#
      )
      let page = try #require(
        try asBerta("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Secret"}}]}"#).list("zones").first)
      syncToken = try #require(page["syncToken"]?.string)
      let address = try #require(page.list("records").first?["fields"]?["f"]?["value"]?["downloadURL"]?.string)
      downloadPath = Self.path(address)
      _ = try asBerta(
        "subscriptions/modify",
        #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"TOPSECRET","subscriptionType":"zone","zoneID":{"zoneName":"Secret"}}}]}"#
      )
    }

    static func path(_ url: String) -> String {
      let parts = url.split(separator: "/", omittingEmptySubsequences: false)
      return url.contains("://") ? "/" + parts.dropFirst(3).joined(separator: "/") : url
    }

    func asBerta(_ operation: String, _ body: String) throws -> Peer.Reply {
      try peer.call("POST", Peer.path + operation, query: berta, [:], Array(body.utf8))
    }
  }

  @Test("another user's zone is not there, whatever asks for it", arguments: Transport.allCases)
  func zones(_ transport: Transport) throws {
    let two = try Two(transport)
    for owner in [
      #""ownerRecordName":"\#(two.bertaName)""#, #""ownerName":"\#(two.bertaName)""#,
      #""ownerRecordName":"_defaultOwner""#,
    ] {
      let zone = #"{"zoneName":"Secret",\#(owner)}"#
      for (operation, body, isEntry) in [
        ("records/lookup", #"{"zoneID":\#(zone),"records":[{"recordName":"s"}]}"#, true),
        ("records/query", #"{"zoneID":\#(zone),"query":{"recordType":"Note"}}"#, false),
        ("changes/zone", #"{"zones":[{"zoneID":\#(zone)}]}"#, true),
        ("changes/zone", #"{"zones":[{"zoneID":\#(zone),"syncToken":"\#(two.syncToken)"}]}"#, true),
        ("records/changes", #"{"zoneID":\#(zone)}"#, false),
        ("zones/lookup", #"{"zones":[{"zoneID":\#(zone)}]}"#, true),
        (
          "records/modify",
          #"{"zoneID":\#(zone),"operations":[{"operationType":"forceDelete","record":{"recordName":"s"}}]}"#, true
        ),
        (
          "records/modify",
          #"{"zoneID":\#(zone),"operations":[{"operationType":"forceReplace","record":{"recordName":"s","recordType":"Note"}}]}"#,
          true
        ),
        ("zones/modify", #"{"operations":[{"operationType":"delete","zone":{"zoneID":\#(zone)}}]}"#, true),
        ("assets/rereference", #"{"zoneID":\#(zone),"assets":[{"recordName":"s","fieldName":"f"}]}"#, false),
        (
          "subscriptions/modify",
          #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"x","subscriptionType":"zone","zoneID":\#(zone)}}]}"#,
          true
        ),
      ] {
        let reply = try two.peer.post(operation, body)
        let text = String(decoding: reply.body, as: UTF8.self)
        #expect(text.contains("ZONE_NOT_FOUND") && reply.status == (isEntry ? 200 : 404), "\(operation): \(text)")
        #expect(!text.contains("TOPSECRET"))
      }
    }
    // What is listed and searched everywhere is one's own.
    for (operation, body) in [
      ("zones/list", "{}"), ("changes/database", "{}"), ("subscriptions/list", "{}"),
      ("records/query", #"{"zoneWide":true,"query":{"recordType":"Note"}}"#),
      ("subscriptions/lookup", #"{"subscriptions":[{"subscriptionID":"TOPSECRET"}]}"#),
    ] {
      let text = String(decoding: try two.peer.post(operation, body).body, as: UTF8.self)
      #expect(!text.contains("Secret") && !text.contains(two.bertaName), "\(operation): \(text)")
    }
    // Berta has everything still.
    #expect(
      try two.asBerta("records/lookup", #"{"zoneID":{"zoneName":"Secret"},"records":[{"recordName":"s"}]}"#).list(
        "records"
      ).first?.field("t").0 == .string("TOPSECRET"))
  }

  @Test("another user's tokens of feeds and pages open nothing", arguments: Transport.allCases)
  func tokens(_ transport: Transport) throws {
    let two = try Two(transport)
    try two.peer.save("mine")
    let feed = try two.peer.changes(two.syncToken)
    #expect(feed.code == "BAD_REQUEST" && feed.list("records").isEmpty)
    let database = try #require(try two.asBerta("changes/database", "{}")["syncToken"]?.string)
    #expect(try two.peer.post("changes/database", #"{"syncToken":"\#(database)"}"#).code == "BAD_REQUEST")
    for name in ["s2", "s3"] {
      _ = try two.asBerta(
        "records/modify",
        #"{"zoneID":{"zoneName":"Secret"},"operations":[{"operationType":"create","record":{"recordName":"\#(name)","recordType":"Note"}}]}"#
      )
    }
    let page = try two.asBerta("records/query", #"{"zoneWide":true,"resultsLimit":1,"query":{"recordType":"Note"}}"#)
    let marker = try #require(page["continuationMarker"]?.string)
    let stolen = try two.peer.post(
      "records/query",
      #"{"zoneWide":true,"resultsLimit":1,"continuationMarker":"\#(marker)","query":{"recordType":"Note"}}"#)
    #expect(stolen.code == "BAD_REQUEST")
    // A notification address belongs to who made it.
    let made = try two.asBerta("tokens/create", "{}")
    let address = try #require(made["apnsToken"]?.string)
    #expect(try two.peer.post("tokens/register", #"{"apnsToken":"\#(address)"}"#).status == 400)
  }

  @Test("another user's asset: neither its receipt nor its checksum gives it away", arguments: Transport.allCases)
  func assets(_ transport: Transport) throws {
    let two = try Two(transport)
    guard case .object(let members) = two.asset else { throw RawConnection.Failure(what: "no asset") }
    let withReceipt = String(decoding: two.asset.encoded, as: UTF8.self)
    let without = String(decoding: JSONValue.object(members.filter { $0.key != "receipt" }).encoded, as: UTF8.self)
    for value in [withReceipt, without] {
      // The same record, type and field as Berta's, in Anna's zone.
      let saved = try two.peer.save("s", #"{"f":{"value":\#(value),"type":"ASSETID"}}"#)
      #expect(saved.code == "BAD_REQUEST" && saved["reason"]?.string?.contains("did_not_validate") == true)
    }
    // Its address is for Berta's records: it ends with them, though Anna may have the same bytes.
    #expect(try two.peer.call("GET", two.downloadPath, query: "").body == Array("TOPSECRET bytes".utf8))
    let target = try two.peer.post(
      "assets/upload",
      #"{"zoneID":{"zoneName":"Notes"},"tokens":[{"recordName":"own","recordType":"Note","fieldName":"f"}]}"#)
    let url = try #require(target.list("tokens").first?["url"]?.string)
    let own = try #require(
      try two.peer.call("POST", Two.path(url), query: "", [:], Array("TOPSECRET bytes".utf8))["singleFile"])
    #expect(
      try two.peer.save("own", #"{"f":{"value":\#(String(decoding: own.encoded, as: UTF8.self)),"type":"ASSETID"}}"#)
        .code == nil)
    _ = try two.asBerta(
      "records/modify",
      #"{"zoneID":{"zoneName":"Secret"},"operations":[{"operationType":"forceDelete","record":{"recordName":"s"}}]}"#)
    #expect(try two.peer.call("GET", two.downloadPath, query: "").status == 404)
  }

  @Test("addresses and receipts with any byte changed are refused", .timeLimit(.minutes(10)))
  func forged() throws {
    let two = try Two(.inProcess)
    let ticket = two.downloadPath.split(separator: "/").last.map(String.init) ?? ""
    #expect(ticket.count > 100)
    let alphabet = Array("ABab01-_")
    for (i, place) in ticket.indices.enumerated() {
      var forged = ticket
      let other = alphabet[i % alphabet.count]
      guard forged[place] != other else { continue }
      forged.replaceSubrange(place...place, with: [other])
      let reply = try two.peer.call("GET", "/asset/" + forged, query: "")
      // The last letter of base64 holds bits that mean nothing.
      #expect(reply.status == 403 || forged.dropLast() == ticket.dropLast(), "\(i)")
    }
    for text in [
      "", "x", String(ticket.dropLast(4)), ticket + "AAAA", String(repeating: "A", count: 119), "../cairn.db",
      "%2e%2e/cairn.db",
    ] {
      for path in ["/asset/", "/asset-upload/", "/courier/"] {
        let reply = try two.peer.call(path == "/asset-upload/" ? "POST" : "GET", path + text, query: "")
        #expect((400..<500).contains(reply.status), "\(path)\(text)")
      }
    }
    // A download address is no upload address, and the other way round.
    #expect(try two.peer.call("POST", "/asset-upload/" + ticket, query: "", [:], [1]).status == 403)
  }

  @Test("sync tokens that are forged give one's own records or an error", .timeLimit(.minutes(10)))
  func forgedSyncTokens() throws {
    let two = try Two(.inProcess)
    try two.peer.save("mine")
    let good = try #require(try two.peer.changes()["syncToken"]?.string)
    for i in good.indices {
      for letter in ["A", "z", "9", "-"] {
        var forged = good
        forged.replaceSubrange(i...i, with: letter)
        let page = try two.peer.changes(forged)
        #expect(page.code == nil || page.code == "BAD_REQUEST")
        #expect(page.list("records").allSatisfy { $0["recordName"]?.string == "mine" })
      }
    }
  }
}
