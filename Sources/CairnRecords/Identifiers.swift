/// Names a zone: a part of one user's database with its own change feed.
public struct ZoneID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The owner name that stands for the caller itself.
  public static let currentOwner = "_defaultOwner"

  public var name: String
  /// The owner's user record name, or ``currentOwner``.
  public var owner: String

  public init(name: String, owner: String = ZoneID.currentOwner) {
    self.name = name
    self.owner = owner
  }

  public var description: String { owner == Self.currentOwner ? name : "\(owner)/\(name)" }

  public static func < (a: ZoneID, b: ZoneID) -> Bool {
    (a.owner, a.name) < (b.owner, b.name)
  }
}

/// Names a record inside its zone. Names are ASCII, at most 255 bytes.
public struct RecordID: Hashable, Sendable, Comparable, CustomStringConvertible {
  public var zone: ZoneID
  public var name: String

  public init(name: String, zone: ZoneID) {
    self.zone = zone
    self.name = name
  }

  public var description: String { "\(zone)/\(name)" }

  public static func < (a: RecordID, b: RecordID) -> Bool {
    a.zone == b.zone ? a.name < b.name : a.zone < b.zone
  }
}

/// The server's opaque mark of one stored version of a record. Equal tags of one record mean equal content.
public struct ChangeTag: Hashable, Sendable, CustomStringConvertible {
  public var rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
  public var description: String { rawValue }
}

/// Two positions of a zone's feed between which nothing lies but the changes of one modification (web-services section
/// 15, `feed-position`).
public struct FeedStep: Hashable, Sendable {
  /// What a reader who had read everything held before the modification was stored.
  public var before: ChangeToken
  /// What takes its place; equal to it where nothing was stored.
  public var after: ChangeToken

  public init(before: ChangeToken, after: ChangeToken) {
    self.before = before
    self.after = after
  }
}

/// The server's opaque mark of a position in a change feed.
public struct ChangeToken: Hashable, Sendable, CustomStringConvertible {
  public var rawValue: String
  public init(_ rawValue: String) { self.rawValue = rawValue }
  public var description: String { rawValue }
}
