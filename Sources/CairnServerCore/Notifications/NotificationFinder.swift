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
  private(set) var found: [CloudNotification] = []

  /// Nil where nobody listens.
  init?(
    _ server: CloudServer, _ caller: Caller, _ scope: DatabaseScope, _ database: StoredDatabase,
    _ reader: any StorageReader
  ) throws {
    guard server.notifications.hasListener(NotificationHub.App(caller, scope)) else { return nil }
    self.server = server
    self.caller = caller
    self.scope = scope
    self.database = database
    subscriptions = try reader.subscriptions(database.key)
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
    found.append(
      CloudNotification(
        container: scope.container, environment: scope.environment, subscription: subscription.id,
        zone: zone,
        change: change.map { CloudNotification.Change(record: $0.row.name, event: $0.event) }))
    guard subscription.firesOnce else { return }
    _ = try writer.removeSubscription(database.key, id: subscription.id)
    subscriptions.removeAll { $0.id == subscription.id }
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
