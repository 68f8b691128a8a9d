import CairnRecords
import CairnServerCore
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// Requests of somebody who means harm: the right error, nothing told, the server goes on.
@Suite struct HostileTests {
  /// A body that works, for every endpoint that has one.
  private static let bodies: [(operation: String, body: String)] = [
    (
      "records/modify",
      #"{"zoneID":{"zoneName":"Notes","ownerRecordName":"_defaultOwner"},"atomic":false,"desiredKeys":["t"],"operations":[{"operationType":"forceUpdate","record":{"recordName":"a","recordType":"Note","recordChangeTag":"1h","parent":{"recordName":"p"},"fields":{"t":{"value":"x","type":"STRING"},"n":{"value":5,"type":"INT64"},"d":{"value":1.5},"w":{"value":1700000000000,"type":"TIMESTAMP"},"b":{"value":"AAA=","type":"BYTES"},"r":{"value":{"recordName":"b","action":"NONE","zoneID":{"zoneName":"Notes"}},"type":"REFERENCE"},"l":{"value":["a"],"type":"STRING_LIST"},"p":{"value":{"latitude":1,"longitude":2},"type":"LOCATION"},"f":{"value":{"fileChecksum":"AAAA","size":1,"receipt":"x"},"type":"ASSETID"}}}}]}"#
    ),
    (
      "records/query",
      #"{"zoneID":{"zoneName":"Notes"},"resultsLimit":5,"continuationMarker":"","desiredKeys":["t"],"query":{"recordType":"Note","filterBy":[{"fieldName":"t","comparator":"EQUALS","fieldValue":{"value":"x","type":"STRING"}},{"systemFieldName":"recordName","comparator":"BEGINS_WITH","fieldValue":{"value":"a"}}],"sortBy":[{"fieldName":"t","ascending":true}]}}"#
    ),
    ("records/lookup", #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"a","desiredKeys":["t"]}]}"#),
    (
      "changes/zone",
      #"{"zones":[{"zoneID":{"zoneName":"Notes"},"syncToken":"","resultsLimit":2,"desiredKeys":["t"],"desiredRecordTypes":["Note"],"reverse":false}]}"#
    ),
    ("records/changes", #"{"zoneID":{"zoneName":"Notes"},"syncToken":"","resultsLimit":2}"#),
    ("changes/database", #"{"syncToken":"","resultsLimit":2}"#), ("zones/changes", #"{"metaSyncToken":""}"#),
    ("zones/lookup", #"{"zones":[{"zoneID":{"zoneName":"Notes"}},{"zoneName":"Notes"}]}"#),
    ("zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"New"}}}]}"#),
    ("assets/upload", #"{"tokens":[{"recordName":"a","recordType":"Note","fieldName":"f"}]}"#),
    ("assets/rereference", #"{"zoneID":{"zoneName":"Notes"},"assets":[{"recordName":"a","fieldName":"f"}]}"#),
    ("subscriptions/lookup", #"{"subscriptions":[{"subscriptionID":"s"}]}"#),
    (
      "subscriptions/modify",
      #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","subscriptionType":"query","firesOn":["create"],"firesOnce":false,"zoneID":{"zoneName":"Notes"},"zoneWide":false,"query":{"recordType":"Note","filterBy":[{"fieldName":"t","comparator":"EQUALS","fieldValue":{"value":"x"}}]},"notificationInfo":{"alertBody":"x"}}}]}"#
    ),
    ("tokens/create", #"{"apnsEnvironment":"production"}"#), ("tokens/register", #"{"apnsToken":"x"}"#),
  ]

  /// What stands in for every value of a body in turn.
  private static let bad: [JSONValue] = [
    .null, .bool(true), .integer(-1), .integer(.max), .double(1e300), .string(""), .string("'; DROP TABLE record; --"),
    .string("\" OR \"\"=\""), .string("<script>alert(1)</script>"), .string("\u{0}\u{1}\u{7f}\u{202e}"),
    .string("../../../../etc/passwd"), .string("%s%n%00${jndi:ldap://x}"),
    .string(String(repeating: "A", count: 70_000)),
    .array([]), .array([.null, .array([.integer(1)])]), .object([]), .object([JSONMember("zoneName", .object([]))]),
  ]

  private static let codes: Set<String> = [
    "ACCESS_DENIED", "ATOMIC_ERROR", "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", "BAD_REQUEST", "CONFLICT",
    "EXISTS",
    "NOT_FOUND", "QUOTA_EXCEEDED", "THROTTLED", "TRY_AGAIN_LATER", "VALIDATING_REFERENCE_ERROR", "ZONE_NOT_FOUND",
  ]

  /// What no answer may hold: words of the machine behind it.
  private static let insides = [
    "sqlite", "syntax error", ".swift", "/work/", "/tmp/", "no such table", "constraint failed", "fatal",
  ]

  /// Every value of a tree replaced by `value`, one at a time.
  private static func variants(_ tree: JSONValue, _ value: JSONValue) -> [JSONValue] {
    var all = [value]
    switch tree {
    case .array(let elements):
      for i in elements.indices {
        for variant in variants(elements[i], value) {
          var changed = elements
          changed[i] = variant
          all.append(.array(changed))
        }
      }
    case .object(let members):
      for i in members.indices {
        for variant in variants(members[i].value, value) {
          var changed = members
          changed[i] = JSONMember(members[i].key, variant)
          all.append(.object(changed))
        }
      }
    default: break
    }
    return all
  }

  private func check(_ reply: Peer.Reply, _ what: @autoclosure () -> String) {
    let text = String(decoding: reply.body, as: UTF8.self)
    #expect(reply.status < 500, "\(what()): \(text.prefix(300))")
    #expect(reply.status == 200 || reply.code.map(Self.codes.contains) == true, "\(what())")
    #expect(reply.headers["x-content-type-options"] == "nosniff")
    for word in Self.insides {
      #expect(!text.lowercased().contains(word), "\(what()) tells '\(word)': \(text.prefix(300))")
    }
  }

  @Test(
    "every value of every request is replaced by wrong types, SQL, HTML, control characters and huge texts: the right code, nothing told",
    .timeLimit(.minutes(10)), arguments: bodies.map(\.operation))
  func values(_ operation: String) throws {
    let peer = try Peer(.inProcess)
    let body = try #require(Self.bodies.first { $0.operation == operation }).body
    #expect(try peer.post(operation, body).status == 200 || operation == "tokens/register", "\(operation)")
    let tree = try JSONValue(parsing: Array(body.utf8))
    var count = 0
    for value in Self.bad {
      for variant in Self.variants(tree, value) {
        let reply = try peer.post(operation, String(decoding: variant.encoded, as: UTF8.self))
        check(reply, "\(operation) with \(String(describing: value).prefix(60))")
        count += 1
      }
    }
    #expect(count > 30)
    // The server goes on, and its tables are there.
    try peer.save("after", #"{"z":{"value":"x"}}"#)
    #expect(
      try peer.post("records/lookup", #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"after"}]}"#).status
        == 200)
  }

  @Test("SQL and HTML in names and values come back as they were sent, and are nothing else")
  func texts() throws {
    let peer = try Peer(.inProcess)
    let texts = [
      "'; DROP TABLE record; --", "Robert'); DELETE FROM user;--", "<script>alert('x')</script>",
      "</script><img src=x onerror=alert(1)>",
      "\u{2028}\u{2029}\u{feff}", "${7*7}{{7*7}}", "a\u{0}b", "\\u0000\\\"", "%00%0d%0aSet-Cookie: x=1",
    ]
    for (i, text) in texts.enumerated() {
      let field = String(decoding: JSONValue.string(text).encoded, as: UTF8.self)
      let type =
        #"{"operationType":"forceReplace","record":{"recordName":"r\#(i)","recordType":\#(field),"fields":{\#(field):{"value":\#(field),"type":"STRING"}}}}"#
      let saved = try peer.modify(type).first
      guard saved?.code == nil else {
        #expect(saved?.code == "BAD_REQUEST", "\(text)")
        continue
      }
      let found = try peer.post(
        "records/lookup", #"{"zoneID":{"zoneName":"Notes"},"records":[{"recordName":"r\#(i)"}]}"#)
      let record = found.list("records").first
      #expect(record?.field(text).0 == .string(text) && record?["recordType"]?.string == text)
      let queried = try peer.post(
        "records/query",
        #"{"zoneID":{"zoneName":"Notes"},"query":{"recordType":\#(field),"filterBy":[{"fieldName":\#(field),"comparator":"EQUALS","fieldValue":{"value":\#(field)}}]}}"#
      )
      #expect(queried.list("records").count == 1)
      #expect(
        found.headers["set-cookie"] == nil && found.headers["content-type"]?.hasPrefix("application/json") == true)
    }
    // In addresses and arguments too.
    for text in texts {
      let encoded = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      for query in [
        "ckWebAuthToken=\(encoded)", "ckSession=\(encoded)",
        AccessTests.webAuth + "&cairn=\(encoded)&clientId=\(encoded)&ckAPIToken=",
      ] {
        check(try peer.call("POST", Peer.path + "zones/list", query: query), "query \(text)")
      }
      check(
        try peer.call("POST", "/database/1/iCloud.test/production/private/records/" + text, query: AccessTests.webAuth),
        "path")
    }
    #expect(try peer.get("zones/list").status == 200)
  }

  @Test("depth, numbers of entries and sizes have limits", .timeLimit(.minutes(10)))
  func sizes() throws {
    let peer = try Peer(.inProcess)
    for depth in [200, 10_000, 200_000] {
      for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
        let deep = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
        for body in [deep, #"{"operations":\#(deep)}"#, #"{"x":\#(deep),"operations":[]}"#] {
          let reply = try peer.post("records/modify", body)
          check(reply, "depth \(depth)")
          #expect(reply.code == "BAD_REQUEST" || depth == 200)
        }
      }
    }
    let many = (0..<201).map { #"{"recordName":"r\#($0)"}"# }.joined(separator: ",")
    for (operation, body) in [
      ("records/lookup", #"{"records":[\#(many)]}"#),
      ("zones/lookup", #"{"zones":[\#((0..<201).map { #"{"zoneName":"z\#($0)"}"# }.joined(separator: ","))]}"#),
      (
        "zones/modify",
        #"{"operations":[\#((0..<201).map { #"{"operationType":"create","zone":{"zoneID":{"zoneName":"z\#($0)"}}}"# }.joined(separator: ","))]}"#
      ),
      (
        "assets/upload",
        #"{"tokens":[\#((0..<201).map { #"{"recordName":"z\#($0)","recordType":"T","fieldName":"f"}"# }.joined(separator: ","))]}"#
      ),
      (
        "changes/zone",
        #"{"zones":[\#((0..<201).map { #"{"zoneID":{"zoneName":"z\#($0)"}}"# }.joined(separator: ","))]}"#
      ),
      (
        "subscriptions/lookup",
        #"{"subscriptions":[\#((0..<201).map { #"{"subscriptionID":"z\#($0)"}"# }.joined(separator: ","))]}"#
      ),
    ] {
      let reply = try peer.post(operation, body)
      #expect(reply.status == 400 && reply.code == "BAD_REQUEST", "\(operation)")
    }
    let large = String(repeating: "x", count: 1_000_001)
    #expect(try peer.save("large", #"{"t":{"value":"\#(large)"}}"#).code == "BAD_REQUEST")
    // A body that unpacks to more than may be sent.
    let bomb = try #require(Gzip.compress([UInt8](repeating: 32, count: 40 << 20)))
    let reply = try peer.call(
      "POST", Peer.path + "zones/list", query: AccessTests.webAuth, ["Content-Encoding": "gzip"], Array(bomb))
    #expect(reply.status == 400 && reply.code == "BAD_REQUEST")
    for body in ["", "\u{1f}\u{8b}", "not gzip"] {
      check(
        try peer.call(
          "POST", Peer.path + "zones/list", query: AccessTests.webAuth, ["Content-Encoding": "gzip"], Array(body.utf8)),
        "gzip")
    }
  }

  @Test("truncated bodies are BAD_REQUEST, wherever they end")
  func truncated() throws {
    let peer = try Peer(.inProcess)
    for (operation, body) in Self.bodies {
      let bytes = Array(body.utf8)
      for end in stride(from: 1, to: bytes.count, by: 7) {
        let reply = try peer.call("POST", Peer.path + operation, query: AccessTests.webAuth, [:], Array(bytes[..<end]))
        #expect(reply.status == 400 && reply.code == "BAD_REQUEST", "\(operation) at \(end)")
      }
    }
    #expect(try peer.changes().names == [])
  }
}
