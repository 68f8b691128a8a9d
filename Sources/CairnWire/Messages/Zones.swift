import CairnRecords

/// One entry of the zone calls' answers (web-services section 10).
public struct ZoneEntry: Hashable, Sendable {
  public var zone: ZoneID
  public var syncToken: ChangeToken?
  /// Whether atomic requests work in the zone.
  public var isAtomic: Bool
  public var isDeleted: Bool
  public var error: CloudError?

  public init(
    zone: ZoneID, syncToken: ChangeToken? = nil, isAtomic: Bool = true, isDeleted: Bool = false,
    error: CloudError? = nil
  ) {
    self.zone = zone
    self.syncToken = syncToken
    self.isAtomic = isAtomic
    self.isDeleted = isDeleted
    self.error = error
  }
}

extension JSONReader {
  /// Reads `{zoneID, …}` or a bare zone ID.
  mutating func readZoneEntry() throws(WireError) -> ZoneEntry {
    var nested: ZoneID?
    var bare = ZoneID.defaultZone
    var isBare = false
    var entry = ZoneEntry(zone: .defaultZone, isAtomic: false)
    var errors = ErrorKeys()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "zoneID": nested = try readZoneID()
      case "zoneName":
        isBare = true
        bare.name = try readOptionalString() ?? bare.name
      case "ownerRecordName", "ownerName":
        if let owner = try readOptionalString(), owner != ZoneID.otherCurrentOwner { bare.owner = owner }
      case "syncToken": entry.syncToken = try readToken().map { ChangeToken($0) }
      case "atomic": entry.isAtomic = try readFlag()
      case "deleted": entry.isDeleted = try readFlag()
      default: if try !readErrorKey(key, into: &errors, zone: .defaultZone) { try skip() }
      }
    }
    guard nested != nil || isBare || errors.code != nil else { throw error(.value, "an entry without zoneID") }
    entry.zone = nested ?? bare
    entry.error = errors.error
    return entry
  }
}

/// The body of zones/lookup: bare zone IDs or `{zoneID}`.
public struct ZonesLookupRequest: WireRequest, Hashable, Sendable {
  public var zones: [ZoneID] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    guard case "zones" = key else { return try reader.skip() }
    if try reader.readNull() { return }
    zones.removeAll()
    try reader.beginArray()
    while try reader.nextElement() { zones.append(try reader.readZoneEntry().zone) }
  }

  public static func encode(_ zones: [ZoneID], into writer: inout JSONWriter) {
    writer.beginZones()
    for zone in zones { writer.zoneID(zone) }
    writer.endZones()
  }
}

/// The body of zones/modify.
public struct ZonesModifyRequest: WireRequest, Hashable, Sendable {
  public enum Operation: Hashable, Sendable {
    case create(ZoneID)
    case delete(ZoneID)

    public var zone: ZoneID {
      switch self {
      case .create(let zone), .delete(let zone): zone
      }
    }
  }

  public var operations: [Operation] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    guard case "operations" = key else { return try reader.skip() }
    if try reader.readNull() { return }
    operations.removeAll()
    try reader.beginArray()
    while try reader.nextElement() {
      var type: String?
      var zone: ZoneID?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "operationType": type = try reader.readOptionalString()
        case "zone": zone = try reader.readZoneEntry().zone
        default: try reader.skip()
        }
      }
      guard let zone else { throw reader.error(.value, "an operation without zone") }
      switch type {
      case "create": operations.append(.create(zone))
      case "delete": operations.append(.delete(zone))
      default: throw reader.error(.value, "unknown operationType")
      }
    }
  }

  public static func encode(_ operations: [Operation], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("operations")
    writer.beginArray()
    for operation in operations {
      writer.beginObject()
      writer.key("operationType")
      if case .create = operation { writer.string("create") } else { writer.string("delete") }
      writer.key("zone")
      writer.beginObject()
      writer.key("zoneID")
      writer.zoneID(operation.zone)
      writer.endObject()
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

/// The answer to zones/list, zones/lookup and zones/modify.
public enum ZonesAnswer {
  public static func encode(_ entries: [ZoneEntry], style: WireStyle, into writer: inout JSONWriter) {
    writer.beginZones()
    for entry in entries {
      if let error = entry.error {
        writer.failedZone(entry.zone, error, style)
        continue
      }
      writer.beginObject()
      writer.key("zoneID")
      writer.answeredZoneID(entry.zone, style)
      if entry.isDeleted { writer.pair("deleted", true) }
      if let token = entry.syncToken { writer.pair("syncToken", token.rawValue) }
      if !entry.isDeleted, !style.strictKeys { writer.pair("atomic", entry.isAtomic) }
      writer.endObject()
    }
    writer.endZones()
  }

  /// Reads an answer. Owners are as the server names them.
  public static func decode(_ body: [UInt8]) throws(WireError) -> [ZoneEntry] {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var entries: [ZoneEntry]?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        guard case "zones" = key else {
          try reader.skip()
          continue
        }
        var list: [ZoneEntry] = []
        try reader.beginArray()
        while try reader.nextElement() { list.append(try reader.readZoneEntry()) }
        entries = list
      }
      guard let entries else { throw reader.error(.value, "the answer has no zones") }
      return entries
    }
  }
}
