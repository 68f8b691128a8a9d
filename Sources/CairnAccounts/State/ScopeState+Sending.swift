import CairnEngine
import CairnRecords

/// What goes to the server and in which order (accounts.md A76–A85): tombstones, accounts, markers, contexts.
///
/// Invariants:
/// 1. A marker leaves only when its account or its tombstone is confirmed; a context only when its account is.
/// 2. Being in the same batch is not confirmation.
/// 3. No account leaves that ``isDead(_:_:)`` on the way outward.
extension ScopeState {
  /// What a scope may send at all.
  struct Permission: Hashable, Sendable {
    /// First saves of accounts: the identity is activated and current (accounts.md A57).
    var mayInsert: Bool
    /// A fetch of the zone was applied since the start (accounts.md A84); only tombstones go without.
    var isFetched: Bool
  }

  // MARK: Gates

  private func mayLeave(_ key: RecordKey, _ permission: Permission) -> Bool {
    switch key {
    case .tombstone: return true
    case .account(let id):
      guard permission.isFetched, let entry = accounts[id], !isDead(id, .outward), !isWithheld(id) else { return false }
      return entry.send.isConfirmed || permission.mayInsert
    case .marker(let id):
      let account = AccountID(migratedFrom: id)
      let isSettled = accounts[account]?.send.isConfirmed == true || tombstones[account]?.isConfirmed == true
      return permission.isFetched && isSettled && parked[key.name] == nil
    case .context(let slot):
      guard permission.isFetched, let value = contexts[slot]?.local, !isWithheldContext(slot) else { return false }
      guard let id = value.accountID else { return true }
      return !isDead(id, .outward) && accounts[id]?.send.isConfirmed == true
    }
  }

  private func isWithheldContext(_ slot: ContextSlot) -> Bool { isKnownUnapplied(.context(slot)) }

  /// Everything pending, in the order in which it has to go: phase by phase, ascending in each.
  private var outbox: [[(key: RecordKey, send: SendState)]] {
    [
      tombstones.filter { $0.value.isPending }.sorted { $0.key < $1.key }.map { (.tombstone($0.key), $0.value) },
      accounts.filter { $0.value.send.isPending }.sorted { $0.key < $1.key }.map { (.account($0.key), $0.value.send) },
      markers.filter { $0.value.isPending }.sorted { $0.key < $1.key }.map { (.marker($0.key), $0.value) },
      contexts.filter { $0.value.send.isPending }.sorted { $0.key < $1.key }.map { (.context($0.key), $0.value.send) },
    ]
  }

  // MARK: Batches

  /// The next batch: records of the first kind of which something can go. They count as handed over from now on.
  mutating func nextBatch(in zone: ZoneID, _ request: BatchRequest, _ permission: Permission) -> [OutgoingEntry] {
    guard !request.deletesOnly else { return [] }
    for phase in outbox {
      let ready = phase.filter {
        $0.send.mayGo(isManual: request.isManual, now: request.now) && request.excluded[$0.key.name] == nil
          && mayLeave($0.key, permission)
      }
      guard !ready.isEmpty else { continue }
      return ready.prefix(max(1, request.limits.entriesPerRequest)).compactMap { entry in
        guard let record = record(of: entry.key, in: zone) else { return nil }
        noteHandover(entry.key)
        return OutgoingEntry(
          operation: RecordOperation(record.changeTag == nil ? .create : .update, record), revision: entry.send.revision
        )
      }
    }
    return []
  }

  func hasSendable(_ now: Int64, _ permission: Permission) -> Bool {
    outbox.contains { phase in phase.contains { $0.send.isReady(now) && mayLeave($0.key, permission) } }
  }

  var nextAttempt: Int64? { outbox.flatMap { $0.compactMap { $0.send.needsUser ? nil : $0.send.retryAt } }.min() }

  private func record(of key: RecordKey, in zone: ZoneID) -> Record? {
    switch key {
    case .tombstone(let id): AccountRecordCodec.tombstone(id, tombstones[id]?.changeTag, in: zone)
    case .marker(let id): AccountRecordCodec.marker(id, markers[id]?.changeTag, in: zone)
    case .account(let id): accounts[id].map { AccountRecordCodec.account($0.content, $0.send.changeTag, in: zone) }
    case .context(let slot):
      contexts[slot].flatMap { entry in
        entry.local.map { AccountRecordCodec.context(slot, $0, entry.send.changeTag, in: zone) }
      }
    }
  }

  private mutating func noteHandover(_ key: RecordKey) { update(key) { $0.wasHandedOver = true } }

  private mutating func update(_ key: RecordKey, _ body: (inout SendState) -> Void) {
    switch key {
    case .tombstone(let id):
      guard var send = tombstones[id] else { return }
      body(&send)
      tombstones[id] = send
    case .marker(let id):
      guard var send = markers[id] else { return }
      body(&send)
      markers[id] = send
    case .account(let id):
      guard var entry = accounts[id] else { return }
      body(&entry.send)
      accounts[id] = entry
    case .context(let slot):
      guard var entry = contexts[slot] else { return }
      body(&entry.send)
      contexts[slot] = entry
    }
  }

  // MARK: Results

  /// Counts of a settled batch.
  struct Settled: Equatable, Sendable {
    var saved = 0
    var deleted = 0
    var conflicts = 0
  }

  /// Takes what became of one entry. An edit made meanwhile stays pending (accounts.md A80).
  mutating func settle(
    _ entry: OutgoingEntry, _ result: EntryResult, bindings: [InstanceID: LegacyBinding], scope: ScopeID, now: Int64,
    _ counts: inout Settled
  ) {
    guard let key = RecordKey(name: entry.operation.record.id.name) else { return }
    update(key) { $0.clearWait() }
    switch result {
    case .saved(let tag):
      if case .tombstone = key { counts.deleted += 1 } else { counts.saved += 1 }
      confirm(key, entry, tag)
    case .conflict(let record):
      // A set that is there already, or a resend that meets its own record, is a success (accounts.md A3, C12).
      let before = sendState(key)?.isPending
      join(record, bindings: bindings, scope: scope, now: now)
      if before == true, sendState(key)?.isPending == true { counts.conflicts += 1 }
    case .unknownItem:
      // The zone has been fetched since and showed no tombstone, or the account would be gone (accounts.md A26).
      update(key) { $0.forgetServer() }
    case .postponed(let reason, let time): update(key) { $0.wait(reason, until: time, needsUser: false) }
    case .handedOver(let reason, _):
      update(key) { send in send.wait(reason, until: nil, needsUser: send.revision == entry.revision) }
    case .deleted: break
    }
  }

  private func sendState(_ key: RecordKey) -> SendState? {
    switch key {
    case .tombstone(let id): tombstones[id]
    case .marker(let id): markers[id]
    case .account(let id): accounts[id]?.send
    case .context(let slot): contexts[slot]?.send
    }
  }

  private mutating func confirm(_ key: RecordKey, _ entry: OutgoingEntry, _ tag: ChangeTag) {
    if case .context(let slot) = key { confirmContext(slot, entry) }
    update(key) { send in
      send.saw(tag)
      if send.revision == entry.revision { send.rest() }
    }
  }

  private mutating func confirmContext(_ slot: ContextSlot, _ entry: OutgoingEntry) {
    guard case .context(_, let value) = AccountRecordCodec.read(entry.operation.record) else { return }
    let server = contexts[slot]?.server
    contexts[slot]?.server = server.map { max($0, value) } ?? value
    if contexts[slot]?.local == value { contexts[slot]?.local = nil }
    recomputeChoices()
  }
}
