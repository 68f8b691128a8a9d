/// What a record says about sharing (web-services section 12): as a share, as the root of one, or as a wish.
public struct RecordSharing: Hashable, Sendable {
  /// The record type of shares.
  public static let shareType = "cloudkit.share"

  // MARK: A root

  /// The share of which the record is the root.
  public var share: RecordID?
  /// What opens the share: of a root, and of its share.
  public var shortGUID: String?
  /// In a request: give the record a short GUID.
  public var createsShortGUID = false

  // MARK: A record below a root

  /// In a request: take the record's parent away, which an update keeps otherwise.
  public var removesParent = false

  // MARK: A share

  /// The root that is shared.
  public var root: Root?
  /// What everybody may who has the short GUID. Nil in a request leaves it as it is.
  public var publicPermission: SharePermission?
  /// Nil in a request leaves them as they are.
  public var participants: [ShareParticipant]?
  /// Only in answers.
  public var owner: ShareParticipant?
  /// Who asks; only in answers.
  public var currentUserParticipant: ShareParticipant?

  /// The record at the top of what is shared, under the tag that the client knows where it names one.
  public struct Root: Hashable, Sendable {
    public var name: String
    public var changeTag: ChangeTag?

    public init(name: String, changeTag: ChangeTag? = nil) {
      self.name = name
      self.changeTag = changeTag
    }
  }

  public init() {}
}

/// What somebody may do with what a share holds.
public enum SharePermission: String, Hashable, Sendable, CaseIterable {
  case none = "NONE"
  case readOnly = "READ_ONLY"
  case readWrite = "READ_WRITE"
  case unknown = "UNKNOWN"
}

/// Somebody with whom a record is shared, or who shares it.
public struct ShareParticipant: Hashable, Sendable {
  /// As what somebody takes part.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    case owner = "OWNER"
    /// May change who else takes part.
    case administrator = "ADMINISTRATOR"
    /// Was invited.
    case user = "USER"
    /// Came with the short GUID alone.
    case publicUser = "PUBLIC_USER"
    case unknown = "UNKNOWN"
  }

  /// Whether somebody has come in already.
  public enum Status: String, Hashable, Sendable, CaseIterable {
    case invited = "INVITED"
    case accepted = "ACCEPTED"
    case removed = "REMOVED"
    case unknown = "UNKNOWN"
  }

  public var kind: Kind
  public var permission: SharePermission
  public var status: Status
  public var identity: UserIdentity

  public init(
    _ identity: UserIdentity, kind: Kind = .user, permission: SharePermission = .readOnly, status: Status = .invited
  ) {
    self.kind = kind
    self.permission = permission
    self.status = status
    self.identity = identity
  }
}

/// What others are told of a user.
public struct UserIdentity: Hashable, Sendable {
  public var userRecordName: String?
  public var givenName: String?
  public var familyName: String?
  /// By what the user was or can be looked up.
  public var lookup: UserLookup?

  public init(
    userRecordName: String? = nil, givenName: String? = nil, familyName: String? = nil, lookup: UserLookup? = nil
  ) {
    self.userRecordName = userRecordName
    self.givenName = givenName
    self.familyName = familyName
    self.lookup = lookup
  }
}

/// By what a user is looked up.
public enum UserLookup: Hashable, Sendable {
  case emailAddress(String)
  case phoneNumber(String)
  case userRecordName(String)
}
