import CairnRecords

/// Several servers on one store: each knows every address, and hears of what the others store. A poll may reach any of
/// them; what one of them has told a client, another may tell it again.
extension CloudServer {
  /// For how long an address is kept that nobody polls, in ms.
  private static let courierLife: Int64 = 2 * 86_400_000
  /// How exactly the store knows when an address was last polled, in ms.
  private static let courierStep: Int64 = 6 * 3_600_000

  /// Begins to hear of what other servers on the store do.
  func startExchange() throws(CloudError) {
    guard let exchange = storage.exchange else { return }
    exchange.start { [weak self] in self?.hear($0) }
    let oldest = clock.now - CloudServer.courierLife
    try write { try $0.removeCouriers(before: oldest) }
    try adoptCouriers()
  }

  private func adoptCouriers() throws(CloudError) {
    for courier in try read({ try $0.couriers() }) { notifications.adopt(courier) }
  }

  private func hear(_ event: NewsEvent) {
    switch event {
    case .gap:
      adoptMissed()
      tellEverybody()
    case .message(let bytes):
      switch NewsMessage(bytes) {
      case .news(let news, let user, let clientID)?:
        notifications.post([news], NotificationHub.App(user, news), from: clientID)
      case .courier(let token)?: adoptMissed(token)
      case .ended(let token)?: notifications.remove(token)
      case nil: break
      }
    }
  }

  private func adoptMissed(_ token: String? = nil) {
    do {
      if let token { try adoptCourier(token) } else { try adoptCouriers() }
    } catch {
      // A poll at that address looks again.
    }
  }

  /// Messages may be missing: each listener here is told of all zones that it may be told of.
  private func tellEverybody() {
    for app in notifications.apps {
      do { notifications.post(try everything(of: app), app, from: nil) } catch {
        // The store is away again; then there is another gap when it is back.
      }
    }
  }

  private func everything(of app: NotificationHub.App) throws(CloudError) -> [CloudNotification] {
    try read { reader in
      guard let caller = try reader.user(key: app.user) else { return [] }
      return try [DatabaseKind.private, .shared].flatMap { kind -> [CloudNotification] in
        let scope = DatabaseScope(container: app.container, environment: app.environment, kind: kind)
        guard let database = try reader.database(caller.key, scope) else { return [] }
        // One that fires once waits for a change that is known.
        let subscriptions = try reader.subscriptions(database.key).filter { !$0.firesOnce }
        guard !subscriptions.isEmpty else { return [] }
        let zones = try reader.zones(database.key, after: -1, limit: .max).filter { !$0.isDeleted }
        return subscriptions.flatMap { subscription in
          zones.filter { subscription.zone == nil || subscription.zone == $0.name }.map { zone in
            CloudNotification(
              container: app.container, environment: app.environment, subscription: subscription.id,
              zone: kind == .shared
                ? ShareView.zoneID(ofRow: zone.name) : ZoneID(name: zone.name, owner: caller.recordName))
          }
        }
      }
    }
  }

  /// Returns whether the store has the address.
  @discardableResult
  private func adoptCourier(_ token: String) throws(CloudError) -> Bool {
    guard let courier = try read({ try $0.courier(token) }) else { return false }
    notifications.adopt(courier)
    return true
  }

  /// Tells who listens, here and at other servers.
  func tell(_ news: [CloudNotification], _ app: NotificationHub.App, from clientID: String?) {
    notifications.post(news, app, from: clientID)
    guard let exchange = storage.exchange else { return }
    for notification in news {
      exchange.tell(NewsMessage.news(notification, user: app.user, clientID: clientID).encoded)
    }
  }

  // MARK: Addresses

  /// Makes an address where the caller is told of changes (tokens/create).
  ///
  /// - Parameter clientID: names the client; it is not told of changes that it made itself.
  public func addCourier(_ caller: Caller, _ scope: DatabaseScope, clientID: String? = nil) throws(CloudError) -> String
  {
    let token = String((randomness.userRecordName() + randomness.userRecordName()).filter { $0 != "_" })
    if let exchange = storage.exchange {
      let courier = StoredCourier(
        token: token, user: caller.key, clientID: clientID,
        apps: [StoredCourier.App(container: scope.container, environment: scope.environment)], used: clock.now)
      try write { try $0.putCourier(courier) }
      exchange.tell(NewsMessage.courier(token).encoded)
    }
    if let ended = notifications.add(token, NotificationHub.App(caller, scope), clientID: clientID),
      let exchange = storage.exchange
    {
      try write { try $0.removeCourier(ended) }
      exchange.tell(NewsMessage.ended(ended).encoded)
    }
    return token
  }

  /// Has an address told of another container (tokens/register).
  public func joinCourier(_ token: String, _ caller: Caller, _ scope: DatabaseScope) throws(CloudError) {
    if storage.exchange != nil, !notifications.knows(token) { try adoptCourier(token) }
    guard notifications.join(token, NotificationHub.App(caller, scope)) else {
      throw CloudError(.badRequest, "The apnsToken is not known: call tokens/create")
    }
    guard let exchange = storage.exchange else { return }
    let app = StoredCourier.App(container: scope.container, environment: scope.environment)
    let now = clock.now
    try write { writer in
      guard var courier = try writer.courier(token), !courier.apps.contains(app) else { return }
      courier.apps.append(app)
      courier.used = now
      try writer.putCourier(courier)
    }
    exchange.tell(NewsMessage.courier(token).encoded)
  }

  /// Asks for the next notification at an address, see ``NotificationHub/poll(_:isAbandoned:_:)``.
  public func poll(
    _ token: String, isAbandoned: @escaping @Sendable () -> Bool = { false },
    _ answer: @escaping @Sendable (PollAnswer) -> Void
  ) -> NotificationHub.Poll? {
    if storage.exchange != nil {
      do {
        // Made at another server a moment ago, or while this one was not told.
        if !notifications.knows(token) { try adoptCourier(token) }
      } catch {
        answer(.busy)
        return nil
      }
      noteUse(token)
    }
    return notifications.poll(token, isAbandoned: isAbandoned, answer)
  }

  private func noteUse(_ token: String) {
    let now = clock.now
    let isDue = memory.withLock { memory in
      if let last = memory.courierUse[token], now < last + CloudServer.courierStep { return false }
      // Addresses come and go: what is forgotten is noted once more.
      if memory.courierUse.count > 10_000 { memory.courierUse = [:] }
      memory.courierUse[token] = now
      return true
    }
    guard isDue else { return }
    storage.submit(
      { writer in
        guard var courier = try writer.courier(token) else { return {} }
        courier.used = now
        try writer.putCourier(courier)
        return {}
      },
      failed: { _ in
        // The address ends earlier than it might.
      })
  }
}
