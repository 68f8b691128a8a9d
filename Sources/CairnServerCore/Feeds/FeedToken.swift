import CairnRecords

/// A position in a feed, as the client carries it: 48 characters, deterministic, checked.
///
/// Layout: four characters name the namespace and the format, 44 characters of URL-safe base64 carry 33 bytes, big
/// endian: flags (1), epoch (4), incarnation (8), position (6), run head (6), check sum (8).
struct FeedToken: Hashable, Sendable {
  enum Namespace: String, Sendable {
    case zone = "CZ1-"
    case database = "CD1-"
  }

  var namespace: Namespace
  /// The epoch of the later of `position` and `head`: if that is a part of the present history, so is the other.
  var epoch: UInt32
  var incarnation: Int64
  /// Everything up to here has been read.
  var position: Int64
  /// Inside a run that began without a token: the feed's newest position at its start, else 0. Tombstones up to it are
  /// of no interest to the reader.
  var head: Int64
  /// Inside such a run, tombstones up to the head are wanted too (`tombstone-all`).
  var replaysTombstones: Bool
  /// Inside a run that goes from the newest change to the oldest, `position` is the last one that has been read.
  var isReverse: Bool

  var furthest: Int64 { isReverse ? head : max(position, head) }

  static let length = 48

  init(
    _ namespace: Namespace, epochs: Epochs, incarnation: Int64, position: Int64, head: Int64 = 0,
    replaysTombstones: Bool = false, isReverse: Bool = false
  ) {
    self.namespace = namespace
    self.incarnation = incarnation
    self.position = position
    // A run that has passed its head is like any other reader: tokens stay independent of how the reader came here.
    let isInRun = head > position || isReverse
    self.head = isInRun ? head : 0
    self.replaysTombstones = replaysTombstones && isInRun
    self.isReverse = isReverse
    epoch = epochs.name(of: isReverse ? head : max(position, head))
  }

  /// Reads a token. Throws the answers of web-services section 8 for garbage, truncation and the wrong namespace.
  init(_ token: ChangeToken, in namespace: Namespace) throws(CloudError) {
    let text = token.rawValue
    guard text.hasPrefix(namespace.rawValue) else { throw CloudError(.badRequest, "Unknown sync continuation type") }
    guard let bytes = Base64URL.decode(text.utf8.dropFirst(4)), bytes.count == 33,
      FeedToken.integer(bytes[25..<33]) == FeedToken.checkSum(bytes[0..<25], namespace)
    else { throw CloudError(.badRequest, "Invalid continuation format") }
    self.namespace = namespace
    replaysTombstones = bytes[0] & 1 != 0
    isReverse = bytes[0] & 2 != 0
    epoch = UInt32(truncatingIfNeeded: FeedToken.integer(bytes[1..<5]))
    incarnation = Int64(bitPattern: FeedToken.integer(bytes[5..<13]))
    position = Int64(FeedToken.integer(bytes[13..<19]))
    head = Int64(FeedToken.integer(bytes[19..<25]))
  }

  var changeToken: ChangeToken {
    var bytes: [UInt8] = [(replaysTombstones ? 1 : 0) | (isReverse ? 2 : 0)]
    bytes.reserveCapacity(33)
    FeedToken.append(UInt64(epoch), 4, to: &bytes)
    FeedToken.append(UInt64(bitPattern: incarnation), 8, to: &bytes)
    FeedToken.append(UInt64(position), 6, to: &bytes)
    FeedToken.append(UInt64(head), 6, to: &bytes)
    FeedToken.append(FeedToken.checkSum(bytes[...], namespace), 8, to: &bytes)
    return ChangeToken(namespace.rawValue + Base64URL.encode(bytes))
  }

  private static func append(_ value: UInt64, _ count: Int, to bytes: inout [UInt8]) {
    for i in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(i)))) }
  }

  private static func integer(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// FNV-1a over namespace and content: against damage, not against forgery; a forged token reads its own zone only.
  private static func checkSum(_ bytes: ArraySlice<UInt8>, _ namespace: Namespace) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in namespace.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return hash
  }
}

/// URL-safe base64 without padding, for tokens.
enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var accumulator: UInt32 = 0
    var bits = 0
    for byte in bytes {
      accumulator = accumulator << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(accumulator >> UInt32(bits) & 63)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(accumulator << UInt32(6 - bits) & 63)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil when a character is no digit of the alphabet.
  static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var accumulator: UInt32 = 0
    var bits = 0
    for character in text {
      guard let digit = digit(character) else { return nil }
      accumulator = accumulator << 6 | digit
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
      }
    }
    return bytes
  }

  private static func digit(_ character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character) - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character) - 71
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character) + 4
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
