/// Changes taken for a request (engine S4).
public struct QueuedBatch<ID: QueueID>: Hashable, Sendable {
  /// One change on its way.
  public struct Item: Hashable, Sendable {
    public var id: ID
    public var kind: PendingKind
    public var revision: Int64
  }

  public var number: Int64
  public var items: [Item]
}

/// What became of a change in flight.
public enum FlightResult: Hashable, Sendable {
  case success
  /// The engine sends it again.
  case retry(Blocked?)
  /// The category has to act: blocked until re-added or removed.
  case handedOver(PendingReason)
}

extension PendingQueue {
  /// Moves up to `limit` sendable changes into flight, in order.
  ///
  /// - Parameter filter: whether a change may go now; called in order.
  public mutating func take(
    limit: Int, now: Int64, where filter: (ID, PendingKind) -> Bool = { _, _ in true }
  ) -> QueuedBatch<ID>? {
    var items: [QueuedBatch<ID>.Item] = []
    for slot in order {
      if items.count == limit { break }
      guard var entry = entries[slot.id], let change = entry.pending, change.sequence == slot.sequence,
        entry.flight == nil, !entry.isHeld, isFree(change, now), filter(slot.id, change.kind)
      else { continue }
      entry.flight = Flight(change: change, batch: nextBatch)
      entry.flight?.change.blocked = nil
      entry.pending = nil
      put(entry, slot.id)
      items.append(.init(id: slot.id, kind: change.kind, revision: change.revision))
    }
    guard !items.isEmpty else { return nil }
    defer { nextBatch += 1 }
    return QueuedBatch(number: nextBatch, items: items)
  }

  /// Whether a pending change could be taken now.
  func canGo(_ id: ID, _ now: Int64) -> Bool {
    guard let entry = entries[id], let change = entry.pending else { return false }
    return entry.flight == nil && !entry.isHeld && isFree(change, now)
  }

  /// The batch in which a change of the identifier is in flight.
  func batch(of id: ID) -> Int64? { entries[id]?.flight?.batch }

  private func isFree(_ change: Change, _ now: Int64) -> Bool {
    guard let blocked = change.blocked else { return true }
    guard let at = blocked.retryAt else { return false }
    return at <= now
  }

  /// Takes the result of a change in flight (the table of engine section 2). A result of another batch is ignored.
  public mutating func settle(_ id: ID, batch: Int64, _ result: FlightResult) {
    guard var entry = entries[id], let flight = entry.flight, flight.batch == batch else { return }
    entry.flight = nil
    switch result {
    case .success: break
    case .retry(let blocked):
      if entry.pending == nil { restore(flight.change, blocked, in: &entry) }
    case .handedOver(let reason):
      if entry.pending == nil {
        restore(flight.change, Blocked(reason), in: &entry)
      } else {
        entry.isHeld = true
      }
    }
    put(entry, id)
    compactIfSparse()
  }

  /// The category has handled what was handed over: newer changes go on.
  public mutating func releaseHeld(_ id: ID) {
    guard var entry = entries[id], entry.isHeld else { return }
    entry.isHeld = false
    put(entry, id)
  }

  /// Blocks a pending change, or frees it with nil (S7).
  public mutating func block(_ id: ID, _ blocked: Blocked?) {
    guard var entry = entries[id], var change = entry.pending, change.blocked != blocked else { return }
    change.blocked = blocked
    entry.pending = change
    put(entry, id)
  }

  /// After a crash: what was in flight is pending again; a newer change stays (S4).
  public mutating func recover() {
    for id in entries.keys.sorted() {
      guard var entry = entries[id], entry.flight != nil || entry.isHeld else { continue }
      if let flight = entry.flight, entry.pending == nil { restore(flight.change, nil, in: &entry) }
      entry.flight = nil
      entry.isHeld = false
      put(entry, id)
    }
  }

  /// Removes every change, in flight too, that `condition` names, and returns the identifiers in order.
  public mutating func removeAll(where condition: (ID) -> Bool) -> [ID] {
    let found = entries.keys.filter(condition).sorted()
    for id in found { put(Entry(), id) }
    compactIfSparse()
    return found
  }

  private func restore(_ change: Change, _ blocked: Blocked?, in entry: inout Entry) {
    var change = change
    change.blocked = blocked
    entry.pending = change
  }
}
