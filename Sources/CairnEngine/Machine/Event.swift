import CairnRecords

/// What the engine tells an observer, in the order of engine O1–O9. Records themselves go to the categories.
public enum Event: Hashable, Sendable {
  /// Comes before every event of the new identity and after every one of the old (engine O7).
  case accountChange(AccountChange)
  case willFetchChanges(isManual: Bool)
  case fetchedDatabaseChanges(modifications: [ZoneID], deletions: [ZoneID])
  case willFetchRecordZoneChanges(ZoneID)
  /// A page was stored: applied at once or staged.
  case fetchedRecordZoneChanges(ZoneID, records: Int, deletions: Int, unclaimed: Int)
  case didFetchRecordZoneChanges(ZoneID, error: SyncFailure?, isSnapshot: Bool)
  case didFetchChanges(isManual: Bool)
  case willSendChanges(isManual: Bool)
  case sentDatabaseChanges(SentDatabaseChanges)
  /// A batch, or a part of it, was settled with its category.
  case sentRecordZoneChanges(ZoneID, SentRecords)
  case didSendChanges(isManual: Bool)
  /// Wall time in ms until which sync waits, where there is one.
  case paused(PauseReason, until: Int64?)
  case resumed(PauseReason)
  case decisionNeeded(ZoneQuestion)
  /// Any failure; nothing is swallowed.
  case diagnostic(SyncFailure, ZoneID?)
}

/// What became of zone changes.
public struct SentDatabaseChanges: Hashable, Sendable {
  public var saved: [ZoneID] = []
  public var deleted: [ZoneID] = []
  public var failed: [ZoneID] = []
  /// Record changes abandoned with deleted zones (engine S8).
  public var abandoned = 0
}

/// What became of the records of a batch.
public struct SentRecords: Hashable, Sendable {
  public var saved = 0
  public var deleted = 0
  public var conflicts = 0
  /// Names of records that failed and wait, with the reason, in order.
  public var waiting: [Waiting] = []

  /// One record that waits.
  public struct Waiting: Hashable, Sendable {
    public var name: String
    public var reason: PendingReason
  }
}

/// Receives events, one at a time, on the engine's thread. Calls back into the engine that would wait fail with
/// ``SyncFailure/reentrantCall``.
public protocol EngineObserver: AnyObject {
  func handle(_ event: Event)
}
