import CairnRecords
import Foundation
import FuzzSupport
import Testing

@testable import CairnWire

/// What comes from the network, damaged: an error or a value, and what is taken is taken whole.
@Suite("Damaged messages") struct WireFuzzTests {
  private static let zone = ZoneID(name: "Notes")

  private static func golden() throws -> [[UInt8]] {
    let folder = try #require(Bundle.module.resourceURL).appendingPathComponent("Golden")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .sorted { $0.path < $1.path }
    #expect(files.count >= 16)
    return try files.map { try [UInt8](Data(contentsOf: $0)) }
  }

  @Test("web-services section 4: every decoder of answers and requests", .timeLimit(.minutes(10)))
  func messages() throws {
    let inputs = try Self.golden()
    try Fuzz.run("wire messages", count: 1_500) { mutator -> [UInt8] in
      mutator.mutant(of: mutator.one(of: inputs), others: inputs)
    } _: { body in
      var taken = 0
      func run(_ decode: () throws -> Void) rethrows {
        do {
          try decode()
          taken += 1
        } catch is WireError {}
      }
      try run { _ = try ModifyRequest(decoding: body) }
      try run { _ = try LookupRequest(decoding: body) }
      try run { _ = try ZoneChangesRequest(decoding: body) }
      try run { _ = try DatabaseChangesRequest(decoding: body) }
      try run { _ = try ZonesModifyRequest(decoding: body) }
      try run { _ = try ZonesLookupRequest(decoding: body) }
      try run { _ = try AssetsRequest(decoding: body) }
      try run { _ = try ModifyAnswer.decode(body, to: GoldenTests.operations) }
      try run { _ = try ZoneChangesAnswer.decode(body, zone: Self.zone, trustsDeletionTimes: true) }
      try run { _ = try LookupAnswer.decode(body, zone: Self.zone, names: ["notes:7", "notes:8"]) }
      try run { _ = try DatabaseChangesAnswer.decode(body) }
      try run { _ = try ZonesAnswer.decode(body) }
      try run { _ = try AssetsUploadAnswer.decode(body) }
      try run { _ = try AssetReceipt.decode(body) }
      try run { _ = try UserAnswer(decoding: body) }
      try run { _ = try RequestFailure.decode(body) }
      // A number that is too large, where nobody wants it, is no reason to refuse a message.
      if taken > 0, !body.isEmpty, let error = Self.refusal(body), error.kind != .value { throw error }
    }
  }

  private static func refusal(_ body: [UInt8]) -> WireError? {
    do {
      _ = try JSONValue(parsing: body)
      return nil
    } catch { return error }
  }

  @Test("RFC 8259: what the reader takes, another reader takes too, and it comes back equal", .timeLimit(.minutes(10)))
  func grammar() throws {
    let inputs = try Self.golden()
    try Fuzz.run("JSON", count: 2_000) { mutator in
      mutator.mutant(of: mutator.one(of: inputs), others: inputs)
    } _: { body in
      let value: JSONValue
      do { value = try JSONValue(parsing: body) } catch { return }
      do {
        _ = try JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)
      } catch {
        throw Fuzz.Failure(description: "taken here, refused by Foundation: \(error)")
      }
      let again = try JSONValue(parsing: value.encoded)
      try Fuzz.demand(again == value && again.encoded == value.encoded, "it comes back as another value")
    }
  }

  @Test("stored records: a text that is read is written and read alike", .timeLimit(.minutes(10)))
  func records() throws {
    var random = SeededRandom(seed: 5)
    let inputs = (0..<20).map { RecordText.encode(random.record("r\($0)", zone: Self.zone)) }
    try Fuzz.run("record text", count: 1_500) { mutator in
      mutator.mutant(of: mutator.one(of: inputs), others: inputs)
    } _: { body in
      var record: Record
      do { record = try RecordText.decode(body, in: Self.zone) } catch { return }
      // NULL is not written: records leave it out.
      record.fields = Fields(uniqueFields: record.fields.filter { $0.value != nil })
      let again = try RecordText.decode(RecordText.encode(record), in: Self.zone)
      try Fuzz.demand(again == record, "it comes back as \(again)")
    }
  }

  @Test(
    "gzip: a damaged body is refused or gives what its check sum says, never more than the limit",
    .timeLimit(.minutes(10)))
  func gzip() throws {
    let plain = Array(String(repeating: "{\"records\":[{\"recordName\":\"lists:a\"}]} ", count: 40).utf8)
    let packed = try #require(Gzip.compress(plain))
    try Fuzz.run("gzip", count: 1_000) { mutator in
      mutator.mutant(of: packed)
    } _: { bytes in
      let unpacked: [UInt8]
      do { unpacked = try Gzip.decompress(bytes, limit: 4_000) } catch { return }
      try Fuzz.demand(unpacked.count <= 4_000, "it grew to \(unpacked.count) bytes")
      let again = try Gzip.decompress(Gzip.compress(unpacked) ?? [], limit: 4_000)
      try Fuzz.demand(again == unpacked, "it comes back as other bytes")
    }
  }

  @Test("base64 of any bytes", .timeLimit(.minutes(10)))
  func bytes() throws {
    let inputs = ["", "AA==", "AAA=", "////", "+/+/", "Q2Fpcm4", "Q2Fpcm4="].map { Array($0.utf8) }
    try Fuzz.run("base64", count: 2_000) { mutator in
      mutator.mutant(of: mutator.one(of: inputs))
    } _: { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      guard let decoded = Base64.decode(text) else { return }
      try Fuzz.demand(Base64.decode(Base64.encode(decoded)) == decoded, "it comes back as other bytes")
    }
  }
}
