import CairnRecords

extension CloudServer {
  /// The user that a token belongs to, by the SHA-256 of the token. Nil when there is none.
  public func caller(tokenHash: [UInt8]) throws(CloudError) -> Caller? {
    try read { try $0.user(tokenHash: tokenHash) }
  }

  /// Ends the token with this SHA-256 and puts another in its place (single-use tokens, web-services section 3).
  ///
  /// - Returns: false when the token has been used meanwhile.
  public func replaceToken(hash: [UInt8], with next: [UInt8]) throws(CloudError) -> Bool {
    let now = clock.now
    return try write { try $0.replaceToken(hash: hash, with: next, created: now) }
  }

  /// Lets the holder of the token with this SHA-256 act as the user, beside those of earlier tokens.
  public func addToken(hash: [UInt8], for caller: Caller) throws(CloudError) {
    let now = clock.now
    try write { try $0.addToken(hash: hash, user: caller.key, created: now) }
  }

  /// What an app is let in by; nil for what is not known.
  public func appCredential(id: [UInt8]) throws(CloudError) -> AppCredential? {
    try read { try $0.appCredential(id: id) }
  }

  /// The server's time, in ms since 1970.
  public var now: Int64 { clock.now }

  /// Counts one request of a user. Those of apps without a user are not counted: they have nothing that tells them
  /// apart.
  ///
  /// - Throws: `throttled` with the time to wait, when there were too many.
  public func admit(_ caller: Caller) throws(CloudError) {
    guard let rate = settings.requestsPerSecond, rate > 0, caller.role != .anonymous else { return }
    let now = clock.now
    let wait: Double = memory.withLock { memory in
      var allowance = memory.allowances[caller.key] ?? RequestAllowance(left: rate * 10, at: now)
      // A clock that was set back gives nothing and takes nothing.
      allowance.left = min(rate * 10, allowance.left + Double(max(0, now - allowance.at)) / 1_000 * rate)
      allowance.at = now
      defer { memory.allowances[caller.key] = allowance }
      guard allowance.left < 1 else {
        allowance.left -= 1
        return 0
      }
      return (1 - allowance.left) / rate
    }
    if wait > 0 { throw CloudError(.throttled, "Too many requests", retryAfter: wait) }
  }

  /// The user of that name; nil when there is none.
  public func user(named name: String) throws(CloudError) -> Caller? {
    try read { try $0.user(named: name) }
  }
}

/// How many requests a user may still make, and when that was so.
struct RequestAllowance: Sendable {
  var left: Double
  var at: Int64
}

/// Users of a store, for `cairn user`. Works beside a running server: it begins no epoch.
public struct UserDirectory: Sendable {
  private let storage: any Storage
  private let clock: any ServerClock
  private let randomness: any ServerRandomness

  public init(
    storage: any Storage, clock: any ServerClock = SystemServerClock(),
    randomness: any ServerRandomness = SystemServerRandomness()
  ) {
    self.storage = storage
    self.clock = clock
    self.randomness = randomness
  }

  /// Adds a user.
  ///
  /// - Throws: `exists` when the name is taken, `badRequest` when it is empty or holds control characters.
  public func add(_ name: String) throws(CloudError) -> Caller {
    guard CloudServer.isReadable(name) else {
      throw CloudError(
        .badRequest, "A user name has 1 to 255 bytes, no control or invisible characters and no space at its ends")
    }
    let recordName = randomness.userRecordName()
    let now = clock.now
    return try write { writer in
      guard try writer.user(named: name) == nil else { throw CloudError(.exists, "User '\(name)' exists") }
      return try writer.addUser(name: name, recordName: recordName, created: now)
    }
  }

  /// All users, by name.
  public func list() throws(CloudError) -> [Caller] {
    do { return try storage.read { try $0.users() } } catch { throw CloudServer.cloudError(error) }
  }

  /// All users by name, and what their records take.
  public func usages() throws(CloudError) -> [(user: Caller, usage: StoredUsage)] {
    do {
      return try storage.read { reader in try reader.users().map { ($0, try reader.usage(of: $0.key)) } }
    } catch { throw CloudServer.cloudError(error) }
  }

  /// Limits what a user's records take; nil ends the limit. Throws `notFound` when there is none of that name.
  public func setQuota(_ bytes: Int64?, for name: String) throws(CloudError) {
    try write { try $0.setQuota(of: UserDirectory.existing(name, $0).key, bytes) }
  }

  /// Removes a user with tokens and data. Throws `notFound` when there is none of that name.
  ///
  /// Shares of the user end, and those of others are left: what takes part in them learns of it.
  public func remove(_ name: String) throws(CloudError) {
    let now = clock.now
    let randomness = randomness
    try write { writer in
      let user = try UserDirectory.existing(name, writer)
      try SharesOfUser.end(of: user, now: now, writer) { Int64(bitPattern: randomness.next()) }
      try writer.removeUser(user.key)
    }
  }

  /// What others may learn of a user.
  public func profile(_ name: String) throws(CloudError) -> UserProfile {
    do { return try storage.read { try $0.profile(of: UserDirectory.existing(name, $0).key) } } catch {
      throw CloudServer.cloudError(error)
    }
  }

  /// Changes what others may learn of a user.
  ///
  /// - Throws: `notFound` when there is no user of that name, `exists` when another one has the e-mail address,
  ///   `badRequest` for an address or a name that is none.
  public func setProfile(_ profile: UserProfile, for name: String) throws(CloudError) {
    var profile = profile
    profile.email = profile.email?.lowercased()
    if let email = profile.email, !UserDirectory.isAddress(email) {
      throw CloudError(.badRequest, "'\(email)' is no e-mail address")
    }
    for part in [profile.givenName, profile.familyName].compactMap({ $0 }) where !CloudServer.isReadable(part) {
      throw CloudError(
        .badRequest, "A name has 1 to 255 bytes, no control or invisible characters and no space at its ends")
    }
    let new = profile
    try write { writer in
      let user = try UserDirectory.existing(name, writer)
      if let email = new.email, let other = try writer.user(email: email), other.key != user.key {
        throw CloudError(.exists, "User '\(other.name)' has the address \(email)")
      }
      try writer.setProfile(of: user.key, new)
    }
  }

  /// Something on both sides of one `@`, no spaces.
  static func isAddress(_ text: String) -> Bool {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && text.utf8.count <= 255
      && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
  }

  /// Lets the holder of the token with this SHA-256 act as the user.
  ///
  /// - Parameter replacing: whether the user's earlier tokens end.
  public func addToken(hash: [UInt8], for name: String, replacing: Bool = false) throws(CloudError) {
    let now = clock.now
    try write { writer in
      let user = try UserDirectory.existing(name, writer)
      if replacing { try writer.removeTokens(of: user.key) }
      try writer.addToken(hash: hash, user: user.key, created: now)
    }
  }

  private static func existing(_ name: String, _ reader: any StorageReader) throws -> Caller {
    guard let user = try reader.user(named: name) else { throw CloudError(.notFound, "There is no user '\(name)'") }
    return user
  }

  private func write<Result: Sendable>(
    _ body: @escaping @Sendable (any StorageWriter) throws -> Result
  ) throws(CloudError) -> Result {
    try CloudServer.write(storage, body)
  }
}
