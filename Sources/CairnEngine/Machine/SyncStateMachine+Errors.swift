import CairnRecords

/// What a failure means for the rest of the call and for later ones (engine sections 9 and 10).
extension SyncStateMachine {
  // MARK: Before the server is asked

  /// A retry-after holds every call; a backoff only those that are not manual.
  mutating func checkWaits() {
    if let wait = waits.remaining(StoredKeys.databaseHold, now) {
      noteRetry(now.wall + wait)
      abort(.rateLimited(until: now.wall + wait))
      return
    }
    clear(StoredKeys.databaseHold, .throttled)
    guard run?.request.isManual == false, let wait = waits.remaining(StoredKeys.backoff, now) else { return }
    noteRetry(now.wall + wait)
    abort(.backingOff(until: now.wall + wait))
  }

  private mutating func clear(_ key: String, _ reason: PauseReason) {
    guard registry.rows[key] != nil else { return }
    waits.clear(key)
    commit([key: nil as String?])
    emit(.resumed(reason))
  }

  // MARK: After a request

  /// A request has come through: the network is back and the user known.
  mutating func noteSuccess() {
    clear(StoredKeys.account, .account)
    guard registry.backoff?.isNetwork == true else { return }
    fetchedSinceStart = []
    waits.clear(StoredKeys.backoff)
    commit([StoredKeys.backoff: nil as String?])
  }

  /// A failure of a request, or of an entry where it concerns more than the entry.
  mutating func react(to error: CloudError, _ zone: ZoneID?, isOfEntry: Bool = false) {
    if !isOfEntry || run?.result.failure == nil { emit(.diagnostic(.cloud(error), zone)) }
    switch ErrorReactions.request(error) {
    case .holdDatabase where !isOfEntry:
      hold(StoredKeys.databaseHold, error)
      abort(.cloud(error))
    case .holdDatabase, .holdZone:
      guard let zone else { return }
      hold(StoredKeys.zone(zone, .hold), error)
      skip(zone, .cloud(error))
    case .backOff(let isNetwork):
      backOff(isNetwork: isNetwork)
      abort(.cloud(error))
    case .signedOut:
      if !registry.isSignedOut {
        commit([StoredKeys.account: "1"])
        emit(.paused(.account, until: nil))
      }
      abort(.cloud(error))
    case .cancelled: abort(.cancelled)
    case .quota, .refused:
      if let zone { skip(zone, .cloud(error)) } else { abort(.cloud(error)) }
    }
  }

  private mutating func hold(_ key: String, _ error: CloudError) {
    let fraction = now.fraction
    let wait =
      error.retryAfter.map { Backoff.retryAfter(seconds: $0, fraction: fraction) }
      ?? Backoff.wait(
        tries: (registry.backoff?.tries ?? 0) + 1, first: settings.backoffFirst, longest: settings.backoffLongest,
        fraction: fraction)
    waits.set(key, wait, now)
    commit([key: String(now.wall + wait)])
    noteRetry(now.wall + wait)
    emit(.paused(.throttled, until: now.wall + wait))
  }

  /// Waits longer with every failure. An internal error is tried five times, then hourly.
  private mutating func backOff(isNetwork: Bool) {
    let tries = (registry.backoff?.isNetwork == isNetwork ? registry.backoff?.tries ?? 0 : 0) + 1
    let isBlocked = !isNetwork && tries >= settings.internalTries
    let wait =
      isBlocked
      ? settings.internalInterval
      : Backoff.wait(
        tries: tries, first: settings.backoffFirst, longest: settings.backoffLongest, fraction: now.fraction)
    waits.set(StoredKeys.backoff, wait, now)
    commit([StoredKeys.backoff: Wait(tries: tries, until: now.wall + wait, isNetwork: isNetwork).text])
    noteRetry(now.wall + wait)
    if isBlocked { emit(.paused(.internal, until: now.wall + wait)) }
  }

  /// The store or a category threw: nothing of it was stored, so nothing is confirmed; tried again later (engine
  /// sections 5 and 10).
  mutating func storeFailed(_ message: String, _ zone: ZoneID?) {
    emit(.diagnostic(.store(message), zone))
    noteRetry(now.wall + settings.backoffFirst)
    if let zone { skip(zone, .store(message)) } else { abort(.store(message)) }
  }

  // MARK: The rest of the call

  /// Leaves a zone alone until the call ends.
  mutating func skip(_ zone: ZoneID, _ failure: SyncFailure) {
    fail(failure)
    if case .rateLimited(let until) = failure { noteRetry(until) }
    run?.skipped.insert(zone)
  }

  mutating func fail(_ failure: SyncFailure) {
    if run?.result.failure == nil { run?.result.failure = failure }
  }

  /// Ends the call, but for what needs no server: entries out of the queue go back, events are closed.
  mutating func abort(_ failure: SyncFailure) {
    guard let run, !run.isAborted else { return }
    self.run?.isAborted = true
    fail(failure)
    let undecided = run.undecided.keys.sorted { ($0.zone, $0.category) < ($1.zone, $1.category) }
    let outlooks = lanes(knownZones(run.request)).map { Job.outlook($0) }
    self.run?.agenda = undecided.map { .settleUndecided($0) } + outlooks
  }
}
