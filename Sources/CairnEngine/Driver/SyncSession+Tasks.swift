import CairnRecords

/// Carries out the machine's tasks.
extension SyncSession {
  func perform(_ task: EngineTask) -> EngineAnswer {
    do {
      try checkGeneration()
      if case .retryParked(let zone, let index, let all) = task { try supplyWaiting(zone, index, all: all) }
      guard task.needsServer else { return try retrying { try local(task) } }
      let answer =
        if case .modify(let zone, let operations, let atomic) = task {
          try modify(zone, operations, atomic)
        } else {
          try request(task)
        }
      try supplyAssets(task, answer)
      // Checked after every wait: an answer to the identity of before is never used under another (engine C11).
      try checkGeneration()
      return answer
    } catch is Replaced {
      return .storeFailed(Replaced.text)
    } catch let error as CloudError where task.needsServer {
      return .failed(error)
    } catch {
      return .storeFailed("\(error)")
    }
  }

  // MARK: The server

  private func request(_ task: EngineTask) throws(CloudError) -> EngineAnswer {
    switch task {
    case .identify: return .user(try cloud.currentUser())
    case .databaseChanges(let token): return .databasePage(try cloud.databaseChanges(since: token))
    case .fetchPage(let zone, let token, let active):
      let page = PageAtHand(try cloud.zoneChanges(in: zone, since: token), categories: categories, active: active)
      self.page = page
      return .page(page.outline)
    case .sweep(let zone, let names, let category): return try sweep(zone, names, category)
    case .lookup(let zone, let names): return .records(try cloud.lookup(in: zone, names: names))
    case .zoneExists(let zone): return .flag(try cloud.zoneExists(zone))
    case .createZones(let zones): return .zones(try cloud.createZones(zones))
    case .deleteZones(let zones): return .zones(try cloud.deleteZones(zones))
    default: return .storeFailed("\(task) needs no server")
    }
  }

  /// Looks up what a snapshot did not show: what is not found is gone, what is found is delivered, anything else proves
  /// nothing (engine section 8).
  private func sweep(_ zone: ZoneID, _ names: [String], _ category: Int) throws(CloudError) -> EngineAnswer {
    var page = ZonePage(zone: zone, records: [], deletions: [], token: ChangeToken(""), moreComing: true)
    let limit = max(1, cloud.limits.entriesPerRequest)
    var rest = names[...]
    while !rest.isEmpty {
      let chunk = Array(rest.prefix(limit))
      rest = rest.dropFirst(limit)
      for (name, result) in zip(chunk, try cloud.lookup(in: zone, names: chunk)) {
        switch result {
        case .success(let record): page.records.append(record)
        case .failure(let error) where error.code == .notFound:
          page.deletions.append(RecordDeletion(id: RecordID(name: name, zone: zone)))
        case .failure: continue
        }
      }
    }
    self.page = PageAtHand(swept: page, category: category)
    return .found(records: page.records.count, deletions: page.deletions.count)
  }

  // MARK: The store and the categories

  private func local(_ task: EngineTask) throws -> EngineAnswer {
    let now = time.wallClock
    switch task {
    case .recover(let delta):
      return try storing(delta) {
        for category in categories {
          try category.begin(as: configuration.expectedUser)
          try category.recoverInFlight()
        }
      }
    case .survey: return .survey(try categories.map { try $0.isEnabled() }, try sharedRows())
    case .revalidate(let zones, let index, let delta):
      return try storing(delta) { for zone in zones { try categories[index].revalidateOutbox(in: zone, now: now) } }
    case .adopt(let index, let user, let delta): return try adopt(categories[index], user, delta, now)
    case .gather(let index):
      try categories[index].gatherLocalChanges(now: now)
      return configuration.zones == nil ? .zoneIDs(try categories[index].zonesWithChanges()) : .done
    case .applySealed(let zone, let index):
      guard try categories[index].isEnabled() else { return .flag(false) }
      return .flag(try categories[index].applySealed(in: zone, now: now))
    case .inspectStaging(let zone):
      return .staging(
        unsealed: try categories.map { try $0.hasUnsealedRecords(in: zone) },
        enabled: try categories.map { try $0.isEnabled() })
    case .beginSnapshot(let zone, let active, let delta):
      return try storing(delta) { for index in active { try categories[index].beginSnapshot(of: zone) } }
    case .storePage(let zone, let plan, let delta): return try storePage(zone, plan, delta, now)
    case .unseen(let zone, let index, let after, let limit):
      return .ids(try categories[index].unseen(in: zone, after: after, limit: limit))
    case .retryParked(let zone, let index, let all):
      try categories[index].retryParked(in: zone, all: all, now: now)
      return .done
    case .takeBatch(let zone, let index, let request):
      return .batch(try categories[index].isEnabled() ? try categories[index].nextBatch(in: zone, request) : nil)
    case .settle(let index, let batch, let results, let delta):
      return try storing(delta) {
        if !batch.entries.isEmpty { try categories[index].settle(batch, results, now: now) }
      }
    case .loseZone(let zone, let losses, let delta):
      return try storing(delta) {
        for loss in losses { try categories[loss.category].zoneLost(zone, loss.loss, now: now) }
      }
    case .answerLoss(let zone, let answers, let delta):
      return try storing(delta) {
        for answer in answers { try categories[answer.category].answerZoneLoss(zone, answer.answer, now: now) }
      }
    case .abandonChanges(let zone, let delta):
      var count = 0
      _ = try storing(delta) {
        count = 0
        for category in categories where category.zones?.contains(zone) != false {
          count += try category.abandonChanges(in: zone, now: now)
        }
      }
      return .count(count)
    case .outlook(let zone, let index):
      return .outlook(
        sendable: try categories[index].hasSendableChanges(in: zone, now: now),
        next: try categories[index].nextAttempt(in: zone))
    default: return .storeFailed("\(task) needs the server")
    }
  }

  private func storePage(_ zone: ZoneID, _ plan: PagePlan, _ delta: StateDelta, _ now: Int64) throws -> EngineAnswer {
    let parts = page?.parts ?? [:]
    let answer = try storing(delta) {
      for index in plan.apply { if let part = parts[index] { try categories[index].apply(part, now: now) } }
      for index in plan.stage { if let part = parts[index] { try categories[index].stage(part, now: now) } }
      for index in plan.seal { try categories[index].seal(zone) }
      if let index = plan.bootstrapped { try categories[index].bootstrapCompleted(in: zone, now: now) }
    }
    page = nil
    return answer
  }

  private func adopt(
    _ category: any RecordCategory, _ user: String, _ delta: StateDelta, _ now: Int64
  ) throws -> EngineAnswer {
    try store.transaction {
      let choice = try category.adoption(by: user)
      if choice == .undecided { return .flag(false) }
      if choice == .adopt { try category.adoptLocalChanges(by: user, now: now) }
      try writeRows(delta)
      try checkGeneration()
      return .flag(true)
    }
  }

  /// The rows of all identities, as far as this session's categories are concerned.
  private func sharedRows() throws -> StateDelta {
    var rows: StateDelta = [:]
    for category in categories {
      let key = StoredKeys.epoch(category.name)
      rows[key] = try store.readState(Self.sharedKey(key))
    }
    return rows
  }

  /// Runs `body` and stores rows in one transaction.
  private func storing(_ delta: StateDelta, _ body: () throws -> Void) throws -> EngineAnswer {
    try store.transaction {
      try body()
      try writeRows(delta)
      try checkGeneration()
    }
    return .done
  }
}
