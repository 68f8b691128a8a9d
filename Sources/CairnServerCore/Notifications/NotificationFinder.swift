import CairnRecords

/// Finds what subscriptions say of the changes of one write job (web-services section 11).
///
/// It runs only while a client of the user has an address to be told at: what nobody hears fires nothing.
struct NotificationFinder {
  /// One record that was stored or deleted.
  struct Change {
    var event: Subscription.Event
    /// The stored row; of a deleted record the one that it had.
    var row: StoredRecord
  }

  let server: CloudServer
  let caller: Caller
  let scope: DatabaseScope
  let database: StoredDatabase
  private var subscriptions: [StoredSubscription]
  /// What the users are told, by their keys, in the order in which it happened.
  private var found: [(user: Int64, notification: CloudNotification)] = []

  /// Nil where nobody listens.
  init?(
    _ server: CloudServer, _ caller: Caller, _ scope: DatabaseScope, _ database: StoredDatabase,
    _ reader: any StorageReader
  ) throws {
    var listeners: Set<Int64> = []
    if scope.kind == .public {
      listeners = server.notifications.listeners(scope.container, scope.environment)
      guard !listeners.isEmpty else { return nil }
    } else {
      guard server.notifications.hasListener(NotificationHub.App(caller, scope)) else { return nil }
    }
    self.server = server
    self.caller = caller
    self.scope = scope
    self.database = database
    subscriptions = try reader.subscriptions(database.key)
    if scope.kind == .public {
      subscriptions.removeAll { row in PublicSubscription(row: row.id).map { !listeners.contains($0.user) } ?? true }
    }
    if subscriptions.isEmpty { return nil }
  }

  /// A zone came or went.
  mutating func zoneChanged(_ zone: ZoneID, _ writer: any StorageWriter) throws {
    for subscription in subscriptions where subscription.kind == .database {
      try fire(subscription, zone, nil, writer)
    }
  }

  /// A zone has something new, be it that `changes` or only what can be seen of it.
  mutating func zoneHasNews(
    _ zone: StoredZone, _ changes: [Change], _ schema: SchemaMemory?, _ writer: any StorageWriter
  ) throws {
    for subscription in subscriptions where subscription.zone == nil || subscription.zone == zone.rowName {
      switch subscription.kind {
      case .zone, .database: try fire(subscription, zone.id(for: caller), nil, writer)
      case .query: if let schema { try query(subscription, zone, changes, schema, writer) }
      }
    }
  }

  mutating func recordsChanged(
    in zone: StoredZone, _ changes: [Change], _ schema: SchemaMemory, _ writer: any StorageWriter
  ) throws {
    guard !changes.isEmpty else { return }
    try zoneHasNews(zone, changes, schema, writer)
  }

  private mutating func query(
    _ subscription: StoredSubscription, _ zone: StoredZone, _ changes: [Change], _ schema: SchemaMemory,
    _ writer: any StorageWriter
  ) throws {
    guard let stored = subscription.query, let query = RecordQuery(encodedFilters: stored) else { return }
    let plan: QueryPlan
    // A field's type may have changed since the subscription was made: then it fires no more.
    do { plan = try QueryPlan(query, schema) } catch { return }
    for change in changes
    where change.row.type == plan.recordType && subscription.events & 1 << Int64(change.event.rawValue) != 0 {
      var fields = try FieldBlob.decode(change.row.fields, keys: plan.fieldNames)
      fields.adapt(schema.yielded[change.row.type])
      let values = QueryValues(zone: zone.name, row: change.row, fields: fields) { [server, caller] key in
        try server.userName(key, caller, writer)
      }
      guard try plan.isMet(by: values) else { continue }
      try fire(subscription, zone.id(for: caller), change, writer)
      if subscription.firesOnce { return }
    }
  }

  private mutating func fire(
    _ subscription: StoredSubscription, _ zone: ZoneID, _ change: Change?, _ writer: any StorageWriter
  ) throws {
    let shared = scope.kind == .public ? PublicSubscription(row: subscription.id) : nil
    let notification = CloudNotification(
      container: scope.container, environment: scope.environment, subscription: shared?.id ?? subscription.id,
      zone: zone, change: change.map { CloudNotification.Change(record: $0.row.name, event: $0.event) })
    found.append((shared?.user ?? caller.key, notification))
    guard subscription.firesOnce else { return }
    _ = try writer.removeSubscription(database.key, id: subscription.id)
    subscriptions.removeAll { $0.id == subscription.id }
  }

  /// What was found, for each user.
  ///
  /// - Parameter clientID: the caller's client, which is not told.
  func news(from clientID: String? = nil) -> [News] {
    var users: [Int64] = []
    for (user, _) in found where !users.contains(user) { users.append(user) }
    return users.map { user in
      News(
        app: NotificationHub.App(user, scope), notifications: found.filter { $0.user == user }.map { $0.notification },
        clientID: user == caller.key ? clientID : nil)
    }
  }
}

extension ZoneModification {
  /// What ``store(_:)`` stored.
  var changes: [NotificationFinder.Change] {
    steps.compactMap { step in
      if step.isSave, let after = step.after {
        return NotificationFinder.Change(event: step.live == nil ? .create : .update, row: after)
      }
      guard step.isDelete, let live = step.live else { return nil }
      return NotificationFinder.Change(event: .delete, row: live)
    } + cascade.map { NotificationFinder.Change(event: .delete, row: $0) }
  }
}
