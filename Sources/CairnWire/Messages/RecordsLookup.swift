import CairnRecords

/// The body of records/lookup.
public struct LookupRequest: WireRequest, RecordsRequest, Hashable, Sendable {
  public struct Item: Hashable, Sendable {
    public var name: String
    /// The item's own zone, where it names one.
    public var zone: ZoneID?
    /// The item's own choice of fields; nil means the request's.
    public var desiredKeys: [String]?

    public init(name: String, zone: ZoneID? = nil, desiredKeys: [String]? = nil) {
      self.name = name
      self.zone = zone
      self.desiredKeys = desiredKeys
    }
  }

  public var zone: ZoneID?
  public var items: [Item] = []
  public var desiredKeys: [String]?
  public var numbersAsStrings = false
  public var getCurrentSyncToken = false

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "records":
      if try reader.readNull() { return }
      items.removeAll()
      try reader.beginArray()
      while try reader.nextElement() { items.append(try Self.item(&reader)) }
    default: try readCommon(key, &reader)
    }
  }

  private static func item(_ reader: inout JSONReader) throws(WireError) -> Item {
    if try reader.kind() == .string { return Item(name: try reader.readString()) }
    var name: String?
    var item = Item(name: "")
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "recordName": name = try reader.readOptionalString()
      case "zoneID": item.zone = try reader.readZoneID()
      case "desiredKeys": item.desiredKeys = try reader.readStrings()
      default: try reader.skip()
      }
    }
    guard let name else { throw reader.error(.value, "a lookup without recordName") }
    item.name = name
    return item
  }

  public static func encode(zone: ZoneID, names: [String], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("zoneID")
    writer.zoneID(zone)
    writer.pair("numbersAsStrings", true)
    writer.key("records")
    writer.beginArray()
    for name in names {
      writer.beginObject()
      writer.pair("recordName", name)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

/// The answer to records/lookup: entries in the order of the names. A server writes it with
/// ``JSONWriter/beginRecords()``, ``JSONWriter/record(_:_:desiredKeys:)`` and ``JSONWriter/failedRecord(_:_:_:)``.
public enum LookupAnswer {
  /// Reads the answer to a look-up of `names`. Another number or order of entries fails.
  public static func decode(
    _ body: [UInt8], zone: ZoneID, names: [String]
  ) throws(WireError) -> [Result<Record, CloudError>] {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var results: [Result<Record, CloudError>] = []
      results.reserveCapacity(names.count)
      try reader.beginObject()
      while let key = try reader.nextKey() {
        guard case "records" = key else {
          try reader.skip()
          continue
        }
        try reader.beginArray()
        while try reader.nextElement() {
          var entry = try reader.readEntry(zone: zone, isRequest: false)
          guard results.count < names.count, entry.name == nil || entry.name == names[results.count] else {
            throw reader.error(.value, "the answer's records are not those that were asked for")
          }
          if let error = entry.error {
            results.append(.failure(error))
          } else if entry.isDeleted {
            results.append(.failure(CloudError(.notFound, "Record not found")))
          } else if let record = entry.takeRecord(in: zone) {
            results.append(.success(record))
          } else {
            throw reader.error(.value, "a record without name")
          }
        }
      }
      guard results.count == names.count else { throw reader.error(.value, "fewer entries than names") }
      return results
    }
  }
}
