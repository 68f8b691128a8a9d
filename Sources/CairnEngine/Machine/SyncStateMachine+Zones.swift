import CairnRecords

/// Zones: creating and deleting them, losing them, and the answers to the question that a loss raises
/// (engine sections 6 and 12).
extension SyncStateMachine {
  // MARK: Zone changes

  mutating func createZone(_ zone: ZoneID) {
    pending.add([.saveZone(zone)])
    pending.zones.block(zone, nil)
    commit(pending.takeDelta())
  }

  mutating func startZoneChanges() {
    guard run?.zoneBatch == nil else { return }
    let limit = limits.entriesPerRequest
    let first = pending.zones.pending.first { blockedNow($0.id) == false }
    guard let kind = first?.kind,
      let batch = pending.zones.take(limit: limit, now: now.wall, where: { $1 == kind })
    else {
      reportZoneChanges()
      return
    }
    run?.zoneBatch = batch
    commit(pending.takeDelta())
    let zones = batch.items.map(\.id)
    perform(kind == .save ? .createZones(zones) : .deleteZones(zones), for: .zoneChanges)
  }

  private func blockedNow(_ zone: ZoneID) -> Bool {
    guard let blocked = pending.zones.blocked(zone) else { return false }
    guard let at = blocked.retryAt else { return true }
    return at > now.wall
  }

  mutating func endZoneChanges(_ answer: EngineAnswer) {
    guard let batch = run?.zoneBatch else { return }
    run?.zoneBatch = nil
    switch answer {
    case .zones(let results):
      var delta: StateDelta = [:]
      for (offset, item) in batch.items.enumerated() {
        let result =
          offset < results.count
          ? results[offset] : .failure(CloudError(.undecodableAnswer, "the answer has too few entries"))
        take(result, item, batch.number, &delta)
      }
      commit(delta.merging(pending.takeDelta()) { $1 })
      let place = run?.agenda.firstIndex { !$0.isAbandon } ?? 0
      run?.agenda.insert(.zoneChanges, at: place)
    case .failed(let error):
      for item in batch.items { pending.zones.settle(item.id, batch: batch.number, .retry(nil)) }
      commit(pending.takeDelta())
      react(to: error, nil)
    default: break
    }
  }

  private mutating func take(
    _ result: Result<ZoneID, CloudError>, _ item: QueuedBatch<ZoneID>.Item, _ batch: Int64, _ delta: inout StateDelta
  ) {
    switch (item.kind, result) {
    case (.save, .success):
      pending.zones.settle(item.id, batch: batch, .success)
      delta[StoredKeys.zone(item.id, .confirmed)] = "1"
      run?.missing.remove(item.id)
      run?.sentSinceCount.saved.append(item.id)
    case (.save, .failure(let error)) where error.code == .exists:
      take(.success(item.id), item, batch, &delta)
    case (.delete, .success): run?.next([.abandon(item.id)])
    case (.delete, .failure(let error)) where error.code == .zoneNotFound || error.code == .notFound:
      run?.next([.abandon(item.id)])
    case (_, .failure(let error)):
      run?.sentSinceCount.failed.append(item.id)
      emit(.diagnostic(.cloud(error), item.id))
      pending.zones.settle(item.id, batch: batch, zoneFailure(error))
      skip(item.id, .cloud(error))
    }
  }

  private func zoneFailure(_ error: CloudError) -> FlightResult {
    switch ErrorReactions.entry(error, isDelete: false) {
    case .settled(.handedOver(let reason, _)): return .handedOver(reason)
    case .settled(.postponed(let reason, _)):
      let wait =
        error.retryAfter.map { Backoff.retryAfter(seconds: $0, fraction: now.fraction) } ?? settings.backoffLongest
      return .retry(Blocked(reason, retryAt: now.wall + wait))
    default: return .handedOver(.rejected)
    }
  }

  /// What a confirmed deletion of a zone by this device removes (engine S8). Committed with what the categories forget.
  mutating func confirmDeletion(_ zone: ZoneID) -> StateDelta {
    if let flight = pending.zones.entries[zone]?.flight {
      pending.zones.settle(zone, batch: flight.batch, .success)
    }
    let abandoned = pending.zoneDeletionConfirmed(zone)
    run?.sentSinceCount.abandoned += abandoned.count
    run?.sentSinceCount.deleted.append(zone)
    return registry.clearedZone(zone).merging(pending.takeDelta()) { $1 }
  }

  mutating func endAbandon(_ answer: EngineAnswer) {
    switch answer {
    case .count(let count): run?.sentSinceCount.abandoned += count
    case .storeFailed(let message): storeFailed(message, nil)
    default: break
    }
  }

  private mutating func reportZoneChanges() {
    guard let sent = run?.sentSinceCount, sent != SentDatabaseChanges() else { return }
    run?.sentSinceCount = SentDatabaseChanges()
    emit(.sentDatabaseChanges(sent))
  }

  // MARK: A zone is lost

  mutating func startLoss(_ zone: ZoneID, _ cause: ZoneQuestion.Cause) {
    let categories = openCategories(zone)
    guard !categories.isEmpty else { return }
    var delta = registry.clearedZone(zone)
    for traits in categories.map({ configuration.categories[$0] }) {
      // A bootstrap of the lost incarnation is worth nothing; what others put into the next one may be missed.
      for attribute in [StoredKeys.Bootstrap.start, .token] {
        let key = StoredKeys.bootstrap(zone, traits.name, attribute)
        if registry.rows[key] != nil { delta[key] = .some(nil) }
      }
      if traits.bootstrap == .own { delta.merge(registry.raisedNeed(traits.name)) { $1 } }
    }
    let loss: ZoneLoss = cause == .purged ? .purged : .deleted
    for traits in categories.map({ configuration.categories[$0] })
    where loss == .purged ? traits.asksAboutPurgedZones : traits.asksAboutDeletedZones {
      delta[StoredKeys.question(zone, traits.name)] = cause.rawValue
    }
    let losses = categories.map { CategoryLoss(category: $0, loss: loss) }
    perform(.loseZone(zone, losses, delta), for: .lose(zone, cause))
  }

  mutating func endLoss(_ zone: ZoneID, _ cause: ZoneQuestion.Cause, _ answer: EngineAnswer) {
    if case .storeFailed(let message) = answer {
      storeFailed(message, zone)
      return
    }
    for traits in configuration.categories {
      guard case .asked(cause) = registry.standing(of: traits.name, in: zone) else { continue }
      emit(.decisionNeeded(ZoneQuestion(zone: zone, category: traits.name, cause: cause)))
    }
    guard !openCategories(zone).isEmpty else { return }
    run?.next([.refill(zone)])
  }

  /// Categories that do not ask make the zone again and fill it (engine section 12).
  mutating func startRefill(_ zone: ZoneID) {
    let answers = openCategories(zone).map { CategoryAnswer(category: $0, answer: .recreateAndReupload) }
    // A category that is off sends nothing; its part of the zone is refilled when it is on again.
    if answers.contains(where: { isActing(Lane(zone: zone, category: $0.category)) }) { pending.add([.saveZone(zone)]) }
    perform(.answerLoss(zone, answers, pending.takeDelta()), for: .refill(zone))
  }

  mutating func endRefill(_ zone: ZoneID, _ answer: EngineAnswer) {
    if case .storeFailed(let message) = answer {
      storeFailed(message, zone)
      return
    }
    guard run?.request.scope != .fetchOnly else { return }
    createAndFetch(zone)
  }

  // MARK: The user's answer

  mutating func begin(_ zone: ZoneID, _ category: String, _ answer: ZoneLossAnswer) {
    guard run == nil, let index = configuration.categories.firstIndex(where: { $0.name == category }) else { return }
    run = Run(SyncRequest(), agenda: [.answer(zone, index, answer)], savesWait: false)
    run?.isAborted = true
  }

  mutating func startAnswer(_ zone: ZoneID, _ category: Int, _ answer: ZoneLossAnswer) {
    let name = configuration.categories[category].name
    guard registry.standing(of: name, in: zone) != .open else { return }
    var delta: StateDelta = [StoredKeys.question(zone, name): nil as String?]
    if answer == .keepLocal {
      delta[StoredKeys.question(zone, name)] = ZoneStanding.keptLocalValue
    } else {
      // The category has missed what others fetched meanwhile: the whole zone is fetched again (engine C10).
      delta[StoredKeys.zone(zone, .token)] = nil as String?
    }
    if answer == .recreateAndReupload {
      pending.add([.saveZone(zone)])
      delta.merge(pending.takeDelta()) { $1 }
    }
    let answers = [CategoryAnswer(category: category, answer: answer)]
    perform(.answerLoss(zone, answers, delta), for: .answer(zone, category, answer))
  }

  mutating func endAnswer(_ zone: ZoneID, _ answer: EngineAnswer) {
    if case .storeFailed(let message) = answer { storeFailed(message, zone) }
  }
}

extension Job {
  var isAdoption: Bool { if case .adopt = self { true } else { false } }
  var isAbandon: Bool { if case .abandon = self { true } else { false } }
}
