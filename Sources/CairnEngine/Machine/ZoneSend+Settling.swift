import CairnRecords

/// What became of a batch: who is told now, who waits for a fetch, who has been tried often enough.
extension ZoneSend {
  mutating func settle(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    var delta: StateDelta = [:]
    var decided: [OutgoingEntry] = []
    var decidedResults: [EntryResult] = []
    var undecided: [OutgoingEntry] = []
    var stored: [Record] = []
    for (index, entry) in entries.enumerated() {
      let result = limited(results[index] ?? .postponed(.unsent, retryAt: nil), entry, registry, now, &delta)
      let isPostponed = if case .postponed = result { true } else { false }
      if isUndecided[index] && !isPostponed {
        undecided.append(entry)
        report.undecidedResults.append(result)
        report.hasFailures = true
        continue
      }
      decided.append(entry)
      decidedResults.append(result)
      if let record = returned[index] { stored.append(record) }
      count(result, entry)
    }
    if !undecided.isEmpty { report.undecided = OutgoingBatch(zone: zone, entries: undecided) }
    if report.sent.saved + report.sent.deleted > 0 && !registry.isConfirmed(zone) && !report.isZoneMissing {
      delta[StoredKeys.zone(zone, .confirmed)] = "1"
    }
    if report.sent.saved > 0 && registry.quota != nil && !report.hitQuota { delta[StoredKeys.quota] = .some(nil) }
    if let reached, reached != start { delta[StoredKeys.zone(zone, .token)] = reached.rawValue }
    if decided.isEmpty && delta.isEmpty { return .done(report) }
    stage = .settling
    var batch = OutgoingBatch(zone: zone, entries: decided)
    batch.returned = stored
    return .task(.settle(category: category, batch, decidedResults, delta))
  }

  /// Bounds what would be tried for ever: five attempts in a row, then backoff; an internal error five times, then
  /// hourly (engine sections 5 and 10).
  private mutating func limited(
    _ result: EntryResult, _ entry: OutgoingEntry, _ registry: ZoneRegistry, _ now: Moment, _ delta: inout StateDelta
  ) -> EntryResult {
    let id = entry.operation.record.id
    let stored = registry.tries(id)
    switch result {
    case .saved, .deleted:
      attempts[id.name] = nil
      if stored > 0 { delta[StoredKeys.tries(zone, id.name)] = .some(nil) }
      return result
    case .postponed(.internal, nil):
      let tries = stored + 1
      delta[StoredKeys.tries(zone, id.name)] = String(tries)
      return .postponed(.internal, retryAt: now.wall + internalWait(tries, now))
    case .conflict, .unknownItem, .handedOver(.missingParent, _), .postponed(.unsent, nil):
      let count = attempts[id.name, default: 0] + 1
      attempts[id.name] = count
      guard count >= settings.attemptsInARow else { return result }
      if case .handedOver = result { return result }
      return .postponed(.unsent, retryAt: now.wall + internalWait(count, now))
    case .postponed, .handedOver: return result
    }
  }

  private func internalWait(_ tries: Int, _ now: Moment) -> Int64 {
    tries >= settings.internalTries
      ? settings.internalInterval
      : Backoff.wait(
        tries: tries, first: settings.backoffFirst, longest: settings.backoffLongest, fraction: now.fraction)
  }

  private mutating func count(_ result: EntryResult, _ entry: OutgoingEntry) {
    let name = entry.operation.record.id.name
    switch result {
    case .saved: report.sent.saved += 1
    case .deleted: report.sent.deleted += 1
    case .conflict:
      report.sent.conflicts += 1
      report.hasFailures = true
    case .unknownItem: report.hasFailures = true
    case .postponed(let reason, let retryAt):
      report.hasFailures = true
      if reason != .unsent || retryAt != nil { wait(name, reason) }
    case .handedOver(let reason, _):
      report.hasFailures = true
      wait(name, reason)
    }
  }

  private mutating func wait(_ name: String, _ reason: PendingReason) {
    report.excluded[name] = reason
    report.sent.waiting.append(.init(name: name, reason: reason))
  }
}
