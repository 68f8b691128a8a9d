/// Base64 of RFC 4648, standard alphabet.
///
/// Written with padding. Read with or without it, and with `-` and `_` too; white space and anything else is refused,
/// and so are bits that belong to no byte, so that equal bytes have one spelling but for alphabet and padding.
public enum Base64 {
  public static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

  public static func encode(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: encodedCount(bytes.count)) { out in
      guard let base = out.baseAddress else { return 0 }
      return bytes.withUnsafeBufferPointer { encode($0, to: base) }
    }
  }

  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { decode($0) }
  }

  /// Writes to memory for ``encodedCount(_:)`` bytes and returns that count.
  static func encode(_ bytes: UnsafeBufferPointer<UInt8>, to out: UnsafeMutablePointer<UInt8>) -> Int {
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    let letters = alphabet.utf8Start
    let count = bytes.count
    guard let source = bytes.baseAddress else { return 0 }
    var i = 0
    var o = 0
    while i + 3 <= count {
      let group = UInt32(source[i]) << 16 | UInt32(source[i + 1]) << 8 | UInt32(source[i + 2])
      out[o] = letters[Int(group >> 18)]
      out[o + 1] = letters[Int(group >> 12 & 63)]
      out[o + 2] = letters[Int(group >> 6 & 63)]
      out[o + 3] = letters[Int(group & 63)]
      i += 3
      o += 4
    }
    guard i < count else { return o }
    let hasTwo = count - i == 2
    let group = UInt32(source[i]) << 16 | (hasTwo ? UInt32(source[i + 1]) << 8 : 0)
    out[o] = letters[Int(group >> 18)]
    out[o + 1] = letters[Int(group >> 12 & 63)]
    out[o + 2] = hasTwo ? letters[Int(group >> 6 & 63)] : UInt8(ascii: "=")
    out[o + 3] = UInt8(ascii: "=")
    return o + 4
  }

  /// The bytes, or nil if the text is not base64.
  static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard let source = text.baseAddress else { return [] }
    var count = text.count
    if count % 4 == 0, count > 0 {
      if source[count - 1] == UInt8(ascii: "=") { count -= 1 }
      if source[count - 1] == UInt8(ascii: "=") { count -= 1 }
    }
    guard count % 4 != 1 else { return nil }
    let whole = count / 4
    let rest = count % 4
    let size = whole * 3 + (rest == 0 ? 0 : rest - 1)
    var isValid = true
    let result = [UInt8](unsafeUninitializedCapacity: size) { out, used in
      for i in 0..<whole {
        let p = source + i * 4
        let group =
          UInt32(table[Int(p[0])]) << 18 | UInt32(table[Int(p[1])]) << 12 | UInt32(table[Int(p[2])]) << 6
          | UInt32(table[Int(p[3])])
        // Letters are below 64; the mark 255 of anything else shows above bit 23 or in the check below.
        if (table[Int(p[0])] | table[Int(p[1])] | table[Int(p[2])] | table[Int(p[3])]) & 0xC0 != 0 { isValid = false }
        out[i * 3] = UInt8(truncatingIfNeeded: group >> 16)
        out[i * 3 + 1] = UInt8(truncatingIfNeeded: group >> 8)
        out[i * 3 + 2] = UInt8(truncatingIfNeeded: group)
      }
      used = size
      guard rest > 0 else { return }
      let p = source + whole * 4
      let a = table[Int(p[0])]
      let b = table[Int(p[1])]
      let c = rest == 3 ? table[Int(p[2])] : 0
      if (a | b | c) & 0xC0 != 0 || (rest == 2 ? b & 15 : c & 3) != 0 { isValid = false }
      out[whole * 3] = a << 2 | b >> 4 & 3
      if rest == 3 { out[whole * 3 + 1] = b << 4 | c >> 2 & 15 }
    }
    return isValid ? result : nil
  }

  /// Value of each letter; 255 for bytes that are none.
  private static let table: [UInt8] = {
    var table = [UInt8](repeating: 255, count: 256)
    for (value, letter) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.enumerated() {
      table[Int(letter)] = UInt8(value)
    }
    table[Int(UInt8(ascii: "-"))] = 62
    table[Int(UInt8(ascii: "_"))] = 63
    return table
  }()
}
