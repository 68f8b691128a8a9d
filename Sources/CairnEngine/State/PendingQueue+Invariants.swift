extension PendingQueue {
  /// What of the invariants above the type does not hold; empty when all is well. For tests and the simulation: it
  /// looks at the whole queue.
  public func brokenInvariants() -> [String] {
    var broken: [String] = []
    var seen: Set<Int64> = []
    for (id, entry) in entries {
      if entry.pending == nil && entry.flight == nil { broken.append("\(id.queueKey) is empty") }
      for change in [entry.pending, entry.flight?.change] {
        guard let change else { continue }
        if !seen.insert(change.sequence).inserted { broken.append("sequence \(change.sequence) is used twice") }
        if change.sequence >= nextSequence { broken.append("sequence \(change.sequence) is still to be given") }
        if !order.contains(Slot(sequence: change.sequence, id: id)) { broken.append("\(id.queueKey) has no place") }
      }
    }
    for (a, b) in zip(order, order.dropFirst()) where a.sequence >= b.sequence {
      broken.append("the order falls at \(b.sequence)")
    }
    if pendingCount != entries.values.filter({ $0.pending != nil }).count { broken.append("pending is miscounted") }
    if flightCount != entries.values.filter({ $0.flight != nil }).count { broken.append("in flight is miscounted") }
    return broken
  }
}
