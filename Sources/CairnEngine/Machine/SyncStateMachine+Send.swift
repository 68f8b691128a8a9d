import CairnRecords

/// Sending: batches of one lane until it is empty; a batch with failures ends the cycle (engine section 6).
extension SyncStateMachine {
  mutating func startSend(_ lane: Lane) {
    guard let run, isUsable(lane.zone), isActing(lane), !pending.waitsForDeletion(lane.zone) else { return }
    if let wait = waits.remaining(StoredKeys.zone(lane.zone, .hold), now) {
      skip(lane.zone, .rateLimited(until: now.wall + wait))
      return
    }
    if run.missing.contains(lane.zone) && !registry.isConfirmed(lane.zone) {
      self.run?.missing.remove(lane.zone)
      self.run?.next([.probe(lane), .send(lane)])
      return
    }
    var limits = limits
    limits.entriesPerRequest = max(1, min(limits.entriesPerRequest, run.cap))
    // A category that fills its batch to the cap goes over it by a record: that is no reason to cut the batch in two.
    let bytesPerRequest = limits.bytesPerRequest
    limits.bytesPerRequest = bytesPerRequest / 5 * 4
    var request = BatchRequest(
      limits: limits, now: now.wall, isManual: run.request.isManual, deletesOnly: run.savesWait,
      excluded: run.excluded[lane] ?? [:])
    request.isCurrent = status(lane) == .current
    request.hasFetched = fetchedSinceStart.contains(lane.zone)
    let traits = configuration.categories[lane.category]
    let send = ZoneSend(
      zone: lane.zone, category: lane.category, request: request, settings: settings,
      attempts: run.attempts[lane] ?? [:], cap: limits.entriesPerRequest, start: movableToken(lane),
      wantsSaved: traits.wantsSavedRecords, bytesPerRequest: bytesPerRequest, confirmed: run.confirmed[lane] ?? [:])
    self.run?.send = send
    perform(send.firstTask, for: .send(lane))
  }

  /// The zone's token, if everything before it has reached the categories: then own changes may move it. While pages
  /// are staged or a snapshot is not swept, an own change may be older than what waits there, and its echo is needed.
  private func movableToken(_ lane: Lane) -> ChangeToken? {
    let name = configuration.categories[lane.category].name
    guard run?.fetched.contains(lane.zone) == true, !registry.isInSnapshot(lane.zone),
      registry.bootstrapStart(lane.zone, name) == nil
    else { return nil }
    return registry.token(lane.zone)
  }

  /// Something is to be sent into a zone that does not exist: it is created first (engine E5).
  mutating func endProbe(_ lane: Lane, _ sendable: Bool) {
    // Else the lane is asked for a batch all the same; should there be one, the server's answer leads here.
    guard sendable else { return }
    createZone(lane.zone)
    createAndFetch(lane.zone)
  }

  /// Creates what is queued, then fetches, so that there is a token from before the first save: without one a later
  /// fetch would be a snapshot of everything sent.
  ///
  /// A category that has lost its zone needs a bootstrap of the new one before it goes on (engine C10).
  mutating func createAndFetch(_ zone: ZoneID) {
    let fetches: [Job] = lanes([zone]).map { .bootstrap($0) } + [.fetch(zone)]
    if run?.isSendOpen == true {
      run?.next([.zoneChanges, .endSend, .beginFetch] + fetches + [.endFetch, .beginSend])
    } else {
      run?.next([.zoneChanges] + fetches)
    }
  }

  mutating func continueSend(_ lane: Lane, _ answer: EngineAnswer) {
    guard var send = run?.send else { return }
    var step = send.step(answer, registry, now)
    if run?.isCancelled == true, case .task(let task) = step, task.needsServer {
      step = send.step(.failed(CloudError(.cancelled, "the call was cancelled")), registry, now)
    }
    run?.send = send
    switch step {
    case .task(let task): perform(task, for: .send(lane))
    case .done(let report):
      run?.send = nil
      run?.attempts[lane] = send.attempts
      run?.confirmed[lane] = send.confirmedRevisions
      if send.cap < send.request.limits.entriesPerRequest { run?.cap = send.cap }
      take(report, lane)
    }
  }

  private mutating func take(_ report: ZoneSend.Report, _ lane: Lane) {
    if let message = report.storeFailure {
      storeFailed(message, lane.zone)
      return
    }
    guard report.hadBatch else { return }
    if report.passedToken { run?.uncovered.insert(lane.zone) }
    note(report, lane)
    if report.hitQuota { pauseForQuota() }
    if report.sent.deleted > 0 && run?.savesWait == true {
      // A delete has made room: saves are tried once more.
      run?.savesWait = false
      let excluded = run?.excluded ?? [:]
      run?.excluded = excluded.mapValues { $0.filter { $0.value != .quota } }
    }
    if let error = report.zoneHold { react(to: error, lane.zone, isOfEntry: true) }
    if let error = report.isSignedOut ?? report.requestError {
      react(to: error, lane.zone)
      if run?.isAborted == true { return }
    }
    if report.hasFailures {
      endCycle(report, lane)
    } else {
      run?.fruitless = 0
      run?.next([.send(lane)])
    }
  }

  private mutating func note(_ report: ZoneSend.Report, _ lane: Lane) {
    run?.result.saved += report.sent.saved
    run?.result.deleted += report.sent.deleted
    run?.result.conflicts += report.sent.conflicts
    run?.excluded[lane, default: [:]].merge(report.excluded) { $1 }
    if let batch = report.undecided { run?.undecided[lane] = (batch, report.undecidedResults) }
    emit(.sentRecordZoneChanges(lane.zone, report.sent))
  }

  /// A fetch, then a new cycle (engine section 6).
  private mutating func endCycle(_ report: ZoneSend.Report, _ lane: Lane) {
    guard let run else { return }
    let sent = report.sent
    self.run?.fruitless = sent.saved + sent.deleted + sent.conflicts > 0 ? 0 : run.fruitless + 1
    let settling: [Job] = run.undecided[lane] == nil ? [] : [.settleUndecided(lane)]
    if report.isZoneMissing {
      if registry.isConfirmed(lane.zone) {
        self.run?.next([.lose(lane.zone, .deleted)] + settling)
        return
      }
      createZone(lane.zone)
    }
    var jobs: [Job] = [.endSend]
    if self.run?.fruitless ?? 0 < settings.fruitlessRounds {
      if report.isZoneMissing { jobs.insert(.zoneChanges, at: 0) }
      jobs += [.beginFetch, .fetch(lane.zone), .endFetch]
      jobs += settling + [.retryParked(lane)] + sendJobs(run.zones)
    } else {
      jobs += settling + [.coverSends]
    }
    let outlooks = run.agenda.filter { if case .outlook = $0 { true } else { false } }
    self.run?.agenda = jobs + outlooks
  }

  // MARK: Covering what was sent

  /// A server that is restored to a backup from before a save refuses the token only if the token is from after the
  /// save (tables L12). So before the call ends, the zones are fetched once more whose token could not move over own
  /// changes. What the fetch brings may give something to send: a new round, of which a call has a limited number.
  mutating func coverSends() {
    guard let run, run.request.scope != .sendOnly else { return }
    let closings = run.closings + 1
    let zones = run.uncovered.filter { isUsable($0) }.sorted()
    // Whatever comes of the fetches: no zone is fetched twice for the same round.
    self.run?.uncovered = []
    guard !zones.isEmpty else { return }
    self.run?.closings = closings
    var jobs: [Job] = [.beginFetch] + zones.map { .fetch($0) } + [.endFetch]
    jobs += lanes(zones).map { .retryParked($0) }
    if closings < settings.fruitlessRounds && run.fruitless < settings.fruitlessRounds {
      jobs += sendJobs(run.zones)
    }
    self.run?.next(jobs)
  }

  // MARK: Entries that waited for a fetch

  mutating func startSettling(_ lane: Lane) {
    guard let (batch, results) = run?.undecided[lane] else { return }
    let known = run?.isAborted == false && isUsable(lane.zone) && isOpen(lane)
    let final = known ? results : results.map { _ in EntryResult.postponed(.unsent, retryAt: nil) }
    perform(.settle(category: lane.category, batch, final, [:]), for: .settleUndecided(lane))
  }

  mutating func endSettling(_ lane: Lane, _ answer: EngineAnswer) {
    guard let (batch, results) = run?.undecided.removeValue(forKey: lane) else { return }
    if case .storeFailed(let message) = answer {
      storeFailed(message, lane.zone)
      return
    }
    var sent = SentRecords()
    for (entry, result) in zip(batch.entries, results) {
      guard case .handedOver(let reason, _) = result else { continue }
      let name = entry.operation.record.id.name
      sent.waiting.append(.init(name: name, reason: reason))
      run?.excluded[lane, default: [:]][name] = reason
    }
    emit(.sentRecordZoneChanges(lane.zone, sent))
  }

  // MARK: Quota

  /// Saves wait, deletes and fetches go on (engine section 10).
  private mutating func pauseForQuota() {
    let tries = (registry.quota?.tries ?? 0) + 1
    let doubled = settings.quotaFirst << Int64(min(tries - 1, 16))
    let wait = min(doubled, settings.quotaLongest)
    let isNew = registry.quota == nil
    waits.set(StoredKeys.quota, wait, now)
    commit([StoredKeys.quota: Wait(tries: tries, until: now.wall + wait).text])
    run?.savesWait = true
    if isNew { emit(.paused(.quota, until: now.wall + wait)) }
  }
}
