import CairnRecords

/// Names of the engine's stored rows. The format is written down in docs/internals/engine.md.
enum StoredKeys {
  static let format = "format"
  static let formatVersion = "1"
  static let databaseToken = "db/token"
  static let databaseHold = "db/hold"
  static let backoff = "db/backoff"
  static let quota = "db/quota"
  static let account = "db/account"
  static let lastSync = "db/lastSync"
  static let zonePrefix = "z/"
  static let queuePrefix = "q/"
  /// Which categories the last session served, by which library, on which device.
  static let stamp = "stamp"
  /// Keys that belong to no identity begin with this.
  static let sharedPrefix = "/"

  /// Who was signed in last; empty: nobody.
  static let identity = sharedPrefix + "identity"

  /// Where a category without an outbox of its own keeps its queue.
  static func queue(_ category: String, _ user: String?) -> String {
    sharedPrefix + "queue/" + category + "/" + (user ?? "-") + "/"
  }

  /// How often that queue was written.
  static func queueWrites(_ category: String, _ user: String?) -> String {
    sharedPrefix + "writes/" + category + "/" + (user ?? "-")
  }

  /// How many needs of a category were raised; shared by all identities (engine C10).
  static func epoch(_ category: String) -> String { sharedPrefix + "epoch/" + category }

  /// The category was off when last seen, under the library of the value (engine C9).
  static func off(_ category: String) -> String { "off/" + category }

  /// Changes made without an identity are to be asked about.
  static func adopt(_ category: String) -> String { "adopt/" + category }

  /// Attributes of a category's bootstrap of a zone.
  enum Bootstrap: String, CaseIterable {
    /// The epoch at which the last finished one began.
    case done
    /// The epoch at which the one under way began.
    case start
    /// Its position in the feed.
    case token
    /// The engine's token passed by this category's records before it came.
    case missed
  }

  static func bootstrap(_ zone: ZoneID, _ category: String, _ attribute: Bootstrap) -> String {
    "b/" + path(zone) + "/" + category + "/" + attribute.rawValue
  }

  /// Attributes of a zone.
  enum Zone: String, CaseIterable {
    /// Position in the feed.
    case token
    /// Seen in a server's answer, in this incarnation.
    case confirmed
    /// A snapshot runs: its end is a sweep.
    case snapshot
    /// Wall time of the last complete fetch.
    case lastFetch
    /// Waits till this wall time.
    case hold
    /// The server has changes that were not fetched.
    case unfetched
  }

  static func zone(_ zone: ZoneID, _ attribute: Zone) -> String { zoneRoot(zone) + attribute.rawValue }

  /// The open question of a category, or its answer when that forbids sync; see ``ZoneRegistry``.
  static func question(_ zone: ZoneID, _ category: String) -> String { zoneRoot(zone) + "question/" + category }

  static func tries(_ zone: ZoneID, _ record: String) -> String { zoneRoot(zone) + "tries/" + record }

  static func zoneRoot(_ zone: ZoneID) -> String { zonePrefix + path(zone) + "/" }

  /// `owner/name`, each with `%` and `/` percent-encoded.
  static func path(_ zone: ZoneID) -> String { escape(zone.owner) + "/" + escape(zone.name) }

  static func parse(path: Substring) -> (zone: ZoneID, rest: Substring)? {
    // By bytes: to Swift a slash is another character where a combining mark follows it.
    let bytes = path.utf8
    guard let first = bytes.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    let tail = bytes[bytes.index(after: first)...]
    let second = tail.firstIndex(of: UInt8(ascii: "/")) ?? tail.endIndex
    let rest = second == tail.endIndex ? tail[second...] : tail[tail.index(after: second)...]
    return (
      ZoneID(name: unescape(Substring(tail[..<second])), owner: unescape(Substring(bytes[..<first]))), Substring(rest)
    )
  }

  private static func escape(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "%") }) else { return text }
    return text.unicodeScalars.reduce(into: "") { out, scalar in
      switch scalar {
      case "/": out += "%2F"
      case "%": out += "%25"
      default: out.unicodeScalars.append(scalar)
      }
    }
  }

  private static func unescape(_ text: Substring) -> String {
    var rest = text.unicodeScalars
    guard rest.contains("%") else { return String(text) }
    var out = String.UnicodeScalarView()
    while let mark = rest.firstIndex(of: "%") {
      out += rest[..<mark]
      let code = rest[mark...].prefix(3)
      out.append(code.elementsEqual("%2F".unicodeScalars) ? "/" : "%")
      rest = rest[code.endIndex...]
    }
    out += rest
    return String(out)
  }
}

/// Rows to set, and with nil to remove.
public typealias StateDelta = [String: String?]
