import CairnRecords
import CairnServerCore
import CairnWire

/// Web-services section 8.
extension Endpoint {
  static let changesZone = Endpoint("changes/zone", [.private, .shared]) { (call) throws(CloudError) in
    let request = try call.request(ZoneChangesRequest.self)
    let results = try call.server.changes(
      call.caller, call.scope, request.zones.map(feedQuery), call.features.options)
    let style = call.style(numbersAsStrings: request.numbersAsStrings)
    return call.response(64 << 10) { writer in
      writer.beginZones()
      for (query, result) in zip(request.zones, results) {
        switch result {
        case .success(let page):
          writer.beginZonePage(page.zone, style)
          writer.entries(page, style)
          writer.endZonePage(token: page.token, moreComing: page.moreComing)
        case .failure(let error): writer.failedZone(call.answered(query.zone), call.spelled(error), style)
        }
      }
      writer.endZones()
    }
  }

  static let recordsChanges = Endpoint("records/changes", [.private, .shared]) { (call) throws(CloudError) in
    var request = try call.request(ZoneChangesRequest.self)
    if request.zones.isEmpty { request.zones = [ZoneChangesQuery(zone: .defaultZone)] }
    guard request.zones.count == 1, let query = request.zones.first else {
      throw CloudError(.badRequest, "records/changes is about one zone")
    }
    let results = try call.server.changes(call.caller, call.scope, [feedQuery(query)], call.features.options)
    guard let result = results.first else { throw CloudError(.internalError, "No page") }
    let page: FeedPage
    do throws(CloudError) { page = try result.get() } catch { throw call.spelled(error) }
    let style = call.style(numbersAsStrings: request.numbersAsStrings)
    return call.response(64 << 10) { writer in
      writer.beginRecords()
      writer.entries(page, style)
      writer.endZonePage(token: page.token, moreComing: page.moreComing)
    }
  }

  static let changesDatabase = Endpoint("changes/database", [.private, .shared]) { (call) throws(CloudError) in
    try databaseChanges(call, asZonesChanges: false)
  }

  static let zonesChanges = Endpoint("zones/changes", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    try databaseChanges(call, asZonesChanges: true)
  }

  private static func feedQuery(_ query: ZoneChangesQuery) -> ZoneFeedQuery {
    var feed = ZoneFeedQuery(zone: query.zone, token: query.syncToken.map { ChangeToken($0) })
    feed.resultsLimit = query.resultsLimit
    feed.desiredKeys = query.desiredKeys
    feed.desiredTypes = query.desiredRecordTypes
    feed.reverse = query.reverse ?? false
    return feed
  }

  private static func databaseChanges(_ call: EndpointCall, asZonesChanges: Bool) throws(CloudError) -> HTTPResponse {
    let request = try call.request(DatabaseChangesRequest.self)
    let page: ZoneFeedPage
    do throws(CloudError) {
      page = try call.server.databaseChanges(
        call.caller, call.scope, since: request.syncToken.map { ChangeToken($0) },
        resultsLimit: request.resultsLimit, call.features.options)
    } catch { throw call.spelled(error) }
    var tokens: [ZoneID: ChangeToken] = [:]
    if call.features.zoneToken { for zone in page.zones { tokens[zone.id] = zone.token } }
    let changes = DatabasePage(
      changed: page.zones.filter { !$0.isDeleted }.map(\.id), deleted: page.zones.filter(\.isDeleted).map(\.id),
      token: page.token, moreComing: page.moreComing)
    return call.response { writer in
      DatabaseChangesAnswer.encode(
        changes, style: call.style(), zoneTokens: tokens, asZonesChanges: asZonesChanges, into: &writer)
    }
  }
}

extension JSONWriter {
  /// Writes a page's records and tombstones, in the order of the feed.
  fileprivate mutating func entries(_ page: FeedPage, _ style: WireStyle) {
    for entry in page.entries {
      switch entry {
      case .record(let record): self.record(record, style)
      case .tombstone(let end):
        tombstone(
          RecordDeletion(id: end.id, type: end.type, time: end.modified.timestamp), changeTag: end.changeTag,
          modified: end.modified, style)
      }
    }
  }
}
