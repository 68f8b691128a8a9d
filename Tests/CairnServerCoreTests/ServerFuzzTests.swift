import CairnRecords
import CairnTesting
import FuzzSupport
import Testing

@testable import CairnServerCore

/// What clients hand back to the server, damaged or forged: tokens, tickets and stored fields.
@Suite("Damaged tokens") struct ServerFuzzTests {
  /// FNV-1a, as in the server: a forger can compute it.
  private static func sealed(_ namespace: String, _ content: [UInt8]) -> ChangeToken {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in Array(namespace.utf8) + content { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let sum = (0..<8).reversed().map { UInt8(truncatingIfNeeded: hash >> (8 * UInt64($0))) }
    return ChangeToken(namespace + Base64URL.encode(content + sum))
  }

  private static let refusals: Set<CloudError.Code> = [.badRequest, .changeTokenExpired]

  @Test(
    "web-services section 8: a damaged token is refused, a forged one reads a page or is refused",
    .timeLimit(.minutes(10)))
  func tokens() throws {
    let world = try World()
    for i in 0..<6 { try world.save("r\(i)", ["n": .int64(Int64(i))]) }
    try world.run(.forceDelete, world.note("r2"))
    var query = ZoneFeedQuery(zone: world.zone)
    query.resultsLimit = 2
    let server = world.server
    let middle = try server.core.changes(world.cloud.caller, world.cloud.scope, [query])[0].get().token
    try server.restart()
    let zoneTokens = [middle, try world.feed().token].map(\.rawValue)
    let tokens = zoneTokens + [try world.cloud.databaseChanges(since: nil).token.rawValue]
    try Fuzz.run("change tokens", count: 1_500) { mutator -> ChangeToken in
      let text = mutator.one(of: tokens)
      guard mutator.index(2) == 0 else { return ChangeToken(mutator.mutant(of: text, others: tokens)) }
      var content = Array((Base64URL.decode(text.utf8.dropFirst(4)) ?? [])[..<25])
      for _ in 0...mutator.index(3) {
        content[mutator.index(25)] = mutator.one(of: [0, 1, 2, 0x7F, 0x80, 0xFF, UInt8(mutator.index(256))])
      }
      return Self.sealed(mutator.one(of: ["CZ1-", "CD1-"]), content)
    } _: { token in
      do { _ = try world.feed(since: token, size: 2) } catch let error as CloudError
        where Self.refusals.contains(error.code)
      {}
      do { _ = try world.cloud.databaseChanges(since: token) } catch let error as CloudError
        where Self.refusals.contains(error.code)
      {}
    }
  }

  @Test("web-services section 11: a damaged ticket allows nothing", .timeLimit(.minutes(10)))
  func tickets() throws {
    let secret = [UInt8](repeating: 7, count: 32)
    var ticket = AssetTicket(.receipt, owner: 5, expiry: 1_000)
    ticket.size = 9
    let text = ticket.text(secret)
    let kinds: Set<AssetTicket.Kind> = [.upload, .receipt, .copy, .download]
    try Fuzz.run("asset tickets", count: 1_500) { mutator in
      mutator.mutant(of: text)
    } _: { mutant in
      guard let read = AssetTicket(mutant, kinds, secret, now: 1) else { return }
      try Fuzz.demand(read == ticket, "it allows \(read)")
    }
  }

  @Test("stored fields: damage is an error or fields that are stored alike", .timeLimit(.minutes(10)))
  func blobs() throws {
    var location = Location(latitude: 1, longitude: -2)
    location.altitude = 3
    location.timestamp = 4
    let fields: Fields = [
      "text": .string("Hütte"), "number": .int64(.min), "real": .double(0.5), "bytes": .bytes([0, 1, 2]),
      "time": .timestamp(5), "place": .location(location),
      "ref": .reference(Reference(recordName: "x", zone: ZoneID(name: "Z", owner: "_o"), action: .validate)),
      "file": .asset(Asset(fileChecksum: "c", size: 5, receipt: "r")), "secret": .encrypted(.string("s")),
      "list": .list(.string, [.string("a"), .string("")]),
    ]
    let blob = FieldBlob.encode(fields)
    try Fuzz.run("stored fields", count: 2_000) { mutator in
      mutator.mutant(of: blob, others: [blob])
    } _: { bytes in
      let read: Fields
      do { read = try FieldBlob.decode(bytes) } catch { return }
      let again = FieldBlob.encode(read)
      try Fuzz.demand(FieldBlob.encode(try FieldBlob.decode(again)) == again, "it is stored as other fields")
    }
  }
}
