import CairnRecords

/// What sharing reads (web-services section 12). A share row belongs to a root; it may be there before the share is,
/// for its short GUID.
public protocol ShareStorageReader: AnyObject {
  func user(recordName: String) throws -> Caller?
  /// E-mail addresses are compared as they are stored: in lower case.
  func user(email: String) throws -> Caller?
  /// Empty for a user who is not there.
  func profile(of user: Int64) throws -> UserProfile

  /// Where a live zone is; nil when it or its database is gone.
  func place(ofZone zone: Int64) throws -> StoredZonePlace?

  /// The live zones of a user's databases in which there are shares.
  func sharedZones(of user: Int64) throws -> [Int64]

  /// The shares with these properties, in the order of their keys.
  func shares(_ which: ShareSelection) throws -> [StoredShare]
  /// Who takes part in a share, the owner left out, in the order in which they were put.
  func participants(of share: Int64) throws -> [StoredParticipant]
  /// The shares in which a user takes part, invited or accepted, in the order of their keys.
  func participations(of user: Int64) throws -> [StoredParticipation]

  /// What the feeds of all shares of a zone say of one record.
  func shareEntries(_ zone: Int64, named name: String) throws -> [StoredShareEntry]
  /// The feed of one share after `position`, oldest first.
  func shareEntries(of share: Int64, after position: Int64, limit: Int) throws -> [StoredShareEntry]
}

/// What sharing writes.
public protocol ShareStorageWriter: ShareStorageReader {
  func setProfile(of user: Int64, _ profile: UserProfile) throws

  /// Stores a share under its key, or under a new one where the key is 0. Returns the key.
  @discardableResult
  func putShare(_ share: StoredShare) throws -> Int64
  /// Removes a share with its participants and its feed.
  func removeShare(_ share: Int64) throws
  /// Those who take part become exactly these.
  func setParticipants(of share: Int64, _ participants: [StoredParticipant]) throws

  /// Stores an entry in place of the one of that share and name.
  func putShareEntry(_ entry: StoredShareEntry, in zone: Int64) throws
}

/// Which shares.
public enum ShareSelection: Hashable, Sendable {
  case key(Int64)
  case guid(String)
  case inZone(Int64)
  /// That of a root.
  case root(zone: Int64, name: String)
  /// That of a record of type `cloudkit.share`.
  case record(zone: Int64, name: String)
}

/// A share row.
public struct StoredShare: Hashable, Sendable {
  /// 0 before it is stored.
  public var key: Int64
  public var zone: Int64
  public var root: String
  /// The name of the record of type `cloudkit.share`; nil while the root only has a short GUID.
  public var name: String?
  public var guid: String
  public var publicPermission: SharePermission
  /// The position of the newest entry of its feed, a position of the owner's database.
  public var position: Int64
  /// The position of the newest entry that was pruned from the feed; 0 when none was.
  public var pruned: Int64

  public init(
    key: Int64 = 0, zone: Int64, root: String, name: String?, guid: String, publicPermission: SharePermission,
    position: Int64 = 0, pruned: Int64 = 0
  ) {
    self.key = key
    self.zone = zone
    self.root = root
    self.name = name
    self.guid = guid
    self.publicPermission = publicPermission
    self.position = position
    self.pruned = pruned
  }
}

/// Somebody who takes part in a share. Who has left or was removed has no row.
public struct StoredParticipant: Hashable, Sendable {
  /// Storage's key; nil for somebody who was invited by an address that no user has yet.
  public var user: Int64?
  /// By what the user was invited.
  public var lookup: UserLookup?
  public var kind: ShareParticipant.Kind
  /// Of a public user the share's own permission counts instead.
  public var permission: SharePermission
  public var hasAccepted: Bool

  public init(
    user: Int64?, lookup: UserLookup?, kind: ShareParticipant.Kind, permission: SharePermission, hasAccepted: Bool
  ) {
    self.user = user
    self.lookup = lookup
    self.kind = kind
    self.permission = permission
    self.hasAccepted = hasAccepted
  }
}

/// A share and one who takes part in it.
public struct StoredParticipation: Hashable, Sendable {
  public var share: StoredShare
  public var participant: StoredParticipant

  public init(share: StoredShare, participant: StoredParticipant) {
    self.share = share
    self.participant = participant
  }

  /// What the participant may do.
  var permission: SharePermission {
    participant.kind == .publicUser ? share.publicPermission : participant.permission
  }

  /// Whether the zone of the share is in the participant's shared database.
  var shows: Bool { participant.hasAccepted && permission != .none }
}

/// One entry of a share's feed: a record that belongs to the share, or that has left it.
public struct StoredShareEntry: Hashable, Sendable {
  public var share: Int64
  /// Of the owner's database, unique within the share. That of the record, or a later one where the record came in or
  /// left without being changed itself.
  public var position: Int64
  public var name: String
  public var type: String
  /// When the record left, in ms since 1970; nil while it belongs to the share.
  public var left: Int64?

  public init(share: Int64, position: Int64, name: String, type: String, left: Int64? = nil) {
    self.share = share
    self.position = position
    self.name = name
    self.type = type
    self.left = left
  }
}

/// A zone and what it is a part of.
public struct StoredZonePlace: Hashable, Sendable {
  public var zone: StoredZone
  public var database: StoredDatabase
  public var user: Int64
  public var scope: DatabaseScope

  public init(zone: StoredZone, database: StoredDatabase, user: Int64, scope: DatabaseScope) {
    self.zone = zone
    self.database = database
    self.user = user
    self.scope = scope
  }
}

/// What others may learn of a user.
public struct UserProfile: Hashable, Sendable {
  /// In lower case; no two users have the same.
  public var email: String?
  public var givenName: String?
  public var familyName: String?
  /// Whether others find the user by e-mail address or record name.
  public var isDiscoverable: Bool

  public init(
    email: String? = nil, givenName: String? = nil, familyName: String? = nil, isDiscoverable: Bool = true
  ) {
    self.email = email
    self.givenName = givenName
    self.familyName = familyName
    self.isDiscoverable = isDiscoverable
  }
}
