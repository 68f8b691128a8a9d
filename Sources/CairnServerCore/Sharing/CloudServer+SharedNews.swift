import CairnRecords

/// What the clients of one user are told.
struct News: Sendable {
  var app: NotificationHub.App
  var notifications: [CloudNotification]
  /// The client that made the change, by the name that it chose: it is not told.
  var clientID: String?
}

extension CloudServer {
  func tell(_ all: [News]) { for news in all { tell(news.notifications, news.app, from: news.clientID) } }

  /// What a change in a shared zone is to all whom it concerns: the owner, and everybody who has accepted a share that
  /// it touches.
  ///
  /// - Parameters:
  ///   - users: by user, the records of which their shared database has news.
  ///   - changes: the records that were stored or deleted; only queries look at them.
  ///   - caller: who made the change and is told otherwise; nil tells everybody.
  func news(
    _ users: [Int64: Set<String>], in zone: StoredZone, of owner: Caller, _ place: StoredZonePlace,
    _ changes: [NotificationFinder.Change], except caller: Caller?, _ schema: SchemaMemory?, _ writer: any StorageWriter
  ) throws -> [News] {
    var found: [News] = []
    var zone = zone
    if owner.key != caller?.key {
      zone.view = nil
      if var finder = try NotificationFinder(self, owner, place.scope, place.database, writer) {
        try finder.zoneHasNews(zone, changes, schema, writer)
        found += finder.news()
      }
    }
    zone.view = ShareView(
      owner: Caller.Owner(key: owner.key, recordName: owner.recordName), database: place.database.key,
      rowName: ShareView.rowName(owner: owner.recordName, zone: zone.name), parts: [])
    let scope = place.scope.of(.shared)
    for (key, names) in users.sorted(by: { $0.key < $1.key }) where key != caller?.key {
      let user = Caller(key: key, name: "", recordName: "")
      guard notifications.hasListener(NotificationHub.App(user, scope)), let user = try writer.user(key: key),
        let database = try writer.database(key, scope),
        var finder = try NotificationFinder(self, user, scope, database, writer)
      else { continue }
      try finder.zoneHasNews(zone, changes.filter { names.contains($0.row.name) }, schema, writer)
      found += finder.news()
    }
    return found
  }
}
