import CairnRecords

/// What a call consists of, and how each job starts and ends.
extension SyncStateMachine {
  // MARK: The plan of a call

  mutating func begin(_ request: SyncRequest) {
    guard run == nil else { return }
    let savesWait = registry.quota != nil && !request.isManual && waits.remaining(StoredKeys.quota, now) != nil
    var agenda: [Job] = hasRecovered ? [] : [.recover]
    agenda.append(.survey)
    agenda.append(.goOnline)
    if configuration.expectedUser != nil && !hasIdentified { agenda.append(.identify) }
    if request.scope != .sendOnly || isFetchOverdue {
      agenda.append(.beginFetch)
      if configuration.zones == nil && request.zones == nil { agenda.append(.databaseChanges) }
    }
    agenda.append(.planZones)
    run = Run(request, agenda: agenda, savesWait: savesWait)
  }

  /// After more than a day offline a fetch comes before a send (engine section 6).
  private var isFetchOverdue: Bool {
    let wantsFetch = configuration.categories.contains { $0.fetchesBeforeSending }
    return knownZones(SyncRequest()).contains { zone in
      if wantsFetch && !fetchedSinceStart.contains(zone) { return true }
      guard let last = registry.lastFetch(zone) else { return true }
      return now.wall - last > 24 * 3_600_000
    }
  }

  func knownZones(_ request: SyncRequest) -> [ZoneID] {
    let known = configuration.zones ?? registry.knownZones
    guard let wanted = request.zones else { return known }
    return configuration.zones == nil ? wanted : known.filter { wanted.contains($0) }
  }

  /// Categories that may act in a zone.
  func openCategories(_ zone: ZoneID) -> [Int] {
    configuration.categories.indices.filter { isOpen(Lane(zone: zone, category: $0)) }
  }

  func lanes(_ zones: [ZoneID]) -> [Lane] {
    zones.flatMap { zone in openCategories(zone).map { Lane(zone: zone, category: $0) } }
  }

  private mutating func planZones() {
    guard let request = run?.request else { return }
    var zones = knownZones(request)
    for zone in run?.zones ?? [] where !zones.contains(zone) { zones.append(zone) }
    run?.zones = zones
    var jobs: [Job] = []
    if run?.isFetchOpen == true {
      jobs += lanes(zones).filter { needsBootstrap($0) }.map { .bootstrap($0) }
      jobs += zonesToFetch(zones).map { .fetch($0) }
      jobs.append(.endFetch)
    }
    jobs += adoptions()
    jobs += lanes(zones).map { .retryParked($0) }
    if request.scope != .fetchOnly { jobs += sendJobs(zones) }
    run?.next(jobs)
    let outlooks = lanes(zones).map { Job.outlook($0) }
    run?.agenda += outlooks
  }

  private func zonesToFetch(_ zones: [ZoneID]) -> [ZoneID] {
    guard configuration.zones == nil, run?.request.zones == nil, run?.request.resync == false else { return zones }
    return zones.filter { registry.isUnfetched($0) || registry.token($0) == nil }
  }

  func sendJobs(_ zones: [ZoneID]) -> [Job] {
    [.beginSend, .zoneChanges] + lanes(zones).map { .send($0) } + [.endSend, .coverSends]
  }

  // MARK: Starting jobs

  mutating func start(_ job: Job) {
    switch job {
    case .recover:
      pending.recover()
      var delta = pending.takeDelta()
      if registry.rows[StoredKeys.format] == nil { delta[StoredKeys.format] = StoredKeys.formatVersion }
      perform(.recover(delta.merging(stampDelta()) { $1 }), for: job)
    case .survey: perform(.survey, for: job)
    case .revalidate(let category): startRevalidation(category)
    case .adopt(let category): startAdoption(category)
    case .bootstrap(let lane): startBootstrap(lane)
    case .applySealed(let lane):
      guard isActing(lane) else { return }
      perform(.applySealed(lane.zone, category: lane.category), for: job)
    case .gather(let category): perform(.gather(category: category), for: job)
    case .goOnline: checkWaits()
    case .identify: perform(.identify, for: job)
    case .planZones: planZones()
    case .beginFetch:
      run?.isFetchOpen = true
      emit(.willFetchChanges(isManual: run?.request.isManual == true))
    case .endFetch: closeFetch()
    case .beginSend:
      run?.isSendOpen = true
      emit(.willSendChanges(isManual: run?.request.isManual == true))
    case .endSend: closeSend()
    case .coverSends: coverSends()
    case .databaseChanges: perform(.databaseChanges(registry.databaseToken), for: job)
    case .fetch(let zone): startFetch(zone)
    case .settleUndecided(let lane): startSettling(lane)
    case .retryParked(let lane):
      guard isUsable(lane.zone), isActing(lane) else { return }
      perform(.retryParked(lane.zone, category: lane.category, all: false), for: job)
    case .zoneChanges: startZoneChanges()
    case .probe(let lane), .outlook(let lane):
      guard isActing(lane) else { return }
      perform(.outlook(lane.zone, category: lane.category), for: job)
    case .send(let lane): startSend(lane)
    case .lose(let zone, let cause): startLoss(zone, cause)
    case .refill(let zone): startRefill(zone)
    case .answer(let zone, let category, let answer): startAnswer(zone, category, answer)
    case .abandon(let zone): perform(.abandonChanges(zone, confirmDeletion(zone)), for: job)
    }
  }

  func isOpen(_ lane: Lane) -> Bool {
    let traits = configuration.categories[lane.category]
    return traits.zones?.contains(lane.zone) != false && registry.standing(of: traits.name, in: lane.zone) == .open
  }

  /// Whether the zone may be worked on for the rest of the call.
  func isUsable(_ zone: ZoneID) -> Bool { run?.skipped.contains(zone) == false }

  mutating func closeFetch() {
    guard run?.isFetchOpen == true else { return }
    run?.isFetchOpen = false
    emit(.didFetchChanges(isManual: run?.request.isManual == true))
  }

  mutating func closeSend() {
    guard run?.isSendOpen == true else { return }
    run?.isSendOpen = false
    emit(.didSendChanges(isManual: run?.request.isManual == true))
  }

  // MARK: Ending jobs

  mutating func take(_ answer: EngineAnswer, of job: Job) {
    switch job {
    case .fetch(let zone): continueFetch(zone, answer)
    case .bootstrap(let lane): continueFetch(lane.zone, answer)
    case .survey: endSurvey(answer)
    case .send(let lane): continueSend(lane, answer)
    case .settleUndecided(let lane): endSettling(lane, answer)
    case .zoneChanges: endZoneChanges(answer)
    case .lose(let zone, let cause): endLoss(zone, cause, answer)
    case .refill(let zone): endRefill(zone, answer)
    case .answer(let zone, _, _): endAnswer(zone, answer)
    case .abandon: endAbandon(answer)
    case .identify: endIdentify(answer)
    case .databaseChanges: endDatabaseChanges(answer)
    default: endLocal(answer, job)
    }
  }

  private mutating func endLocal(_ answer: EngineAnswer, _ job: Job) {
    if case .storeFailed(let message) = answer {
      storeFailed(message, job.zone)
      return
    }
    switch (job, answer) {
    case (.recover, _):
      hasRecovered = true
      // An open question is repeated at every launch (engine section 12).
      for question in registry.questions(configuration) { emit(.decisionNeeded(question)) }
    case (.applySealed, .flag(true)): run?.next([job])
    case (.gather, .zoneIDs(let zones)): addZones(zones)
    case (.probe(let lane), .outlook(let sendable, _)): endProbe(lane, sendable)
    case (.outlook, .outlook(let sendable, let next)):
      if sendable { run?.somethingSendable = true }
      if let next { noteRetry(next) }
    default: break
    }
  }

  private mutating func endIdentify(_ answer: EngineAnswer) {
    switch answer {
    case .user(let user) where user == configuration.expectedUser: hasIdentified = true
    case .user(let user): abort(.anotherUser(user))
    case .failed(let error): react(to: error, nil)
    default: break
    }
  }

  mutating func noteRetry(_ wall: Int64) {
    let known = run?.result.nextRetry ?? wall
    run?.result.nextRetry = min(known, wall)
  }

  /// Adds zones to those of the call.
  mutating func addZones(_ zones: [ZoneID]) {
    let known = run?.zones ?? []
    run?.zones = known + zones.filter { !known.contains($0) }
  }
}

extension Job {
  var zone: ZoneID? {
    switch self {
    case .applySealed(let lane), .settleUndecided(let lane), .retryParked(let lane), .probe(let lane),
      .send(let lane), .outlook(let lane):
      lane.zone
    case .bootstrap(let lane): lane.zone
    case .fetch(let zone), .lose(let zone, _), .refill(let zone), .answer(let zone, _, _), .abandon(let zone): zone
    case .recover, .survey, .revalidate, .adopt, .gather, .goOnline, .identify, .beginFetch, .databaseChanges,
      .planZones, .endFetch, .beginSend,
      .zoneChanges, .endSend, .coverSends:
      nil
    }
  }
}
