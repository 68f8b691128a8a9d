import CairnRecords
import CairnServerCore

/// What `cairn user` does, also while a server runs on the same folder.
public struct UserAdministration: Sendable {
  /// A user and a token that was made for it; the token is not stored and can't be shown again.
  public struct NewToken: Hashable, Sendable {
    public var user: Caller
    public var token: String
  }

  private let storage: any Storage
  private let directory: UserDirectory
  private let randomness: any ServerRandomness

  /// Opens a data folder, creating it where it is missing.
  public init(data path: String, randomness: any ServerRandomness = SystemServerRandomness()) throws(ServerStartError) {
    self.init(storage: try DataDirectory(path).openStorage(), randomness: randomness)
  }

  /// Works on an open store.
  public init(storage: any Storage, randomness: any ServerRandomness = SystemServerRandomness()) {
    self.storage = storage
    self.randomness = randomness
    directory = UserDirectory(storage: storage, randomness: randomness)
  }

  /// Adds a user with a first token.
  ///
  /// - Throws: `exists` when the name is taken.
  public func add(_ name: String) throws(CloudError) -> NewToken {
    let user = try directory.add(name)
    return NewToken(user: user, token: try addToken(name, replacing: false))
  }

  /// Gives a user another token.
  ///
  /// - Parameter replacing: whether the earlier tokens end.
  public func token(for name: String, replacing: Bool = false) throws(CloudError) -> NewToken {
    guard let user = try directory.list().first(where: { $0.name == name }) else {
      throw CloudError(.notFound, "There is no user '\(name)'")
    }
    return NewToken(user: user, token: try addToken(name, replacing: replacing))
  }

  /// All users, by name.
  public func list() throws(CloudError) -> [Caller] { try directory.list() }

  /// All users by name, and what their records take.
  public func usages() throws(CloudError) -> [(user: Caller, usage: StoredUsage)] { try directory.usages() }

  /// Limits what a user's records take, in bytes; nil ends the limit.
  public func setQuota(_ bytes: Int64?, for name: String) throws(CloudError) {
    try directory.setQuota(bytes, for: name)
  }

  /// What others may learn of a user.
  public func profile(of name: String) throws(CloudError) -> UserProfile { try directory.profile(name) }

  /// Changes what others may learn of a user, see ``UserDirectory/setProfile(_:for:)``.
  public func setProfile(_ profile: UserProfile, for name: String) throws(CloudError) {
    try directory.setProfile(profile, for: name)
  }

  /// Removes a user with tokens and data.
  public func remove(_ name: String) throws(CloudError) { try directory.remove(name) }

  /// Ends the use of the store.
  public func close() { storage.close() }

  private func addToken(_ name: String, replacing: Bool) throws(CloudError) -> String {
    let token = WebAuthToken.make(randomness)
    try directory.addToken(hash: WebAuthToken.hash(token), for: name, replacing: replacing)
    return token
  }
}
