/// Bytes as hexadecimal digits and back, without going through `String`.
enum Hex {
  private static let lower = Array("0123456789abcdef".utf8)
  private static let upper = Array("0123456789ABCDEF".utf8)

  static func appendLower(_ byte: UInt8, _ result: inout [UInt8]) {
    result.append(lower[Int(byte >> 4)])
    result.append(lower[Int(byte & 15)])
  }

  static func appendUpper(_ byte: UInt8, _ result: inout [UInt8]) {
    result.append(upper[Int(byte >> 4)])
    result.append(upper[Int(byte & 15)])
  }

  static func lower(_ bytes: some Sequence<UInt8>) -> String {
    var result: [UInt8] = []
    for byte in bytes { appendLower(byte, &result) }
    return String(decoding: result, as: UTF8.self)
  }

  /// The 16 digits of a 64-bit number.
  static func appendLower(_ number: UInt64, _ result: inout [UInt8]) {
    var shift: UInt64 = 64
    while shift > 0 {
      shift -= 8
      appendLower(UInt8(truncatingIfNeeded: number >> shift), &result)
    }
  }

  static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The bytes of an even number of digits; nil for anything else.
  static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    guard digits.count % 2 == 0 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for byte in digits {
      guard let value = digit(byte) else { return nil }
      if let first = high {
        result.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return result
  }

  /// The number of exactly 16 digits.
  static func number(_ digits: some Collection<UInt8>) -> UInt64? {
    guard digits.count == 16, let bytes = bytes(digits) else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
