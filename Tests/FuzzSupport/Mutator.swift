/// Damages bytes in the ways in which texts and tokens get damaged or are forged. The same seed gives the same mutants.
public struct Mutator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  /// SplitMix64.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }

  /// Below `bound`, and 0 for 0.
  public mutating func index(_ bound: Int) -> Int { bound <= 0 ? 0 : Int(next() % UInt64(bound)) }

  public mutating func one<Element>(of elements: [Element]) -> Element { elements[index(elements.count)] }

  /// What numbers are replaced by: the ends of the types that they are read into, and their neighbours.
  public static let extremes = [
    "0", "-0", "-1", "1", "255", "256", "65536", "-2147483648", "2147483648", "4294967296", "281474976710656",
    "9007199254740991", "9007199254740992", "-9007199254740993", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551615", "99999999999999999999999", "1e308", "1e309", "-1e-400", "0.5",
    "NaN", "00", "1e3", "",
  ]

  private static let pieces: [[UInt8]] =
    [
      "{", "}", "[", "]", "\"", ":", ",", ";", " ", "/", "%", "=", "--", "(", ")", "'", ".", "-", "\\", "\\u0000",
      "\\ud800", "\u{0}", "\n", "\r\n", "\t", "null", "true", "{}", "[]", "\"\"", "\u{301}", "\u{FEFF}", "é",
      "\u{10FFFF}",
    ].map { Array($0.utf8) } + [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80]]

  /// One to four damages. `others` are inputs that parts are taken from.
  public mutating func mutant(of input: [UInt8], others: [[UInt8]] = []) -> [UInt8] {
    var bytes = input
    for _ in 0...index(4) { damage(&bytes, others) }
    return bytes
  }

  public mutating func mutant(of input: String, others: [String] = []) -> String {
    String(decoding: mutant(of: Array(input.utf8), others: others.map { Array($0.utf8) }), as: UTF8.self)
  }

  private mutating func damage(_ bytes: inout [UInt8], _ others: [[UInt8]]) {
    let place = index(bytes.count + 1)
    switch index(12) {
    case 0: if place < bytes.count { bytes[place] ^= 1 << UInt8(index(8)) }
    case 1: if place < bytes.count { bytes[place] = UInt8(index(256)) }
    case 2: bytes.removeSubrange(range(in: bytes))
    case 3: bytes.removeSubrange(place...)
    case 4, 5: bytes.insert(contentsOf: one(of: Self.pieces), at: place)
    case 6:
      let part = Array(bytes[range(in: bytes)])
      for _ in 0...index(4) { bytes.insert(contentsOf: part, at: min(place, bytes.count)) }
    case 7:
      let source = others.isEmpty ? bytes : one(of: others)
      bytes.replaceSubrange(range(in: bytes), with: source[range(in: source)])
    case 8, 9: replaceNumber(&bytes)
    case 10:
      let open = one(of: [["["], ["{", "\"a\":"], ["("], ["\"", "\\"], ["[", "{", "\"b\":"]]).joined()
      for _ in 0..<(1 << index(10)) { bytes.insert(contentsOf: open.utf8, at: place) }
    default:
      let a = range(in: bytes)
      let part = Array(bytes[a])
      bytes.removeSubrange(a)
      bytes.insert(contentsOf: part, at: index(bytes.count + 1))
    }
    // Enough to pass every limit that a parser has inside one text.
    if bytes.count > 20_000 { bytes.removeSubrange(20_000...) }
  }

  /// Mostly short.
  private mutating func range(in bytes: [UInt8]) -> Range<Int> {
    let first = index(bytes.count + 1)
    let longest = index(4) == 0 ? bytes.count : 8
    return first..<min(bytes.count, first + index(longest + 1))
  }

  private mutating func replaceNumber(_ bytes: inout [UInt8]) {
    let isDigit: (UInt8) -> Bool = { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    var runs: [Range<Int>] = []
    var i = 0
    while i < bytes.count {
      var end = i
      while end < bytes.count, isDigit(bytes[end]) { end += 1 }
      if end > i { runs.append(i..<end) }
      i = max(end, i + 1)
    }
    guard !runs.isEmpty else { return bytes.append(contentsOf: one(of: Self.extremes).utf8) }
    bytes.replaceSubrange(one(of: runs), with: Array(one(of: Self.extremes).utf8))
  }
}
