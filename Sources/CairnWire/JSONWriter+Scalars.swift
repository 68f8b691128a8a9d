extension JSONWriter {
  /// Writes a string. Only quote, backslash and control characters are escaped.
  public mutating func string(_ text: String) {
    separate()
    byte(UInt8(ascii: "\""))
    // Native strings are lent as they are; bridged ones, on Apple, are copied first.
    if text.utf8.withContiguousStorageIfAvailable({ escape($0) }) == nil {
      var copy = text
      copy.withUTF8 { escape($0) }
    }
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

  /// Copies eight bytes at a time where nothing is to be escaped. Works in pieces, because in the worst case every byte
  /// becomes six and room for that is taken before.
  private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
    guard let source = text.baseAddress else { return }
    var i = 0
    while i < text.count {
      let end = min(text.count, i + 2048)
      let out = reserve((end - i) * 6)
      var used = 0
      while i < end {
        if end - i >= 8 {
          let word = UnsafeRawPointer(source + i).loadUnaligned(as: UInt64.self)
          // All eight are stored; those from the first special byte on are overwritten.
          UnsafeMutableRawPointer(out + used).storeBytes(of: word, as: UInt64.self)
          let plain = SpecialBytes.mask(word.littleEndian).trailingZeroBitCount >> 3
          i += plain
          used += plain
          if plain == 8 { continue }
        } else if !SpecialBytes.isSpecial(source[i]) {
          out[used] = source[i]
          i += 1
          used += 1
          continue
        }
        used += Self.escape(source[i], to: out + used)
        i += 1
      }
      commit(used)
    }
  }

  /// Writes the escape of a special byte and returns its length.
  private static func escape(_ value: UInt8, to out: UnsafeMutablePointer<UInt8>) -> Int {
    out[0] = UInt8(ascii: "\\")
    switch value {
    case 0x22, 0x5C: out[1] = value
    case 0x0A: out[1] = UInt8(ascii: "n")
    case 0x0D: out[1] = UInt8(ascii: "r")
    case 0x09: out[1] = UInt8(ascii: "t")
    default:
      let digits: StaticString = "0123456789abcdef"
      out[1] = UInt8(ascii: "u")
      out[2] = UInt8(ascii: "0")
      out[3] = UInt8(ascii: "0")
      out[4] = digits.utf8Start[Int(value >> 4)]
      out[5] = digits.utf8Start[Int(value & 15)]
      return 6
    }
    return 2
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
