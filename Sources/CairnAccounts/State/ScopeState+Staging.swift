import CairnRecords

/// Fetched records: staged, sealed, applied as one set (accounts.md A37–A44).
extension ScopeState {
  // MARK: Staging

  mutating func stage(_ records: [Record], _ deletions: [RecordDeletion]) {
    var waiting: [String: [Record]] = [:]
    for item in staged.values where !item.isSealed {
      if let record = item.record { waiting[item.name, default: []].append(record) }
    }
    // A version that waits already is not kept twice.
    for record in records where waiting[record.id.name]?.contains(record) != true {
      stage(StagedItem(name: record.id.name, record: record))
    }
    for deletion in deletions { stage(StagedItem(name: deletion.id.name, record: nil)) }
  }

  private mutating func stage(_ item: StagedItem) {
    staged[settings.nextStaged] = item
    settings.nextStaged += 1
  }

  /// The zone's own fetch has succeeded: what it brought is complete (accounts.md A40).
  mutating func seal() {
    for number in staged.keys { staged[number]?.isSealed = true }
  }

  /// A fetch was cut off and left records without seal (accounts.md A41).
  var hasUnsealedRecords: Bool { staged.values.contains { !$0.isSealed } }

  // MARK: Applying

  /// What an application changed, for counts.
  struct Applied: Equatable, Sendable {
    var changed = 0
    var removed = 0
    var conflicts = 0
    var parked = 0
  }

  /// Applies what is sealed as one set: tombstones, markers, accounts, contexts (accounts.md A38). Only what is not
  /// understood stays.
  mutating func applySealed(bindings: [InstanceID: LegacyBinding], scope: ScopeID, now: Int64) -> Applied {
    let before = self
    var applied = Applied()
    let sealed = staged.filter { $0.value.isSealed }.sorted { $0.key < $1.key }
    var facts: [(record: Record, fact: ReceivedFact)] = []
    var lastIsDeletion: [String: Bool] = [:]
    var withheld: [String: Int64] = [:]
    var old: [ReceivedFact] = []
    for (number, item) in sealed {
      lastIsDeletion[item.name] = item.record == nil && !item.isOfLostZone
      guard let record = item.record else {
        staged[number] = nil
        continue
      }
      let fact = AccountRecordCodec.read(record)
      // A later version takes the place of one that was not understood.
      if let older = withheld.removeValue(forKey: item.name) { staged[older] = nil }
      if case .notUnderstood = fact {
        withheld[item.name] = number
        continue
      }
      staged[number] = nil
      if item.isOfLostZone { old.append(fact) } else { facts.append((record, fact)) }
    }
    takeUp(old, bindings: bindings, scope: scope)
    for (record, fact) in facts { unpark(record, fact) }
    for (record, fact) in facts { if case .tombstone(let id) = fact { joinTombstone(id, record, bindings, scope) } }
    for (record, fact) in facts { if case .marker(let id) = fact { joinMarker(id, record) } }
    for (record, fact) in facts { if case .account(let content) = fact { joinAccount(content, record) } }
    for (record, fact) in facts { if case .context(let slot, let value) = fact { joinContext(slot, value, record) } }
    for (record, fact) in facts {
      guard case .unreadable(let reason) = fact else { continue }
      park(record, reason, now)
      applied.parked += 1
    }
    for (name, isDeletion) in lastIsDeletion where isDeletion { tookAway(name) }
    recomputeChoices()
    applied.removed = before.accounts.keys.count { accounts[$0] == nil }
    applied.changed =
      accounts.count { before.accounts[$0.key]?.content != $0.value.content }
      + markers.keys.count { before.markers[$0] == nil }
      + contexts.count { before.contexts[$0.key]?.server != $0.value.server }
    return applied
  }

  /// One version of one record joins what is known: from a page, a conflict or a save (accounts.md A42).
  mutating func join(_ record: Record, bindings: [InstanceID: LegacyBinding], scope: ScopeID, now: Int64) {
    let fact = AccountRecordCodec.read(record)
    unpark(record, fact)
    switch fact {
    case .tombstone(let id): joinTombstone(id, record, bindings, scope)
    case .marker(let id): joinMarker(id, record)
    case .account(let content): joinAccount(content, record)
    case .context(let slot, let value): joinContext(slot, value, record)
    case .notUnderstood:
      stage(StagedItem(name: record.id.name, record: record, isSealed: true))
    case .unreadable(let reason): park(record, reason, now)
    }
    recomputeChoices()
  }

  /// A version that can be read takes the place of one that could not.
  private mutating func unpark(_ record: Record, _ fact: ReceivedFact) {
    if case .unreadable = fact { return }
    parked[record.id.name] = nil
  }

  private mutating func park(_ record: Record, _ reason: UnreadableReason, _ now: Int64) {
    let since = parked[record.id.name]?.since ?? now
    parked[record.id.name] = ParkedRecord(record: record, reason: reason, since: since)
  }

  // MARK: The four kinds

  private mutating func joinTombstone(
    _ id: AccountID, _ record: Record, _ bindings: [InstanceID: LegacyBinding], _ scope: ScopeID
  ) {
    let isNew = tombstones[id] == nil
    var send = tombstones[id] ?? SendState()
    confirm(&send, record, .tombstone(id))
    tombstones[id] = send
    if isNew { bury(id, bindings: bindings, scope: scope) }
  }

  private mutating func joinMarker(_ id: InstanceID, _ record: Record) {
    var send = markers[id] ?? SendState()
    confirm(&send, record, .marker(id))
    markers[id] = send
  }

  /// Sets are equal wherever they are known: nothing is left to send.
  private func confirm(_ send: inout SendState, _ record: Record, _ key: RecordKey) {
    guard record.id.name == key.name else { return }
    send.saw(record.changeTag)
    send.rest()
  }

  private mutating func joinAccount(_ content: AccountContent, _ record: Record) {
    guard !isDead(content.id, .view) else { return }
    guard record.id.name == RecordKey.account(content.id).name else { return }
    guard var entry = accounts[content.id] else {
      var send = SendState()
      send.saw(record.changeTag)
      accounts[content.id] = AccountEntry(content: content, send: send)
      return
    }
    entry.content = entry.content.merged(with: content)
    entry.send.saw(record.changeTag)
    if entry.content == content { entry.send.rest() }
    accounts[content.id] = entry
  }

  private mutating func joinContext(_ slot: ContextSlot, _ value: RegisterValue, _ record: Record) {
    guard record.id.name == RecordKey.context(slot).name else { return }
    var entry = contexts[slot] ?? ContextEntry()
    entry.server = entry.server.map { max($0, value) } ?? value
    entry.newestTime = max(entry.newestTime, value.stamp.time)
    entry.send.saw(record.changeTag)
    // Only what is strictly greater than the server's is sent (accounts.md A33).
    if let local = entry.local, local <= value {
      entry.local = nil
      entry.send.revision += 1
    }
    if entry.local == nil { entry.send.rest() }
    contexts[slot] = entry
  }

  /// A record was physically deleted: no fact goes; a marker or tombstone is sent again (accounts.md A43).
  private mutating func tookAway(_ name: String) {
    switch RecordKey(name: name) {
    case .tombstone(let id) where RecordKey.tombstone(id).name == name: sendAgain(&tombstones[id])
    case .marker(let id) where RecordKey.marker(id).name == name: sendAgain(&markers[id])
    default: break
    }
  }

  private func sendAgain(_ send: inout SendState?) {
    guard send != nil else { return }
    send?.forgetServer()
    send?.touch()
  }
}
