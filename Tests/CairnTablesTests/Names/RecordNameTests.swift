import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Names on the server")
struct RecordNameTests {
  @Test(
    "tables 1.3, TS47: wire names of columns",
    arguments: [
      ("recordID", "c_recordid"), ("_id", "c__id"), ("größe", "gr_xc3_xb6_xc3_x9fe"), ("tax_x", "tax_x5fx"),
      ("c_note", "c_c_note"), ("first name", "first_x20name"), ("1st", "c_1st"), ("parent", "c_parent"),
      ("cairn_x", "c_cairn_x5fx"), ("Title", "title"), ("a_X", "a_x5fx"), ("", "c_"), ("c", "c"), ("order", "order"),
    ])
  func columns(name: String, wire: String) {
    #expect(WireName.column(name) == wire)
  }

  @Test("tables 1.3: reserved tables, and columns are not reserved like tables")
  func tables() {
    #expect(WireName.table("Users") == "c_users" && WireName.column("Users") == "users")
    #expect(WireName.table("parent") == "parent")
    #expect(WireName.table("my:täble") == "my_x3at_xc3_xa4ble")
    #expect(WireName.free("a", taken: ["a", "a_2"]) == "a_3")
  }

  @Test("tables 1.3: the rule is injective but for ASCII case")
  func injective() {
    let pieces = ["_", "x", "5", "f", "c", " ", "é"]
    var names = [""]
    for _ in 0..<4 { names += names.flatMap { name in pieces.map { name + $0 } } }
    let distinct = Set(names)
    #expect(Set(distinct.map(WireName.column)).count == distinct.count)
  }

  @Test("SHA-256: the standard's vectors and a message of several blocks")
  func sha() {
    func hex(_ text: String) -> String { Hex.lower(SHA256.digest(Array(text.utf8))) }
    #expect(hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    #expect(
      hex(String(repeating: "a", count: 1_000_000))
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    var parts = SHA256()
    for piece in ["ab", "c", ""] { Array(piece.utf8).withUnsafeBytes { parts.update($0) } }
    #expect(Hex.lower(parts.finish()) == hex("abc"))
  }

  @Test("tables 1.2: each storage class has its own parts")
  func parts() {
    func name(_ values: Value..., collation: String = "BINARY") -> String? {
      RecordNameCodec.natural(
        table: "t", parts: values.map { .value($0) }, collations: values.map { _ in collation })
    }
    #expect(name(.text("aZ-._~")) == "t:aZ-._~")
    #expect(name(.text("~a")) == "t:%7Ea")
    #expect(name(.text(":% ,é")) == "t:%3A%25%20%2C%C3%A9")
    #expect(name(.text("")) == "t:")
    #expect(name(.integer(-42)) == "t:~i-42")
    #expect(name(.real(5)) == "t:~i5" && name(.real(-0.0)) == "t:~i0")
    #expect(name(.real(0.5)) == "t:~r3fe0000000000000")
    #expect(name(.real(1e300))?.hasPrefix("t:~r") == true)
    #expect(name(.blob([0, 255])) == "t:~b00ff")
    #expect(name(.malformedText([0xff])) == "t:%FF")
    #expect(name(.null) == nil)
    #expect(name(.text("a"), .integer(1)) == "t:a,~i1")
    #expect(name(.text("Rot É"), collation: "NOCASE") == name(.text("rot É"), collation: "NOCASE"))
    #expect(name(.text("a  "), collation: "RTRIM") == "t:a")
  }

  @Test("tables TS50: long keys that differ in the last byte have names of their own, at most 255 bytes")
  func hashed() throws {
    let long = String(repeating: "x", count: 299)
    func name(_ key: String) throws -> String {
      try #require(RecordNameCodec.natural(table: "t", parts: [.value(.text(key))], collations: ["BINARY"]))
    }
    #expect(try name(long + "a") != name(long + "b"))
    let full = "t:" + long + "a"
    #expect(try name(long + "a") == "t:~h" + Hex.lower(SHA256.digest(Array(full.utf8))))
    #expect(try name(String(repeating: "x", count: 253)).utf8.count == 255)
    let table = String(repeating: "t", count: 240)
    let hashed = RecordNameCodec.natural(table: table, parts: [.value(.text(long))], collations: ["BINARY"])
    #expect(hashed?.utf8.count == 180 + 1 + 66)
  }

  @Test("names are read back into their parts, through parents")
  func roundTrip() throws {
    let plans = try planning(scenarioSchema).plans
    let namer = RecordNamer(plans)
    func plan(_ name: String) throws -> TablePlan { try #require(plans.first { $0.name == name }) }
    let uuid = (0..<16).map { UInt8($0 * 16 + 1) }
    let note = RecordNameCodec.mapped(table: "notes", uuid: uuid)
    #expect(note == "notes:01112131-4151-6171-8191-a1b1c1d1e1f1")
    #expect(try RecordNameCodec.decode(note, plan("notes")) == .uuid(uuid))
    #expect(RecordNameCodec.uuid(note.uppercased(), table: "NOTES") == nil)

    let link = try #require(
      namer.name(plan("item_tags"), key: [.text("i:1"), .text("Red")], mappedName: { _, _ in nil }))
    #expect(link == "item_tags:~fitems%3Ai%253A1,~ftags%3Ared")
    #expect(try namer.key(plan("item_tags"), of: link) == [.value(.text("i:1")), .value(.text("red"))])

    let mark = try #require(
      namer.name(plan("marks"), key: [.integer(7), .real(8)], mappedName: { table, id in "\(table)/\(id)" }))
    let numbers = [try plan("notes").number, try plan("labels").number]
    #expect(mark == "marks:~f\(numbers[0])%2F7,~f\(numbers[1])%2F8")
    #expect(
      try namer.key(plan("marks"), of: mark) == [.reference("\(numbers[0])/7"), .reference("\(numbers[1])/8")])
    #expect(try namer.name(plan("marks"), key: [.integer(7), .null], mappedName: { _, _ in "x" }) == nil)
    for wrong in ["marks:a", "marks:a,b", "mark:a,b", "marks:~fa,~q", "marks:~f%2,~fa"] {
      #expect(try namer.key(plan("marks"), of: wrong) == nil)
    }
  }

  @Test("every key value comes back from its name; seed printed on failure")
  func property() throws {
    let plan = try planning("CREATE TABLE t(a, b, PRIMARY KEY(a, b))").plans[0]
    let seed = UInt64(20_261_130)
    var random = SplitMix(seed)
    for _ in 0..<2_000 {
      let values = [random.value(), random.value()]
      let name = try #require(
        RecordNameCodec.natural(table: "t", parts: values.map { .value($0) }, collations: ["BINARY", "BINARY"]))
      let expected = values.map { value -> KeyPartValue in
        if case .real(let real) = value, let integer = KeyValue.integral(real) { return .value(.integer(integer)) }
        return .value(value)
      }
      #expect(RecordNameCodec.decode(name, plan) == .parts(expected), "seed \(seed)")
    }
  }

  @Test("100,000 names are made in a fraction of a second, in debug builds too")
  func speed() throws {
    let clock = ContinuousClock()
    let time = clock.measure {
      for i in 0..<100_000 {
        let id = "8c1f6c3e-2b1d-4a57-9d42-\(i)"
        _ = RecordNameCodec.natural(table: "lists", parts: [.value(.text(id))], collations: ["BINARY"])
      }
    }
    print("100,000 names: \(time)")
    #expect(time < .seconds(5))
  }
}

/// A small seeded generator.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func bytes(upTo count: Int) -> [UInt8] {
    (0..<Int.random(in: 0...count, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  /// Any value but NULL, with the awkward ones often.
  mutating func value() -> Value {
    switch Int.random(in: 0..<6, using: &self) {
    case 0: return .integer([0, 1, -1, .max, .min, 1 << 53 + 1].randomElement(using: &self) ?? 0)
    case 1: return .integer(Int64(bitPattern: next()))
    case 2:
      return .real(
        [0.1, 5, -0.0, 1e300, .infinity, -.infinity, 9_007_199_254_740_994].randomElement(using: &self) ?? 0)
    case 3: return .blob(bytes(upTo: 8))
    case 4:
      let raw = bytes(upTo: 8)
      return String(validating: raw, as: UTF8.self).map { .text($0) } ?? .malformedText(raw)
    default: return .text(["", "a", "~", "é", "a\0b", "%", ",", ":", "🙂", " "].randomElement(using: &self) ?? "")
    }
  }
}
