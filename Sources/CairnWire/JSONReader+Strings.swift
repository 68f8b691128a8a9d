/// A string of the body as it stands there, between its quotes. Valid while the body is.
public struct JSONKey {
  /// As they stand in the body, escapes unresolved.
  public let bytes: UnsafeBufferPointer<UInt8>
  let hasEscapes: Bool

  /// Compares with a text without building a `String`. Used by `switch`.
  @inline(__always)
  public static func ~= (text: StaticString, key: JSONKey) -> Bool {
    if key.hasEscapes { return key.string == text.description }
    let count = text.utf8CodeUnitCount
    guard key.bytes.count == count, let base = key.bytes.baseAddress else { return key.bytes.count == count }
    let other = text.utf8Start
    for i in 0..<count where base[i] != other[i] { return false }
    return true
  }

  /// The text with escapes resolved. Escapes were checked when the string was read.
  public var string: String {
    hasEscapes ? JSONEscapes.decode(bytes) : String(decoding: bytes, as: UTF8.self)
  }
}

extension JSONReader {
  /// Reads a string.
  public mutating func readString() throws(WireError) -> String {
    try readRawString().string
  }

  /// Reads a string, leaving it where it is.
  public mutating func readRawString() throws(WireError) -> JSONKey {
    guard try kind() == .string else { throw error(.value, "a string is expected") }
    return try rawString()
  }

  /// Reads a string or null.
  public mutating func readOptionalString() throws(WireError) -> String? {
    try readNull() ? nil : readString()
  }

  /// Reads an array of strings, or null as nil.
  public mutating func readStrings() throws(WireError) -> [String]? {
    if try readNull() { return nil }
    var result: [String] = []
    try beginArray()
    while try nextElement() { result.append(try readString()) }
    return result
  }

  /// Scans a string whose opening quote is at `position`.
  mutating func rawString() throws(WireError) -> JSONKey {
    position += 1
    let first = position
    var hasEscapes = false
    while true {
      skipPlainBytes()
      guard position < end else { throw error(.truncated, "the body ends inside a string") }
      let byte = position.pointee
      if byte == UInt8(ascii: "\"") {
        position += 1
        return JSONKey(
          bytes: UnsafeBufferPointer(start: first, count: position - first - 1), hasEscapes: hasEscapes)
      }
      guard byte == UInt8(ascii: "\\") else { throw error(.syntax, "a control character in a string") }
      hasEscapes = true
      try skipEscape()
    }
  }

  /// Moves to the next quote, backslash or control character, eight bytes at a time.
  @inline(__always)
  private mutating func skipPlainBytes() {
    while end - position >= 8 {
      let found = SpecialBytes.mask(UnsafeRawPointer(position).loadUnaligned(as: UInt64.self).littleEndian)
      if found != 0 {
        position += found.trailingZeroBitCount >> 3
        return
      }
      position += 8
    }
    while position < end, !SpecialBytes.isSpecial(position.pointee) { position += 1 }
  }

  private mutating func skipEscape() throws(WireError) {
    guard end - position >= 2 else { throw error(.truncated, "the body ends inside an escape") }
    switch position[1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position += 2
    case UInt8(ascii: "u"):
      let unit = try escapedUnit()
      switch unit {
      case 0xD800...0xDBFF:
        guard end - position >= 2 else { throw error(.truncated, "the body ends inside an escape") }
        guard position[0] == UInt8(ascii: "\\"), position[1] == UInt8(ascii: "u") else {
          throw error(.syntax, "half of a surrogate pair")
        }
        let low = try escapedUnit()
        guard (0xDC00...0xDFFF).contains(low) else { throw error(.syntax, "half of a surrogate pair") }
      case 0xDC00...0xDFFF: throw error(.syntax, "half of a surrogate pair")
      default: break
      }
    default: throw error(.syntax, "an unknown escape")
    }
  }

  /// Consumes `\uXXXX`.
  private mutating func escapedUnit() throws(WireError) -> UInt16 {
    guard end - position >= 6 else { throw error(.truncated, "the body ends inside an escape") }
    guard let unit = JSONEscapes.unit(position + 2) else { throw error(.syntax, "an escape without four hex digits") }
    position += 6
    return unit
  }
}

/// Bytes that end a plain run inside a JSON string: quote, backslash, controls.
enum SpecialBytes {
  /// The high bits of special bytes among eight, the first in the lowest byte. Bits above the lowest one may be false,
  /// because a borrow runs upwards; the lowest is always true, and there is none where no byte is special.
  @inline(__always)
  static func mask(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    let quote = word ^ (ones &* 0x22)
    let backslash = word ^ (ones &* 0x5C)
    let control = (word &- ones &* 0x20) & ~word
    return (((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | control) & highs
  }

  @inline(__always)
  static func isSpecial(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x22 || byte == 0x5C }
}

/// Resolving of escapes that were checked before.
enum JSONEscapes {
  static func unit(_ p: UnsafePointer<UInt8>) -> UInt16? {
    var value: UInt16 = 0
    for i in 0..<4 {
      guard let digit = hexDigit(p[i]) else { return nil }
      value = value << 4 | UInt16(digit)
    }
    return value
  }

  static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The result is never longer than the escaped text: the shortest escape of a byte has two.
  static func decode(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { out in
      guard let source = bytes.baseAddress, let target = out.baseAddress else { return 0 }
      let count = bytes.count
      var used = 0
      var i = 0
      while i < count {
        if source[i] == UInt8(ascii: "\\") {
          i += appendEscape(bytes, i, out, &used)
          continue
        }
        // Up to the next escape; there is no quote or control character in a string that was read.
        var next = i + 1
        while next < count, source[next] != UInt8(ascii: "\\") { next += 1 }
        (target + used).update(from: source + i, count: next - i)
        used += next - i
        i = next
      }
      return used
    }
  }

  /// Writes what the escape at `i` stands for and returns the escape's length.
  private static func appendEscape(
    _ bytes: UnsafeBufferPointer<UInt8>, _ i: Int, _ out: UnsafeMutableBufferPointer<UInt8>, _ used: inout Int
  ) -> Int {
    var length = 2
    var scalar: UInt32
    switch bytes[i + 1] {
    case UInt8(ascii: "b"): scalar = 8
    case UInt8(ascii: "f"): scalar = 12
    case UInt8(ascii: "n"): scalar = 10
    case UInt8(ascii: "r"): scalar = 13
    case UInt8(ascii: "t"): scalar = 9
    case UInt8(ascii: "u"):
      let base = bytes.baseAddress.unsafelyUnwrapped
      scalar = UInt32(unit(base + i + 2) ?? 0)
      length = 6
      if (0xD800...0xDBFF).contains(scalar) {
        let low = UInt32(unit(base + i + 8) ?? 0)
        scalar = 0x10000 + (scalar - 0xD800) << 10 + (low & 0x3FF)
        length = 12
      }
    default: scalar = UInt32(bytes[i + 1])
    }
    if let encoded = Unicode.Scalar(scalar).flatMap({ UTF8.encode($0) }) {
      for byte in encoded {
        out[used] = byte
        used += 1
      }
    }
    return length
  }
}
