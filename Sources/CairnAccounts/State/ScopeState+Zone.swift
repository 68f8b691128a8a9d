import CairnRecords

/// Losing the zone, filling a new one, and what a bootstrap did not show (accounts.md A83, A86–A88).
extension ScopeState {
  /// Tags and confirmations are of an incarnation that is gone. Facts stay in every case.
  mutating func forgetServer() {
    for id in accounts.keys { accounts[id]?.send.forgetServer() }
    for id in tombstones.keys { tombstones[id]?.forgetServer() }
    for id in markers.keys { markers[id]?.forgetServer() }
    for (slot, entry) in contexts {
      contexts[slot]?.send.forgetServer()
      // What only the lost zone had is this device's to say again, unless something newer was chosen here.
      contexts[slot]?.local = entry.value
      contexts[slot]?.server = nil
    }
  }

  /// Every fact is to be sent again, in the usual order (accounts.md A83).
  mutating func refill() {
    for id in accounts.keys { accounts[id]?.send.touch() }
    for id in tombstones.keys { tombstones[id]?.touch() }
    for id in markers.keys { markers[id]?.touch() }
    for slot in contexts.keys where isWorthSending(slot) { contexts[slot]?.send.touch() }
  }

  /// A choice of a deleted account is never sent (accounts.md A82).
  private func isWorthSending(_ slot: ContextSlot) -> Bool {
    guard let value = contexts[slot]?.local else { return false }
    return value.accountID.map { !isDead($0, .outward) } ?? true
  }

  /// A full fetch is staged whole. What is confirmed and was not in it was dropped by somebody who refilled the zone
  /// with only what he knows: it is sent again (accounts.md A24, A88).
  mutating func requeueUnseen() {
    let seen = Set(staged.values.compactMap { $0.record == nil ? nil : $0.name })
    for (id, entry) in accounts where entry.send.isConfirmed && !seen.contains(RecordKey.account(id).name) {
      accounts[id]?.send.forgetServer()
      accounts[id]?.send.touch()
    }
    for (id, send) in tombstones where send.isConfirmed && !seen.contains(RecordKey.tombstone(id).name) {
      tombstones[id]?.forgetServer()
      tombstones[id]?.touch()
    }
    for (id, send) in markers where send.isConfirmed && !seen.contains(RecordKey.marker(id).name) {
      markers[id]?.forgetServer()
      markers[id]?.touch()
    }
    for (slot, entry) in contexts where entry.send.isConfirmed && !seen.contains(RecordKey.context(slot).name) {
      contexts[slot]?.local = entry.value
      contexts[slot]?.server = nil
      contexts[slot]?.send.forgetServer()
      if isWorthSending(slot) { contexts[slot]?.send.touch() }
    }
  }
}
