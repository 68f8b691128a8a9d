import CairnRecords

/// A records/query request.
public struct QueryRun: Sendable {
  public var query: RecordQuery
  /// Where to look; nil for all zones (`zoneWide`).
  public var zone: ZoneID?
  public var resultsLimit: Int?
  /// Goes on where an earlier page ended; nil or empty begins.
  public var marker: String?
  /// Names of the fields that answers carry; nil for all.
  public var desiredKeys: [String]?
  /// Whether the answer carries the zone's token (`getCurrentSyncToken`).
  public var wantsToken = false

  public init(_ query: RecordQuery, in zone: ZoneID?) {
    self.query = query
    self.zone = zone
  }
}

/// A page of a query's answer.
public struct QueryPage: Sendable {
  public var records: [Record]
  /// Nil when this is the last page.
  public var marker: String?
  public var token: ChangeToken?
}

extension CloudServer {
  /// One page of the records that a query takes (web-services section 9).
  ///
  /// There are no indexes of fields: an unsorted query walks records by name and stops when the page is full, a sorted
  /// one looks at every record of the zone for each page.
  public func query(
    _ caller: Caller, _ scope: DatabaseScope, _ request: QueryRun, _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> QueryPage {
    let (database, caller) = try open(caller, scope)
    return try read { reader in
      let zones: [StoredZone]
      if let id = request.zone {
        zones = [try zone(id, caller, database, reader)]
      } else {
        zones = try self.zones(database, reader).compactMap { try shown($0, caller, reader) }
          .sorted { $0.rowName.comparedBytes(to: $1.rowName) < 0 }
      }
      let schema = try schema(scope, reader)
      let query = request.query.asked(by: caller)
      let plan = try QueryPlan(query, schema)
      let fingerprint = QueryMarker.fingerprint(
        query, zone: request.zone == nil ? nil : zones.first?.rowName, incarnation: database.incarnation)
      var start: QueryPlace?
      if let marker = request.marker, !marker.isEmpty {
        start = try QueryMarker(marker, fingerprint: fingerprint, plan).place
      }
      let walk = QueryWalk(
        server: self, caller: caller, reader: reader, zones: zones, plan: plan, types: schema.yielded,
        desiredKeys: request.desiredKeys, limit: pageLimit(request.resultsLimit, options))
      let (records, end) = try plan.orders.isEmpty ? walk.byName(after: start) : walk.inOrder(after: start)
      return QueryPage(
        records: records, marker: end.map { QueryMarker(fingerprint: fingerprint, place: $0).text },
        token: request.wantsToken && request.zone != nil ? zones.first.map(caughtUp) : nil)
    }
  }
}

/// Looks through zones for the records of one page.
private struct QueryWalk {
  let server: CloudServer
  let caller: Caller
  let reader: any StorageReader
  /// By name.
  let zones: [StoredZone]
  let plan: QueryPlan
  let types: YieldedTypes
  let desiredKeys: [String]?
  let limit: Int

  typealias Result = (records: [Record], end: QueryPlace?)

  /// Zone after zone, record after record; `end` is where the next page goes on.
  func byName(after start: QueryPlace?) throws -> Result {
    var records: [Record] = []
    var end = QueryPlace(zone: "", name: "")
    var isCutOff = false
    var rowsLeft = server.settings.rowsPerScan
    var bytesLeft = server.settings.bytesPerPage
    for zone in zones {
      var first = ""
      if let start {
        let order = zone.rowName.comparedBytes(to: start.zone)
        if order < 0 { continue }
        if order == 0 { first = start.name }
      }
      try reader.scanNames(zone.key, type: plan.recordType, after: first) { row in
        guard rowsLeft > 0 else {
          isCutOff = true
          return false
        }
        rowsLeft -= 1
        if try plan.isMet(by: values(row, zone)), try zone.shows(row.name, reader) {
          guard records.count < limit, bytesLeft > 0 else {
            isCutOff = true
            return false
          }
          bytesLeft -= row.fields.count + 200
          records.append(try record(row, zone))
        }
        end = QueryPlace(zone: zone.rowName, name: row.name)
        return true
      }
      if isCutOff { break }
    }
    return (records, isCutOff ? end : nil)
  }

  func inOrder(after start: QueryPlace?) throws -> Result {
    var first = FirstPlaces(plan, limit: limit + 1, after: start)
    for zone in zones {
      try reader.scanNames(zone.key, type: plan.recordType, after: "") { row in
        let values = try values(row, zone)
        if try plan.isMet(by: values), try zone.shows(row.name, reader) {
          first.offer(QueryPlace(zone: zone.rowName, name: row.name, values: try plan.sortValues(values)))
        }
        return true
      }
    }
    let places = first.finish()
    var bytesLeft = server.settings.bytesPerPage
    var records: [Record] = []
    for place in places.prefix(limit) {
      guard bytesLeft > 0 else { break }
      guard let zone = zones.first(where: { $0.rowName == place.zone }),
        let row = try reader.record(zone.key, named: place.name)
      else { throw CloudError(.internalError, "A record was lost inside one snapshot") }
      bytesLeft -= row.fields.count + 200
      records.append(try record(row, zone))
    }
    return (records, records.count < places.count ? places[records.count - 1] : nil)
  }

  private func values(_ row: StoredRecord, _ zone: StoredZone) throws -> QueryValues {
    var fields = try FieldBlob.decode(row.fields, keys: plan.fieldNames)
    if !types.isEmpty { fields.adapt(types[row.type]) }
    return QueryValues(zone: zone.name, row: row, fields: fields) { key in
      try server.userName(key, caller, reader)
    }
  }

  private func record(_ row: StoredRecord, _ zone: StoredZone) throws -> Record {
    let caller = caller.acting(in: zone)
    return try server.record(
      row, in: zone.id(for: caller), of: zone, keys: desiredKeys, types, caller, reader)
  }
}
