import CairnRecords
import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// Web-services section 11: subscriptions, addresses for notifications, long polls.
@Suite struct NotificationTests {
  private static let token = "ckWebAuthToken=a%2Bb%2Fc%3D%3D"

  private func modify(_ peer: Peer, _ type: String, _ subscription: String) throws -> JSONValue {
    try #require(
      try peer.post(
        "subscriptions/modify", #"{"operations":[{"operationType":"\#(type)","subscription":{\#(subscription)}}]}"#
      ).list("subscriptions").first)
  }

  private func courier(_ peer: Peer, query: String = "") throws -> String {
    let reply = try peer.post("tokens/create", #"{"apnsEnvironment":"development"}"#, query: query)
    let url = try #require(reply["webcourierURL"]?.string)
    return try #require(url.range(of: "/courier/").map { String(url[$0.lowerBound...]) })
  }

  /// Waits until so many polls wait.
  private func waiting(_ peer: Peer, _ count: Int) throws {
    try #require(eventually { peer.core.notifications.waiting == count }, "polls never wait")
  }

  private func poll(_ peer: Peer, _ path: String) throws -> RawConnection {
    let connection = try RawConnection(port: peer.port)
    try connection.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return connection
  }

  @Test("W3: tokens/create works under device and database, with and without a database", arguments: Transport.allCases)
  func paths(_ transport: Transport) throws {
    let peer = try Peer(transport)
    for path in [
      "/device/1/iCloud.test/production/tokens/create", "/device/1/iCloud.test/production/private/tokens/create",
      "/database/1/iCloud.test/production/private/tokens/create", "/database/1/iCloud.test/production/tokens/create",
      "/database/1/iCloud.test/production/public/tokens/create",
    ] {
      let reply = try peer.call("POST", path, query: Self.token, [:], Array(#"{"apnsEnvironment":"development"}"#.utf8))
      #expect(reply.status == 200 && reply["apnsEnvironment"] == .string("development"), "\(path)")
      let secret = try #require(reply["apnsToken"]?.string)
      #expect(reply["webcourierURL"]?.string?.hasPrefix("http") == true && secret.utf8.count == 64)
      let joined = try peer.call(
        "POST", path.replacing("iCloud.test", with: "iCloud.other").replacing("create", with: "register"),
        query: Self.token, [:], Array(#"{"apnsEnvironment":"development","apnsToken":"\#(secret)"}"#.utf8))
      #expect(joined.status == 200)
    }
    #expect(
      try peer.call("POST", "/device/1/iCloud.test/production/private/zones/list", query: Self.token).status == 404)
    #expect(try peer.call("POST", "/device/1/iCloud.test/production/tokens/create", query: "x=1").status == 421)
    #expect(try peer.post("tokens/register", #"{"apnsToken":"nope"}"#).code == "BAD_REQUEST")
    #expect(try peer.call("GET", "/courier/nope", query: "").status == 404)
    #expect(try peer.call("POST", "/courier/nope", query: "").code == "BAD_REQUEST")
  }

  @Test("W36: subscriptions: create, list, lookup, update, delete; a taken ID is EXISTS", arguments: Transport.allCases)
  func subscriptions(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let query =
      #""query":{"recordType":"Note","filterBy":[{"fieldName":"n","comparator":"EQUALS","fieldValue":{"value":1}}],"odd":7}"#
    let info = #""notificationInfo":{"alertBody":"ü","shouldBadge":true,"additionalFields":["n"]}"#
    let made = try modify(
      peer, "create",
      #""subscriptionID":"q","subscriptionType":"query",\#(query),"firesOn":["create","delete"],"firesOnce":true,\#(info),"x":1"#
    )
    #expect(made.code == nil && made["zoneWide"] == .bool(true) && made["x"] == nil)
    #expect(made["notificationInfo"]?["alertBody"] == .string("ü") && made["query"]?["odd"] == .integer(7))
    let zone = try modify(
      peer, "create", #""subscriptionID":"z","subscriptionType":"zone","zoneID":{"zoneName":"Notes"}"#)
    #expect(zone["zoneID"]?["zoneName"] == .string("Notes") && zone["zoneID"]?["ownerRecordName"] != nil)
    let unnamed = try modify(peer, "create", #""subscriptionType":"database""#)
    let name = try #require(unnamed["subscriptionID"]?.string)
    #expect(name.utf8.count == 36)
    let taken = try modify(peer, "create", #""subscriptionID":"z","subscriptionType":"database""#)
    #expect(taken.code == "EXISTS" && taken["subscriptionID"] == .string("z"))

    try peer.restart()
    let all = try peer.get("subscriptions/list").list("subscriptions")
    #expect(Set(all.compactMap { $0["subscriptionID"]?.string }) == ["q", "z", name])
    #expect(all.contains(made))
    let found = try peer.post(
      "subscriptions/lookup", #"{"subscriptions":[{"subscriptionID":"z"},{"subscriptionID":"none"}]}"#
    ).list("subscriptions")
    #expect(found.first == zone && found.last?.code == "NOT_FOUND")
    let updated = try modify(
      peer, "update", #""subscriptionID":"q","subscriptionType":"query",\#(query),"firesOn":["update"]"#)
    #expect(updated["firesOn"] == .array([.string("update")]) && updated["notificationInfo"] == nil)
    #expect(try modify(peer, "update", #""subscriptionID":"none","subscriptionType":"database""#).code == "NOT_FOUND")
    #expect(try modify(peer, "delete", #""subscriptionID":"q""#)["deleted"] == .bool(true))
    #expect(try modify(peer, "delete", #""subscriptionID":"q""#).code == "NOT_FOUND")
    try peer.post(
      "zones/modify", #"{"operations":[{"operationType":"delete","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
    #expect(try peer.post("subscriptions/list").list("subscriptions").count == 1)
  }

  @Test("section 11: what no subscription is, is a BAD_REQUEST", arguments: Transport.allCases)
  func hostile(_ transport: Transport) throws {
    let peer = try Peer(transport)
    for bad in [
      "", #""subscriptionType":"smoke""#, #""subscriptionType":"zone""#, #""subscriptionType":"query""#,
      #""subscriptionType":"query","query":{"recordType":"Note"}"#,
      #""subscriptionType":"query","query":{"recordType":"Note"},"firesOn":["blink"]"#,
      #""subscriptionType":"query","query":{"recordType":""},"firesOn":["create"]"#,
      #""subscriptionType":"query","query":{"recordType":"Note","filterBy":[{"comparator":"HAS"}]},"firesOn":["create"]"#,
      #""subscriptionType":"database","subscriptionID":"\#(String(repeating: "x", count: 256))""#,
      #""subscriptionType":"database","notificationInfo":"\#(String(repeating: "x", count: 40_000))""#,
    ] { #expect(try modify(peer, "create", bad).code == "BAD_REQUEST", "\(bad.prefix(80))") }
    for bad in [
      #"{"operations":[{}]}"#, #"{"operations":[{"operationType":"create"}]}"#, #"{"operations":7}"#,
      #"{"operations":[{"operationType":"burn","subscription":{}}]}"#,
      #"{"operations":[{"operationType":"create","subscription":[]}]}"#,
      #"{"operations":[{"operationType":"create","subscription":{"firesOn":7}}]}"#,
      #"{"operations":[{"operationType":"create","subscription":{"zoneWide":"x"}}]}"#,
    ] { #expect(try peer.post("subscriptions/modify", bad).code == "BAD_REQUEST", "\(bad)") }
    #expect(
      try modify(peer, "create", #""subscriptionType":"zone","zoneID":{"zoneName":"Gone"}"#).code == "ZONE_NOT_FOUND")
    #expect(try peer.post("subscriptions/list").list("subscriptions").isEmpty)
  }

  @Test("W35: a save elsewhere answers a waiting poll within a second, in the form of section 11")
  func wake() throws {
    let peer = try Peer(.loopback)
    _ = try modify(peer, "create", #""subscriptionID":"all","subscriptionType":"database""#)
    let path = try courier(peer)
    let connection = try poll(peer, path)
    try waiting(peer, 1)
    let start = ContinuousClock.now
    try peer.save("a", #"{"n":{"value":1}}"#)
    let answer = try connection.answer()
    let time = ContinuousClock.now - start
    // Tests share the machine: the bound tells being told from a poll that ends by itself.
    #expect(answer.status == 200 && time < .milliseconds(peer.core.settings.pollHold / 2), "\(time)")
    let fetch = try JSONValue(parsing: answer.body)["ck"]
    #expect(fetch?["cid"] == .string("iCloud.test") && fetch?["nid"]?.string?.hasPrefix("n") == true)
    #expect(fetch?["fet"]?["sid"] == .string("all") && fetch?["fet"]?["zid"] == .string("Notes"))
    #expect(fetch?["fet"]?["zoid"]?.string?.hasPrefix("_") == true)
    // The connection is good for more; what happened meanwhile is answered at once.
    try peer.save("b", "{}")
    try connection.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    #expect(try connection.answer().status == 200)
  }

  @Test("W35: an idle poll ends with 204, a second poll ends the first")
  func idle() throws {
    var settings = ServerSettings()
    settings.pollHold = 50
    let idle = try Peer(.loopback, settings: settings)
    let connection = try poll(idle, try courier(idle))
    let answer = try connection.answer()
    #expect(answer.status == 204 && answer.body.isEmpty)

    let peer = try Peer(.loopback)
    _ = try modify(peer, "create", #""subscriptionID":"all","subscriptionType":"database""#)
    let path = try courier(peer)
    let first = try poll(peer, path)
    try waiting(peer, 1)
    let second = try poll(peer, path)
    #expect(try first.answer().status == 204)
    try waiting(peer, 1)
    try peer.save("a", "{}")
    #expect(try second.answer().status == 200)
  }

  @Test("W35: many clients wait without threads of their own, and all are told")
  func many() throws {
    let peer = try Peer(.loopback)
    _ = try modify(peer, "create", #""subscriptionID":"all","subscriptionType":"database""#)
    let connections = try (0..<60).map { _ in try poll(peer, try courier(peer)) }
    try waiting(peer, 60)
    // Four threads serve them, and other requests go on.
    try peer.save("a", "{}")
    for connection in connections { #expect(try connection.answer().status == 200) }
    #expect(peer.core.notifications.waiting == 0)
  }

  @Test("a stopping server answers waiting polls at once")
  func stop() throws {
    let peer = try Peer(.loopback)
    let connection = try poll(peer, try courier(peer))
    try waiting(peer, 1)
    let start = ContinuousClock.now
    let stopping = Thread { [running = peer.running] in running?.core.notifications.close() }
    stopping.start()
    #expect(try connection.answer().status == 503)
    try peer.restart()
    #expect(ContinuousClock.now - start < .milliseconds(peer.core.settings.pollHold / 2))
  }

  @Test("W35: a client that leaves while it waits does no harm, and what it has missed waits for its next poll")
  func leave() throws {
    let peer = try Peer(.loopback)
    _ = try modify(peer, "create", #""subscriptionID":"all","subscriptionType":"database""#)
    let path = try courier(peer)
    do {
      let gone = try poll(peer, path)
      try waiting(peer, 1)
      _ = gone
    }
    try peer.save("a", "{}")
    try waiting(peer, 0)
    let missed = try peer.call("GET", path, query: "")
    #expect(missed.status == 200 && missed["ck"]?["fet"]?["sid"] == .string("all"))
    let back = try poll(peer, path)
    try waiting(peer, 1)
    try peer.save("b", "{}")
    #expect(try back.answer().status == 200)
  }

  @Test("clientId: the maker of a change is not told of it, others are", arguments: ["clientId=me", ""])
  func ownChanges(_ maker: String) throws {
    let peer = try Peer(.loopback)
    _ = try modify(peer, "create", #""subscriptionID":"all","subscriptionType":"database""#)
    let mine = try poll(peer, try courier(peer, query: "clientId=me"))
    let other = try poll(peer, try courier(peer, query: "clientId=other"))
    try waiting(peer, 2)
    try peer.modify(
      #"{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}"#, query: maker)
    #expect(try other.answer().status == 200)
    #expect(peer.core.notifications.waiting == (maker.isEmpty ? 0 : 1))
    if maker.isEmpty { #expect(try mine.answer().status == 200) }
  }
}
