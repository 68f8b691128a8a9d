import Testing

@testable import CairnWire

@Suite("JSON reader: RFC 8259, strictly")
struct JSONReaderTests {
  func parse(_ text: String) throws(WireError) -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

  @Test(
    "valid texts give their value",
    arguments: [
      ("null", JSONValue.null), (" true\n", .bool(true)), ("0", .integer(0)), ("-0", .integer(0)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9007199254740993", .integer(9_007_199_254_740_993)), ("1.5e3", .double(1500)), ("0.1", .double(0.1)),
      ("5e-324", .double(.leastNonzeroMagnitude)), ("1.7976931348623157e308", .double(1.7976931348623157e308)),
      ("18446744073709551616", .double(18_446_744_073_709_551_616)),
      ("\"\\u00e9\\ud83c\\udfd4\\n\\/\\u0000\"", .string("é🏔\n/\u{0}")), ("[]", .array([])),
      ("[1,[2]]", .array([.integer(1), .array([.integer(2)])])),
      ("{\"a\":{},\"b\":[{}]}", .object([.init("a", .object([])), .init("b", .array([.object([])]))])),
      ("{\"\\u0061\":1,\"a\":2}", .object([.init("a", .integer(1)), .init("a", .integer(2))])),
    ])
  func accepts(text: String, value: JSONValue) throws {
    #expect(try parse(text) == value)
  }

  @Test(
    "invalid texts are refused",
    arguments: [
      "", " ", "{", "[", "[1", "[1,", "[1,]", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}", "{1:1}", "[1 2]", "01", "-",
      "1.",
      ".5", "1e", "1e+", "+1", "NaN", "nul", "truee", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
      "\"\\ud800\"",
      "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\n\"", "\"\u{1}\"", "1 1", "{} {}", "[1]]", "'a'", "[1e400]", "\u{FEFF}1",
      "/**/1",
    ])
  func refuses(text: String) {
    #expect(throws: WireError.self) { try parse(text) }
  }

  @Test(
    "invalid UTF-8 is refused wherever it stands",
    arguments: [
      [0x22, 0x80, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
      [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22],
      [0x22, 0xE2, 0x82, 0x22], [0x22, 0xFF, 0x22], [0x22, 0xE0, 0x80, 0x80, 0x22],
    ] as [[UInt8]])
  func utf8(bytes: [UInt8]) {
    #expect(throws: WireError.self) { try JSONValue(parsing: bytes) }
  }

  @Test("nesting and size are limited")
  func limits() {
    let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
    let atLimit = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    #expect(throws: WireError.self) { try parse(deep) }
    #expect(throws: Never.self) { try parse(atLimit) }
    #expect(throws: WireError.self) { try JSONValue(parsing: Array("[1,2]".utf8), limits: JSONLimits(bytes: 4)) }
  }

  @Test("numbers keep every bit; seeded")
  func numbers() throws {
    var random = SeededRandom(seed: 7)
    for _ in 0..<4_000 {
      let value = random.double()
      let integer = random.int64()
      var writer = JSONWriter()
      writer.beginArray()
      writer.double(value)
      writer.int64(integer)
      writer.milliseconds(value)
      writer.endArray()
      let back = try JSONReader.parse(writer.bytes) { (reader) throws(WireError) in
        try reader.beginArray()
        _ = try reader.nextElement()
        let first = try reader.readDouble()
        _ = try reader.nextElement()
        let second = try reader.readInt64()
        _ = try reader.nextElement()
        let third = try reader.readDouble()
        _ = try reader.nextElement()
        return (first, second, third)
      }
      #expect(back.0.bitPattern == value.bitPattern && back.1 == integer && back.2.bitPattern == value.bitPattern)
    }
  }

  @Test("integers: 5.0 and 1e3 are, 2^63 and 1.5 are not; text counts")
  func integers() throws {
    func read(_ text: String) throws(WireError) -> Int64 {
      try JSONReader.parse(Array(text.utf8)) { (reader) throws(WireError) in try reader.readInt64() }
    }
    #expect(try read("5.0") == 5)
    #expect(try read("1e3") == 1000)
    #expect(try read("\"-9223372036854775808\"") == .min)
    for bad in [
      "9223372036854775808", "-9223372036854775809", "1.5", "\"\"", "\"5 \"", "\" 5\"", "\"x\"", "true",
      "99999999999999999999999",
    ] {
      #expect(throws: WireError.self) { try read(bad) }
    }
  }

  @Test("base64: padding optional, both alphabets, junk refused")
  func base64() {
    var random = SeededRandom(seed: 3)
    for _ in 0..<2000 {
      let bytes = random.bytes()
      let text = Base64.encode(bytes)
      #expect(Base64.decode(text) == bytes)
      #expect(Base64.decode(text.replacing("=", with: "")) == bytes)
      #expect(Base64.decode(text.replacing("+", with: "-").replacing("/", with: "_")) == bytes)
    }
    #expect(Base64.encode(Array("fooba".utf8)) == "Zm9vYmE=")
    for bad in ["A", "A===", "====", "Zm9v=mFy", "Zm9\n", "Zm9vYmF", "Zh==", "Zm9vY!=="] {
      #expect(Base64.decode(bad) == (bad == "Zm9vYmF" ? nil : nil), "\(bad)")
    }
  }

  @Test("gzip: back and forth, limits, cut and broken input")
  func gzip() throws {
    var random = SeededRandom(seed: 5)
    let bytes = (0..<200_000).map { _ in UInt8.random(in: 97...105, using: &random) }
    let packed = try #require(Gzip.compress(bytes))
    #expect(packed.count < bytes.count)
    #expect(try Gzip.decompress(packed, limit: bytes.count) == bytes)
    #expect(throws: WireError.self) { try Gzip.decompress(packed, limit: bytes.count - 1) }
    #expect(throws: WireError.self) { try Gzip.decompress(Array(packed.dropLast(9)), limit: 1 << 20) }
    #expect(throws: WireError.self) { try Gzip.decompress(packed + [0], limit: 1 << 20) }
    #expect(throws: WireError.self) { try Gzip.decompress(bytes, limit: 1 << 20) }
    #expect(try Gzip.decompress(#require(Gzip.compress([])), limit: 0) == [])
  }
}
