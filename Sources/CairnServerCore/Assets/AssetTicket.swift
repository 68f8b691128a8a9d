import CairnRecords

/// What a signed text about an asset allows: an upload, the use of what was uploaded, or a download.
///
/// Layout: kind (1), owner (8), expiry (8), binding (16), digest (32), size (8), all big endian, then the first 16
/// bytes of the HMAC-SHA256 of that; URL-safe base64.
struct AssetTicket: Hashable, Sendable {
  enum Kind: UInt8, Sendable {
    /// An upload for one field of one record.
    case upload = 1
    /// The use of uploaded bytes in that field.
    case receipt = 2
    /// The use of bytes that a record of the database has, in any of its fields (assets/rereference).
    case copy = 3
    case download = 4
  }

  var kind: Kind
  /// The incarnation of the database, which is random and never used again; in a download the key of the user.
  var owner: Int64
  /// In ms since 1970; from then on the ticket is worth nothing.
  var expiry: Int64
  /// 16 bytes, see ``binding(type:name:field:)``; zeros in a copy or download.
  var binding = [UInt8](repeating: 0, count: 16)
  /// Zeros in an upload.
  var digest = [UInt8](repeating: 0, count: 32)
  var size: Int64 = 0

  init(_ kind: Kind, owner: Int64, expiry: Int64) {
    self.kind = kind
    self.owner = owner
    self.expiry = expiry
  }

  private static let length = 73

  func text(_ secret: [UInt8]) -> String {
    var bytes: [UInt8] = [kind.rawValue]
    bytes.reserveCapacity(Self.length + 16)
    Self.append(owner, to: &bytes)
    Self.append(expiry, to: &bytes)
    bytes += binding
    bytes += digest
    Self.append(size, to: &bytes)
    return Base64URL.encode(bytes + Self.signature(bytes, secret))
  }

  /// Nil for a text that was not signed with `secret`, is of another kind, or has expired.
  init?(_ text: String, _ kinds: Set<Kind>, _ secret: [UInt8], now: Int64) {
    guard let bytes = Base64URL.decode(text.utf8), bytes.count == Self.length + 16 else { return nil }
    let content = Array(bytes[..<Self.length])
    // Every byte is looked at, so that the time tells nothing about where they differ.
    var difference: UInt8 = 0
    for (a, b) in zip(Self.signature(content, secret), bytes[Self.length...]) { difference |= a ^ b }
    guard difference == 0, let kind = Kind(rawValue: content[0]), kinds.contains(kind) else { return nil }
    self.kind = kind
    owner = Self.integer(content[1..<9])
    expiry = Self.integer(content[9..<17])
    binding = Array(content[17..<33])
    digest = Array(content[33..<65])
    size = Self.integer(content[65..<73])
    guard now < expiry else { return nil }
  }

  /// What ties a receipt to a field of a record (web-services section 11).
  static func binding(type: String, name: String, field: String) -> [UInt8] {
    var bytes: [UInt8] = []
    for part in [type, name, field] {
      append(Int64(part.utf8.count), to: &bytes)
      bytes += part.utf8
    }
    return Array(SHA256.digest(bytes)[..<16])
  }

  private static func signature(_ bytes: [UInt8], _ secret: [UInt8]) -> ArraySlice<UInt8> {
    let key = secret + [UInt8](repeating: 0, count: 64 - secret.count)
    let inner = SHA256.digest(key.map { $0 ^ 0x36 } + bytes)
    return SHA256.digest(key.map { $0 ^ 0x5c } + inner)[..<16]
  }

  private static func append(_ value: Int64, to bytes: inout [UInt8]) {
    let bits = UInt64(bitPattern: value)
    for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift))) }
  }

  private static func integer(_ bytes: ArraySlice<UInt8>) -> Int64 {
    Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension Asset {
  /// The SHA-256 that ``fileChecksum`` spells; nil where it is another server's.
  var digest: [UInt8]? {
    guard let bytes = Base64.decode(fileChecksum), bytes.count == 32 else { return nil }
    return bytes
  }

  /// An asset as records store it: no receipt, no address.
  init(_ summary: AssetSummary) {
    self.init(fileChecksum: Base64.encode(summary.digest), size: summary.size)
  }
}
