import CairnRecords

/// Categories that are off, have missed something, or have changes of nobody (engine C9–C11 and section 11).
extension SyncStateMachine {
  // MARK: What a category may do

  func status(_ lane: Lane) -> BootstrapStatus {
    let traits = configuration.categories[lane.category]
    return registry.bootstrapStatus(of: traits.name, traits.bootstrap, in: lane.zone)
  }

  /// Whether the category may apply and send in the zone. One that may not still stages what comes.
  func isActing(_ lane: Lane) -> Bool {
    isOpen(lane) && run?.disabled.contains(lane.category) != true && status(lane) != .notActivated
  }

  /// Categories that take part in the zone's fetch without applying anything.
  func stagingOnly(_ zone: ZoneID) -> Set<Int> {
    Set(openCategories(zone).filter { !isActing(Lane(zone: zone, category: $0)) })
  }

  func needsBootstrap(_ lane: Lane) -> Bool {
    run?.disabled.contains(lane.category) != true && status(lane) != .current
  }

  // MARK: Survey

  /// Who came, and who was away while another session moved the tokens; a copy of the file on another device.
  func stampDelta() -> StateDelta {
    let stamp = SessionStamp(device: configuration.device, categories: configuration.categories.map(\.name))
    guard registry.rows[StoredKeys.stamp] != stamp.text else { return [:] }
    var delta: StateDelta = [StoredKeys.stamp: stamp.text]
    guard let last = SessionStamp(registry.rows[StoredKeys.stamp]) else { return delta }
    let isOtherDevice = configuration.device != nil && last.device != stamp.device
    for traits in configuration.categories {
      let wasAway = !last.categories.contains(traits.name)
      if traits.bootstrap == .own {
        if wasAway || isOtherDevice { delta.merge(registry.raisedNeed(traits.name)) { $1 } }
      } else if wasAway {
        for zone in registry.knownZones where traits.zones?.contains(zone) != false && registry.token(zone) != nil {
          delta[StoredKeys.bootstrap(zone, traits.name, .missed)] = "1"
        }
      }
    }
    return delta
  }

  /// What a call begins with: sealed sets are applied without network; a category that is on again checks its outbox.
  mutating func endSurvey(_ answer: EngineAnswer) {
    if case .storeFailed(let message) = answer {
      storeFailed(message, nil)
      return
    }
    guard let request = run?.request, case .survey(let enabled, _) = answer else { return }
    note(enabled)
    var delta: StateDelta = [:]
    for index in run?.disabled.sorted() ?? [] {
      let key = StoredKeys.off(configuration.categories[index].name)
      if registry.rows[key] == nil { delta[key] = SessionStamp.library }
    }
    commit(delta)
    var jobs: [Job] = lanes(knownZones(request)).map { .applySealed($0) }
    jobs += configuration.categories.indices.filter { isBackOn($0) }.map { .revalidate($0) }
    jobs += configuration.categories.indices.map { .gather($0) }
    run?.next(jobs)
  }

  private mutating func note(_ enabled: [Bool]) {
    run?.disabled = Set(configuration.categories.indices.filter { $0 < enabled.count && !enabled[$0] })
  }

  /// A category may be switched while a call runs: each fetch of a zone looks again.
  mutating func noteEnabled(_ enabled: [Bool], _ fetch: inout ZoneFetch) {
    note(enabled)
    // A complete bootstrap activates: what it has sealed may be applied.
    fetch.staging = fetch.bootstrap == nil ? stagingOnly(fetch.zone) : run?.disabled ?? []
  }

  private func isBackOn(_ category: Int) -> Bool {
    run?.disabled.contains(category) == false && registry.wasOff(configuration.categories[category].name)
  }

  mutating func startRevalidation(_ category: Int) {
    let traits = configuration.categories[category]
    let key = StoredKeys.off(traits.name)
    var delta: StateDelta = [key: nil as String?]
    // Another library may have run meanwhile without staging everything (accounts A46).
    if registry.rows[key] != SessionStamp.library { delta.merge(registry.raisedNeed(traits.name)) { $1 } }
    let zones = traits.zones ?? registry.knownZones
    perform(.revalidate(zones, category: category, delta), for: .revalidate(category))
  }

  // MARK: Bootstrap

  mutating func startBootstrap(_ lane: Lane) {
    guard isUsable(lane.zone), isOpen(lane), needsBootstrap(lane), !pending.waitsForDeletion(lane.zone),
      waits.remaining(StoredKeys.zone(lane.zone, .hold), now) == nil
    else { return }
    begin(
      ZoneFetch(
        zone: lane.zone, categories: [lane.category], configuration: configuration, isResync: false,
        bootstrap: lane.category), for: .bootstrap(lane))
  }

  mutating func endBootstrap(_ lane: Lane, _ fetch: ZoneFetch, _ end: ZoneFetch.End) {
    let zone = lane.zone
    run?.fetch = nil
    func did(_ error: SyncFailure?) -> Event { .didFetchRecordZoneChanges(zone, error: error, isSnapshot: true) }
    switch end {
    case .complete, .missing: emit(did(nil))
    case .gone, .historyLost:
      // The engine's own fetch, which follows, finds the same and asks.
      emit(did(.cloud(CloudError(.zoneNotFound, "the zone \(zone) does not exist any more"))))
    case .failed(let error):
      emit(did(.cloud(error)))
      if ErrorReactions.request(error) == .refused {
        // The other categories of the zone go on.
        emit(.diagnostic(.cloud(error), zone))
        fail(.cloud(error))
      } else {
        react(to: error, zone)
      }
    case .storeFailed(let message):
      emit(did(.store(message)))
      commit(needs(ofOwnBootstrap: fetch.stagers))
      storeFailed(message, zone)
    }
  }

  /// Records could not be staged. The token has not moved, so they come again; a category with bootstraps of its own
  /// gets another one all the same (accounts A37).
  func needs(ofOwnBootstrap categories: [Int]) -> StateDelta {
    var delta: StateDelta = [:]
    for traits in categories.map({ configuration.categories[$0] }) where traits.bootstrap == .own {
      delta.merge(registry.raisedNeed(traits.name)) { $1 }
    }
    return delta
  }

  // MARK: Changes made without an identity

  func adoptions() -> [Job] {
    guard configuration.expectedUser != nil else { return [] }
    return configuration.categories.indices.filter { index in
      let traits = configuration.categories[index]
      return traits.asksToAdopt && registry.rows[StoredKeys.adopt(traits.name)] != nil
    }.map { .adopt($0) }
  }

  /// Not before every zone of the category was bootstrapped: what is adopted meets what is there.
  mutating func startAdoption(_ category: Int) {
    guard let user = configuration.expectedUser, run?.disabled.contains(category) == false else { return }
    let traits = configuration.categories[category]
    let zones = traits.zones ?? run?.zones ?? []
    guard
      zones.allSatisfy({ zone in
        status(Lane(zone: zone, category: category)) == .current && run?.fetched.contains(zone) == true
      })
    else { return }
    let delta: StateDelta = [StoredKeys.adopt(traits.name): nil as String?]
    perform(.adopt(category: category, user: user, delta), for: .adopt(category))
  }
}
