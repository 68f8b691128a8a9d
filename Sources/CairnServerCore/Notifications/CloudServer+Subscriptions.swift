import CairnRecords

extension CloudServer {
  /// All subscriptions of a database, by name (subscriptions/list).
  public func subscriptions(_ caller: Caller, _ scope: DatabaseScope) throws(CloudError) -> [Subscription] {
    let (database, caller) = try open(caller, scope, toWrite: true)
    return try read { reader in
      CloudServer.own(try reader.subscriptions(database.key), caller).map { CloudServer.subscription($0, caller) }
    }
  }

  /// One result per name (subscriptions/lookup).
  public func lookupSubscriptions(
    _ caller: Caller, _ scope: DatabaseScope, _ ids: [String], _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<Subscription, CloudError>] {
    try checkCount(ids.count, options)
    let all = try subscriptions(caller, scope)
    return ids.map { id in
      all.first { $0.id == id }.map { .success($0) } ?? .failure(CloudServer.noSubscription)
    }
  }

  /// One result per operation, in order, each on its own (subscriptions/modify); nil for a delete.
  public func modifySubscriptions(
    _ caller: Caller, _ scope: DatabaseScope, _ operations: [SubscriptionOperation],
    _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<Subscription?, CloudError>] {
    try checkCount(operations.count, options)
    let (database, caller) = try open(caller, scope, toWrite: true)
    return try write(in: database.key) { [self] writer in
      try operations.map { operation in
        do {
          switch operation {
          case .create(let subscription):
            return .success(try put(subscription, isNew: true, caller, scope, database, writer))
          case .update(let subscription):
            return .success(try put(subscription, isNew: false, caller, scope, database, writer))
          case .delete(let id):
            let row = CloudServer.rowID(id, caller)
            guard try writer.removeSubscription(database.key, id: row) else { throw CloudServer.noSubscription }
            return .success(nil)
          case .failed(_, let error): throw error
          }
        } catch let error as CloudError {
          return .failure(error)
        }
      }
    }
  }

  /// Those of the caller: only the public database has others.
  private static func own(_ rows: [StoredSubscription], _ caller: Caller) -> [StoredSubscription] {
    guard caller.isInPublic else { return rows }
    return rows.compactMap { row in
      guard let shared = PublicSubscription(row: row.id), shared.user == caller.key else { return nil }
      var row = row
      row.id = shared.id
      return row
    }
  }

  private static func rowID(_ id: String, _ caller: Caller) -> String {
    caller.isInPublic ? PublicSubscription(user: caller.key, id: id).row : id
  }

  private static let noSubscription = CloudError(.notFound, "Subscription not found")

  private func put(
    _ subscription: Subscription, isNew: Bool, _ caller: Caller, _ scope: DatabaseScope, _ database: StoredDatabase,
    _ writer: any StorageWriter
  ) throws -> Subscription {
    var subscription = subscription
    if isNew, subscription.id.isEmpty { subscription.id = randomness.recordName() }
    let id = subscription.id.utf8
    guard (1...255).contains(id.count), id.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
      throw CloudError(.badRequest, "A subscriptionID has 1 to 255 bytes and no control characters")
    }
    let present = CloudServer.own(try writer.subscriptions(database.key), caller)
    let isTaken = present.contains { $0.id == subscription.id }
    if isNew, isTaken { throw CloudError(.exists, "Subscription '\(subscription.id)' exists") }
    if !isNew, !isTaken { throw CloudServer.noSubscription }
    guard isTaken || present.count < settings.subscriptionsPerDatabase else {
      throw CloudError(.badRequest, "A database may have \(settings.subscriptionsPerDatabase) subscriptions")
    }
    guard subscription.content.count <= settings.bytesPerSubscription else {
      throw CloudError(.badRequest, "A subscription may have \(settings.bytesPerSubscription) bytes")
    }
    let zone = try subscription.zone.map { try self.zone($0, caller, database, writer) }
    if let query = subscription.query?.asked(by: caller) {
      subscription.query = query
      _ = try QueryPlan(query, try schema(scope, writer))
    }
    var row = StoredSubscription(
      id: CloudServer.rowID(subscription.id, caller), kind: subscription.kind, zone: zone?.rowName,
      query: subscription.query?.encoded, events: subscription.firesOn.reduce(0) { $0 | 1 << Int64($1.rawValue) },
      firesOnce: subscription.firesOnce, content: subscription.content)
    try writer.putSubscription(database.key, row)
    row.id = subscription.id
    return CloudServer.subscription(row, caller)
  }

  private static func subscription(_ row: StoredSubscription, _ caller: Caller) -> Subscription {
    Subscription(
      id: row.id, kind: row.kind,
      zone: row.zone.map {
        caller.isInShared ? ShareView.zoneID(ofRow: $0) : ZoneID(name: $0, owner: caller.zoneOwner)
      },
      query: row.query.flatMap { RecordQuery(encodedFilters: $0) },
      firesOn: Set(Subscription.Event.allCases.filter { row.events & 1 << Int64($0.rawValue) != 0 }),
      firesOnce: row.firesOnce, content: row.content)
  }
}
