import CairnRecords

/// Fetching: the database's feed, then zone by zone (engine section 7).
extension SyncStateMachine {
  // MARK: The database

  mutating func endDatabaseChanges(_ answer: EngineAnswer) {
    switch answer {
    case .databasePage(let page): take(page)
    case .failed(let error):
      // A token that is refused is dropped: the next answer lists every zone there is.
      if registry.databaseToken != nil && ErrorReactions.tokenIsBad(error) {
        commit([StoredKeys.databaseToken: nil as String?])
        run?.next([.databaseChanges])
      } else {
        react(to: error, nil)
      }
    default: break
    }
  }

  private mutating func take(_ page: DatabasePage) {
    if page.moreComing && page.token == registry.databaseToken {
      react(to: CloudError(.undecodableAnswer, "the database's change feed does not move"), nil)
      return
    }
    var delta: StateDelta = [:]
    if page.token != registry.databaseToken { delta[StoredKeys.databaseToken] = page.token.rawValue }
    for zone in page.changed where !registry.isUnfetched(zone) { delta[StoredKeys.zone(zone, .unfetched)] = "1" }
    // A deletion is remembered as something to fetch: the fetch finds out, and asks, also after a crash.
    let lost = page.deleted.filter { registry.isConfirmed($0) && !page.changed.contains($0) }
    for zone in lost { delta[StoredKeys.zone(zone, .unfetched)] = "1" }
    commit(delta)
    emit(.fetchedDatabaseChanges(modifications: page.changed, deletions: page.deleted))
    addZones((page.changed + lost).sorted())
    if page.moreComing { run?.next([.databaseChanges]) }
  }

  mutating func note(hint zones: [ZoneID]) {
    guard configuration.zones == nil else { return }
    var delta: StateDelta = [:]
    for zone in zones where !registry.isUnfetched(zone) { delta[StoredKeys.zone(zone, .unfetched)] = "1" }
    commit(delta)
  }

  // MARK: A zone

  mutating func startFetch(_ zone: ZoneID) {
    let categories = openCategories(zone)
    guard isUsable(zone), !categories.isEmpty, !pending.waitsForDeletion(zone) else { return }
    if let wait = waits.remaining(StoredKeys.zone(zone, .hold), now) {
      skip(zone, .rateLimited(until: now.wall + wait))
      return
    }
    let isResync = run?.request.resync == true && run?.fetched.contains(zone) == false
    begin(
      ZoneFetch(
        zone: zone, categories: categories, configuration: configuration, isResync: isResync,
        staging: stagingOnly(zone)), for: .fetch(zone))
  }

  mutating func begin(_ fetch: ZoneFetch, for job: Job) {
    run?.fetch = fetch
    emit(.willFetchRecordZoneChanges(fetch.zone))
    perform(fetch.firstTask, for: job)
  }

  mutating func continueFetch(_ zone: ZoneID, _ answer: EngineAnswer) {
    guard var fetch = run?.fetch else { return }
    if case .staging(_, let enabled) = answer { noteEnabled(enabled, &fetch) }
    let wasStoring = fetch.isStoring
    let step = fetch.step(answer, registry, now)
    run?.fetch = fetch
    if wasStoring, case .done = answer { noteStored(fetch) }
    if run?.isCancelled == true, case .task(let task) = step, task.needsServer {
      endFetch(zone, .failed(CloudError(.cancelled, "the call was cancelled")))
      return
    }
    follow(step, zone)
  }

  private mutating func follow(_ step: ZoneFetch.Step, _ zone: ZoneID) {
    switch step {
    case .task(let task): perform(task, for: run?.fetch?.job ?? .fetch(zone))
    case .done(let end): endFetch(zone, end)
    }
  }

  private mutating func noteStored(_ fetch: ZoneFetch) {
    let records = fetch.storedParts.reduce(0) { $0 + $1.records }
    let deletions = fetch.storedParts.reduce(0) { $0 + $1.deletions }
    let unclaimed = fetch.storedUnclaimed
    run?.result.received += records
    run?.result.receivedDeletions += deletions
    run?.result.unclaimed += unclaimed
    guard records + deletions + unclaimed > 0 else { return }
    emit(.fetchedRecordZoneChanges(fetch.zone, records: records, deletions: deletions, unclaimed: unclaimed))
  }

  private mutating func endFetch(_ zone: ZoneID, _ end: ZoneFetch.End) {
    if let fetch = run?.fetch, let category = fetch.bootstrap {
      endBootstrap(Lane(zone: zone, category: category), fetch, end)
      return
    }
    let isSnapshot = run?.fetch?.isSnapshot == true
    let stagers = run?.fetch?.stagers ?? []
    run?.fetch = nil
    func did(_ error: SyncFailure?) -> Event {
      .didFetchRecordZoneChanges(zone, error: error, isSnapshot: isSnapshot)
    }
    switch end {
    case .complete:
      run?.fetched.insert(zone)
      fetchedSinceStart.insert(zone)
      run?.uncovered.remove(zone)
      run?.missing.remove(zone)
      emit(did(nil))
    case .missing:
      run?.fetched.insert(zone)
      fetchedSinceStart.insert(zone)
      run?.missing.insert(zone)
      if registry.isUnfetched(zone) { commit([StoredKeys.zone(zone, .unfetched): nil as String?]) }
      emit(did(nil))
    case .gone:
      emit(did(.cloud(CloudError(.zoneNotFound, "the zone \(zone) does not exist any more"))))
      run?.next([.lose(zone, .deleted)])
    case .historyLost(let cause):
      emit(did(.cloud(CloudError(.changeTokenExpired, "the server has lost the history of the zone \(zone)"))))
      run?.next([.lose(zone, cause)])
    case .failed(let error):
      emit(did(.cloud(error)))
      react(to: error, zone)
    case .storeFailed(let message):
      emit(did(.store(message)))
      commit(needs(ofOwnBootstrap: stagers))
      storeFailed(message, zone)
    }
  }
}
