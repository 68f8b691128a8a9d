import CairnRecords

/// Who asks: a signed-in user, an app without one, or a server-to-server key (web-services section 3).
public struct Caller: Hashable, Sendable {
  public enum Role: Hashable, Sendable {
    case user
    /// An API token alone: may read the public database.
    case anonymous
    /// A server-to-server key: may do everything in the public database, and nothing elsewhere.
    case server
  }

  /// Storage's key of the user; 0 of nobody, below 0 the number of a server-to-server key.
  public var key: Int64
  /// The name that the operator gave.
  public var name: String
  /// `_` and 32 hex digits; never changes. Empty for nobody.
  public var recordName: String
  public var role: Role
  /// Whether the database in use is the public one, whose owner is nobody.
  var isInPublic = false
  /// In the shared database, the database of every owner that is meant: that of the same container and environment.
  var ownersScope: DatabaseScope?
  /// The owner of the zone in use, where it is another user.
  var owner: Owner?

  struct Owner: Hashable, Sendable {
    var key: Int64
    var recordName: String
  }

  public init(key: Int64, name: String, recordName: String, role: Role = .user) {
    self.key = key
    self.name = name
    self.recordName = recordName
    self.role = role
  }

  /// An app without a user.
  public static let anonymous = Caller(key: 0, name: "", recordName: "", role: .anonymous)

  /// - Throws: `authenticationRequired` for all but users.
  func checkIsUser() throws(CloudError) {
    guard role == .user else { throw CloudError(.authenticationRequired, "request needs authorization") }
  }

  var isInShared: Bool { ownersScope != nil }

  /// The storage key of the owner of the database in use; in the shared database, of the zone in use.
  var storageOwner: Int64 { isInPublic ? 0 : owner?.key ?? key }

  /// How zones of the database in use name their owner.
  public var zoneOwner: String { isInPublic ? ZoneID.currentOwner : owner?.recordName ?? recordName }

  /// The caller as one who is busy in a zone.
  func acting(in zone: StoredZone) -> Caller {
    guard let view = zone.view else { return self }
    var caller = self
    caller.owner = view.owner
    return caller
  }
}

extension AppCredential {
  /// Who asks with this credential alone.
  public var caller: Caller {
    guard kind == .serverKey else { return .anonymous }
    let digits = id.prefix(16).map { byte in
      let text = String(byte, radix: 16)
      return text.count == 1 ? "0" + text : text
    }
    return Caller(key: -number, name: name, recordName: "_" + digits.joined(), role: .server)
  }
}
