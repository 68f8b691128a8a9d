import CairnRecords

/// Losing the zone, filling a new one, and what a bootstrap did not show (accounts.md A83, A86–A88).
extension ScopeState {
  /// Tags and confirmations are of an incarnation that is gone. Facts stay in every case.
  mutating func forgetServer() {
    for number in staged.keys { staged[number]?.isOfLostZone = true }
    for id in accounts.keys { accounts[id]?.send.forgetServer() }
    for id in tombstones.keys { tombstones[id]?.forgetServer() }
    for id in markers.keys { markers[id]?.forgetServer() }
    for (slot, entry) in contexts {
      contexts[slot]?.send.forgetServer()
      sayAgain(slot, entry)
    }
    recomputeChoices()
  }

  /// What only the lost zone had is this device's to say again, unless something newer was chosen here. A choice of a
  /// deleted account is never said again, by no device: kept here alone, it would hide the choice of the others.
  private mutating func sayAgain(_ slot: ContextSlot, _ entry: ContextEntry) {
    let value = entry.value.flatMap { isChoosable($0) ? $0 : nil }
    contexts[slot]?.local = value
    contexts[slot]?.server = nil
  }

  private func isChoosable(_ value: RegisterValue) -> Bool { value.accountID.map { !isDead($0, .view) } ?? true }

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
  /// with only what they know: it is sent again (accounts.md A24, A88).
  mutating func requeueUnseen() {
    let seen = Set(staged.values.compactMap { $0.record == nil || $0.isOfLostZone ? nil : $0.name })
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
      sayAgain(slot, entry)
      contexts[slot]?.send.forgetServer()
      if isWorthSending(slot) { contexts[slot]?.send.touch() }
    }
    recomputeChoices()
  }

  /// What was fetched from an incarnation that is gone: its facts hold, but they are this device's to send now
  /// (accounts.md A83, A87).
  mutating func takeUp(_ facts: [ReceivedFact], bindings: [InstanceID: LegacyBinding], scope: ScopeID) {
    for case .tombstone(let id) in facts {
      if tombstones[id] == nil { bury(id, bindings: bindings, scope: scope) }
      takeUp(&tombstones[id])
    }
    for case .marker(let id) in facts { takeUp(&markers[id]) }
    for case .account(let content) in facts where !isDead(content.id, .view) {
      let merged = accounts[content.id]?.content.merged(with: content) ?? content
      guard accounts[content.id]?.content != merged else { continue }
      var entry = accounts[content.id] ?? AccountEntry(content: merged)
      entry.content = merged
      entry.send.wasHandedOver = true
      entry.send.touch()
      accounts[content.id] = entry
    }
    for case .context(let slot, let value) in facts where isChoosable(value) {
      var entry = contexts[slot] ?? ContextEntry()
      guard entry.value.map({ $0 < value }) ?? true else { continue }
      entry.local = value
      entry.newestTime = max(entry.newestTime, value.stamp.time)
      contexts[slot] = entry
      if isWorthSending(slot) { contexts[slot]?.send.touch() }
    }
  }

  private func takeUp(_ send: inout SendState?) {
    var next = send ?? SendState()
    next.wasHandedOver = true
    if !next.isConfirmed && !next.isPending { next.touch() }
    send = next
  }
}
