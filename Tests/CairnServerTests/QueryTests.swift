import CairnWire
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// Web-services section 9, as clients write it.
@Suite struct QueryTests {
  private static let records = [
    ("a", #"{"n":{"value":1},"t":{"value":"red fox"},"l":{"value":["x","y"]},"d":{"value":1.5}}"#),
    ("b", #"{"n":{"value":2},"t":{"value":"Red hen"},"l":{"value":["y","zed"]},"d":{"value":2.5}}"#),
    (
      "c",
      #"{"n":{"value":2},"t":{"value":"blue fox"},"l":{"value":[],"type":"STRING_LIST"},"w":{"value":9,"type":"TIMESTAMP"}}"#
    ),
    (
      "d",
      #"{"p":{"value":{"latitude":48.2,"longitude":16.37}},"r":{"value":{"recordName":"a","action":"NONE"}},"y":{"value":"AQI=","type":"BYTES"}}"#
    ),
  ]

  private func filled(_ transport: Transport) throws -> Peer {
    let peer = try Peer(transport)
    for (name, fields) in Self.records { #expect(try peer.save(name, fields).code == nil) }
    try peer.modify(
      #"{"operationType":"create","record":{"recordName":"other","recordType":"Other","fields":{"n":{"value":1}}}}"#)
    return peer
  }

  private func query(
    _ peer: Peer, _ filters: String = "", sort: String = "", more: String = ""
  ) throws -> Peer.Reply {
    try peer.post(
      "records/query",
      #"{"zoneID":{"zoneName":"Notes"},"query":{"recordType":"Note","filterBy":[\#(filters)],"sortBy":[\#(sort)]}\#(more)}"#
    )
  }

  /// Field, comparator, value with what else stands there, and who meets it.
  private static let comparisons: [(String, String, String, String)] = [
    ("n", "EQUALS", #"{"value":2}"#, "bc"), ("n", "NOT_EQUALS", #"{"value":2,"type":"INT64"}"#, "ad"),
    ("n", "LESS_THAN", #"{"value":2}"#, "a"), ("n", "LESS_THAN_OR_EQUALS", #"{"value":2}"#, "abc"),
    ("n", "GREATER_THAN", #"{"value":1}"#, "bc"), ("n", "GREATER_THAN_OR_EQUALS", #"{"value":1}"#, "abc"),
    ("n", "EQUALS", #"{"value":"2"}"#, "bc"), ("d", "GREATER_THAN", #"{"value":2}"#, "b"),
    ("w", "LESS_THAN", #"{"value":10}"#, "c"), ("w", "EQUALS", #"{"value":9,"type":"TIMESTAMP"}"#, "c"),
    ("t", "GREATER_THAN", #"{"value":"red"}"#, "a"), ("y", "EQUALS", #"{"value":"AQI="}"#, "d"),
    ("p", "NEAR", #"{"value":{"latitude":48.2,"longitude":16.38}},"distance":1000"#, "d"),
    ("p", "NEAR", #"{"value":{"latitude":48.2,"longitude":16.38}},"distance":700"#, ""),
    ("r", "EQUALS", #"{"value":{"recordName":"a"}}"#, "d"),
    ("r", "IN", #"{"value":[{"recordName":"x"},{"recordName":"a","zoneID":{"zoneName":"Notes"}}]}"#, "d"),
    ("r", "EQUALS", #"{"value":{"recordName":"a","zoneID":{"zoneName":"Elsewhere"}}}"#, ""),
    ("t", "CONTAINS_ALL_TOKENS", #"{"value":"FOX red"}"#, "a"),
    ("t", "CONTAINS_ANY_TOKENS", #"{"value":"fox, hen"}"#, "abc"),
    ("t", "CONTAINS_ANY_TOKENS", #"{"value":"fo"}"#, ""), ("n", "IN", #"{"value":[1,7]}"#, "a"),
    ("n", "NOT_IN", #"{"value":[1,7]}"#, "bcd"), ("n", "IN", #"{"value":[]}"#, ""),
    ("t", "BEGINS_WITH", #"{"value":"red"}"#, "a"), ("t", "NOT_BEGINS_WITH", #"{"value":"red"}"#, "bcd"),
    ("l", "LIST_CONTAINS", #"{"value":"y"}"#, "ab"), ("l", "NOT_LIST_CONTAINS", #"{"value":"y"}"#, "cd"),
    ("l", "LIST_CONTAINS_ALL", #"{"value":["x","y"]}"#, "a"),
    ("l", "NOT_LIST_CONTAINS_ALL", #"{"value":["x","y"]}"#, "bcd"),
    ("l", "LIST_CONTAINS_ANY", #"{"value":["x","zed"]}"#, "ab"), ("l", "CONTAINS_ANY", #"{"value":["x"]}"#, "a"),
    ("l", "NOT_LIST_CONTAINS_ANY", #"{"value":["x","zed"]}"#, "cd"),
    ("l", "LIST_MEMBER_BEGINS_WITH", #"{"value":"ze"}"#, "b"),
    ("l", "NOT_LIST_MEMBER_BEGINS_WITH", #"{"value":"ze"}"#, "acd"),
    ("l", "EQUALS", #"{"value":["x","y"]}"#, "a"), ("never", "EQUALS", #"{"value":1}"#, ""),
    ("never", "NOT_EQUALS", #"{"value":1}"#, "abcd"), ("___recordID", "EQUALS", #"{"value":{"recordName":"b"}}"#, "b"),
  ]

  @Test("W29: each comparator matches and rejects", arguments: Transport.allCases)
  func comparators(_ transport: Transport) throws {
    let peer = try filled(transport)
    for (field, comparator, value, expected) in Self.comparisons {
      let reply = try query(
        peer, #"{"fieldName":"\#(field)","comparator":"\#(comparator)","fieldValue":\#(value)}"#)
      #expect(reply.json.names.joined() == expected, "\(field) \(comparator) \(value): \(reply.json)")
      #expect(reply["continuationMarker"] == nil)
    }
    let both = #"{"fieldName":"n","comparator":"EQUALS","fieldValue":{"value":2}}"#
    let fox = #"{"fieldName":"t","comparator":"CONTAINS_ANY_TOKENS","fieldValue":{"value":"fox"}}"#
    #expect(try query(peer, both + "," + fox).json.names == ["c"])
  }

  @Test("W29: every comparator of the list is known, NOT_ only where it may stand")
  func names() {
    let tried = Set(Self.comparisons.map { $0.1 })
    for comparator in Comparator.allCases {
      #expect(tried.contains(comparator.rawValue))
      #expect(tried.contains("NOT_" + comparator.rawValue) == (comparator.canBeNegated))
      #expect((QueryFilter.comparator(named: "NOT_" + comparator.rawValue) != nil) == comparator.canBeNegated)
    }
  }

  @Test("W29: system fields are filtered and sorted by", arguments: Transport.allCases)
  func systemFields(_ transport: Transport) throws {
    let peer = try filled(transport)
    peer.clock.advance(seconds: 5)
    try peer.save("a", #"{"n":{"value":5}}"#, kind: "forceUpdate")
    let me = try #require(try peer.post("users/caller")["userRecordName"]?.string)
    let now = peer.clock.now
    for (system, comparator, value, expected) in [
      ("recordName", "GREATER_THAN", #""b""#, "cd"), ("modifiedTimestamp", "EQUALS", "\(now)", "a"),
      ("createdTimestamp", "LESS_THAN", "\(now)", "abcd"), ("createdUserRecordName", "EQUALS", #""\#(me)""#, "abcd"),
      ("modifiedUserRecordName", "NOT_EQUALS", #""\#(me)""#, ""), ("recordName", "IN", #"["a","q"]"#, "a"),
    ] {
      let reply = try query(
        peer, #"{"systemFieldName":"\#(system)","comparator":"\#(comparator)","fieldValue":{"value":\#(value)}}"#)
      #expect(reply.json.names.joined() == expected, "\(system) \(comparator)")
    }
    #expect(
      try query(peer, sort: #"{"systemFieldName":"modifiedTimestamp","ascending":false}"#).json.names
        == ["a", "b", "c", "d"])
    #expect(
      try query(peer, sort: #"{"systemFieldName":"recordName","ascending":false}"#).json.names == ["d", "c", "b", "a"])
  }

  @Test("W29: sort with ties, without values, by distance", arguments: Transport.allCases)
  func sorting(_ transport: Transport) throws {
    let peer = try filled(transport)
    #expect(try query(peer, sort: #"{"fieldName":"n"}"#).json.names == ["d", "a", "b", "c"])
    #expect(try query(peer, sort: #"{"fieldName":"n","ascending":false}"#).json.names == ["b", "c", "a", "d"])
    #expect(
      try query(peer, sort: #"{"fieldName":"n","ascending":false},{"fieldName":"t"}"#).json.names
        == ["b", "c", "a", "d"])
    try peer.save("e", #"{"p":{"value":{"latitude":10,"longitude":10}}}"#)
    #expect(
      try query(
        peer, sort: #"{"fieldName":"p","ascending":false,"relativeLocation":{"latitude":11,"longitude":10}}"#
      ).json.names == ["d", "e", "a", "b", "c"])
  }

  @Test("W29: pages by marker have no gaps and no duplicates, desiredKeys limits", arguments: Transport.allCases)
  func paging(_ transport: Transport) throws {
    let peer = try filled(transport)
    for sort in ["", #"{"fieldName":"n","ascending":false}"#, #"{"fieldName":"t"}"#] {
      let whole = try query(peer, sort: sort).json.names
      var names: [String] = []
      var marker = ""
      repeat {
        let more =
          #","resultsLimit":1,"desiredKeys":["n"]"# + (marker.isEmpty ? "" : #","continuationMarker":"\#(marker)""#)
        let reply = try query(peer, sort: sort, more: more)
        names += reply.json.names
        for record in reply.list("records") { #expect(record["fields"]?.keys.isSubset(of: ["n"]) == true) }
        marker = reply["continuationMarker"]?.string ?? ""
      } while !marker.isEmpty
      #expect(names == whole && whole.count == 4)
    }
  }

  @Test("W30: zoneWide crosses zones; a marker with another query is refused", arguments: Transport.allCases)
  func zoneWide(_ transport: Transport) throws {
    let peer = try filled(transport)
    try peer.post(
      "records/modify",
      #"{"operations":[{"operationType":"create","record":{"recordName":"far","recordType":"Note","fields":{"n":{"value":0}}}}]}"#
    )
    #expect(
      try query(peer, sort: #"{"fieldName":"n"}"#, more: #","zoneWide":true"#).json.names == [
        "d", "far", "a", "b", "c",
      ])
    let wide = try query(peer, more: #","zoneWide":true,"resultsLimit":2"#)
    #expect(wide.json.names == ["a", "b"])
    let marker = try #require(wide["continuationMarker"]?.string)
    let rest = try query(peer, more: #","zoneWide":true,"continuationMarker":"\#(marker)""#)
    #expect(rest.json.names == ["c", "d", "far"])
    #expect(rest.list("records").last?["zoneID"]?["zoneName"] == .string("_defaultZone"))
    for (filter, sort, more) in [
      ("", "", ""), ("", #"{"fieldName":"n"}"#, #","zoneWide":true"#),
      (#"{"fieldName":"n","comparator":"EQUALS","fieldValue":{"value":1}}"#, "", #","zoneWide":true"#),
    ] {
      let reply = try query(peer, filter, sort: sort, more: more + #","continuationMarker":"\#(marker)""#)
      #expect(reply.status == 400 && reply.code == "BAD_REQUEST", "\(sort)")
    }
  }

  @Test("W30: unknown types give nothing, missing zones fail, W32: the zone's token", arguments: Transport.allCases)
  func edges(_ transport: Transport) throws {
    let peer = try filled(transport)
    let unknown = try peer.post("records/query", #"{"query":{"recordType":"Nothing"}}"#)
    #expect(unknown.status == 200 && unknown.list("records").isEmpty && unknown["continuationMarker"] == nil)
    let gone = try peer.post("records/query", #"{"zoneID":{"zoneName":"Gone"},"query":{"recordType":"Note"}}"#)
    #expect(gone.status == 404 && gone.code == "ZONE_NOT_FOUND")
    let token = try query(peer, more: #","getCurrentSyncToken":true"#)["syncToken"]?.string
    #expect(try token != nil && token == peer.changes()["syncToken"]?.string)
    try peer.delete("b")
    #expect(try query(peer).json.names == ["a", "c", "d"])
    let numbers = try query(peer, more: #","numbersAsStrings":true"#)
    #expect(numbers.list("records").first?.field("n").0 == .string("1"))
  }

  @Test("section 9: what no query is, is a BAD_REQUEST", arguments: Transport.allCases)
  func hostile(_ transport: Transport) throws {
    let peer = try filled(transport)
    func filter(_ field: String, _ comparator: String, _ value: String) -> String {
      #"{"fieldName":"\#(field)","comparator":"\#(comparator)","fieldValue":\#(value)}"#
    }
    let many = Array(repeating: filter("n", "EQUALS", #"{"value":1}"#), count: 101).joined(separator: ",")
    for bad in [
      filter("n", "SMELLS_LIKE", #"{"value":1}"#), filter("n", "NOT_NEAR", #"{"value":1}"#),
      filter("n", "EQUALS", #"{"value":"x"}"#), filter("n", "EQUALS", #"{"value":"2","type":"STRING"}"#),
      filter("n", "EQUALS", #"{"value":1.5}"#), filter("n", "EQUALS", "null"), filter("n", "EQUALS", "{}"),
      filter("n", "BEGINS_WITH", #"{"value":"1"}"#), filter("n", "IN", #"{"value":1}"#),
      filter("n", "IN", #"{"value":[1,"x"]}"#), filter("n", "LIST_CONTAINS", #"{"value":1}"#),
      filter("l", "LESS_THAN", #"{"value":["a"]}"#), filter("y", "LESS_THAN", #"{"value":"AA=="}"#),
      filter("p", "NEAR", #"{"value":{"latitude":1,"longitude":1}}"#),
      filter("p", "NEAR", #"{"value":{"latitude":1,"longitude":1}},"distance":-1"#),
      filter("p", "NEAR", #"{"value":1},"distance":1"#), filter("t", "CONTAINS_ALL_TOKENS", #"{"value":1}"#),
      filter("", "EQUALS", #"{"value":1}"#), #"{"comparator":"EQUALS","fieldValue":{"value":1}}"#,
      #"{"systemFieldName":"shoeSize","comparator":"EQUALS","fieldValue":{"value":1}}"#, many, "[]", "7",
    ] { #expect(try query(peer, bad).code == "BAD_REQUEST", "\(bad.prefix(120))") }
    for bad in [
      #"{"fieldName":"l"}"#, #"{"fieldName":"p"}"#, #"{"fieldName":"r"}"#, "{}",
      #"{"fieldName":"n","relativeLocation":{"latitude":1,"longitude":1}}"#,
      #"{"fieldName":"p","relativeLocation":{"latitude":1}}"#,
      Array(repeating: #"{"fieldName":"n"}"#, count: 9).joined(separator: ","),
    ] { #expect(try query(peer, sort: bad).code == "BAD_REQUEST", "\(bad.prefix(120))") }
    for marker in ["x", "CQ1-", "CQ1-%%", "CQ1-AAAA", String(repeating: "A", count: 20_000)] {
      #expect(try query(peer, more: #","continuationMarker":"\#(marker)""#).code == "BAD_REQUEST")
    }
    for body in ["{}", #"{"query":null}"#, #"{"query":{}}"#, #"{"query":{"recordType":""}}"#, #"{"query":[]}"#] {
      #expect(try peer.post("records/query", body).code == "BAD_REQUEST", "\(body)")
    }
  }
}
