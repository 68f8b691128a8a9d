import CairnEngine
import CairnRecords

/// Where a profile lies and what it lives on.
public struct AccountsConfiguration: Sendable {
  /// The profile's SQLite file; made where it is missing.
  public var path: String
  /// Who is signed in, where the host knows it at once; nil: as it was last (accounts.md A68).
  public var identity: CloudIdentity?
  /// Tells this installation from a copy or a restored backup of it, as far as the host can. Another one than stored
  /// renews the writer and raises a need (accounts.md A56).
  public var deviceMarker: String
  public var time: any TimeSource
  public var randomness: any Randomness

  public init(
    path: String, identity: CloudIdentity? = nil, deviceMarker: String = "", time: any TimeSource,
    randomness: any Randomness
  ) {
    self.path = path
    self.identity = identity
    self.deviceMarker = deviceMarker
    self.time = time
    self.randomness = randomness
  }
}

/// Everything that an app shows, at one moment.
public struct AccountsSnapshot: Hashable, Sendable {
  /// Local or of one identity; nil: unresolved, and nothing is shown (accounts.md A62).
  public var scope: ScopeID?
  /// Raised on every scope transition (accounts.md section 1).
  public var generation: Int64
  /// By position, then ID.
  public var accounts: [Account]
  /// Deleted here, not yet known to other devices (accounts.md A47).
  public var unpublishedDeletions: Set<AccountID>
  /// Effective choices; a missing slot is on the fallback: no account.
  public var choices: [ContextSlot: AccountID]
  public var isEnabled: Bool

  init(_ state: AccountsState, generation: Int64) {
    self.generation = generation
    scope = state.scope
    guard let scope = state.scope else {
      (accounts, unpublishedDeletions, choices, isEnabled) = ([], [], [:], true)
      return
    }
    let scoped = state[scope]
    accounts = scoped.accounts.values.compactMap(\.content.account).sorted {
      ($0.position, $0.id) < ($1.position, $1.id)
    }
    unpublishedDeletions = scope == .local ? [] : scoped.unpublishedDeletions
    choices = scoped.choices
    isEnabled = scoped.settings.isEnabled
  }
}

/// Whether an account, or an instance, asks the user to sign in.
public enum CredentialNeed: Hashable, Sendable {
  case no, yes
  /// The secure store is locked: no badge, no conclusion (accounts.md A13).
  case unknown
}
