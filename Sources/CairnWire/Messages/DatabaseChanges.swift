import CairnRecords

/// The body of changes/database, and of zones/changes, which calls its token `metaSyncToken`.
public struct DatabaseChangesRequest: WireRequest, Hashable, Sendable {
  public var syncToken: String?
  public var resultsLimit: Int?

  public init() {}

  public init(syncToken: String?, resultsLimit: Int? = nil) {
    self.syncToken = syncToken
    self.resultsLimit = resultsLimit
  }

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "syncToken", "metaSyncToken": syncToken = try reader.readToken() ?? syncToken
    case "resultsLimit": resultsLimit = try reader.readCount()
    default: try reader.skip()
    }
  }

  public func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    if let syncToken { writer.pair("syncToken", syncToken) }
    if let resultsLimit { writer.pair("resultsLimit", Int64(resultsLimit)) }
    writer.endObject()
  }
}

/// The answer to changes/database and to zones/changes.
public enum DatabaseChangesAnswer {
  /// - Parameters:
  ///   - zoneTokens: tokens per zone, under `zone-token` only (section 15).
  ///   - asZonesChanges: writes the token under both names that zones/changes has.
  public static func encode(
    _ page: DatabasePage, style: WireStyle, zoneTokens: [ZoneID: ChangeToken] = [:], asZonesChanges: Bool = false,
    into writer: inout JSONWriter
  ) {
    writer.beginZones()
    for zone in page.changed { entry(zone, false, zoneTokens[zone], style, &writer) }
    for zone in page.deleted { entry(zone, true, nil, style, &writer) }
    writer.endArray()
    if asZonesChanges { writer.pair("metaSyncToken", page.token.rawValue) }
    writer.pair("syncToken", page.token.rawValue)
    writer.pair("moreComing", page.moreComing)
    writer.endObject()
  }

  private static func entry(
    _ zone: ZoneID, _ isDeleted: Bool, _ token: ChangeToken?, _ style: WireStyle, _ writer: inout JSONWriter
  ) {
    writer.beginObject()
    writer.key("zoneID")
    writer.answeredZoneID(zone, style)
    if isDeleted { writer.pair("deleted", true) }
    if let token { writer.pair("syncToken", token.rawValue) }
    writer.endObject()
  }

  /// Reads an answer. Owners are as the server names them.
  public static func decode(_ body: [UInt8]) throws(WireError) -> DatabasePage {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var page = DatabasePage(changed: [], deleted: [], token: ChangeToken(""), moreComing: false)
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "zones":
          try reader.beginArray()
          while try reader.nextElement() {
            let entry = try reader.readZoneEntry()
            if entry.isDeleted { page.deleted.append(entry.zone) } else { page.changed.append(entry.zone) }
          }
        case "syncToken", "metaSyncToken":
          if let token = try reader.readToken() { page.token = ChangeToken(token) }
        case "moreComing": page.moreComing = try reader.readFlag()
        default: try reader.skip()
        }
      }
      guard !page.token.rawValue.isEmpty else { throw reader.error(.value, "the answer has no syncToken") }
      return page
    }
  }
}
