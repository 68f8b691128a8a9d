import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Testing

@testable import CairnServer

/// The checklist of web-services section 17, over every transport.
@Suite struct ConformanceTests {
  @Test(
    "W1: text/plain and unknown parameters and keys are accepted; an empty body means {}", arguments: Transport.allCases
  )
  func tolerance(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let reply = try peer.post(
      "records/modify",
      #"{"wat":[1,{"x":null}],"zoneID":{"zoneName":"Notes","zoneType":"x"},"operations":[{"operationType":"create","extra":1,"record":{"recordName":"a","recordType":"Note","createShortGUID":false,"fields":{"t":{"value":"x","type":"STRING","q":0}}}}]}"#,
      query: "remapEnums=true&clientId=1&dsid=2&ckjsVersion=2.0",
      headers: ["Content-Type": "text/plain"])
    #expect(reply.status == 200)
    #expect(reply.list("records").first?.field("t").0 == .string("x"))
    #expect(try peer.post("changes/database", "").status == 200)
  }

  @Test("W2: zones/list answers GET and POST {} alike", arguments: Transport.allCases)
  func zonesList(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let got = try peer.get("zones/list")
    #expect(got.status == 200)
    #expect(try peer.post("zones/list").json == got.json)
    let names = got.list("zones").compactMap { $0["zoneID"]?["zoneName"]?.string }
    #expect(names == ["Notes", "_defaultZone"])
    #expect(got.list("zones").map { $0["atomic"] } == [.bool(true), .bool(false)])
    #expect(
      try peer.call("GET", Peer.path + "records/modify", query: "ckSession=a%2Bb%2Fc%3D%3D").code == "BAD_REQUEST")
  }

  @Test("W4: no user is 421 with redirectURL; an unknown token is 401", arguments: Transport.allCases)
  func noUser(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let none = try peer.call("POST", Peer.path + "zones/list", query: "")
    #expect(none.status == 421 && none.code == "AUTHENTICATION_REQUIRED")
    #expect(none["redirectURL"]?.string?.hasPrefix("http") == true)
    #expect(none["uuid"]?.string == none.headers["x-apple-request-uuid"])
    let wrong = try peer.call("POST", Peer.path + "zones/list", query: "ckWebAuthToken=nope")
    #expect(wrong.status == 401 && wrong.code == "AUTHENTICATION_FAILED")
  }

  @Test("W5, W6: a percent-encoded token is accepted, ckSession too, and more than once", arguments: Transport.allCases)
  func tokens(_ transport: Transport) throws {
    let peer = try Peer(transport)
    for query in ["ckWebAuthToken=a%2Bb%2Fc%3D%3D", "ckSession=a%2Bb%2Fc%3D%3D", "ckWebAuthToken=a+b/c=="] {
      #expect(try peer.call("POST", Peer.path + "users/caller", query: query).status == 200)
    }
  }

  @Test("W6: single-use: a second use is 401, the token of the answer works", arguments: Transport.allCases)
  func singleUse(_ transport: Transport) throws {
    var settings = ServerSettings()
    settings.singleUseTokens = true
    // The peer's own first request has used its token.
    let peer = try Peer(transport, settings: settings)
    #expect(try peer.post("users/caller").status == 401)
    var token = "first"
    try UserDirectory(storage: peer.storage).addToken(hash: WebAuthToken.hash(token), for: "anna")
    for (operation, body, status) in [
      ("users/caller", "{}", 200), ("records/modify", "{", 400), ("zones/list", "", 200),
      ("records/query", #"{"zoneID":{"zoneName":"Gone"},"query":{"recordType":"T"}}"#, 404), ("zones/list", "{}", 200),
    ] {
      let query = "ckWebAuthToken=\(token)"
      let reply = try peer.call("POST", Peer.path + operation, query: query, [:], Array(body.utf8))
      #expect(reply.status == status, "\(operation)")
      #expect(try peer.call("POST", Peer.path + "users/caller", query: query).status == 401)
      token = try #require(reply.headers["x-apple-cloudkit-web-auth-token"])
    }
    #expect(try Peer(transport).post("users/caller").headers["x-apple-cloudkit-web-auth-token"] == nil)
  }

  @Test("W40: too many requests are 429 with both retry values; others go on", arguments: Transport.allCases)
  func throttle(_ transport: Transport) throws {
    var settings = ServerSettings()
    settings.requestsPerSecond = 0.5
    let peer = try Peer(transport, settings: settings)
    for _ in 0..<4 { #expect(try peer.post("users/caller").status == 200) }
    let refused = try peer.post("users/caller")
    #expect(refused.status == 429 && refused.code == "THROTTLED")
    #expect(refused["retryAfter"] == .integer(2) && refused.headers["retry-after"] == "2")
    let users = UserDirectory(storage: peer.storage)
    _ = try users.add("berta")
    try users.addToken(hash: WebAuthToken.hash("b"), for: "berta")
    #expect(try peer.call("POST", Peer.path + "users/caller", query: "ckWebAuthToken=b").status == 200)
    peer.clock.advance(seconds: 2)
    #expect(try peer.post("users/caller").status == 200)
    #expect(try peer.post("users/caller").status == 429)
  }

  @Test("section 1: unknown operations, databases and malformed containers are 404", arguments: Transport.allCases)
  func routes(_ transport: Transport) throws {
    let peer = try Peer(transport)
    for path in [
      "/database/1/iCloud.test/production/private/records/nothing", "/database/1/test/production/private/zones/list",
      "/database/1/iCloud.test/staging/private/zones/list", "/database/1/iCloud.test/production/secret/zones/list",
      "/database/2/iCloud.test/production/private/zones/list", "/",
      "/database/1/iCloud.a%2Fb/production/private/zones/list",
    ] {
      let reply = try peer.call("POST", path, query: "ckWebAuthToken=nope")
      #expect(reply.status == 404 && reply.code == "NOT_FOUND", "\(path)")
    }
    #expect(
      try peer.call(
        "POST", "/database/1/iCloud.other/development/private/zones/list", query: "ckSession=a%2Bb%2Fc%3D%3D"
      ).status == 200)
  }

  @Test(
    "section 1: JSON that cannot be read is a BAD_REQUEST", arguments: Transport.allCases,
    ["{", "[]", "nope", "{\"a\":1,}"])
  func badJSON(_ transport: Transport, _ body: String) throws {
    let reply = try Peer(transport).post("records/modify", body)
    #expect(reply.status == 400 && reply.code == "BAD_REQUEST")
  }

  @Test("W9, W10: entries keep their order; atomic failures are entries of HTTP 200", arguments: Transport.allCases)
  func atomic(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("taken")
    let operations = ["new", "taken", "other"].map {
      #"{"operationType":"create","record":{"recordName":"\#($0)","recordType":"Note"}}"#
    }
    let atomic = try peer.modify(operations[0], operations[1], operations[2], atomic: true)
    #expect(atomic.map(\.code) == ["ATOMIC_ERROR", "CONFLICT", "ATOMIC_ERROR"])
    #expect(atomic.compactMap { $0["recordName"]?.string } == ["new", "taken", "other"])
    let loose = try peer.modify(operations[0], operations[1], operations[2])
    #expect(loose.map(\.code) == [nil, "CONFLICT", nil])
    #expect(try peer.changes().names == ["taken", "new", "other"])
  }

  @Test("W11: 201 operations are refused as a request", arguments: Transport.allCases)
  func tooMany(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let one = #"{"operationType":"create","record":{"recordType":"Note"}}"#
    let body =
      #"{"zoneID":{"zoneName":"Notes"},"operations":[\#(Array(repeating: one, count: 201).joined(separator: ","))]}"#
    let reply = try peer.post("records/modify", body)
    #expect(reply.status == 400 && reply.code == "BAD_REQUEST")
    #expect(try peer.changes().names == [])
    #expect(try peer.post("records/modify", body, query: "cairn=page%3D1000").list("records").count == 201)
    #expect(try peer.changes(query: "cairn=page%3D1000").names.count == 201)
    #expect(try peer.changes().names.count == 200)
  }

  @Test("W13: each field type round-trips", arguments: Transport.allCases)
  func fieldTypes(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let fields = #"""
      {"s":{"type":"STRING","value":"\u00e9\ud83c\udfd4\n\"\\"},"i":{"type":"INT64","value":-9007199254740993},"d":{"type":"DOUBLE","value":2.5},"b":{"type":"BYTES","value":"AAECAw=="},"e":{"type":"ENCRYPTED_BYTES","value":"AA=="},"t":{"type":"TIMESTAMP","value":1700000000000.5},"r":{"type":"REFERENCE","value":{"recordName":"x","action":"NONE"}},"l":{"type":"LOCATION","value":{"latitude":46.5,"longitude":7.25,"altitude":4478.5}},"sl":{"type":"STRING_LIST","value":["a","b"]},"il":{"type":"INT64_LIST","value":[1,2]},"dl":{"type":"DOUBLE_LIST","value":[1.5,-2.25]},"bl":{"type":"BYTES_LIST","value":["AAE=",""]},"tl":{"type":"TIMESTAMP_LIST","value":[0,1700000000000]},"rl":{"type":"REFERENCE_LIST","value":[{"recordName":"x","action":"NONE"}]},"ll":{"type":"LOCATION_LIST","value":[{"latitude":1.5,"longitude":-2.5}]},"no":{"type":"STRING_LIST","value":[]},"p":{"type":"STRING","value":"secret","isEncrypted":true},"q":{"type":"DOUBLE","value":0.5,"isEncrypted":true}}
      """#
    let saved = try peer.save("a", fields)
    #expect(saved.code == nil)
    let expected = try JSONValue(parsing: Array(fields.utf8))
    for read in [saved, try #require(try peer.changes().list("records").first)] {
      #expect(read["fields"]?.keys == expected.keys)
      for name in expected.keys {
        for key in ["type", "value", "isEncrypted"] {
          #expect(read["fields"]?[name]?[key] == expected[name]?[key], "\(name) \(key)")
        }
      }
    }
  }

  @Test("W14: null by all three spellings; null fields are absent from answers", arguments: Transport.allCases)
  func nulls(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a", #"{"x":{"value":1},"y":{"value":2},"z":{"value":3},"w":{"value":4}}"#)
    let updated = try peer.save("a", #"{"x":{"value":null},"y":{}}"#, kind: "forceUpdate")
    #expect(updated["fields"]?.keys == ["z", "w"])
    let replaced = try peer.save("a", #"{"z":{"value":5}}"#)
    #expect(replaced["fields"]?.keys == ["z"])
    #expect(try peer.changes().list("records").first?["fields"]?.keys == ["z"])
  }

  @Test("W15: typed BYTES, then untyped base64 is BYTES; untyped 2, then 2.5 is DOUBLE", arguments: Transport.allCases)
  func schemaMemory(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a", #"{"b":{"type":"BYTES","value":"AQID"},"n":{"value":2},"flag":{"value":true}}"#)
    let second = try peer.save(
      "b", #"{"b":{"value":"BAUG"},"n":{"value":2.5},"flag":{"type":"BOOLEAN","value":false}}"#)
    #expect(second.field("b") == (.string("BAUG"), "BYTES"))
    #expect(second.field("n") == (.double(2.5), "DOUBLE"))
    #expect(second.field("flag") == (.integer(0), "INT64"))
    #expect(try peer.changes().list("records").first?.field("n").1 == "DOUBLE")
    #expect(try peer.save("c", #"{"n":{"type":"STRING","value":"x"}}"#).code == "BAD_REQUEST")
    #expect(try peer.save("c", #"{"n":{"type":"INT64","value":"x"}}"#).code == "BAD_REQUEST")
    #expect(try peer.save("c", #"{"q":{"value":{"odd":1}}}"#).code == "BAD_REQUEST")
    let lists = try peer.save("d", #"{"l":{"type":"LIST","value":["a"]},"m":{"value":[1,2.5]},"none":{"value":[]}}"#)
    #expect(lists.field("l").1 == "STRING_LIST")
    #expect(
      lists.field("m") == (.array([.integer(1), .double(2.5)]), "DOUBLE_LIST") || lists.field("m").1 == "DOUBLE_LIST")
  }

  @Test("W18: numbersAsStrings in both spellings, in body and query", arguments: Transport.allCases)
  func numbersAsStrings(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a", #"{"i":{"value":5},"d":{"value":2.5},"k":{"value":"7","type":"INT64"}}"#)
    for key in ["numbersAsStrings", "numberAsStrings"] {
      let body = #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"a"}],"\#(key)":true}"#
      let record = try #require(try peer.post("records/lookup", body).list("records").first)
      #expect(record.field("i").0 == .string("5") && record.field("d").0 == .string("2.5"))
      #expect(record.field("k").0 == .string("7"))
      #expect(try peer.changes(query: "\(key)=true").list("records").first?.field("i").0 == .string("5"))
      #expect(try peer.changes(more: #","\#(key)":true"#).list("records").first?.field("i").0 == .string("5"))
    }
    #expect(try peer.changes().list("records").first?.field("i").0 == .integer(5))
  }

  @Test(
    "W19: pages of one equal one page; the same token gives the same answer, also after a restart",
    arguments: Transport.allCases)
  func pages(_ transport: Transport) throws {
    let peer = try Peer(transport)
    for i in 0..<5 { try peer.save("r\(i)") }
    try peer.delete("r2")
    let whole = try peer.changes()
    var names: [String] = []
    var token: String?
    while true {
      let page = try peer.changes(token, limit: 1)
      names += page.names
      token = page["syncToken"]?.string
      if page["moreComing"] == .bool(false) { break }
    }
    #expect(names == whole.names && token == whole["syncToken"]?.string)
    try peer.restart()
    #expect(try peer.changes() == whole)
    #expect(try peer.changes(token).names == [])
  }

  @Test("W21: tombstones have name, deleted and zone only", arguments: Transport.allCases)
  func tombstones(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a")
    let token = try peer.changes()["syncToken"]?.string
    try peer.delete("a")
    let page = try peer.changes(token)
    #expect(page.list("records").map(\.keys) == [["recordName", "deleted", "zoneID"]])
    #expect(page.list("records").first?.isDeleted == true)
    #expect(try peer.changes().names == [])
  }

  @Test(
    "W22: bad tokens are entries of zones[] in HTTP 200; records/changes fails as a request",
    arguments: Transport.allCases)
  func badTokens(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let database = try #require(try peer.post("changes/database")["syncToken"]?.string)
    let zone = try #require(try peer.changes()["syncToken"]?.string)
    for (token, reason) in [
      ("garbage", "Unknown sync continuation type"), (database, "Unknown sync continuation type"),
      (String(zone.dropLast(5)), "Invalid continuation format"),
    ] {
      let entry = try peer.changes(token)
      #expect(entry.code == "BAD_REQUEST" && entry["reason"]?.string == reason)
      #expect(entry["zoneID"]?["zoneName"]?.string == "Notes")
      let reply = try peer.post("records/changes", #"{"zoneID":{"zoneName":"Notes"},"syncToken":"\#(token)"}"#)
      #expect(reply.status == 400 && reply.reason == reason)
    }
    #expect(try peer.changes("").code == nil)
    #expect(try peer.post("records/changes", #"{"zoneID":{"zoneName":"Nowhere"}}"#).status == 404)
  }

  @Test("W23, W41, W42: expired tokens, with and without expired-code", arguments: Transport.allCases)
  func expired(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let token = try #require(try peer.changes()["syncToken"]?.string)
    for kind in ["delete", "create"] {
      try peer.post(
        "zones/modify", #"{"operations":[{"operationType":"\#(kind)","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
    }
    let plain = try peer.changes(token)
    #expect(plain.code == "BAD_REQUEST" && plain["reason"]?.string == "Sync token expired" && plain["cause"] == nil)
    let asked = try peer.changes(token, query: "cairn=expired-code")
    #expect(asked.code == "CHANGE_TOKEN_EXPIRED" && asked["cause"]?.string == "incarnation")
  }

  @Test(
    "W25, W27: changes/database and zones/changes report zones; both token names work", arguments: Transport.allCases)
  func databaseChanges(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let first = try peer.post("changes/database")
    #expect(first.list("zones").compactMap { $0["zoneID"]?["zoneName"]?.string } == ["Notes"])
    let token = try #require(first["syncToken"]?.string)
    let quiet = try peer.post("changes/database", #"{"syncToken":"\#(token)"}"#)
    #expect(quiet.list("zones") == [] && quiet["syncToken"]?.string == token && quiet["moreComing"] == .bool(false))
    try peer.save("a")
    for name in ["syncToken", "metaSyncToken"] {
      let reply = try peer.post("zones/changes", #"{"\#(name)":"\#(token)"}"#)
      #expect(reply.list("zones").count == 1)
      #expect(reply["syncToken"] == reply["metaSyncToken"] && reply["syncToken"]?.string != nil)
    }
  }

  @Test("W26: one missing zone beside a good one: an error entry plus records", arguments: Transport.allCases)
  func missingZone(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a")
    let reply = try peer.post(
      "changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Nowhere"}},{"zoneID":{"zoneName":"Notes"}}]}"#)
    #expect(reply.status == 200)
    #expect(reply.list("zones")[0].code == "ZONE_NOT_FOUND")
    #expect(reply.list("zones")[0]["reason"]?.string == "Zone 'Nowhere' does not exist")
    #expect(reply.list("zones")[1].names == ["a"])
  }

  @Test("W27: zones/lookup takes both shapes", arguments: Transport.allCases)
  func zonesLookup(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let reply = try peer.post(
      "zones/lookup", #"{"zones":[{"zoneName":"Notes"},{"zoneID":{"zoneName":"Notes"}},{"zoneName":"Nowhere"}]}"#)
    #expect(reply.list("zones")[0] == reply.list("zones")[1])
    #expect(reply.list("zones")[0]["zoneID"]?["zoneType"]?.string == "REGULAR_CUSTOM_ZONE")
    #expect(reply.list("zones")[2].code == "ZONE_NOT_FOUND")
  }

  @Test("W28: deleting a zone answers deleted:true; a re-created zone starts empty", arguments: Transport.allCases)
  func deleteZone(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a")
    let deleted = try peer.post(
      "zones/modify", #"{"operations":[{"operationType":"delete","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
    #expect(deleted.list("zones").first?.isDeleted == true)
    #expect(try peer.changes().code == "ZONE_NOT_FOUND")
    try peer.post(
      "zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
    #expect(try peer.changes().names == [])
  }

  @Test("W31: lookup hit and miss in one call; desiredKeys [] gives empty fields", arguments: Transport.allCases)
  func lookup(_ transport: Transport) throws {
    let peer = try Peer(transport)
    try peer.save("a", #"{"x":{"value":1}}"#)
    let reply = try peer.post(
      "records/lookup",
      #"{"zoneID":{"zoneName":"Notes"},"desiredKeys":[],"records":[{"recordName":"a"},{"recordName":"b"},{"recordName":"a","desiredKeys":["x"]}]}"#
    )
    #expect(reply.list("records")[0]["fields"] == .object([]))
    #expect(reply.list("records")[1].code == "NOT_FOUND")
    #expect(reply.list("records")[1]["recordName"]?.string == "b")
    #expect(reply.list("records")[2].field("x").0 == .integer(1))
  }

  @Test("W32: getCurrentSyncToken adds the zone's token to lookup and modify", arguments: Transport.allCases)
  func currentToken(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let save =
      #"{"zoneID":{"zoneName":"Notes"},"operations":[{"operationType":"forceReplace","record":{"recordName":"a","recordType":"Note"}}]}"#
    #expect(try peer.post("records/modify", save)["syncToken"] == nil)
    let token = try peer.post("records/modify", save, query: "getCurrentSyncToken=true")["syncToken"]?.string
    #expect(try peer.changes(token).names == [])
    #expect(try peer.changes()["syncToken"]?.string == token)
    let lookup = #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"a"}],"getCurrentSyncToken":true}"#
    #expect(try peer.post("records/lookup", lookup)["syncToken"]?.string == token)
  }

  @Test("W38: users/caller at top level and in users[]; users/current", arguments: Transport.allCases)
  func users(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let caller = try peer.get("users/caller")
    let name = try #require(caller["userRecordName"]?.string)
    #expect(name.utf8.count == 33 && name.hasPrefix("_"))
    #expect(caller.list("users").first?["userRecordName"]?.string == name)
    let path = "/database/1/iCloud.test/production/public/users/current"
    #expect(try peer.call("GET", path, query: "ckSession=a%2Bb%2Fc%3D%3D")["userRecordName"]?.string == name)
  }
}
