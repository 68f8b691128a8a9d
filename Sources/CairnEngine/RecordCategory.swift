import CairnRecords

/// A set of record types with its own rules, plugged into the engine (engine section 13).
///
/// A category owns its records, its outbox (which records are pending, at which revision, with which reason) and its
/// staging. The engine decides when to send, fetch, seal, apply and retry, and what an error means.
///
/// All calls are made on the engine's thread, one at a time. Where a call is said to run inside a transaction, that is
/// the engine store's transaction: a category in the same file needs none of its own. A call that throws has done
/// nothing: the engine confirms nothing, moves no token and tries again later.
public protocol RecordCategory: AnyObject {
  /// Stable name, used in stored keys.
  var name: String { get }

  /// How fetched records reach the rows (engine C3).
  var delivery: CategoryDelivery { get }

  /// Whether a record of this type and name in `zone` belongs to this category. A deletion may come without type.
  func claims(type: String?, name: String, in zone: ZoneID) -> Bool

  // MARK: Sending

  /// Takes up local edits that other programs have made since the last call. Opens its own transactions, short ones.
  func gatherLocalChanges(now: Int64) throws

  /// The next entries to send in `zone`, or nil when nothing can be sent now. In-flight marks are durable before it
  /// returns (engine section 3). Entries that wait for a time, a parent or a new revision are left out.
  func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch?

  /// Takes what became of a batch, or of a part of it: the entries given are those whose fate is known; the others
  /// follow in a later call (after the zone has been fetched). Inside a transaction. A new revision made meanwhile
  /// stays pending (engine S4).
  func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws

  /// Whether entries could be sent now that are not in flight.
  func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool

  /// The earliest time, ms since 1970, at which a waiting entry may be tried again.
  func nextAttempt(in zone: ZoneID) throws -> Int64?

  // MARK: Receiving

  /// Applies one page (delivery `pages`, no deletions so far in this run), or a set that one page completes.
  /// Inside a transaction that also stores the token.
  func apply(_ page: ZonePage, now: Int64) throws

  /// Stages a page durably without applying it (engine C2). Inside a transaction that also stores the token.
  func stage(_ page: ZonePage, now: Int64) throws

  /// Marks everything staged in `zone` as complete (engine C3, C4). Inside a transaction.
  func seal(_ zone: ZoneID) throws

  /// Applies a part of what is sealed and removes it from staging, in one short transaction of its own (engine C5).
  /// Returns whether more is left.
  func applySealed(in zone: ZoneID, now: Int64) throws -> Bool

  /// Whether staged records of `zone` are not sealed: left by a run that was cut off (engine C4).
  func hasUnsealedRecords(in zone: ZoneID) throws -> Bool

  /// Tries parked records whose obstacle may be gone (engine C6). With `all`, those that wait for a retry time too.
  func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws

  // MARK: Snapshots and zones

  /// A fetch without token begins in a zone where records are confirmed: from now on remember which are seen.
  /// Inside a transaction.
  func beginSnapshot(of zone: ZoneID) throws

  /// Confirmed records, without pending saves, that the snapshot has not shown; at most `limit`, names greater than
  /// `cursor`, ascending.
  func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID]

  /// The zone is gone on the server, or its history is not to be trusted. Rows stay; tags and confirmations of the
  /// zone are cleared as far as `loss` says. Inside a transaction.
  func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws

  // MARK: With a default

  /// Whether records that a snapshot did not show are looked up and removed; false for a category that keeps its own
  /// tombstone records (engine section 8). Default: true.
  var sweepsSnapshots: Bool { get }

  /// The zones in which this category may have records; it is not asked about others. Nil: any. Constant. Default: nil.
  var zones: [ZoneID]? { get }

  /// Called once when a session begins: what is marked in flight was cut off by a crash and is pending again
  /// (engine S4). Batches are strictly serial, so ``nextBatch(in:_:)`` may take every mark it meets for such a
  /// leftover as well. Inside a transaction. Default: nothing.
  func recoverInFlight() throws

  /// What happens in this category when its zone is lost (engine section 12). Default: ask, but re-create and refill
  /// after ``ZoneLoss/encryptedDataReset``.
  func policy(for loss: ZoneLoss) -> ZoneLossPolicy

  /// Zones in which changes are pending. Asked only where the engine serves every zone instead of a given list.
  /// Default: none.
  func zonesWithChanges() throws -> [ZoneID]

  /// Carries out the answer to a zone loss as far as it concerns rows: keeps them, removes them, or makes their
  /// records new ones. Follows ``zoneLost(_:_:now:)``. Inside a transaction. Default: nothing.
  func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws

  /// This device has deleted the zone: forgets the pending changes in it and returns how many there were (engine S8).
  /// Inside a transaction. Default: nothing, 0.
  func abandonChanges(in zone: ZoneID, now: Int64) throws -> Int

  // MARK: Switching off, bootstrap, identity; with a default

  /// Whether the category is switched on (engine C9). While it is off, records are staged and sealed, local edits are
  /// gathered, and nothing is applied, sent or dropped. Asked at the start of a call and of each zone's fetch, before
  /// each batch and each part that is applied. Default: true.
  func isEnabled() throws -> Bool

  /// The category was switched on again, and what was staged meanwhile is applied: checks what waits in the outbox
  /// against it, before anything is sent (engine C9). Inside a transaction. Default: nothing.
  func revalidateOutbox(in zone: ZoneID, now: Int64) throws

  /// How this category gets the records that it has missed (engine C10). Constant. Default: `whereMissed`.
  var bootstrap: BootstrapDemand { get }

  /// A bootstrap of the zone is complete and has just been sealed; the same transaction makes the identity *activated*
  /// in this zone (engine C10). What is sealed is applied afterwards. Default: nothing.
  func bootstrapCompleted(in zone: ZoneID, now: Int64) throws

  /// Whether a fetch has to come before the first send after every start and reconnect, also in a call that only sends
  /// (engine section 6; tables L13). Constant. Default: false.
  var fetchesBeforeSending: Bool { get }

  /// Whether ``OutgoingBatch/returned`` shall hold the records that the server stored (engine C7). Constant.
  /// Default: false.
  var wantsSavedRecords: Bool { get }

  /// A session begins, for this user, or without an expected one: from now on every call is about this identity's state
  /// (engine section 11). Comes before ``recoverInFlight()``, in its transaction. Default: nothing.
  func begin(as user: String?) throws

  /// The account has changed: what belongs to the old identity is set aside under its name, rows stay (engine section
  /// 11). No session runs, and none of the old identity will write any more. Inside the transaction that stores the new
  /// identity. Default: nothing.
  func accountChanged(_ change: AccountChange) throws

  /// Whether ``adoption(by:)`` is to be asked after a sign-in. Constant. Default: false.
  var asksToAdopt: Bool { get }

  /// What becomes of changes that were made without an identity (engine section 11). Asked after every sign-in, once
  /// the bootstrap is done. Inside a transaction. Default: `keepLocal`.
  func adoption(by user: String) throws -> AdoptionChoice

  /// Moves the changes made without an identity to this one: once, so that no other identity gets them again. In the
  /// transaction of ``adoption(by:)``, when that said `adopt`. Default: nothing.
  func adoptLocalChanges(by user: String, now: Int64) throws
}

extension RecordCategory {
  public var sweepsSnapshots: Bool { true }
  public var zones: [ZoneID]? { nil }
  public func recoverInFlight() throws {}
  public func policy(for loss: ZoneLoss) -> ZoneLossPolicy { loss == .encryptedDataReset ? .recreateAndReupload : .ask }
  public func zonesWithChanges() throws -> [ZoneID] { [] }
  public func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws {}
  public func abandonChanges(in zone: ZoneID, now: Int64) throws -> Int { 0 }
  public func isEnabled() throws -> Bool { true }
  public func revalidateOutbox(in zone: ZoneID, now: Int64) throws {}
  public var bootstrap: BootstrapDemand { .whereMissed }
  public func bootstrapCompleted(in zone: ZoneID, now: Int64) throws {}
  public var fetchesBeforeSending: Bool { false }
  public var wantsSavedRecords: Bool { false }
  public func begin(as user: String?) throws {}
  public func accountChanged(_ change: AccountChange) throws {}
  public var asksToAdopt: Bool { false }
  public func adoption(by user: String) throws -> AdoptionChoice { .keepLocal }
  public func adoptLocalChanges(by user: String, now: Int64) throws {}
}

/// How fetched records reach the rows (engine C3).
public enum CategoryDelivery: Sendable {
  /// Only whole sealed sets are applied.
  case sealedSet
  /// A page without deletions may be applied as it comes.
  case pages
}

/// What the engine asks of a category when it wants to send.
public struct BatchRequest: Hashable, Sendable {
  public var limits: CloudLimits
  /// Wall clock, ms since 1970.
  public var now: Int64
  /// The user asked: entries that wait for `quota` or for a retry time of their own are tried too.
  public var isManual: Bool
  /// Saves wait (quota); deletes go.
  public var deletesOnly: Bool
  /// Records that have had their turn in this call and wait, by name: to be left out, also when ``isManual``. One that
  /// is in the batch all the same is neither sent nor settled.
  public var excluded: [String: PendingReason]
  /// Nothing was missed since the last bootstrap began (engine C10). False: something may be on the server that this
  /// category has not seen, and first inserts may have to wait for it (accounts A57).
  public var isCurrent = true
  /// The zone was fetched, and what came was applied, since this start and the last reconnect (accounts A84).
  public var hasFetched = true

  public init(
    limits: CloudLimits, now: Int64, isManual: Bool, deletesOnly: Bool, excluded: [String: PendingReason] = [:]
  ) {
    self.limits = limits
    self.now = now
    self.isManual = isManual
    self.deletesOnly = deletesOnly
    self.excluded = excluded
  }
}

/// Entries of one zone that travel in one request.
public struct OutgoingBatch: Hashable, Sendable {
  public var zone: ZoneID
  public var entries: [OutgoingEntry]
  /// In ``RecordCategory/settle(_:_:now:)``: the records as the server stored them, for those entries that were saved
  /// and for a category that wants them. They go through the category's join (engine C7).
  public var returned: [Record] = []

  public init(zone: ZoneID, entries: [OutgoingEntry]) {
    self.zone = zone
    self.entries = entries
  }
}

/// One pending change at one revision.
public struct OutgoingEntry: Hashable, Sendable {
  public var operation: RecordOperation
  /// The revision that this entry confirms when it is stored (DESIGN G2).
  public var revision: Int64
  /// Names of records of the same zone that must be stored first, or in the same request (engine section 6). An entry
  /// whose need is not met in its batch, or waits with a reason, is postponed with `missingParent`. What is stored, or
  /// in no batch, is the category's to know.
  public var needs: [String]

  public init(operation: RecordOperation, revision: Int64, needs: [String] = []) {
    self.operation = operation
    self.revision = revision
    self.needs = needs
  }
}

/// What became of one entry of a batch, after the engine's reaction (engine section 10).
public enum EntryResult: Hashable, Sendable {
  /// Stored under this tag.
  case saved(ChangeTag)
  case deleted
  /// The server holds another version: merge it, then send again if something local wins.
  case conflict(Record)
  /// The server does not know the record; the zone has been fetched since.
  case unknownItem(CloudError)
  /// Stays pending with this reason; tried again at `retryAt` (ms since 1970), or when the engine asks next.
  case postponed(PendingReason, retryAt: Int64?)
  /// Stays pending with this reason until a new revision or a request of the user.
  case handedOver(PendingReason, CloudError)
}

/// Why a change is still pending (tables section 7).
public enum PendingReason: String, Hashable, Sendable, CaseIterable {
  case unsent, offline, throttled, quota, signedOut, zoneGone, missingParent, permission, rejected, tooLarge
  case `internal`, nullKey, schema
  /// The category holds it until something else is confirmed; it is off; its content cannot be read now (engine S7).
  case gated, disabled, unavailable
}

/// How a zone was lost.
public enum ZoneLoss: String, Hashable, Sendable {
  /// Deleted by a device, or its history was undone: a decision is needed.
  case deleted
  /// Erased with the user's cloud data: a decision is needed.
  case purged
  /// Keys were reset: created again and refilled without asking.
  case encryptedDataReset
}

/// What a category wants done when its zone is lost (engine section 12).
public enum ZoneLossPolicy: Sendable {
  /// Its changes wait until the user has answered.
  case ask
  /// The zone is created again and refilled without asking.
  case recreateAndReupload
}

/// The answers to the question that a zone loss raises (engine section 12, tables L11).
public enum ZoneLossAnswer: String, Hashable, Sendable, CaseIterable {
  /// Rows stay; nothing is sent or fetched in the zone.
  case keepLocal
  /// Rows go; what the zone holds, should it exist again, is fetched.
  case deleteLocal
  /// The zone is created unless it is there, and every record is sent again.
  case recreateAndReupload
}
