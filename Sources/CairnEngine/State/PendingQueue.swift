/// An identifier that can be queued and stored.
public protocol QueueID: Hashable, Comparable, Sendable {
  /// Text that names it in a stored key, and nothing else.
  var queueKey: String { get }
  init?(queueKey: Substring)
}

/// What is to be done with an identifier.
public enum PendingKind: String, Hashable, Sendable { case save, delete }

/// Why a pending entry is not sent now, and when it may be tried again (engine S7).
public struct Blocked: Hashable, Sendable {
  public var reason: PendingReason
  /// Wall time, ms since 1970; nil: until something else frees it.
  public var retryAt: Int64?

  public init(_ reason: PendingReason, retryAt: Int64? = nil) {
    self.reason = reason
    self.retryAt = retryAt
  }

  /// Whether adding the entry again ends the wait (engine S7, tables F8).
  var endsWithNewRevision: Bool {
    switch reason {
    case .rejected, .tooLarge, .permission, .missingParent, .nullKey, .schema: true
    case .unsent, .offline, .throttled, .quota, .signedOut, .zoneGone, .internal, .gated, .disabled, .unavailable: false
    }
  }
}

/// An ordered set of pending changes, at most one per identifier, with those in flight apart (engine S1–S4, S7).
///
/// Invariants:
/// 1. An identifier has at most one pending change and at most one in flight.
/// 2. Sequence numbers are unique and never reused; they are the order.
/// 3. `order` is ascending and holds the number of every change; a number that no change carries is a leftover.
/// 4. Everything that `delta` does not name is stored as it is in memory.
///
/// Adding, removing and settling cost amortized constant time, and a delta as large as the change.
public struct PendingQueue<ID: QueueID>: Sendable {
  struct Change: Hashable, Sendable {
    var sequence: Int64
    var kind: PendingKind
    var revision: Int64
    var blocked: Blocked?
  }

  struct Flight: Hashable, Sendable {
    var change: Change
    var batch: Int64
  }

  struct Entry: Hashable, Sendable {
    var pending: Change?
    var flight: Flight?
    /// A newer change waits until the category has taken the result of the older one.
    var isHeld = false
  }

  struct Slot: Hashable, Sendable {
    var sequence: Int64
    var id: ID
  }

  var entries: [ID: Entry] = [:]
  var order: [Slot] = []
  var nextSequence: Int64 = 1
  var nextBatch: Int64 = 1
  var pendingCount = 0
  var flightCount = 0
  let prefix: String
  /// Rows changed since ``takeDelta()``.
  var delta: StateDelta = [:]

  /// - Parameter prefix: what the stored keys begin with.
  public init(prefix: String) { self.prefix = prefix }

  // MARK: Adding and removing

  /// Adds a change (S1, S2): the same kind again changes nothing, but for an entry that waits for a new revision; the
  /// other kind takes over the entry at its place. While a change is in flight, a newer one is an entry of its own.
  public mutating func add(_ kind: PendingKind, _ id: ID) {
    var entry = entries[id] ?? Entry()
    if var pending = entry.pending {
      let frees = pending.blocked?.endsWithNewRevision == true
      guard pending.kind != kind || frees else { return }
      pending.kind = kind
      pending.revision = takeSequence()
      pending.blocked = nil
      entry.pending = pending
    } else {
      let sequence = takeSequence()
      entry.pending = Change(sequence: sequence, kind: kind, revision: sequence)
      order.append(Slot(sequence: sequence, id: id))
    }
    put(entry, id)
  }

  /// Removes the pending change of an identifier; what is in flight stays (S5).
  public mutating func remove(_ id: ID) {
    guard var entry = entries[id], entry.pending != nil else { return }
    entry.pending = nil
    put(entry, id)
    compactIfSparse()
  }

  // MARK: Looking

  /// Pending changes in order.
  public var pending: [(id: ID, kind: PendingKind)] {
    order.compactMap { slot in
      guard let change = entries[slot.id]?.pending, change.sequence == slot.sequence else { return nil }
      return (slot.id, change.kind)
    }
  }

  /// What is pending for an ID; nil where nothing is.
  public func kind(of id: ID) -> PendingKind? { entries[id]?.pending?.kind }
  /// What is under way for an ID; nil where nothing is.
  public func kindInFlight(of id: ID) -> PendingKind? { entries[id]?.flight?.change.kind }
  /// Why the pending change of an ID waits; nil where it does not.
  public func blocked(_ id: ID) -> Blocked? { entries[id]?.pending?.blocked }
  public var count: Int { pendingCount }
  public var inFlight: Int { flightCount }
  public var isEmpty: Bool { pendingCount == 0 && flightCount == 0 }

  /// Counts by kind and reason, and the next retry time (S9).
  public var summary: PendingSummary {
    var summary = PendingSummary()
    for entry in entries.values {
      if let change = entry.pending { summary.count(change.kind, change.blocked) }
      if entry.flight != nil { summary.inFlight += 1 }
    }
    return summary
  }

  /// The rows changed since the last call, to be committed.
  public mutating func takeDelta() -> StateDelta {
    defer { delta = [:] }
    return delta
  }

  // MARK: Inside

  mutating func takeSequence() -> Int64 {
    defer { nextSequence += 1 }
    return nextSequence
  }

  mutating func put(_ entry: Entry, _ id: ID) {
    let old = entries[id]
    pendingCount += (entry.pending == nil ? 0 : 1) - (old?.pending == nil ? 0 : 1)
    flightCount += (entry.flight == nil ? 0 : 1) - (old?.flight == nil ? 0 : 1)
    if entry.pending == nil && entry.flight == nil {
      entries[id] = nil
      delta[prefix + id.queueKey] = .some(nil)
    } else {
      entries[id] = entry
      delta[prefix + id.queueKey] = Self.encode(entry)
    }
  }

  mutating func compactIfSparse() {
    guard order.count > 64, order.count > 2 * (pendingCount + flightCount) else { return }
    order.removeAll { slot in
      guard let entry = entries[slot.id] else { return true }
      return entry.pending?.sequence != slot.sequence && entry.flight?.change.sequence != slot.sequence
    }
  }
}

/// How many changes wait, and why (engine S9).
public struct PendingSummary: Hashable, Sendable {
  public var saves = 0
  public var deletes = 0
  public var inFlight = 0
  /// Blocked changes by reason.
  public var blocked: [PendingReason: Int] = [:]
  /// The earliest retry time, ms since 1970.
  public var nextRetry: Int64?

  public var pending: Int { saves + deletes }

  public init() {}

  mutating func count(_ kind: PendingKind, _ block: Blocked?) {
    if kind == .save { saves += 1 } else { deletes += 1 }
    guard let block else { return }
    blocked[block.reason, default: 0] += 1
    if let at = block.retryAt { nextRetry = min(nextRetry ?? at, at) }
  }
}
