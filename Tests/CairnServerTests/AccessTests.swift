import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// API tokens, server-to-server keys, web pages and switches (web-services sections 1, 3 and 14).
@Suite struct AccessTests {
  static let publicPath = "/database/1/iCloud.test/production/public/"
  static let webAuth = "ckWebAuthToken=a%2Bb%2Fc%3D%3D"

  /// Adds an API token to the peer's store.
  static func token(
    _ peer: Peer, _ name: String = "app", switches: Set<CompatibilitySwitch> = [], origins: [String] = [],
    container: String? = nil
  ) throws -> String {
    let token = String(repeating: "0123456789abcdef", count: 4).replacingOccurrences(
      of: "0", with: name.prefix(1) == "a" ? "a" : "b")
    try AppDirectory(storage: peer.storage, clock: peer.clock).add(
      AppCredential(
        kind: .apiToken, id: WebAuthToken.hash(token), name: name, container: container, switches: switches,
        origins: origins, created: 0))
    return token
  }

  private func savePublic(_ peer: Peer, _ name: String, query: String) throws -> Peer.Reply {
    try peer.call(
      "POST", Self.publicPath + "records/modify", query: query, [:],
      Array(
        #"{"operations":[{"operationType":"forceReplace","record":{"recordName":"\#(name)","recordType":"Post"}}]}"#
          .utf8))
  }

  static func lookupPublic(_ peer: Peer, _ name: String, query: String) throws -> Peer.Reply {
    try peer.call(
      "POST", Self.publicPath + "records/lookup", query: query, [:],
      Array(#"{"records":[{"recordName":"\#(name)"}]}"#.utf8))
  }

  @Test(
    "web-services section 3: an API token alone opens public reads, with a user everything",
    arguments: Transport.allCases)
  func apiToken(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let app = "ckAPIToken=" + (try Self.token(peer))
    #expect(try savePublic(peer, "p", query: Self.webAuth).status == 200)
    #expect(try savePublic(peer, "q", query: Self.webAuth + "&" + app).status == 200)
    // Reads.
    #expect(try Self.lookupPublic(peer, "p", query: app).list("records").first?["recordType"]?.string == "Post")
    for (operation, body) in [
      ("records/query", #"{"query":{"recordType":"Post"}}"#), ("zones/list", "{}"), ("zones/changes", "{}"),
      ("zones/lookup", #"{"zones":[{"zoneName":"_defaultZone"}]}"#),
    ] {
      #expect(
        try peer.call("POST", Self.publicPath + operation, query: app, [:], Array(body.utf8)).status == 200,
        "\(operation)")
    }
    // Without a user there is no writing, and no other database.
    let write = try savePublic(peer, "r", query: app)
    #expect(write.status == 421 && write.code == "AUTHENTICATION_REQUIRED" && write["redirectURL"]?.string != nil)
    for path in [
      Peer.path + "zones/list", Self.publicPath + "users/caller", Self.publicPath + "assets/upload",
      Self.publicPath + "tokens/create",
    ] {
      #expect(try peer.call("POST", path, query: app).status == 421, "\(path)")
    }
    #expect(try peer.call("POST", Peer.path + "zones/list", query: app + "&" + Self.webAuth).status == 200)
    // No token at all: not even reads.
    #expect(try Self.lookupPublic(peer, "p", query: "").status == 421)
  }

  @Test(
    "web-services section 3: an unknown API token fails, beside a good user's token too", arguments: Transport.allCases)
  func unknownToken(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let known = try Self.token(peer, container: "iCloud.test")
    for token in [String(repeating: "f", count: 64), "x", "'; DROP TABLE user; --", String(known.dropLast())] {
      let encoded = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      for query in ["ckAPIToken=\(encoded)", "ckAPIToken=\(encoded)&" + Self.webAuth] {
        let reply = try peer.call("POST", Peer.path + "zones/list", query: query)
        #expect(reply.status == 401 && reply.code == "AUTHENTICATION_FAILED")
      }
    }
    let other = "/database/1/iCloud.other/production/public/zones/list"
    #expect(try peer.call("POST", other, query: "ckAPIToken=\(known)").status == 401)
    #expect(
      try peer.call("POST", Self.publicPath + "zones/list", query: "ckAPIToken=\(known.uppercased())").status == 200)
    try AppDirectory(storage: peer.storage).remove(.apiToken, named: "app")
    #expect(try peer.call("POST", Self.publicPath + "zones/list", query: "ckAPIToken=\(known)").status == 401)
  }

  // MARK: Web pages

  @Test("section 1: OPTIONS is answered for the API token's allowed origins", arguments: Transport.allCases)
  func preflight(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let app = "ckAPIToken=" + (try Self.token(peer, origins: ["https://app.example.org"]))
    let open = "ckAPIToken=" + (try Self.token(peer, "both", origins: ["*"]))
    func options(_ query: String, _ origin: String?, _ path: String = Peer.path + "records/modify") throws -> Peer.Reply
    {
      var headers = ["Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"]
      headers["Origin"] = origin
      return try peer.call("OPTIONS", path, query: query, headers)
    }
    let allowed = try options(app, "https://app.example.org")
    #expect(allowed.status == 204 && allowed.headers["access-control-allow-origin"] == "https://app.example.org")
    #expect(allowed.headers["access-control-allow-methods"]?.contains("POST") == true)
    #expect(allowed.headers["access-control-allow-headers"]?.contains("Content-Type") == true)
    #expect(allowed.headers["vary"] == "Origin")
    for (query, origin) in [
      (app, "https://evil.example.org"), (app, "https://app.example.org.evil.org"), (app, "null"),
      ("", "https://app.example.org"),
      ("ckAPIToken=nope", "https://app.example.org"), (app, nil),
    ] {
      let refused = try options(query, origin)
      #expect((400..<500).contains(refused.status) && refused.headers["access-control-allow-origin"] == nil)
    }
    #expect(try options(open, "https://any.org").headers["access-control-allow-origin"] == "https://any.org")
    #expect(try options(open, "https://any.org", Peer.path + "records/nothing").status == 404)
    // Addresses that are their own credential.
    for path in ["/asset-upload/x", "/asset/x", "/courier/x"] {
      #expect(try options("", "https://any.org", path).headers["access-control-allow-origin"] == "*")
    }
    // Requests proper: the page can read answers and errors, another's page gets none.
    let headers = ["Origin": "https://app.example.org"]
    let good = try peer.call("POST", Peer.path + "zones/list", query: app + "&" + Self.webAuth, headers)
    #expect(good.status == 200 && good.headers["access-control-allow-origin"] == "https://app.example.org")
    let noUser = try peer.call("POST", Peer.path + "zones/list", query: app, headers)
    #expect(noUser.status == 421 && noUser.headers["access-control-allow-origin"] == "https://app.example.org")
    let evil = try peer.call(
      "POST", Peer.path + "zones/list", query: app + "&" + Self.webAuth, ["Origin": "https://evil.org"])
    #expect(evil.status == 403 && evil.code == "ACCESS_DENIED" && evil.headers["access-control-allow-origin"] == nil)
  }
}
