/// What an app shows to be let in, beside its users' tokens: an API token or a server-to-server key (web-services
/// section 3).
public struct AppCredential: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable { case apiToken = "token", serverKey = "key" }

  /// Storage's number; given out once, 0 before it is stored.
  public var number: Int64
  public var kind: Kind
  /// 32 bytes, unique: the SHA-256 of an API token, or of the public key's DER.
  public var id: [UInt8]
  /// What the operator calls it; unique among those of its kind.
  public var name: String
  /// The only container that it opens; nil for every one.
  public var container: String?
  /// A `SubjectPublicKeyInfo` in DER; empty for an API token.
  public var publicKey: [UInt8]
  public var switches: Set<CompatibilitySwitch>
  /// Origins of web pages that may use it: `https://app.example.org`, or `*` for all.
  public var origins: [String]
  /// In ms since 1970.
  public var created: Int64

  public init(
    number: Int64 = 0, kind: Kind, id: [UInt8], name: String, container: String? = nil, publicKey: [UInt8] = [],
    switches: Set<CompatibilitySwitch> = [], origins: [String] = [], created: Int64
  ) {
    self.number = number
    self.kind = kind
    self.id = id
    self.name = name
    self.container = container
    self.publicKey = publicKey
    self.switches = switches
    self.origins = origins
    self.created = created
  }
}

extension AppCredential {
  /// How storage keeps the switches: words with a space between.
  public var storedSwitches: String { switches.sorted().map(\.rawValue).joined(separator: " ") }

  /// Of ``storedSwitches``. Those that this version does not know are left out.
  public static func switches(stored text: String) -> Set<CompatibilitySwitch> {
    Set(text.split(separator: " ").compactMap { CompatibilitySwitch(rawValue: String($0)) })
  }

  /// How storage keeps the origins: words with a space between.
  public var storedOrigins: String { origins.joined(separator: " ") }

  /// Of ``storedOrigins``.
  public static func origins(stored text: String) -> [String] { text.split(separator: " ").map { String($0) } }
}

/// Deviations that some clients need (web-services section 14).
public enum CompatibilitySwitch: String, Hashable, Sendable, CaseIterable, Comparable {
  /// Every list type is answered as `LIST`.
  case listType = "listType=LIST"
  /// Zone IDs also carry `ownerName`.
  case ownerName
  /// Keys that pyicloud's strict mode rejects are left out.
  case strictKeys
  /// An empty body hash is accepted over 1 MiB.
  case largeBodyHash

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// What a user's records take, and may take.
public struct StoredUsage: Hashable, Sendable {
  /// Bytes of live records, as ``StoredRecord/bytesCounted(assets:)`` counts them.
  public var bytes: Int64
  /// Nil for no limit.
  public var quota: Int64?

  public init(bytes: Int64, quota: Int64?) {
    self.bytes = bytes
    self.quota = quota
  }
}

extension StoredRecord {
  /// What a live record counts for beside its fields and assets: name, stamps and indexes.
  static let bytesBesideFields: Int64 = 100

  /// What the record counts for in its user's usage; nothing as a tombstone.
  ///
  /// - Parameter assets: the sizes of its assets, summed up.
  func bytesCounted(assets: Int64) -> Int64 {
    isLive ? Int64(fields.count) + Self.bytesBesideFields + assets : 0
  }
}
