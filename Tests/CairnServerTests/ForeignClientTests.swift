import CairnRecords
import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// What clients that were written for Apple's service do, and may count on.
@Suite struct ForeignClientTests {
  private static let token = "ckWebAuthToken=a%2Bb%2Fc%3D%3D"

  @Test("web-services section 1: short answers are gzip too where asked, also with weights; not where it is refused")
  func gzip() throws {
    let peer = try Peer(.loopback)
    for (asked, isPacked) in [
      ("gzip", true), ("deflate, GZIP;q=1.0, *;q=0.5", true), ("br, *", true), ("gzip;q=0", false),
      ("identity", false), ("gzip;q=0.0, *", false), ("notgzip", false),
    ] {
      for operation in ["zones/list", "nothing/here"] {
        let reply = try peer.call("POST", Peer.path + operation, query: Self.token, ["Accept-Encoding": asked])
        #expect((reply.headers["content-encoding"] == "gzip") == isPacked, "\(asked) \(operation)")
        // The reply has been unpacked and read.
        #expect(reply.json != .null)
      }
    }
  }

  @Test("W32: pyicloud writes getCurrentSyncToken=True", arguments: Transport.allCases)
  func pythonsTrue(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let body = #"{"zoneID":{"zoneName":"Notes"},"query":{"recordType":"Note"},"records":[]}"#
    for operation in ["records/query", "records/lookup"] {
      #expect(try peer.post(operation, body, query: "getCurrentSyncToken=True")["syncToken"]?.string != nil)
      #expect(try peer.post(operation, body, query: "getCurrentSyncToken=False")["syncToken"] == nil)
    }
  }

  @Test("W13: ENCRYPTED_BYTES is answered as it was written, and flagged BYTES as ENCRYPTED_BYTES")
  func encryptedBytes() throws {
    let peer = try Peer(.inProcess)
    let saved = try peer.save(
      "a", #"{"e":{"value":"AA==","type":"ENCRYPTED_BYTES"},"b":{"value":"AQ==","type":"BYTES","isEncrypted":true}}"#)
    for (name, value) in [("e", "AA=="), ("b", "AQ==")] {
      let field = try #require(saved["fields"]?[name])
      #expect(field["type"] == .string("ENCRYPTED_BYTES") && field["value"] == .string(value))
      #expect(field["isEncrypted"] == nil)
    }
  }

  @Test("W42: blanks in the list of features do not matter")
  func blanks() {
    let features = Features("x, conflict-record ,page=7")
    #expect(features.conflictRecord && features.page == 7)
  }

  @Test(
    "W36: subscriptions of the public database are each user's own and fire for everybody",
    arguments: Transport.allCases)
  func publicSubscriptions(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let users = UserDirectory(storage: peer.storage, clock: peer.clock)
    _ = try users.add("bert")
    try users.addToken(hash: WebAuthToken.hash("bert"), for: "bert")
    let path = Peer.path.replacing("private", with: "public")
    func call(_ operation: String, _ body: String, as user: String) throws -> Peer.Reply {
      try peer.call(
        "POST", path + operation, query: user == "anna" ? Self.token : "ckWebAuthToken=\(user)", [:], Array(body.utf8))
    }
    let subscription =
      #"{"subscriptionID":"q","subscriptionType":"query","firesOn":["create"],"query":{"recordType":"Note","filterBy":[{"fieldName":"n","comparator":"EQUALS","fieldValue":{"value":1}}]}}"#
    let create = #"{"operations":[{"operationType":"create","subscription":\#(subscription)}]}"#
    var couriers: [String] = []
    for user in ["anna", "bert"] {
      let made = try #require(try call("subscriptions/modify", create, as: user).list("subscriptions").first)
      #expect(made["subscriptionID"] == .string("q") && made["serverErrorCode"] == nil, "\(made)")
      #expect(
        try call("subscriptions/modify", create, as: user).list("subscriptions").first?["serverErrorCode"]
          == .string("EXISTS"))
      #expect(try call("subscriptions/list", "", as: user).list("subscriptions") == [made])
      let url = try #require(try call("tokens/create", "{}", as: user)["webcourierURL"]?.string)
      couriers.append(try #require(url.range(of: "/courier/").map { String(url[$0.lowerBound...]) }))
    }
    let save =
      #"{"operations":[{"operationType":"create","record":{"recordName":"p","recordType":"Note","fields":{"n":{"value":1}}}},{"operationType":"create","record":{"recordName":"other","recordType":"Note","fields":{"n":{"value":2}}}}]}"#
    #expect(try call("records/modify", save, as: "bert").status == 200)
    for courier in couriers {
      let told = try #require(try peer.call("GET", courier, query: "")["ck"]?["qry"])
      #expect(told["sid"] == .string("q") && told["rid"] == .string("p") && told["fo"] == .integer(1))
      #expect(told["zoid"] == .string("_defaultOwner"))
    }
    let gone = #"{"operations":[{"operationType":"delete","subscription":{"subscriptionID":"q"}}]}"#
    #expect(try call("subscriptions/modify", gone, as: "anna").list("subscriptions").first?["deleted"] == .bool(true))
    #expect(try call("subscriptions/list", "", as: "anna").list("subscriptions").isEmpty)
    #expect(try call("subscriptions/list", "", as: "bert").list("subscriptions").count == 1)
    try users.remove("bert")
    let rows = try peer.storage.read { reader in
      try reader.subscriptions(
        try #require(try reader.database(0, DatabaseScope(container: "iCloud.test", kind: .public))).key)
    }
    #expect(rows.isEmpty)
  }

  @Test("W16: cairn serve --locked refuses new types there; --no-default-zone-feed answers as Apple does (section 8)")
  func settings() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    let added = try Programs.runCairn(["user", "add", "anna", "--data", data, "--json"])
    let token = try #require(try JSONValue(parsing: Array(added.output.utf8))["token"]?.string)
    let process = try RunningProcess(
      Programs.cairn(),
      ["serve", "--data", data, "--listen", "127.0.0.1:0", "--locked", "production", "--no-default-zone-feed"])
    let url = try process.waitForLine("listening on ")
    let port = try #require(UInt16(url.split(separator: ":").last ?? ""))
    func post(_ operation: String, _ body: String, _ environment: String) throws -> JSONValue {
      let connection = try RawConnection(port: port)
      try connection.send(
        "POST /database/1/iCloud.test/\(environment)/private/\(operation)?ckWebAuthToken=\(token) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      )
      return try JSONValue(parsing: try connection.answer().body)
    }
    func saved(_ environment: String) throws -> JSONValue? {
      let body = #"{"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note"}}]}"#
      guard case .array(let records)? = try post("records/modify", body, environment)["records"] else { return nil }
      return records.first
    }
    #expect(try saved("production")?["serverErrorCode"] == .string("BAD_REQUEST"))
    #expect(try saved("production")?["reason"]?.string?.contains("locked schema") == true)
    #expect(try saved("development")?["recordChangeTag"] != nil)
    let feed = try post("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"}}]}"#, "production")
    guard case .array(let zones)? = feed["zones"] else { throw CloudError(.internalError, "\(feed)") }
    #expect(zones.first?["reason"] == .string("AppDefaultZone does not support getChanges call"))
    process.signal(SIGTERM)
    #expect(try process.waitUntilExit().status == 0)
  }
}
