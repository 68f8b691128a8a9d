import CairnRecords

extension CloudServer {
  /// One result per name, in order (records/lookup).
  public func lookup(
    _ caller: Caller, _ scope: DatabaseScope, in id: ZoneID, _ items: [LookupItem], desiredKeys: [String]? = nil,
    wantsToken: Bool = false, _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> LookupOutcome {
    try checkCount(items.count, options)
    let (database, caller) = try open(caller, scope)
    return try read { reader in
      let zone: StoredZone
      do { zone = try self.zone(id, caller, database, reader) } catch let error as CloudError {
        return LookupOutcome(records: items.map { _ in .failure(error) }, token: nil)
      }
      let types = try schema(scope, reader).yielded
      let caller = caller.acting(in: zone)
      let answerID = zone.id(for: caller)
      try reader.prefetch(zone.key, named: items.map(\.name), referrersOf: [])
      let records = try items.map { item -> Result<Record, CloudError> in
        guard let row = try reader.record(zone.key, named: item.name), row.isLive, try zone.shows(row.name, reader)
        else {
          return .failure(CloudError(.notFound, "Record not found"))
        }
        return .success(
          try record(
            row, in: answerID, of: zone, keys: item.desiredKeys ?? desiredKeys, types, caller, reader))
      }
      return LookupOutcome(records: records, token: wantsToken ? caughtUp(zone) : nil)
    }
  }

  /// Stores what the operations say and waits until that is durable (records/modify).
  public func modify(
    _ caller: Caller, _ scope: DatabaseScope, _ request: Modification, _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> ModificationOutcome {
    let outcome = Awaited<Result<ModificationOutcome, CloudError>>()
    modify(caller, scope, request, options) { outcome.set($0) }
    return try outcome.wait().get()
  }

  /// Queues the operations; `completion` is called on the storage's thread once the outcome is durable, or on the
  /// caller's when the request is refused.
  public func modify(
    _ caller: Caller, _ scope: DatabaseScope, _ request: Modification, _ options: RequestOptions,
    completion: @escaping @Sendable (Result<ModificationOutcome, CloudError>) -> Void
  ) {
    let opened: (StoredDatabase, Caller)
    do {
      try checkCount(request.operations.count, options)
      opened = try open(caller, scope, toWrite: true)
    } catch {
      return completion(.failure(error))
    }
    let (database, caller) = opened
    let home: Int64
    do { home = try positions(request, caller, database) } catch { return completion(.failure(error)) }
    storage.submit(
      in: home,
      { [self] writer in
        let answer = try perform(request, caller, scope, database, options, writer)
        return { [self] in
          tell(answer.notifications)
          completion(.success(answer))
          pruneIfDue()
        }
      },
      failed: { [self] error in
        // What the job learned about types may be undone with it.
        memory.withLock { $0.schemas.removeAll() }
        completion(.failure(CloudServer.cloudError(error)))
      })
  }

  /// Runs inside a write job.
  private func perform(
    _ request: Modification, _ caller: Caller, _ scope: DatabaseScope, _ database: StoredDatabase,
    _ options: RequestOptions, _ writer: any StorageWriter
  ) throws -> ModificationOutcome {
    let now = clock.now
    var schema = try schema(scope, writer)
    var outcomes = [OperationOutcome?](repeating: nil, count: request.operations.count)
    var position = try request.positionZone.flatMap { try feedPosition($0, caller, database, writer) }
    var finder = try NotificationFinder(self, caller, scope, database, writer)
    var others: [News] = []
    for (zoneID, indices) in CloudServer.groups(request.operations) {
      let zone: StoredZone
      do { zone = try self.zone(zoneID, caller, database, writer) } catch let error as CloudError {
        for i in indices { outcomes[i] = .failed(request.operations[i].operation.record.id, error) }
        continue
      }
      var work = ZoneModification(
        server: self, zone: zone, caller: caller.acting(in: zone), database: database, now: now,
        isAtomic: request.atomic && zone.name != CloudServer.defaultZoneName)
      try work.plan(indices.map { ($0, request.operations[$0]) }, &schema, writer)
      try work.store(writer)
      position?.note(work)
      try finder?.recordsChanged(in: zone, work.changes, schema, writer)
      others += try news(of: work, schema, writer)
      try work.answer(&outcomes, request.desiredKeys, options, schema.yielded, writer)
    }
    for field in schema.takeChanges() { try writer.setSchemaField(scope.container, scope.environment, field) }
    // What a job of a shared store has learned is not known to be stored before its commit.
    if !storage.isShared { memory.withLock { $0.schemas[SchemaKey(scope)] = (0, schema) } }
    var answer = ModificationOutcome(outcomes: outcomes.compactMap { $0 })
    answer.notifications = others
    answer.notifications += finder?.news(from: request.clientID) ?? []
    if let id = request.tokenZone {
      // A missing zone has failed its operations already; there is no token to add then.
      do { answer.token = caughtUp(try zone(id, caller, database, writer)) } catch let error as CloudError
        where error.code == .zoneNotFound
      {}
    }
    answer.position = position.map { FeedStep(before: caughtUp($0.start), after: caughtUp($0.end)) }
    return answer
  }

  /// What the others are told with whom a zone is shared.
  private func news(
    of work: ZoneModification, _ schema: SchemaMemory, _ writer: any StorageWriter
  ) throws -> [News] {
    guard !work.sharedNews.isEmpty || work.zone.view != nil, let place = try writer.place(ofZone: work.zone.key),
      let owner = try writer.user(key: place.user)
    else { return [] }
    return try news(
      work.sharedNews, in: work.zone, of: owner, place, work.changes, except: work.caller, schema, writer)
  }

  /// The database that gives the positions of a request: its own, or in the shared database that of the first zone's
  /// owner.
  private func positions(
    _ request: Modification, _ caller: Caller, _ database: StoredDatabase
  ) throws(CloudError) -> Int64 {
    guard caller.isInShared, let id = request.operations.first?.operation.record.id.zone else { return database.key }
    return try read { reader in
      do { return try zone(id, caller, database, reader).view?.database ?? database.key } catch let error as CloudError
        where error.code == .zoneNotFound
      { return database.key }
    }
  }

  /// Nil for a zone that does not exist or has no feed. Write jobs run one after the other, so nobody else's change
  /// comes between this and what the job stores.
  private func feedPosition(
    _ id: ZoneID, _ caller: Caller, _ database: StoredDatabase, _ reader: any StorageReader
  ) throws -> OwnFeedPosition? {
    guard id.name != CloudServer.defaultZoneName || settings.defaultZoneHasFeed else { return nil }
    do { return OwnFeedPosition(try zone(id, caller, database, reader)) } catch is CloudError { return nil }
  }

  /// The operations of each zone, in their order, by index.
  private static func groups(_ operations: [IncomingOperation]) -> [(ZoneID, [Int])] {
    guard let first = operations.first?.operation.record.id.zone else { return [] }
    if operations.allSatisfy({ $0.operation.record.id.zone == first }) { return [(first, Array(operations.indices))] }
    var order: [ZoneID] = []
    var indices: [ZoneID: [Int]] = [:]
    for (i, operation) in operations.enumerated() {
      let zone = operation.operation.record.id.zone
      if indices[zone] == nil { order.append(zone) }
      indices[zone, default: []].append(i)
    }
    return order.map { ($0, indices[$0] ?? []) }
  }

  /// Only a write job may keep what it read: a reader's snapshot may be older.
  func schema(_ scope: DatabaseScope, _ reader: any StorageReader) throws -> SchemaMemory {
    let key = SchemaKey(scope)
    let version = try reader.schemaVersion(key.container, key.environment)
    if let known = memory.withLock({ $0.schemas[key] }), known.version == version { return known.schema }
    let schema = SchemaMemory(
      try reader.schema(key.container, key.environment),
      isLocked: settings.lockedEnvironments.contains(key.environment))
    // A version stands for one content, so it does not matter how old the reader's snapshot is.
    if version > 0 { memory.withLock { $0.schemas[key] = (version, schema) } }
    return schema
  }

  // MARK: Retention

  /// Removes old tombstones, a bounded number at a time (web-services section 8, Retention).
  private func pruneIfDue() {
    let now = clock.now
    let interval = settings.pruningInterval
    let isDue = memory.withLock { memory in
      guard memory.lastPruning == .min || now >= memory.lastPruning + interval || now < memory.lastPruning else {
        return false
      }
      memory.lastPruning = now
      return true
    }
    guard isDue else { return }
    // In jobs of their own: they are about other databases too. What fails is tried again when it is due again.
    storage.submit(
      { [weak self] writer in
        let gone = try self?.forgetUnusedAssets(now, writer) ?? []
        return { [weak self] in self?.removeBytes(of: gone) }
      }, failed: { _ in })
    storage.submit(
      { [weak self] writer in
        guard let self else { return {} }
        let isMore = try writer.pruneTombstones(before: now - settings.tombstoneRetention, limit: 10_000)
        return { [weak self] in if isMore { self?.memory.withLock { $0.lastPruning = .min } } }
      }, failed: { _ in })
  }

  /// Removes the tombstones that are older than the retention, as every so often a write does.
  public func pruneTombstones() throws(CloudError) {
    let before = clock.now - settings.tombstoneRetention
    while try write({ try $0.pruneTombstones(before: before, limit: 10_000) }) {}
  }
}

/// Follows a zone's feed while a request is stored, as far as the request names what changes.
private struct OwnFeedPosition {
  let start: StoredZone
  private(set) var end: StoredZone
  private var isPassed = false

  init(_ zone: StoredZone) {
    start = zone
    end = zone
  }

  /// Records that went with their target are news to the client: its token stays before them.
  mutating func note(_ work: ZoneModification) {
    guard work.zone.key == start.key, !isPassed else { return }
    if let position = work.lastOwnPosition { end.position = position }
    isPassed = !work.cascade.isEmpty || work.hasRenewed
  }
}
