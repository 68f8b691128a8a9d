import CairnRecords
import CairnWire
import FuzzSupport
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// Requests as a broken or hostile client sends them: an answer in JSON, and never a fault of the server.
@Suite("Damaged requests") struct RequestFuzzTests {
  private static let bodies: [(operation: String, body: String)] = [
    (
      "records/modify",
      #"{"atomic":true,"operations":[{"operationType":"forceUpdate","record":{"recordName":"a","recordType":"Note","recordChangeTag":"1h","fields":{"t":{"value":"x","type":"STRING"},"n":{"value":5},"r":{"value":{"recordName":"b","action":"VALIDATE"}},"l":{"value":["a","b"],"type":"STRING_LIST"},"b":{"value":"AAA=","type":"BYTES"},"p":{"value":{"latitude":1,"longitude":2}},"d":{"value":1700000000000,"type":"TIMESTAMP"}}}},{"operationType":"create","record":{"recordName":"b","recordType":"Note","parent":{"recordName":"a"}}},{"operationType":"forceDelete","record":{"recordName":"c"}}],"zoneID":{"zoneName":"Notes"},"desiredKeys":["t"]}"#
    ),
    (
      "records/lookup",
      #"{"records":[{"recordName":"a"},{"recordName":"zz"}],"zoneID":{"zoneName":"Notes"},"desiredKeys":[]}"#
    ),
    (
      "changes/zone",
      #"{"zones":[{"zoneID":{"zoneName":"Notes"},"resultsLimit":2,"reverse":false,"desiredRecordTypes":["Note"]}]}"#
    ),
    ("changes/database", #"{"resultsLimit":2}"#),
    (
      "zones/modify",
      #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Other"}}}]}"#
    ),
    ("zones/lookup", #"{"zones":[{"zoneID":{"zoneName":"Notes"}}]}"#),
    (
      "assets/upload",
      #"{"zoneID":{"zoneName":"Notes"},"tokens":[{"recordName":"a","recordType":"Note","fieldName":"file"}]}"#
    ),
    ("users/caller", "{}"),
  ]

  @Test(
    "web-services section 4: every request is answered in JSON, and none with a fault of the server",
    .timeLimit(.minutes(10)))
  func requests() throws {
    let peer = try Peer(.inProcess)
    let bodies = Self.bodies.map(\.body)
    for (operation, body) in Self.bodies { #expect(try peer.post(operation, body).status == 200, "\(operation)") }
    try Fuzz.run("requests", count: 400) { mutator -> (operation: String, body: String) in
      let sound = mutator.one(of: Self.bodies)
      let query = mutator.one(of: ["", "numbersAsStrings=true&", "getCurrentSyncToken=true&cairn=tombstone-type&"])
      return (sound.operation + "?" + query, mutator.mutant(of: sound.body, others: bodies))
    } _: { request in
      let parts = request.operation.split(separator: "?", omittingEmptySubsequences: false)
      let reply = try peer.post(String(parts[0]), request.body, query: String(parts[1]))
      try Fuzz.demand(reply.status < 500, "\(request.operation) gives \(reply.status) \(reply.reason ?? "")")
      if reply.status != 200 { try Fuzz.demand(reply.code != nil, "status \(reply.status) without a code") }
    }
    // Nothing of it has broken the server: its feed can be read to the end.
    let reply = try peer.post("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Notes"}}]}"#)
    #expect(reply.status == 200 && reply.list("zones").first?["records"] != nil)
  }

  @Test("RFC 7578: a part comes out alike, however the body is cut into pieces", .timeLimit(.minutes(10)))
  func multipart() throws {
    let sound = [
      "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"x\"\r\n\r\nsome bytes\r\n--b--\r\n",
      "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b\r\ncontent-disposition: form-data; name=files\r\n\r\n\r\n--\r\n-\r\n--b\r\n\r\nlast\r\n--b--",
      "--b\r\nContent-Disposition: form-data; name=\"files\"\r\n\r\n--b--",
    ].map { Array($0.utf8) }
    try Fuzz.run("multipart bodies", count: 2_000) { mutator -> (body: [UInt8], cuts: UInt64) in
      let body = mutator.one(of: sound)
      return (mutator.index(8) == 0 ? body : mutator.mutant(of: body, others: sound), mutator.next())
    } _: { input in
      let whole = try Self.read(input.body, pieces: nil)
      let bytewise = try Self.read(input.body, pieces: 0)
      let pieces = try Self.read(input.body, pieces: input.cuts)
      try Fuzz.demand(
        whole == bytewise && whole == pieces,
        "at once \(whole), bytewise \(bytewise), in pieces \(pieces): \(String(decoding: input.body, as: UTF8.self))")
    }
  }

  @Test("RFC 7578: a part without content whose boundary comes in a later piece")
  func emptyPart() throws {
    let body = Array("--b\r\nContent-Disposition: form-data; name=\"files\"\r\n\r\n--b--".utf8)
    #expect(try Self.read(body, pieces: 0) == Part(isComplete: true))
    #expect(try Self.read(body, pieces: nil) == Part(isComplete: true))
  }

  private struct Part: Equatable {
    var bytes: [UInt8] = []
    var isComplete = false
    var hasFailed = false
  }

  /// - Parameter pieces: nil for all at once, 0 for single bytes, else a seed of lengths.
  private static func read(_ body: [UInt8], pieces: UInt64?) throws -> Part {
    guard let reader = try MultipartReader(contentType: "multipart/form-data; boundary=b", part: "files") else {
      throw Fuzz.Failure(description: "not multipart")
    }
    var part = Part()
    var random = Mutator(seed: pieces ?? 0)
    var rest = body[...]
    do throws(CloudError) {
      while !rest.isEmpty {
        let count = pieces == nil ? rest.count : pieces == 0 ? 1 : 1 + random.index(12)
        let piece = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        var bytes = part.bytes
        let failure: CloudError? = piece.withUnsafeBytes { buffer in
          do throws(CloudError) {
            try reader.read(buffer) { (emitted) throws(CloudError) in bytes += emitted }
            return nil
          } catch { return error }
        }
        part.bytes = bytes
        if let failure { throw failure }
      }
      part.isComplete = reader.isComplete
      // How much of a part that does not end comes out depends on the pieces: it is refused anyway.
      if !part.isComplete { part.bytes = [] }
    } catch {
      // How much came out before depends on the pieces.
      part = Part(hasFailed: true)
    }
    return part
  }

  @Test("a listening address is one or none", .timeLimit(.minutes(10)))
  func addresses() throws {
    let sound = ["127.0.0.1:8080", "8080", "[::1]:80", "localhost:0", ":65535"]
    try Fuzz.run("listening addresses", count: 1_000) { mutator in
      mutator.mutant(of: mutator.one(of: sound), others: sound)
    } _: { text in
      guard let address = ListenAddress(text), let again = ListenAddress(address.description) else { return }
      try Fuzz.demand(again == address, "it comes back as \(again)")
    }
  }
}
