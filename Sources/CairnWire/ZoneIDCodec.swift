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
  public mutating func readZoneID() throws(WireError) -> ZoneID? {
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
    beginObject()
    pair("zoneName", zone.name)
    pair("ownerRecordName", zone.owner)
    if style.writesOwnerName { pair("ownerName", zone.owner) }
    key("zoneType")
    if zone.name == ZoneID.defaultZoneName { string("DEFAULT_ZONE") } else { string("REGULAR_CUSTOM_ZONE") }
    endObject()
  }
}
