/// Checks UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing over U+10FFFF.
enum UTF8Check {
  /// Offset of the first byte that is not part of a valid sequence, or nil. Eight ASCII bytes are checked at a time.
  static func firstInvalidByte(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    guard let base = bytes.baseAddress else { return nil }
    let raw = UnsafeRawPointer(base)
    let count = bytes.count
    var i = 0
    while i < count {
      while i + 8 <= count,
        raw.loadUnaligned(fromByteOffset: i, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
      {
        i += 8
      }
      guard i < count else { return nil }
      let length = sequenceLength(base, i, count)
      guard length > 0 else { return i }
      i += length
    }
    return nil
  }

  /// Length of the valid sequence that begins at `i`, or 0.
  private static func sequenceLength(_ base: UnsafePointer<UInt8>, _ i: Int, _ count: Int) -> Int {
    let first = base[i]
    func isContinuation(_ offset: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
      i + offset < count && range.contains(base[i + offset])
    }
    switch first {
    case 0...0x7F: return 1
    case 0xC2...0xDF: return isContinuation(1) ? 2 : 0
    case 0xE0: return isContinuation(1, 0xA0...0xBF) && isContinuation(2) ? 3 : 0
    case 0xED: return isContinuation(1, 0x80...0x9F) && isContinuation(2) ? 3 : 0
    case 0xE1...0xEF: return isContinuation(1) && isContinuation(2) ? 3 : 0
    case 0xF0: return isContinuation(1, 0x90...0xBF) && isContinuation(2) && isContinuation(3) ? 4 : 0
    case 0xF4: return isContinuation(1, 0x80...0x8F) && isContinuation(2) && isContinuation(3) ? 4 : 0
    case 0xF1...0xF3: return isContinuation(1) && isContinuation(2) && isContinuation(3) ? 4 : 0
    default: return 0
    }
  }
}
