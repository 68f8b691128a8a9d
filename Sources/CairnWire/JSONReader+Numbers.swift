/// A number of the body as it stands there. Valid while the body is.
struct JSONNumber {
  let bytes: UnsafeBufferPointer<UInt8>
  /// Neither fraction nor exponent.
  let isInteger: Bool

  /// The exact value, or nil if it is no integer or out of range. `5.0` and `1e3` are integers.
  var int64: Int64? {
    guard isInteger else { return double.flatMap { Int64(exactly: $0) } }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    var magnitude: UInt64 = 0
    for i in (isNegative ? 1 : 0)..<bytes.count {
      let (product, o1) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, o2) = product.addingReportingOverflow(UInt64(bytes[i] - UInt8(ascii: "0")))
      guard !o1, !o2 else { return nil }
      magnitude = sum
    }
    if isNegative {
      return magnitude <= UInt64(Int64.max) + 1 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil
    }
    return Int64(exactly: magnitude)
  }

  /// The nearest double, or nil if the number is too large for one.
  var double: Double? {
    if let fast = fastDouble { return fast }
    guard let value = Double(String(decoding: bytes, as: UTF8.self)), value.isFinite else { return nil }
    return value
  }

  /// Exact where at most 15 digits are scaled by at most 10^22: both factors are doubles then, and one operation
  /// rounds once.
  private var fastDouble: Double? {
    var i = 0
    let isNegative = bytes[0] == UInt8(ascii: "-")
    if isNegative { i = 1 }
    var mantissa: UInt64 = 0
    var digits = 0
    var scale = 0
    var seenPoint = false
    while i < bytes.count {
      let byte = bytes[i]
      if byte == UInt8(ascii: ".") {
        seenPoint = true
      } else if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
        mantissa = mantissa &* 10 &+ UInt64(byte - UInt8(ascii: "0"))
        if mantissa > 0 { digits += 1 }
        if seenPoint { scale += 1 }
        if digits > 15 { return nil }
      } else {
        return nil
      }
      i += 1
    }
    guard scale <= 22 else { return nil }
    let value = Double(mantissa) / Self.powersOfTen[scale]
    return isNegative ? -value : value
  }

  private static let powersOfTen: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
  ]
}

extension JSONReader {
  /// Reads a number, or a string that holds one (`numbersAsStrings`), as an exact integer.
  public mutating func readInt64() throws(WireError) -> Int64 {
    let place = position
    if let value = try numberOrText().int64 { return value }
    throw WireError(.value, "an integer of 64 bits is expected", at: place - start)
  }

  /// Reads a number, or a string that holds one (`numbersAsStrings`).
  public mutating func readDouble() throws(WireError) -> Double {
    let place = position
    if let value = try numberOrText().double { return value }
    throw WireError(.value, "the number is too large", at: place - start)
  }

  /// Reads a time in ms since 1970, dropping a fraction.
  public mutating func readMilliseconds() throws(WireError) -> Int64 {
    let place = position
    let number = try numberOrText()
    if let exact = number.int64 { return exact }
    if let value = number.double, abs(value) < 9.2e18 { return Int64(value.rounded(.down)) }
    throw WireError(.value, "a time in milliseconds is expected", at: place - start)
  }

  private mutating func numberOrText() throws(WireError) -> JSONNumber {
    switch try kind() {
    case .number: return try number()
    case .string:
      let text = try rawString()
      guard let base = text.bytes.baseAddress, !text.bytes.isEmpty else { throw error(.value, "a number is expected") }
      var inner = JSONReader(start: base, count: text.bytes.count, maximalDepth: 0)
      if let number = try? inner.number(), inner.position == inner.end { return number }
      throw error(.value, "a number is expected")
    default: throw error(.value, "a number is expected")
    }
  }

  /// Scans a number by JSON's grammar.
  mutating func number() throws(WireError) -> JSONNumber {
    let first = position
    if position < end, position.pointee == UInt8(ascii: "-") { position += 1 }
    let integer = position
    try digits()
    if position - integer > 1, integer.pointee == UInt8(ascii: "0") { throw error(.syntax, "a number begins with 0") }
    var isInteger = true
    if position < end, position.pointee == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      try digits()
    }
    if position < end, position.pointee | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      position += 1
      if position < end, position.pointee == UInt8(ascii: "+") || position.pointee == UInt8(ascii: "-") {
        position += 1
      }
      try digits()
    }
    return JSONNumber(bytes: UnsafeBufferPointer(start: first, count: position - first), isInteger: isInteger)
  }

  private mutating func digits() throws(WireError) {
    let first = position
    while position < end, position.pointee &- UInt8(ascii: "0") < 10 { position += 1 }
    guard position > first else {
      throw error(position < end ? .syntax : .truncated, "a digit is expected")
    }
  }
}
