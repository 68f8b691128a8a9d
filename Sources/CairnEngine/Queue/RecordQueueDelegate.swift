import CairnRecords

/// What an app answers that keeps no outbox of its own (engine sections 5 and 6), after CKSyncEngine's delegate.
///
/// Calls are made on the engine's thread, one at a time, inside the engine's transaction; the engine waits as long as
/// they take. A handler that throws has not stored the event: no token moves, nothing is confirmed, and the event comes
/// again after a wait. Delivery is at least once. ``RecordQueueCategory/add(_:)`` is legal in every call.
public protocol RecordQueueDelegate: AnyObject {
  /// The content of a pending save, as it is now. A thrown error is as ``ProvidedRecord/unavailable(_:retryAt:)``.
  func record(for id: RecordID) throws -> ProvidedRecord

  /// Fetched records and deletions of one zone; children may precede parents.
  func handleFetched(_ page: ZonePage) throws

  /// What became of sent changes. Failed entries wait until they are added again or removed, but for those that the
  /// engine tries again itself.
  func handleSent(_ sent: SentQueueChanges) throws

  /// The zone is gone, or its history is not to be trusted: tags and confirmations of the zone count no more.
  func handleZoneLost(_ zone: ZoneID, _ loss: ZoneLoss) throws

  /// The user's answer to a lost zone, as far as it concerns the app's data; with `recreateAndReupload` the app adds
  /// its records again.
  func handleZoneAnswer(_ zone: ZoneID, _ answer: ZoneLossAnswer) throws

  // MARK: With a default

  /// Smaller goes first; equal ones in the order of the queue: saves of parents first, deletes of children first. Nil:
  /// the order of the queue. Default: nil.
  func rank(of change: PendingState.RecordZoneChange) -> Int?

  /// Whether a delete is conditional on this tag, and when it was made, ms since 1970. Default: neither.
  func deletion(of id: RecordID) -> (tag: ChangeTag?, time: Int64?)

  /// Records that a server has confirmed, names greater than `cursor`, ascending, at most `limit`: what a snapshot may
  /// find to be gone (engine section 8). Default: none, so that snapshots remove nothing.
  func confirmedRecords(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID]
}

extension RecordQueueDelegate {
  public func rank(of change: PendingState.RecordZoneChange) -> Int? { nil }
  public func deletion(of id: RecordID) -> (tag: ChangeTag?, time: Int64?) { (nil, nil) }
  public func confirmedRecords(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] { [] }
}

/// What a provider says of a pending save (engine section 6).
public enum ProvidedRecord: Hashable, Sendable {
  /// Sent: created without a change tag, else conditional on it. Names of records of the zone that have to be stored
  /// before it, or with it.
  case record(Record, needs: [String] = [])
  /// There is nothing to save any more: the entry leaves the queue; no delete is invented.
  case gone
  /// Cannot be read now: waits with this reason; the others go on. Without a time, the engine chooses one (ms
  /// since 1970).
  case unavailable(PendingReason, retryAt: Int64?)
  /// Waits until ``RecordQueueCategory/release(_:)``.
  case gated
}

/// What became of a batch of queued changes (engine section 4).
public struct SentQueueChanges: Hashable, Sendable {
  /// One change that was not stored.
  public struct Failure: Hashable, Sendable {
    public var id: RecordID
    public var result: EntryResult
  }

  public var zone: ZoneID
  /// As the server stored them.
  public var savedRecords: [Record] = []
  public var failedSaves: [Failure] = []
  public var deletedRecordIDs: [RecordID] = []
  public var failedDeletes: [Failure] = []
  /// Entries that left the queue since the last report, because there was nothing to save any more.
  public var skipped: [RecordID] = []

  public init(zone: ZoneID) { self.zone = zone }
}
