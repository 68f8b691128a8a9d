import CairnRecords
import CairnServerCore
import CairnWire
import Testing

@testable import CairnServer

/// The pages on which a user lets an app in (web-services section 3, W4).
@Suite struct SignInTests {
  private static let mine = "token=" + "a%2Bb%2Fc%3D%3D"

  private func path(_ url: String) throws -> (path: String, query: String) {
    let scheme = try #require(url.firstRange(of: "://"))
    let target = url[scheme.upperBound...].drop { $0 != "/" }
    let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
    return (parts[0], parts.count > 1 ? parts[1] : "")
  }

  /// The address that a client of an app gets which has no user.
  private func address(_ peer: Peer, origins: [String], from origin: String?) throws -> (path: String, query: String) {
    let token = try AccessTests.token(peer, origins: origins)
    let reply = try peer.call(
      "POST", Peer.path + "zones/list", query: "ckAPIToken=\(token)", origin.map { ["Origin": $0] } ?? [:])
    #expect(reply.status == 421)
    return try path(try #require(reply["redirectURL"]?.string))
  }

  private func signIn(
    _ peer: Peer, _ place: (path: String, query: String), _ form: String = mine, more: String = ""
  ) throws -> Peer.Reply {
    try peer.call(
      "POST", place.path, query: place.query + more, ["Content-Type": "application/x-www-form-urlencoded"],
      Array(form.utf8))
  }

  private func token(in text: String) throws -> String {
    let start = try #require(text.firstRange(of: "ckWebAuthToken="))
    return String(text[start.upperBound...].prefix { $0.isLetter || $0.isNumber })
  }

  private func works(_ peer: Peer, _ token: String) throws -> Bool {
    try peer.call("POST", Peer.path + "users/caller", query: "ckWebAuthToken=\(token)").status == 200
  }

  @Test("W4: the sign-in's callback delivers a token that works, and not the user's own", arguments: Transport.allCases)
  func callback(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let place = try address(peer, origins: ["https://app.example.org"], from: nil)
    let form = try peer.call("GET", place.path, query: place.query)
    #expect(form.status == 200 && form.headers["content-type"]?.hasPrefix("text/html") == true)
    let reply = try signIn(peer, place)
    #expect(reply.status == 303)
    let location = try #require(reply.headers["location"])
    #expect(location.hasPrefix("https://app.example.org/?ckWebAuthToken="))
    let token = try token(in: location)
    #expect(try token != Peer.token && works(peer, token))

    let named = try signIn(peer, place, more: "callback=https%3A%2F%2Fapp.example.org%2Fdone%3Fx%3D1%23top")
    let there = try #require(named.headers["location"])
    #expect(there.hasPrefix("https://app.example.org/done?x=1&ckWebAuthToken=") && there.hasSuffix("#top"))
    #expect(try works(peer, self.token(in: there)))
  }

  @Test("W4: a page gets the token by a message that only its origin hears")
  func opener() throws {
    let peer = try Peer(.inProcess)
    let place = try address(
      peer, origins: ["https://app.example.org", "https://b.org"], from: "https://app.example.org")
    let reply = try signIn(peer, place)
    let text = String(decoding: reply.body, as: UTF8.self)
    #expect(reply.status == 200 && text.contains(#"}, "https://app.example.org");"#))
    let start = try #require(text.firstRange(of: "ckWebAuthToken: \""))
    #expect(try works(peer, String(text[start.upperBound...].prefix { $0 != "\"" })))
  }

  @Test("W4: without an app the token is shown")
  func shown() throws {
    let peer = try Peer(.inProcess)
    let none = try peer.call("POST", Peer.path + "zones/list", query: "")
    let place = try path(try #require(none["redirectURL"]?.string))
    let text = String(decoding: try signIn(peer, place).body, as: UTF8.self)
    let start = try #require(text.firstRange(of: "<p class=\"token\"><code>"))
    #expect(try works(peer, String(text[start.upperBound...].prefix { $0 != "<" })))
  }

  @Test("W4: no token goes to a page that the operator did not list")
  func foreignPages() throws {
    let peer = try Peer(.inProcess)
    let listed = try address(peer, origins: ["https://app.example.org"], from: nil)
    for callback in [
      "https://evil.org/", "https://app.example.org.evil.org/", "https://app.example.org@evil.org/",
      "javascript:alert(1)",
      "//app.example.org/", "http://app.example.org/", "https://app.example.org:8443/", "https:\\\\evil.org",
      "https://evil.org/https://app.example.org/", "",
    ] {
      let reply = try signIn(peer, listed, more: "callback=" + FormEncoding.encode(callback))
      #expect(reply.status == 403 && reply.headers["location"] == nil, "\(callback)")
    }
    #expect(try signIn(peer, listed, more: "origin=https%3A%2F%2Fevil.org").status == 403)
    let open = try AccessTests.token(peer, "open", origins: ["*"])
    let id = Hexadecimal.text(WebAuthToken.hash(open))
    #expect(try signIn(peer, ("/signin/" + id, "origin=https%3A%2F%2Fany.org")).status == 403)
    for id in ["zz", String(repeating: "ab", count: 32), "../../etc/passwd"] {
      #expect(try signIn(peer, ("/signin/" + id, "")).status == 400)
    }
  }

  @Test("W4: a wrong token gets nothing; what came from outside is text, and nothing runs but the page's own")
  func wrong() throws {
    let peer = try Peer(.inProcess)
    let hostile = try AccessTests.token(peer, "<script>alert(1)</script>", origins: ["https://app.example.org"])
    let place = ("/signin/" + Hexadecimal.text(WebAuthToken.hash(hostile)), "")
    for form in ["token=nope", "token=", "", "token=%zz", "token=%ff%fe", "other=1"] {
      let reply = try signIn(peer, place, form)
      #expect(reply.status == 401 && reply.headers["location"] == nil, "\(form)")
    }
    let form = try peer.call("GET", place.0, query: "")
    let text = String(decoding: form.body, as: UTF8.self)
    #expect(text.contains("&lt;script&gt;alert(1)") && !text.contains("<script>"))
    let policy = try #require(form.headers["content-security-policy"])
    #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
    #expect(!policy.contains("unsafe"))
    #expect(form.headers["referrer-policy"] == "no-referrer" && form.headers["cache-control"] == "no-store")
  }
}
