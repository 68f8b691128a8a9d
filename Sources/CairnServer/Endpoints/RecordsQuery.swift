import CairnRecords
import CairnServerCore
import CairnWire

extension Endpoint {
  /// Web-services section 9.
  static let recordsQuery = Endpoint("records/query", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(QueryRequest.self)
    var run = QueryRun(try recordQuery(request.query), in: request.zoneWide ? nil : request.zone ?? .defaultZone)
    run.resultsLimit = request.resultsLimit
    run.marker = request.continuationMarker
    run.desiredKeys = request.desiredKeys
    run.wantsToken = request.getCurrentSyncToken || call.wantsToken
    let page = try call.server.query(call.caller, call.scope, run, call.features.options)
    let style = call.style(numbersAsStrings: request.numbersAsStrings)
    return call.response(page.records.count * 400 + 256) { writer in
      writer.beginRecords()
      for record in page.records { writer.record(record, style) }
      writer.endQuery(continuationMarker: page.marker, syncToken: page.token)
    }
  }

  /// A query in the core's words.
  static func recordQuery(_ wire: WireQuery) throws(CloudError) -> RecordQuery {
    guard !wire.recordType.isEmpty else { throw CloudError(.badRequest, "A query needs a recordType") }
    var query = RecordQuery(recordType: wire.recordType)
    for filter in wire.filters { query.filters.append(try queryFilter(filter)) }
    for sort in wire.sort {
      query.sort.append(
        QuerySort(
          try queryKey(sort.fieldName, sort.systemFieldName), ascending: sort.ascending,
          relativeLocation: sort.relativeLocation))
    }
    return query
  }

  private static func queryFilter(_ wire: WireQuery.Filter) throws(CloudError) -> QueryFilter {
    guard let (comparator, isNegated) = QueryFilter.comparator(named: wire.comparator) else {
      throw CloudError(.badRequest, "Unknown comparator '\(wire.comparator)'")
    }
    let key = try queryKey(wire.fieldName, wire.systemFieldName)
    switch wire.value {
    case .typed(let value):
      return QueryFilter(comparator, isNegated: isNegated, key, value, distance: wire.distance)
    case .untyped(let untyped):
      guard let value = inferred(untyped) else { throw CloudError(.badRequest, "A fieldValue has no known type") }
      return QueryFilter(comparator, isNegated: isNegated, key, value, isTyped: false, distance: wire.distance)
    case nil: throw CloudError(.badRequest, "\(wire.comparator) needs a fieldValue")
    }
  }

  private static func queryKey(_ field: String?, _ system: String?) throws(CloudError) -> QueryKey {
    if let system {
      guard let known = SystemField(rawValue: system) else {
        throw CloudError(.badRequest, "Unknown systemFieldName '\(system)'")
      }
      return .system(known)
    }
    guard let field, !field.isEmpty else {
      throw CloudError(.badRequest, "A filter or an order needs a fieldName or a systemFieldName")
    }
    return QueryKey(fieldName: field)
  }
}
