import CairnRecords

/// What one engine serves.
public struct EngineConfiguration: Hashable, Sendable {
  /// The zones to sync. Nil: every custom zone that the server reports.
  public var zones: [ZoneID]?
  public var categories: [CategoryTraits]
  public var settings: SyncSettings
  /// The user whose data this is; another one is refused before anything is sent or applied. Nil: not checked.
  public var expectedUser: String?
  /// Names this installation without spaces, where the app can tell it from a copy or a restored backup. Nil: not
  /// checked.
  public var device: String?

  public init(
    zones: [ZoneID]?, categories: [CategoryTraits], settings: SyncSettings = SyncSettings(),
    expectedUser: String? = nil, device: String? = nil
  ) {
    self.zones = zones
    self.categories = categories
    self.settings = settings
    self.expectedUser = expectedUser
    self.device = device
  }
}

/// The constants of a category that the machine decides by.
public struct CategoryTraits: Hashable, Sendable {
  public var name: String
  public var delivery: CategoryDelivery
  public var sweepsSnapshots: Bool
  public var asksAboutDeletedZones: Bool
  /// Zones in which it may have records; nil: any.
  public var zones: [ZoneID]?
  public var bootstrap = BootstrapDemand.whereMissed
  public var fetchesBeforeSending = false
  public var wantsSavedRecords = false
  public var asksToAdopt = false
  public var asksAboutPurgedZones = true

  public init(
    name: String, delivery: CategoryDelivery, sweepsSnapshots: Bool = true, asksAboutDeletedZones: Bool = true,
    zones: [ZoneID]? = nil
  ) {
    self.name = name
    self.delivery = delivery
    self.sweepsSnapshots = sweepsSnapshots
    self.asksAboutDeletedZones = asksAboutDeletedZones
    self.zones = zones
  }
}

/// One call to sync.
public struct SyncRequest: Hashable, Sendable {
  /// Which direction a call goes.
  public enum Scope: String, Hashable, Sendable { case all, fetchOnly, sendOnly }

  public var scope: Scope
  /// Called by the user: skips backoff, never a retry-after (engine section 9).
  public var isManual: Bool
  /// Zones to restrict the call to; nil: all of the engine's.
  public var zones: [ZoneID]?
  /// Fetch without a token, as a snapshot, in every zone of the call (engine section 8).
  public var resync = false

  public init(_ scope: Scope = .all, isManual: Bool = true, zones: [ZoneID]? = nil) {
    self.scope = scope
    self.isManual = isManual
    self.zones = zones
  }
}

/// Why sync pauses.
public enum PauseReason: String, Hashable, Sendable {
  case throttled, quota, account, zoneGone, permission, `internal`
}

/// The state of the engine, the first that applies (tables section 7, where `schema` is the category's).
public enum EngineCondition: Hashable, Sendable {
  case decision
  case signedOut
  case paused(PauseReason)
  case offline
  case ready

  /// The word under which `cairn status` shows it.
  public var name: String {
    switch self {
    case .decision: "decision"
    case .signedOut: "signedOut"
    case .paused: "paused"
    case .offline: "offline"
    case .ready: "ready"
    }
  }
}

/// Why a call did not do all its work.
public enum SyncFailure: Error, Hashable, Sendable {
  /// The server's or the network's answer.
  case cloud(CloudError)
  /// A retry-after is running until this wall time, ms since 1970.
  case rateLimited(until: Int64)
  /// A backoff is running until this wall time; only calls that are not manual.
  case backingOff(until: Int64)
  /// A category or the store failed; nothing was confirmed.
  case store(String)
  /// The server knows this caller as somebody else (tables L10).
  case anotherUser(String)
  /// Nobody is signed in; changes wait under no identity (engine section 11).
  case noAccount
  /// Who is signed in could not be found out: nothing is applied or sent (engine section 11).
  case unresolvedAccount
  /// The account changed, or another engine took over: what was under way is discarded (engine C11).
  case replaced
  /// Sync was called from inside a callback (engine E3).
  case reentrantCall
  case cancelled
}

/// What a call did.
public struct SyncResult: Hashable, Sendable {
  /// Confirmed saves and deletes; conflicts handed to a category, those included in which it finds its own content (a
  /// resend after a lost answer): what a user is told comes from the category.
  public var saved = 0
  public var deleted = 0
  public var conflicts = 0
  /// Records and deletions delivered to categories, echoes included.
  public var received = 0
  public var receivedDeletions = 0
  /// Records that no category claims (engine section 7).
  public var unclaimed = 0
  /// Entries that the categories were handed with a reason in this call and that are not confirmed since.
  public var handedOver = 0
  public var requests = 0
  /// Every zone was fetched to its end, nothing can be sent now or waits for a time, and no question is open. Entries
  /// that wait for the user are the categories' to count.
  public var endedQuiet = false
  public var condition: EngineCondition = .ready
  /// Open questions, in order.
  public var questions: [ZoneQuestion] = []
  /// The earliest wall time, ms since 1970, at which something waiting may be tried again.
  public var nextRetry: Int64?
  /// The first failure that kept the call from finishing.
  public var failure: SyncFailure?

  public init() {}
}
