import CairnRecords

extension ZoneID {
  /// The zone that every database has.
  public static let defaultZoneName = "_defaultZone"
  /// The other spelling of ``currentOwner``.
  public static let otherCurrentOwner = "__defaultOwner__"
  public static let defaultZone = ZoneID(name: defaultZoneName)
}

extension JSONReader {
  /// Reads `{zoneName, ownerRecordName | ownerName, …}` or null. A missing name means the default zone; a missing
  /// owner, or either spelling of "the caller", becomes ``ZoneID/currentOwner``.
  ///
  /// A page repeats one zone ID in every record: the same bytes as the last time give the same zone.
  public mutating func readZoneID() throws(WireError) -> ZoneID? {
    skipWhitespace()
    if let last = repeatedZone, end - position >= last.bytes.count, last.bytes.areSame(asAt: position) {
      position += last.bytes.count
      return last.zone
    }
    let first = position
    let zone = try readNewZoneID()
    if let zone {
      repeatedZone = (UnsafeBufferPointer(start: first, count: position - first), zone)
    }
    return zone
  }

  private mutating func readNewZoneID() throws(WireError) -> ZoneID? {
    if try readNull() { return nil }
    var zone = ZoneID.defaultZone
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "zoneName": if let name = try readOptionalString() { zone.name = name }
      case "ownerRecordName", "ownerName":
        if let owner = try readOptionalString(), owner != ZoneID.otherCurrentOwner { zone.owner = owner }
      default: try skip()
      }
    }
    return zone
  }
}

extension JSONWriter {
  /// Writes a zone ID as requests carry it.
  public mutating func zoneID(_ zone: ZoneID) {
    beginObject()
    pair("zoneName", zone.name)
    if zone.owner != ZoneID.currentOwner { pair("ownerRecordName", zone.owner) }
    endObject()
  }

  /// Writes a zone ID as answers carry it: with owner and kind.
  public mutating func answeredZoneID(_ zone: ZoneID, _ style: WireStyle) {
    if let last = repeatedZone, last.zone == zone, last.hasOwnerName == style.writesOwnerName {
      separate()
      // Room first: growing may move the bytes that are copied.
      let out = reserve(last.length)
      out.update(from: base + last.offset, count: last.length)
      return commit(last.length)
    }
    separate()
    let offset = count
    newZoneID(zone, style)
    repeatedZone = RepeatedZone(
      zone: zone, hasOwnerName: style.writesOwnerName, offset: offset, length: count - offset)
  }

  private mutating func newZoneID(_ zone: ZoneID, _ style: WireStyle) {
    byte(UInt8(ascii: "{"))
    pair("zoneName", zone.name)
    pair("ownerRecordName", zone.owner)
    if style.writesOwnerName { pair("ownerName", zone.owner) }
    key("zoneType")
    if zone.name == ZoneID.defaultZoneName { string("DEFAULT_ZONE") } else { string("REGULAR_CUSTOM_ZONE") }
    endObject()
  }
}

/// A zone ID that was written before, and where.
struct RepeatedZone {
  var zone: ZoneID
  var hasOwnerName: Bool
  var offset: Int
  var length: Int
}
