import CairnRecords

/// What a client wants of one zone's feed.
public struct ZoneChangesQuery: Hashable, Sendable {
  public var zone: ZoneID
  /// Nil where absent or empty (section 8).
  public var syncToken: String?
  public var resultsLimit: Int?
  public var desiredKeys: [String]?
  public var desiredRecordTypes: [String]?
  public var reverse: Bool?

  public init(zone: ZoneID, syncToken: String? = nil, resultsLimit: Int? = nil) {
    self.zone = zone
    self.syncToken = syncToken
    self.resultsLimit = resultsLimit
  }
}

/// The body of changes/zone, and of records/changes, which is one entry at top level.
public struct ZoneChangesRequest: WireRequest, Hashable, Sendable {
  /// One per zone; what the top level says is filled in where an entry is silent.
  public var zones: [ZoneChangesQuery] = []
  public var numbersAsStrings = false

  private var defaults = ZoneChangesQuery(zone: .defaultZone)
  private var topZone: ZoneID?

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "zones":
      if try reader.readNull() { return }
      zones.removeAll()
      try reader.beginArray()
      while try reader.nextElement() {
        var query = ZoneChangesQuery(zone: .defaultZone)
        try reader.beginObject()
        while let key = try reader.nextKey() {
          if case "zoneID" = key {
            query.zone = try reader.readZoneID() ?? .defaultZone
          } else {
            try readCommon(key, &reader, &query)
          }
        }
        zones.append(query)
      }
    case "zoneID": topZone = try reader.readZoneID()
    default:
      var query = defaults
      try readCommon(key, &reader, &query)
      defaults = query
    }
  }

  private mutating func readCommon(
    _ key: JSONKey, _ reader: inout JSONReader, _ query: inout ZoneChangesQuery
  ) throws(WireError) {
    switch key {
    case "syncToken": query.syncToken = try reader.readToken()
    case "resultsLimit": query.resultsLimit = try reader.readCount()
    case "desiredKeys": query.desiredKeys = try reader.readStrings()
    case "desiredRecordTypes": query.desiredRecordTypes = try reader.readStrings()
    case "reverse": query.reverse = try reader.readNull() ? nil : reader.readBool()
    case "numbersAsStrings", "numberAsStrings": if try reader.readFlag() { numbersAsStrings = true }
    default: try reader.skip()
    }
  }

  public mutating func finish() throws(WireError) {
    if zones.isEmpty, let topZone { zones = [ZoneChangesQuery(zone: topZone)] }
    for i in zones.indices {
      zones[i].syncToken = zones[i].syncToken ?? defaults.syncToken
      zones[i].resultsLimit = zones[i].resultsLimit ?? defaults.resultsLimit
      zones[i].desiredKeys = zones[i].desiredKeys ?? defaults.desiredKeys
      zones[i].desiredRecordTypes = zones[i].desiredRecordTypes ?? defaults.desiredRecordTypes
      zones[i].reverse = zones[i].reverse ?? defaults.reverse
    }
  }

  public static func encode(_ queries: [ZoneChangesQuery], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.pair("numbersAsStrings", true)
    writer.key("zones")
    writer.beginArray()
    for query in queries {
      writer.beginObject()
      writer.key("zoneID")
      writer.zoneID(query.zone)
      if let token = query.syncToken { writer.pair("syncToken", token) }
      if let limit = query.resultsLimit { writer.pair("resultsLimit", Int64(limit)) }
      if let keys = query.desiredKeys { writer.pair("desiredKeys", keys) }
      if let types = query.desiredRecordTypes { writer.pair("desiredRecordTypes", types) }
      if let reverse = query.reverse { writer.pair("reverse", reverse) }
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

extension JSONWriter {
  /// Opens `{"zones":[`, of changes/zone and of the zone calls.
  public mutating func beginZones() {
    beginObject()
    key("zones")
    beginArray()
  }

  /// Closes what ``beginZones()`` opened, for answers without more keys.
  public mutating func endZones() {
    endArray()
    endObject()
  }

  /// Opens the page of one zone; write records and tombstones, then ``endZonePage(token:moreComing:)``.
  public mutating func beginZonePage(_ zone: ZoneID, _ style: WireStyle) {
    beginObject()
    key("zoneID")
    answeredZoneID(zone, style)
    key("records")
    beginArray()
  }

  /// Closes a page. Also ends an answer to records/changes that ``beginRecords()`` opened.
  public mutating func endZonePage(token: ChangeToken, moreComing: Bool) {
    endArray()
    pair("syncToken", token.rawValue)
    pair("moreComing", moreComing)
    endObject()
  }

  /// Writes a zone's failure as an entry of `zones[]`.
  public mutating func failedZone(_ zone: ZoneID, _ error: CloudError, _ style: WireStyle) {
    beginObject()
    key("zoneID")
    answeredZoneID(zone, style)
    // Under strictKeys too: pyicloud reads uuid and retryAfter of zone entries before it validates (section 14).
    var errorStyle = style
    errorStyle.strictKeys = false
    errorKeys(error, errorStyle)
    endObject()
  }
}

/// The answer to changes/zone.
public enum ZoneChangesAnswer {
  /// Reads an answer that was asked for one zone. The zone's failure is thrown out as `.failure`.
  ///
  /// - Parameter trustsDeletionTimes: whether `tombstone-time` was requested; elsewhere a tombstone's `modified` is
  ///   not the time of the delete.
  public static func decode(
    _ body: [UInt8], zone: ZoneID, trustsDeletionTimes: Bool
  ) throws(WireError) -> Result<ZonePage, CloudError> {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var result: Result<ZonePage, CloudError>?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        guard case "zones" = key else {
          try reader.skip()
          continue
        }
        try reader.beginArray()
        while try reader.nextElement() {
          guard result == nil else { throw reader.error(.value, "more zones than were asked for") }
          result = try page(&reader, zone, trustsDeletionTimes)
        }
      }
      guard let result else { throw reader.error(.value, "the answer holds no zone") }
      return result
    }
  }

  private static func page(
    _ reader: inout JSONReader, _ zone: ZoneID, _ trustsDeletionTimes: Bool
  ) throws(WireError) -> Result<ZonePage, CloudError> {
    var page = ZonePage(zone: zone, records: [], deletions: [], token: ChangeToken(""), moreComing: false)
    var hasRecords = false
    var errors = ErrorKeys()
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "zoneID":
        guard let named = try reader.readZoneID(), named.name != zone.name else { break }
        throw reader.error(.value, "another zone than was asked for")
      case "records":
        hasRecords = true
        try records(&reader, into: &page, trustsDeletionTimes)
      case "syncToken": page.token = ChangeToken(try reader.readOptionalString() ?? "")
      case "moreComing": page.moreComing = try reader.readFlag()
      default: if try !reader.readErrorKey(key, into: &errors, zone: zone) { try reader.skip() }
      }
    }
    if let error = errors.error { return .failure(error) }
    guard hasRecords, !page.token.rawValue.isEmpty else {
      throw reader.error(.value, "a page without records or syncToken")
    }
    return .success(page)
  }

  private static func records(
    _ reader: inout JSONReader, into page: inout ZonePage, _ trustsDeletionTimes: Bool
  ) throws(WireError) {
    try reader.beginArray()
    while try reader.nextElement() {
      var entry = try reader.readEntry(zone: page.zone, isRequest: false)
      guard let name = entry.name else { throw reader.error(.value, "a record without name") }
      if entry.isDeleted {
        let id = RecordID(name: name, zone: page.zone)
        let time = trustsDeletionTimes ? entry.modified?.timestamp : nil
        page.deletions.append(RecordDeletion(id: id, type: entry.type, time: time))
      } else if let record = entry.takeRecord(in: page.zone) {
        page.records.append(record)
      }
    }
  }
}
