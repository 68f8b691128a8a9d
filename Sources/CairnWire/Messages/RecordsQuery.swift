import CairnRecords

/// A query as it stands in records/query and in subscriptions (web-services section 9).
public struct WireQuery: Hashable, Sendable {
  /// A value to compare with; without a type the schema types it.
  public enum Operand: Hashable, Sendable {
    case typed(FieldValue)
    case untyped(UntypedValue)
  }

  public struct Filter: Hashable, Sendable {
    public var comparator = ""
    public var fieldName: String?
    public var systemFieldName: String?
    /// Nil where it is null or missing.
    public var value: Operand?
    /// Metres.
    public var distance: Double?
  }

  public struct Sort: Hashable, Sendable {
    public var fieldName: String?
    public var systemFieldName: String?
    public var ascending = true
    public var relativeLocation: Location?
  }

  public var recordType = ""
  public var filters: [Filter] = []
  public var sort: [Sort] = []

  public init() {}
}

extension JSONReader {
  /// Reads `{"recordType":…,"filterBy":[…],"sortBy":[…]}`; null means none.
  mutating func readQuery() throws(WireError) -> WireQuery? {
    if try readNull() { return nil }
    var query = WireQuery()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "recordType": query.recordType = try readOptionalString() ?? ""
      case "filterBy":
        if try readNull() { break }
        query.filters = []
        try beginArray()
        while try nextElement() { query.filters.append(try readFilter()) }
      case "sortBy":
        if try readNull() { break }
        query.sort = []
        try beginArray()
        while try nextElement() { query.sort.append(try readSort()) }
      default: try skip()
      }
    }
    return query
  }

  private mutating func readFilter() throws(WireError) -> WireQuery.Filter {
    var filter = WireQuery.Filter()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "comparator": filter.comparator = try readString()
      case "fieldName": filter.fieldName = try readOptionalString()
      case "systemFieldName": filter.systemFieldName = try readOptionalString()
      case "distance": filter.distance = try readNull() ? nil : readDouble()
      case "fieldValue":
        switch try readField() {
        case .null: filter.value = nil
        case .typed(let value): filter.value = .typed(value)
        case .untyped(let value): filter.value = .untyped(value)
        case .mismatched(let problem): throw problem
        }
      default: try skip()
      }
    }
    return filter
  }

  private mutating func readSort() throws(WireError) -> WireQuery.Sort {
    var sort = WireQuery.Sort()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "fieldName": sort.fieldName = try readOptionalString()
      case "systemFieldName": sort.systemFieldName = try readOptionalString()
      case "ascending": sort.ascending = try readNull() ? true : readBool()
      case "relativeLocation":
        if try readNull() { break }
        // Bare, or as a field.
        let json = try readValue()
        guard case .location(let place)? = UntypedValue(json: json["value"] ?? json).value(as: FieldKind(.location))
        else { throw error(.value, "relativeLocation needs latitude and longitude") }
        sort.relativeLocation = place
      default: try skip()
      }
    }
    return sort
  }
}

/// The body of records/query.
public struct QueryRequest: WireRequest, RecordsRequest, Hashable, Sendable {
  public var query = WireQuery()
  public var zone: ZoneID?
  public var zoneWide = false
  public var resultsLimit: Int?
  public var continuationMarker: String?
  public var desiredKeys: [String]?
  public var numbersAsStrings = false
  public var getCurrentSyncToken = false

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "query": query = try reader.readQuery() ?? WireQuery()
    case "zoneWide": zoneWide = try reader.readFlag()
    case "resultsLimit": resultsLimit = try reader.readCount()
    case "continuationMarker": continuationMarker = try reader.readToken()
    default: try readCommon(key, &reader)
    }
  }
}

extension JSONWriter {
  /// Closes the answer to records/query that ``beginRecords()`` opened. Without a marker the query is finished.
  public mutating func endQuery(continuationMarker: String?, syncToken: ChangeToken?) {
    endArray()
    if let continuationMarker { pair("continuationMarker", continuationMarker) }
    if let syncToken { pair("syncToken", syncToken.rawValue) }
    endObject()
  }
}
