/// The text form of UUIDs in names and fields: lower case, `8-4-4-4-12` (accounts.md A5).
enum UUIDText {
  /// The text in lower case; nil where it is no UUID. Case is ignored when read.
  static func normalized(_ text: some StringProtocol) -> String? {
    let bytes = Array(text.utf8)
    guard bytes.count == 36 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(36)
    for (index, byte) in bytes.enumerated() {
      switch (index, byte) {
      case (8, UInt8(ascii: "-")), (13, UInt8(ascii: "-")), (18, UInt8(ascii: "-")), (23, UInt8(ascii: "-")):
        result.append(byte)
      case (8, _), (13, _), (18, _), (23, _): return nil
      case (_, UInt8(ascii: "0")...UInt8(ascii: "9")), (_, UInt8(ascii: "a")...UInt8(ascii: "f")): result.append(byte)
      case (_, UInt8(ascii: "A")...UInt8(ascii: "F")): result.append(byte | 0x20)
      default: return nil
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// A random UUID (version 4) from two random numbers.
  static func version4(_ high: UInt64, _ low: UInt64) -> String {
    let a = high & 0xffff_ffff_ffff_0fff | 0x4000
    let b = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
    func hex(_ value: UInt64, _ digits: Int) -> String {
      let text = String(value, radix: 16)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    return [
      hex(a >> 32, 8), hex(a >> 16 & 0xffff, 4), hex(a & 0xffff, 4), hex(b >> 48, 4), hex(b & 0xffff_ffff_ffff, 12),
    ].joined(separator: "-")
  }
}

/// Names an account: a UUID, equal on all devices (accounts.md section 1).
public struct AccountID: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
  /// Lower case.
  public let rawValue: String

  /// Nil where the text is no UUID. Case is ignored.
  public init?(_ text: some StringProtocol) {
    guard let normalized = UUIDText.normalized(text) else { return nil }
    rawValue = normalized
  }

  /// The ID of the account that a legacy login on an instance becomes (accounts.md A7).
  public init(migratedFrom instance: InstanceID) { rawValue = instance.rawValue }

  init(random high: UInt64, _ low: UInt64) { rawValue = UUIDText.version4(high, low) }

  public var description: String { rawValue }
  public static func < (a: AccountID, b: AccountID) -> Bool { a.rawValue < b.rawValue }
}

/// Names one server of a service: a UUID made by the host app (accounts.md section 1).
public struct InstanceID: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
  /// Lower case.
  public let rawValue: String

  /// Nil where the text is no UUID. Case is ignored.
  public init?(_ text: some StringProtocol) {
    guard let normalized = UUIDText.normalized(text) else { return nil }
    rawValue = normalized
  }

  public var description: String { rawValue }
  public static func < (a: InstanceID, b: InstanceID) -> Bool { a.rawValue < b.rawValue }
}

/// Names a place where the user chooses an account: `[a-z0-9-]`, host-defined (accounts.md section 2).
public struct ContextSlot: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
  public let rawValue: String

  /// The slot of apps with one choice.
  public static let main = ContextSlot(unchecked: "main")

  /// Nil where the text is empty, longer than 100 bytes, or has other characters.
  public init?(_ text: some StringProtocol) {
    let isValid = text.utf8.allSatisfy {
      $0 == UInt8(ascii: "-") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
    }
    guard isValid, (1...100).contains(text.utf8.count) else { return nil }
    rawValue = String(text)
  }

  private init(unchecked text: String) { rawValue = text }

  public var description: String { rawValue }
  public static func < (a: ContextSlot, b: ContextSlot) -> Bool { a.rawValue < b.rawValue }
}

/// The storage namespace of one identity (accounts.md section 1). An unresolved identity has none.
public enum ScopeID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Of *none*: signed out.
  case local
  /// Of a cloud user, by the opaque stable ID that is equal on all the user's devices.
  case identity(String)

  /// As it stands in keys: `local`, or `id:` and the identity.
  public var rawValue: String {
    switch self {
    case .local: "local"
    case .identity(let user): "id:" + user
    }
  }

  public init?(rawValue: String) {
    if rawValue == "local" {
      self = .local
    } else if rawValue.hasPrefix("id:") {
      self = .identity(String(rawValue.dropFirst(3)))
    } else {
      return nil
    }
  }

  public var description: String { rawValue }
  public static func < (a: ScopeID, b: ScopeID) -> Bool { a.rawValue < b.rawValue }
}

/// Who the cloud user is, as far as known (accounts.md section 1).
public enum CloudIdentity: Hashable, Sendable {
  /// Signed out.
  case none
  /// The look-up is pending or has failed.
  case unresolved
  case user(String)

  var scope: ScopeID? {
    switch self {
    case .none: .local
    case .unresolved: nil
    case .user(let user): .identity(user)
    }
  }
}
