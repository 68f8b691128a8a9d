import CairnRecords
import CairnServerCore
import CairnTesting
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// Server-to-server keys (web-services section 3).
@Suite struct SignatureTests {
  private struct Signer {
    let key: P256Key
    let id: String

    init(_ peer: Peer, switches: Set<CompatibilitySwitch> = []) throws {
      key = try #require(P256Key.generate())
      let der = key.der
      id = Hexadecimal.text(SHA256Hash.of(der))
      try AppDirectory(storage: peer.storage).add(
        AppCredential(
          kind: .serverKey, id: SHA256Hash.of(der), name: "job", publicKey: der, switches: switches, created: 0))
    }

    /// - Parameters:
    ///   - path: as it is signed; nil signs the path without query.
    ///   - hash: what stands for the body's hash.
    func headers(
      _ peer: Peer, _ path: String, body: String, hash: String? = nil, offset: Int64 = 0
    ) throws -> [String: String] {
      let date = Date(timeIntervalSince1970: Double(peer.clock.now + offset) / 1_000)
        .formatted(Date.ISO8601FormatStyle())
      let sum = hash ?? Data(SHA256Hash.of(Array(body.utf8))).base64EncodedString()
      let signature = try #require(key.signature(of: Array("\(date):\(sum):\(path)".utf8)))
      return [
        "X-Apple-CloudKit-Request-KeyID": id, "X-Apple-CloudKit-Request-ISO8601Date": date,
        "X-Apple-CloudKit-Request-SignatureV1": Data(signature).base64EncodedString(),
      ]
    }
  }

  private let save =
    #"{"operations":[{"operationType":"forceReplace","record":{"recordName":"s","recordType":"Post"}}]}"#

  @Test(
    "web-services W7: both path forms and both empty-body hashes pass; wrong body, old date, private database fail",
    arguments: Transport.allCases)
  func signature(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let signer = try Signer(peer)
    func call(
      _ operation: String, _ body: String, signed: String, hash: String? = nil, offset: Int64 = 0, query: String = "",
      path: String = AccessTests.publicPath
    ) throws -> Peer.Reply {
      let headers = try signer.headers(peer, signed, body: body, hash: hash, offset: offset)
      return try peer.call("POST", path + operation, query: query, headers, Array(body.utf8))
    }
    let modify = AccessTests.publicPath + "records/modify"
    let saved = try call(
      "records/modify", save, signed: modify + "?remapEnums=true&x=%20", query: "remapEnums=true&x=%20")
    #expect(
      saved.status == 200
        && saved.list("records").first?["created"]?["userRecordName"]?.string == "_" + signer.id.prefix(32))
    #expect(try call("records/modify", save, signed: modify, query: "remapEnums=true").status == 200)
    for hash in ["", Data(SHA256Hash.of([])).base64EncodedString()] {
      #expect(try call("zones/list", "", signed: AccessTests.publicPath + "zones/list", hash: hash).status == 200)
    }
    // The date may be ten minutes off, and no more.
    for (offset, status) in [(599_000, 200), (-599_000, 200), (602_000, 401), (-602_000, 401)] as [(Int64, Int)] {
      #expect(
        try call("zones/list", "{}", signed: AccessTests.publicPath + "zones/list", offset: offset).status == status)
    }
    // Another body, another path, an empty hash for a body, another key's signature.
    let other = save.replacingOccurrences(of: "\"s\"", with: "\"t\"")
    let headers = try signer.headers(peer, modify, body: save)
    let forged = try peer.call("POST", modify, query: "", headers, Array(other.utf8))
    #expect(forged.status == 401 && forged.code == "AUTHENTICATION_FAILED")
    #expect(try call("records/modify", save, signed: AccessTests.publicPath + "zones/list").status == 401)
    #expect(try call("records/modify", save, signed: modify, hash: "").status == 401)
    #expect(try call("records/modify", save, signed: modify + "?a=2", query: "a=1").status == 401)
    let path = "/database/1/iCloud.test/production/private/zones/list"
    #expect(try call("zones/list", "", signed: path, path: Peer.path).status == 401)
    // Not mixed with tokens.
    let app = try AccessTests.token(peer)
    for query in ["ckAPIToken=\(app)", AccessTests.webAuth] {
      #expect(try call("zones/list", "", signed: AccessTests.publicPath + "zones/list", query: query).status == 401)
    }
    #expect(
      try AccessTests.lookupPublic(peer, "t", query: AccessTests.webAuth).list("records").first?.code == "NOT_FOUND")
    try AppDirectory(storage: peer.storage).remove(.serverKey, named: "job")
    #expect(try call("zones/list", "", signed: AccessTests.publicPath + "zones/list").status == 401)
  }

  @Test("web-services W7: headers that are no signature fail and name what is wrong")
  func badHeaders() throws {
    let peer = try Peer(.inProcess)
    let signer = try Signer(peer)
    let path = AccessTests.publicPath + "zones/list"
    let good = try signer.headers(peer, path, body: "")
    #expect(try peer.call("POST", path, query: "", good).status == 200)
    for (name, values) in [
      ("X-Apple-CloudKit-Request-KeyID", ["", "zz", String(repeating: "0", count: 64), "' OR 1=1 --"]),
      (
        "X-Apple-CloudKit-Request-ISO8601Date",
        ["", "now", "2016-01-25T22:15:43.000Z", "2016-13-45T99:99:99Z", "9999-12-31T23:59:59Z"]
      ),
      (
        "X-Apple-CloudKit-Request-SignatureV1",
        ["", "AAAA", "%%%", String(repeating: "A", count: 4_000), "MAYCAQACAQA="]
      ),
    ] {
      for value in values {
        var headers = good
        headers[name] = value
        let reply = try peer.call("POST", path, query: "", headers)
        #expect(reply.status == 401 && reply.code == "AUTHENTICATION_FAILED", "\(name): \(value)")
      }
      var headers = good
      headers[name] = nil
      #expect(try peer.call("POST", path, query: "", headers).status == 401)
    }
  }

  @Test("web-services W7: a signature serves one write, however it is spelled; a read may be repeated")
  func replay() throws {
    let peer = try Peer(.inProcess)
    let signer = try Signer(peer)
    let modify = AccessTests.publicPath + "records/modify"
    let headers = try signer.headers(peer, modify, body: save)
    #expect(try peer.call("POST", modify, query: "", headers, Array(save.utf8)).status == 200)
    let again = try peer.call("POST", modify, query: "", headers, Array(save.utf8))
    #expect(again.status == 401 && again.reason?.contains("used") == true)
    // The same numbers with the other s, which is as good to the mathematics.
    let text = try #require(headers["X-Apple-CloudKit-Request-SignatureV1"])
    let mirrored = try #require(Data(base64Encoded: text).flatMap { P256Key.mirror(Array($0)) })
    #expect(signer.key.verifies(mirrored, of: Array("x".utf8)) == false)
    var other = headers
    other["X-Apple-CloudKit-Request-SignatureV1"] = Data(mirrored).base64EncodedString()
    #expect(try peer.call("POST", modify, query: "", other, Array(save.utf8)).reason?.contains("used") == true)
    // Ten minutes later the date is too old anyway; until then the use is remembered.
    peer.clock.advance(seconds: 590)
    #expect(try peer.call("POST", modify, query: "", headers, Array(save.utf8)).reason?.contains("used") == true)
    let path = AccessTests.publicPath + "zones/list"
    let read = try signer.headers(peer, path, body: "")
    for _ in 0..<3 { #expect(try peer.call("POST", path, query: "", read).status == 200) }
  }

  @Test("web-services W7: the memory of used signatures is bounded and forgets what is too old")
  func replayMemory() throws {
    let memory = ReplayGuard(capacity: 3)
    let key = [UInt8](repeating: 1, count: 32)
    for i in 0..<3 { try memory.use(key: key, nonce: [UInt8(i)], now: 0) }
    #expect(throws: CloudError.self) { try memory.use(key: key, nonce: [9], now: 1) }
    #expect(throws: CloudError.self) { try memory.use(key: key, nonce: [0], now: 1) }
    try memory.use(key: key, nonce: [0], now: 2 * SignedRequest.window + 1)
  }

  @Test("section 14: largeBodyHash accepts an empty hash over 1 MiB, and only there")
  func largeBody() throws {
    let peer = try Peer(.inProcess)
    let strict = try Signer(peer)
    let path = AccessTests.publicPath + "records/modify"
    let text = String(repeating: "x", count: 1 << 20)
    let large = #"{"pad":"\#(text)","operations":[]}"#
    #expect(
      try peer.call("POST", path, query: "", strict.headers(peer, path, body: large, hash: ""), Array(large.utf8))
        .status == 401)
    #expect(
      try peer.call("POST", path, query: "", strict.headers(peer, path, body: large), Array(large.utf8)).status == 200)
    try AppDirectory(storage: peer.storage).remove(.serverKey, named: "job")
    let lax = try Signer(peer, switches: [.largeBodyHash])
    #expect(
      try peer.call("POST", path, query: "", lax.headers(peer, path, body: large, hash: ""), Array(large.utf8)).status
        == 200)
    #expect(
      try peer.call("POST", path, query: "", lax.headers(peer, path, body: large), Array(large.utf8)).status == 200)
    #expect(
      try peer.call("POST", path, query: "", lax.headers(peer, path, body: save, hash: ""), Array(save.utf8)).status
        == 401)
  }

  @Test("dates of signatures are read as the calendar has them")
  func dates() {
    #expect(SignedRequest.time("1970-01-01T00:00:00Z") == 0)
    #expect(SignedRequest.time("2016-01-25T22:15:43Z") == 1_453_760_143_000)
    #expect(SignedRequest.time("2024-02-29T12:00:00Z") == 1_709_208_000_000)
    #expect(SignedRequest.time("2000-03-01T00:00:00Z") == 951_868_800_000)
  }
}
