import CairnRecords
import CairnServerCore
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// `/console` over HTTP; Tests/Console/console.py uses it in a browser.
@Suite struct ConsoleTests {
  private let bearer = ["Authorization": "Bearer \(Peer.token)"]

  @Test("web-services W44: the page's files need no token, and their headers let nothing else in")
  func files() throws {
    let peer = try Peer(.loopback)
    for (path, type) in [
      ("/console", "text/html"), ("/console/console.css", "text/css"), ("/console/console.js", "text/javascript"),
      ("/console/live.js", "text/javascript"),
    ] {
      let reply = try peer.call("GET", path, query: "")
      #expect(reply.status == 200 && !reply.body.isEmpty, "\(path)")
      #expect(reply.headers["content-type"] == type + "; charset=utf-8")
      #expect(reply.headers["content-security-policy"] == RequestHandler.consolePolicy)
      #expect(reply.headers["x-content-type-options"] == "nosniff")
      #expect(reply.headers["referrer-policy"] == "no-referrer")
      #expect(reply.headers["cache-control"] == "no-cache")
      let tag = try #require(reply.headers["etag"])
      #expect(try peer.call("GET", path, query: "", ["If-None-Match": tag]).status == 304)
      #expect(try peer.call("GET", path, query: "", ["If-None-Match": "W/\"x\""]).status == 200)
    }
    for part in ["default-src 'none'", "script-src 'self'", "form-action 'none'", "frame-ancestors 'none'"] {
      #expect(RequestHandler.consolePolicy.contains(part))
    }
    for word in ["unsafe", "http", "data:", "blob:", "*"] { #expect(!RequestHandler.consolePolicy.contains(word)) }
  }

  @Test("web-services W44: every file that the page and its scripts name is there, and nothing else can be reached")
  func names() throws {
    let peer = try Peer(.inProcess)
    for (name, file) in ConsoleFiles.all where !name.hasSuffix(".css") {
      let text = String(decoding: file.bytes, as: UTF8.self)
      for found in text.matches(of: #/(?:from "\./|href="console/|src="console/)([a-z.]+)"/#) {
        #expect(ConsoleFiles.all[String(found.1)] != nil, "\(name) names \(found.1)")
      }
      // What an outside address or a parser of HTML would need.
      for word in ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        #expect(!text.replacing("http://www.w3.org/2000/svg", with: "").contains(word), "\(name) has \(word)")
      }
    }
    for path in ["/console/../health", "/console/Files", "/console/index.html", "/console//", "/consolex"] {
      #expect(try peer.call("GET", path, query: "").status == 404, "\(path)")
    }
    #expect(try peer.call("GET", "/console/", query: "").headers["location"] == "../console")
  }

  @Test("web-services W44: the console is read with GET only, and to no page of another origin")
  func methods() throws {
    let peer = try Peer(.inProcess)
    for path in ["/console", "/console/console.js", "/console/overview", "/console/types"] {
      for method in ["POST", "PUT", "DELETE"] {
        #expect(try peer.call(method, path, query: "", bearer).code == "BAD_REQUEST", "\(method) \(path)")
      }
      let headers = bearer.merging(["Origin": "https://elsewhere.example"]) { $1 }
      #expect(try peer.call("GET", path, query: "", headers).headers["access-control-allow-origin"] == nil)
      #expect(try peer.call("OPTIONS", path, query: "", headers).status >= 400)
    }
  }

  @Test("web-services W45: the overview wants a token in a header; in the address it is none")
  func token() throws {
    let peer = try Peer(.inProcess)
    for path in ["/console/overview", "/console/types"] {
      #expect(try peer.call("GET", path, query: "").code == "AUTHENTICATION_REQUIRED")
      #expect(
        try peer.call("GET", path, query: "ckWebAuthToken=a%2Bb%2Fc%3D%3D").code == "AUTHENTICATION_REQUIRED")
      #expect(try peer.call("GET", path, query: "", ["Authorization": "Bearer x"]).code == "AUTHENTICATION_FAILED")
      #expect(try peer.call("GET", path, query: "", ["Authorization": "Basic eA=="]).code == "AUTHENTICATION_REQUIRED")
    }
    let reply = try peer.call("GET", "/console/overview", query: "", bearer)
    #expect(reply.status == 200 && reply["user"]?.string == "anna")
    #expect(reply.headers["cache-control"] == "no-store")
    // The calls of the protocol take the same header (section 3).
    #expect(try peer.call("POST", Peer.path + "zones/list", query: "", bearer).status == 200)
    #expect(
      try peer.call("POST", Peer.path + "zones/list", query: "", ["Authorization": "Bearer x"]).code
        == "AUTHENTICATION_FAILED")
  }

  @Test("web-services W45: single-use tokens: the overview's answer carries the next one")
  func singleUse() throws {
    var settings = ServerSettings()
    settings.singleUseTokens = true
    let peer = try Peer(.inProcess, settings: settings)
    // Making the zone has used the first token.
    let core = peer.core
    try UserDirectory(storage: peer.storage, clock: peer.clock).addToken(hash: WebAuthToken.hash("second"), for: "anna")
    let first = try peer.call("GET", "/console/overview", query: "", ["Authorization": "Bearer second"])
    let next = try #require(first.headers["x-apple-cloudkit-web-auth-token"])
    #expect(
      try peer.call("GET", "/console/overview", query: "", ["Authorization": "Bearer second"]).code
        == "AUTHENTICATION_FAILED")
    #expect(try peer.call("GET", "/console/overview", query: "", ["Authorization": "Bearer \(next)"]).status == 200)
    #expect(core.settings.singleUseTokens)
  }

  @Test("web-services W45: the overview has zones, sizes and numbers of the caller's own, and nothing of others'")
  func overview() throws {
    let peer = try Peer(.inProcess)
    let users = UserDirectory(storage: peer.storage, clock: peer.clock)
    _ = try users.add("eve")
    try users.addToken(hash: WebAuthToken.hash("eve"), for: "eve")
    try users.setQuota(1_000_000, for: "anna")
    try peer.save("a", #"{"t":{"value":"x"}}"#)
    try peer.save("b")
    try peer.delete("b")
    let mine = try peer.call("GET", "/console/overview", query: "", bearer)
    let database = try #require(mine.list("databases").first)
    #expect(database["container"]?.string == "iCloud.test" && database["database"]?.string == "private")
    #expect(database.list("zones").compactMap { $0["name"]?.string } == ["Notes", "_defaultZone"])
    #expect(mine["bytes"] == database.list("zones").first?["bytes"])
    #expect(mine["quota"]?.int == 1_000_000)
    let types = "container=iCloud.test&environment=production&database=private&zone=Notes"
    let counts = try peer.call("GET", "/console/types", query: types, bearer).list("types")
    #expect(counts.map { $0["name"]?.string } == ["Note"])
    #expect(counts.first?["live"]?.int == 1 && counts.first?["deleted"]?.int == 1)

    let eve = ["Authorization": "Bearer eve"]
    let hers = try peer.call("GET", "/console/overview", query: "", eve)
    #expect(hers["user"]?.string == "eve" && hers.list("databases").isEmpty && hers.list("devices").isEmpty)
    #expect(try peer.call("GET", "/console/types", query: types, eve).code == "ZONE_NOT_FOUND")
    #expect(try peer.call("GET", "/console/types", query: types + "x", bearer).code == "ZONE_NOT_FOUND")
    #expect(try peer.call("GET", "/console/types", query: "zone=Notes", bearer).code == "BAD_REQUEST")
  }

  @Test("web-services W46: a device says its name; it is noted once a minute, with the usage of the day")
  func devices() throws {
    let peer = try Peer(.inProcess)
    let start = peer.clock.now
    try peer.save("a")
    func devices() throws -> [JSONValue] {
      try peer.call("GET", "/console/overview", query: "", bearer).list("devices")
    }
    #expect(try devices().isEmpty)
    try peer.post("zones/list", headers: ["X-Cairn-Device": "ada%27s%20laptop"])
    #expect(try devices().map { $0["name"]?.string } == ["ada's laptop"])
    peer.clock.advance(milliseconds: 59_999)
    try peer.post("zones/list", headers: ["X-Cairn-Device": "ada%27s%20laptop"])
    #expect(try devices().first?["lastSeen"]?.int == start)
    peer.clock.advance(milliseconds: 1)
    try peer.post("zones/list", headers: ["X-Cairn-Device": "ada%27s%20laptop"])
    let device = try #require(try devices().first)
    #expect(device["lastSeen"]?.int == start + 60_000 && device["firstSeen"]?.int == start)
    #expect(device["container"]?.string == "iCloud.test")
    for bad in ["", "%0a", String(repeating: "x", count: 101), "%ff"] {
      try peer.post("zones/list", headers: ["X-Cairn-Device": bad])
    }
    #expect(try devices().count == 1)
    let days = try peer.call("GET", "/console/overview", query: "", bearer).list("days")
    #expect(days.count == 1 && days.first?["day"]?.int == (start + 60_000) / 86_400_000)
    #expect(days.first?["bytes"]?.int ?? 0 >= 100)
  }
}

extension JSONValue {
  fileprivate var int: Int64? { if case .integer(let value) = self { value } else { nil } }
}
