import CairnRecords

/// The end of a call.
extension SyncStateMachine {
  mutating func finish() {
    guard let run else { return }
    closeSend()
    closeFetch()
    var result = run.result
    result.handedOver = run.excluded.values.reduce(0) { $0 + $1.count }
    let failed = result.failure != nil
    if !failed && registry.backoff != nil && !run.isAborted { commit([StoredKeys.backoff: nil as String?]) }
    if !failed && registry.quota != nil && !run.savesWait && run.request.scope != .fetchOnly && !run.isAborted {
      // Saves were tried, or there are none any more, and none met the quota.
      waits.clear(StoredKeys.quota)
      commit([StoredKeys.quota: nil as String?])
      emit(.resumed(.quota))
    }
    result.questions = registry.questions(configuration)
    let isWholeScope = run.request.scope == .all && run.request.zones == nil
    result.endedQuiet =
      !failed && !run.isAborted && !run.somethingSendable && result.nextRetry == nil && result.handedOver == 0
      && result.questions.isEmpty && pending.zones.isEmpty
    if result.endedQuiet && isWholeScope { noteGoodSync(isManual: run.request.isManual) }
    result.condition = registry.condition(configuration, now: now.wall)
    if result.condition == .ready, let reason = pauseReason(run) { result.condition = .paused(reason) }
    if let until = registry.quota?.until { result.nextRetry = min(result.nextRetry ?? until, until) }
    self.run = nil
    effects.append(.finish(result))
  }

  /// Polling must not write to the file every second: scheduled calls are noted once a minute.
  private mutating func noteGoodSync(isManual: Bool) {
    if !isManual, let last = registry.lastSync, (0..<60_000).contains(now.wall - last) { return }
    commit([StoredKeys.lastSync: String(now.wall)])
  }

  /// Why entries of this call wait, as far as that makes the engine's state (tables section 7).
  private func pauseReason(_ run: Run) -> PauseReason? {
    switch run.result.failure {
    case .store: return .internal
    case .anotherUser: return .account
    case .cloud(let error) where ErrorReactions.request(error) == .refused:
      return error.code == .accessDenied ? .permission : .internal
    default: break
    }
    let reasons = Set(run.excluded.values.flatMap { $0.values })
    if reasons.contains(.permission) { return .permission }
    if !reasons.isDisjoint(with: [.rejected, .tooLarge, .internal]) { return .internal }
    return nil
  }
}

extension ZoneRegistry {
  /// Open questions, by zone, then in the order of the categories.
  public func questions(_ configuration: EngineConfiguration) -> [ZoneQuestion] {
    (configuration.zones ?? knownZones).flatMap { zone in
      configuration.categories.compactMap { traits in
        guard case .asked(let cause) = standing(of: traits.name, in: zone) else { return nil }
        return ZoneQuestion(zone: zone, category: traits.name, cause: cause)
      }
    }
  }

  /// The state of the engine as it is stored: for a status without a running engine. `now` is the wall clock in ms.
  public func condition(_ configuration: EngineConfiguration, now: Int64) -> EngineCondition {
    let zones = configuration.zones ?? knownZones
    if !questions(configuration).isEmpty { return .decision }
    if isSignedOut { return .signedOut }
    let isKept = zones.contains { zone in
      configuration.categories.contains { standing(of: $0.name, in: zone) == .keptLocal }
    }
    if isKept { return .paused(.zoneGone) }
    if (databaseHold ?? 0) > now || zones.contains(where: { (hold($0) ?? 0) > now }) { return .paused(.throttled) }
    if quota != nil { return .paused(.quota) }
    if let backoff { return backoff.isNetwork ? .offline : .paused(.internal) }
    return .ready
  }

  /// The earliest time, ms since 1970, at which a stored wait is over.
  public var nextRetry: Int64? {
    let waits = [databaseHold, backoff?.until, quota?.until] + knownZones.map { hold($0) }
    return waits.compactMap { $0 }.min()
  }
}
