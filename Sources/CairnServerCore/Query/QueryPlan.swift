import CairnRecords

/// A query that has been checked against the schema: which records it takes and in which order.
struct QueryPlan: Sendable {
  let recordType: String
  let conditions: [QueryCondition]
  let orders: [QuerySort]
  /// The fields that conditions and orders look at.
  let fieldNames: [String]
  /// Text is ordered by so many bytes, so that a marker stays short; then by record name (section 9).
  static let orderedBytes = 256
  static let mostFilters = 100
  static let mostOrders = 8

  init(_ query: RecordQuery, _ schema: SchemaMemory) throws(CloudError) {
    guard !query.recordType.isEmpty else { throw CloudError(.badRequest, "A query needs a recordType") }
    guard query.filters.count <= Self.mostFilters, query.sort.count <= Self.mostOrders else {
      throw CloudError(
        .badRequest, "A query may have \(Self.mostFilters) filters and \(Self.mostOrders) orders")
    }
    recordType = query.recordType
    func kind(_ key: QueryKey) -> SchemaMemory.Kind? {
      switch key {
      case .field(let name): schema.kind(of: name, in: query.recordType)
      case .system(let field): field.kind
      }
    }
    var conditions: [QueryCondition] = []
    for filter in query.filters { conditions.append(try QueryCondition(filter, known: kind(filter.key))) }
    for order in query.sort { try Self.check(order, kind(order.key)) }
    self.conditions = conditions
    orders = query.sort
    var names: [String] = []
    for key in query.filters.map(\.key) + query.sort.map(\.key) {
      if case .field(let name) = key, !names.contains(name) { names.append(name) }
    }
    fieldNames = names
  }

  private static func check(_ order: QuerySort, _ kind: SchemaMemory.Kind?) throws(CloudError) {
    guard let kind else { return }
    let fits = order.relativeLocation == nil ? kind.hasOrder : kind == .init(.location)
    guard fits else {
      throw CloudError(
        .badRequest,
        kind == .init(.location)
          ? "A location is sorted by relativeLocation" : "A field of type \(kind.name) cannot be sorted so")
    }
  }

  func isMet(by values: QueryValues) throws -> Bool {
    for condition in conditions {
      guard condition.isMet(by: try values[condition.key], zone: values.zone) else { return false }
    }
    return true
  }

  /// What the record is ordered by; nil where it has no such value.
  func sortValues(_ values: QueryValues) throws -> [FieldValue?] {
    try orders.map { order in
      guard let value = try values[order.key] else { return nil }
      switch (value, order.relativeLocation) {
      case (.location(let own), let place?): return .double(own.distance(to: place))
      case (_, _?): return nil
      case (.string(let text), nil) where text.utf8.count > Self.orderedBytes:
        // Bytes that break a character become a mark of their own, alike each time.
        return .string(String(decoding: text.utf8.prefix(Self.orderedBytes), as: UTF8.self))
      default: return value
      }
    }
  }

  /// Whether a place comes before another. A record without a value comes first, or last where the order descends.
  func precedes(_ a: QueryPlace, _ b: QueryPlace) -> Bool {
    for (i, order) in orders.enumerated() {
      let result: Int
      switch (a.values[i], b.values[i]) {
      case (nil, nil): continue
      case (nil, _): result = -1
      case (_, nil): result = 1
      case (let x?, let y?): result = x.compared(to: y) ?? 0
      }
      if result != 0 { return (result < 0) == order.ascending }
    }
    if a.name != b.name { return a.name.comparedBytes(to: b.name) < 0 }
    return a.zone.comparedBytes(to: b.zone) < 0
  }
}

/// Where a record stands in the answer to a query.
struct QueryPlace: Sendable {
  var zone: String
  var name: String
  /// One per order.
  var values: [FieldValue?] = []
}

/// What conditions and orders see of one record.
struct QueryValues {
  let zone: String
  let row: StoredRecord
  let fields: Fields
  let userName: (Int64) throws -> String?

  subscript(key: QueryKey) -> FieldValue? {
    get throws {
      switch key {
      case .field(let name): fields[name]
      case .system(.recordName): .string(row.name)
      case .system(.createdTimestamp): .timestamp(Double(row.created))
      case .system(.modifiedTimestamp): .timestamp(Double(row.modified))
      case .system(.createdUserRecordName): try userName(row.createdBy).map { .string($0) }
      case .system(.modifiedUserRecordName): try userName(row.modifiedBy).map { .string($0) }
      }
    }
  }
}

/// Keeps the first places of a query's order, whatever order they come in.
struct FirstPlaces {
  private let plan: QueryPlan
  private let limit: Int
  private let start: QueryPlace?
  private var kept: [QueryPlace] = []
  /// The last of the first `limit` places, once there are so many.
  private var bound: QueryPlace?

  init(_ plan: QueryPlan, limit: Int, after start: QueryPlace?) {
    self.plan = plan
    self.limit = limit
    self.start = start
  }

  mutating func offer(_ place: QueryPlace) {
    if let start, !plan.precedes(start, place) { return }
    if let bound, !plan.precedes(place, bound) { return }
    kept.append(place)
    if kept.count >= 2 * limit + 16 { trim() }
  }

  private mutating func trim() {
    kept.sort(by: plan.precedes)
    guard kept.count >= limit else { return }
    kept.removeSubrange(limit...)
    bound = kept.last
  }

  mutating func finish() -> [QueryPlace] {
    trim()
    return kept
  }
}
