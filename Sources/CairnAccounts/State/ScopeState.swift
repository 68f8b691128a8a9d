import CairnRecords

/// Everything durable of one scope, as a value (accounts.md A59). Decisions are made on it, without clock, chance or
/// I/O; ``AccountsFile`` stores it.
///
/// Invariants:
/// 1. An account with a tombstone is not in ``accounts`` (accounts.md A25).
/// 2. Nothing is ever removed from ``tombstones`` or ``markers`` (accounts.md A3).
/// 3. A choice in ``choices`` is in ``accounts``.
struct ScopeState: Equatable, Sendable {
  /// The live set.
  var accounts: [AccountID: AccountEntry] = [:]
  var tombstones: [AccountID: SendState] = [:]
  var markers: [InstanceID: SendState] = [:]
  var contexts: [ContextSlot: ContextEntry] = [:]
  /// Effective choices; a missing slot is on the fallback.
  var choices: [ContextSlot: AccountID] = [:]
  /// Fetched and not applied, in the order of arrival.
  var staged: [Int64: StagedItem] = [:]
  /// Kept for good, by record name (accounts.md A5).
  var parked: [String: ParkedRecord] = [:]
  /// What the secure store and the caches still have to do, by account (accounts.md A15).
  var cleanups: [AccountID: CleanupIntent] = [:]
  /// Where an adopted account's credential still lies (accounts.md A66).
  var rekeys: [AccountID: RekeyIntent] = [:]
  /// Flags of the key-value store seen under this identity, with the number of zone fetches begun by then (A18).
  var flagsSeen: [InstanceID: Int64] = [:]
  var settings = ScopeSettings()
}

/// A live account.
struct AccountEntry: Hashable, Sendable {
  var content: AccountContent
  var send = SendState()
  /// Signing in was begun: the account is committed, its credential perhaps not (accounts.md C19).
  var isPendingCredential = false
}

/// A register: what the server is known to hold, and a newer choice made here.
struct ContextEntry: Hashable, Sendable {
  /// The greatest value seen from or confirmed by the server.
  var server: RegisterValue?
  /// The user's choice here that is greater than `server`.
  var local: RegisterValue?
  /// The newest time that this register ever had here, dropped values included (accounts.md A34).
  var newestTime: Int64 = 0
  var send = SendState()

  var value: RegisterValue? {
    guard let server else { return local }
    return local.map { max(server, $0) } ?? server
  }
}

/// A fetched record or deletion that waits for the seal, for its activation, or to be understood.
struct StagedItem: Hashable, Sendable {
  /// The record's name as the server has it.
  var name: String
  /// Nil: a deletion.
  var record: Record?
  var isSealed = false
  /// Fetched from an incarnation of the zone that is gone: its facts hold, but it confirms nothing.
  var isOfLostZone = false
}

/// A record that can never be applied.
struct ParkedRecord: Hashable, Sendable {
  var record: Record
  var reason: UnreadableReason
  /// ms since 1970.
  var since: Int64
}

/// An account is gone: its credential, and what was made with it, has to go too.
struct CleanupIntent: Hashable, Sendable, Codable {
  /// The instance whose legacy item was bound to the account's scope.
  var boundLegacyItem: InstanceID?
}

struct RekeyIntent: Hashable, Sendable, Codable {
  /// Raw value of the scope that the credential still lies under.
  var from: String
}

struct ScopeSettings: Hashable, Sendable, Codable {
  var isEnabled = true
  /// A bootstrap has finished for this identity once (accounts.md section 1).
  var isActivated = false
  /// No need was raised since the last finished bootstrap began, as the engine said last (accounts.md A57).
  var isCurrent = false
  /// The user erased the app's cloud data: uploads wait for consent (accounts.md A86).
  var isPausedByPurge = false
  /// Zone fetches begun, and the number of the last that succeeded and was applied (accounts.md A18 b).
  var fetchesBegun: Int64 = 0
  var lastAppliedFetch: Int64 = 0
  var nextStaged: Int64 = 1
  /// ms since 1970.
  var lastSync: Int64?
  /// How the last sync ended, as `cairn accounts status` tells it.
  var lastState: String?
}
