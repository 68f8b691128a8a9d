import Foundation

/// The accounts of one profile, for apps: what is shown is read at once, what is changed waits off Swift's cooperative
/// pool.
///
/// May be used from anywhere. ``AccountsCore`` says of each call which errors it throws and what holds after each.
public final class AccountStore: Sendable {
  /// The same store for callers with threads of their own.
  public let core: AccountsCore
  private let queue = DispatchQueue(label: "cairn.accounts")

  public init(
    _ configuration: AccountsConfiguration, credentials: any CredentialStore, keyValues: any KeyValueStore = NoLegacy()
  ) throws(AccountsError) {
    core = try AccountsCore(configuration, credentials: credentials, keyValues: keyValues)
  }

  /// The present state; never waits.
  public var snapshot: AccountsSnapshot { core.snapshot }

  /// The present state and every later one. Delivers on the executor of the task that iterates.
  public func snapshots() -> AsyncStream<AccountsSnapshot> {
    core.snapshotStreams.stream(startingWith: core.snapshot)
  }

  /// What the app may want to tell its user, from now on. Delivers on the executor of the task that iterates.
  public func events() -> AsyncStream<AccountsEvent> { core.eventStreams.stream() }

  /// Adds an account and stores its credential, see ``AccountsCore/add(_:credential:)``.
  public func add(_ login: NewLogin, credential: Credential) async throws(AccountsError) -> Account {
    try await run { core throws(AccountsError) in try core.add(login, credential: credential) }
  }

  /// Stores a new credential of an account, see ``AccountsCore/reauthenticate(_:credential:)``.
  public func reauthenticate(_ id: AccountID, credential: Credential) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.reauthenticate(id, credential: credential) }
  }

  /// Changes what an account is called and where it stands, see ``AccountsCore/edit(_:_:)``.
  public func edit(_ id: AccountID, _ edit: AccountEdit) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.edit(id, edit) }
  }

  /// On every device, for ever.
  public func remove(_ id: AccountID) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.remove(id) }
  }

  /// Chooses an account on every device; nil chooses none.
  public func select(_ id: AccountID?, in slot: ContextSlot = .main) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.select(id, in: slot) }
  }

  /// The credential of an account on this device.
  public func credential(for id: AccountID) async throws(AccountsError) -> CredentialLookup {
    try await run { core throws(AccountsError) in try core.credential(for: id) }
  }

  /// Whether the user has to sign in to an account on this device.
  public func needsCredentials(_ id: AccountID) async throws(AccountsError) -> CredentialNeed {
    try await run { core throws(AccountsError) in try core.needsCredentials(id) }
  }

  /// Whether the user has to sign in to an account of an instance on this device.
  public func needsCredentials(on instance: InstanceID) async throws(AccountsError) -> CredentialNeed {
    try await run { core throws(AccountsError) in try core.needsCredentials(on: instance) }
  }

  /// Moves the accounts that were made without an identity into the present one, and returns them.
  public func adoptLocalAccounts() async throws(AccountsError) -> [Account] {
    try await run { core throws(AccountsError) in try core.adoptLocalAccounts() }
  }

  /// Switches syncing of accounts on or off; nothing is lost while it is off.
  public func setEnabled(_ enabled: Bool) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.setEnabled(enabled) }
  }

  /// Another user has signed in, or nobody: shows that one's accounts (accounts.md A59–A68).
  public func identityChanged(to identity: CloudIdentity) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.identityChanged(to: identity) }
  }

  @discardableResult
  public func migrateLegacyLogins(
    _ reason: KeyValueChange = .other
  ) async throws(AccountsError) -> AccountsCore.MigrationReport {
    try await run { core throws(AccountsError) in try core.migrateLegacyLogins(reason) }
  }

  /// Answers a purge by the user (accounts.md A86).
  public func resumeAfterPurge(reupload: Bool) async throws(AccountsError) {
    try await run { core throws(AccountsError) in try core.resumeAfterPurge(reupload: reupload) }
  }

  private func run<Result: Sendable>(
    _ body: @escaping @Sendable (AccountsCore) throws(AccountsError) -> Result
  ) async throws(AccountsError) -> Result {
    let core = core
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Swift.Result<Result, AccountsError>, Never>) in
      queue.async {
        continuation.resume(returning: Swift.Result { () throws(AccountsError) in try body(core) })
      }
    }
    return try result.get()
  }
}

extension AccountsCore {
  /// Answers a purge by the user: true sends every fact again; false only what is changed from now on, with the facts
  /// that it depends on (accounts.md A86).
  public func resumeAfterPurge(reupload: Bool) throws(AccountsError) {
    try edit { state, scope in
      guard state[scope].settings.isPausedByPurge else { return }
      state[scope].settings.isPausedByPurge = false
      if reupload { state[scope].refill() }
    }
  }
}
