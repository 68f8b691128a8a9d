extension JSONWriter {
  /// Writes a string. Only quote, backslash and control characters are escaped.
  public mutating func string(_ text: String) {
    separate()
    byte(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { escape($0) }
    byte(UInt8(ascii: "\""))
  }

  /// Writes bytes as a base64 string.
  public mutating func base64(_ bytes: [UInt8]) {
    separate()
    byte(UInt8(ascii: "\""))
    let out = reserve(Base64.encodedCount(bytes.count))
    bytes.withUnsafeBufferPointer { commit(Base64.encode($0, to: out)) }
    byte(UInt8(ascii: "\""))
  }

  private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
    guard let source = text.baseAddress else { return }
    let count = text.count
    // In the worst case every byte becomes six; room for that is only taken where something is to be escaped.
    var i = 0
    var runStart = 0
    while i < count {
      if count - i >= 8,
        !SpecialBytes.isPresent(in: UnsafeRawPointer(source + i).loadUnaligned(as: UInt64.self))
      {
        i += 8
        continue
      }
      if SpecialBytes.isSpecial(source[i]) {
        copy(source + runStart, i - runStart)
        escapeByte(source[i])
        runStart = i + 1
      }
      i += 1
    }
    copy(source + runStart, count - runStart)
  }

  private mutating func escapeByte(_ value: UInt8) {
    switch value {
    case 0x22: literal("\\\"")
    case 0x5C: literal("\\\\")
    case 0x0A: literal("\\n")
    case 0x0D: literal("\\r")
    case 0x09: literal("\\t")
    default:
      literal("\\u00")
      let digits: StaticString = "0123456789abcdef"
      byte(digits.utf8Start[Int(value >> 4)])
      byte(digits.utf8Start[Int(value & 15)])
    }
  }

  public mutating func int64(_ value: Int64) {
    separate()
    digits(value)
  }

  /// An integer as a decimal string.
  public mutating func int64String(_ value: Int64) {
    separate()
    byte(UInt8(ascii: "\""))
    digits(value)
    byte(UInt8(ascii: "\""))
  }

  /// Writes the shortest decimal that reads back to the same bits. JSON has no infinity and no NaN: they become null,
  /// so callers must keep them away (tables 1.5: such values do not fit a DOUBLE field).
  public mutating func double(_ value: Double) {
    guard value.isFinite else { return null() }
    separate()
    shortest(value)
  }

  /// A double as a decimal string; null as ``double(_:)`` does.
  public mutating func doubleString(_ value: Double) {
    guard value.isFinite else { return null() }
    separate()
    byte(UInt8(ascii: "\""))
    shortest(value)
    byte(UInt8(ascii: "\""))
  }

  /// A time in ms: without fraction where it has none, because strict readers take it for an integer.
  public mutating func milliseconds(_ value: Double) {
    if let exact = Int64(exactly: value), exact.magnitude < 1 << 53, value.sign == .plus || exact != 0 {
      int64(exact)
    } else {
      double(value)
    }
  }

  private mutating func shortest(_ value: Double) {
    var text = value.description
    text.withUTF8 { if let source = $0.baseAddress { copy(source, $0.count) } }
  }

  private mutating func digits(_ value: Int64) {
    let out = reserve(20)
    if value >= 0, value < 10 {
      out.pointee = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value)
      return commit(1)
    }
    var rest = value.magnitude
    var length = value < 0 ? 1 : 0
    var probe = rest
    repeat {
      probe /= 10
      length += 1
    } while probe > 0
    var i = length
    repeat {
      i -= 1
      out[i] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    if value < 0 { out[0] = UInt8(ascii: "-") }
    commit(length)
  }
}
