import CairnRecords

extension JSONWriter {
  /// Writes `{"type":…,"value":…}`. The type comes first, so that a reader knows how to take the value. Nil is written
  /// as `{"value":null}`, which clears the field in requests; answers leave null fields out (section 7).
  public mutating func field(_ value: FieldValue?, _ style: WireStyle) {
    separate()
    guard let value else { return literal("{\"value\":null}") }
    let kind = FieldKind(of: value)
    literal("{\"type\":\"")
    if kind.isList, style.namesListsLIST { literal("LIST") } else { literal(kind.name) }
    // ENCRYPTED_BYTES says so by its name.
    if case .encrypted = value, kind.type != .encryptedBytes {
      literal("\",\"isEncrypted\":true,\"value\":")
    } else {
      literal("\",\"value\":")
    }
    bareValue(value, style)
    endObject()
  }

  private mutating func bareValue(_ value: FieldValue, _ style: WireStyle) {
    switch value {
    case .string(let text): string(text)
    case .int64(let number):
      if style.numbers == .strings || (style.numbers == .safe && number.magnitude > 1 << 53) {
        int64String(number)
      } else {
        int64(number)
      }
    case .double(let number): if style.numbers == .strings { doubleString(number) } else { double(number) }
    case .bytes(let bytes): base64(bytes)
    case .timestamp(let time): milliseconds(time)
    case .reference(let reference): self.reference(reference, style)
    case .asset(let asset): self.asset(asset, style)
    case .location(let location): self.location(location)
    case .list(_, let elements):
      beginArray()
      for element in elements { bareValue(element, style) }
      endArray()
    case .encrypted(let inner): bareValue(inner, style)
    }
  }

  private mutating func reference(_ reference: Reference, _ style: WireStyle) {
    beginObject()
    pair("recordName", reference.recordName)
    pair("action", reference.action.rawValue)
    if let zone = reference.zone {
      key("zoneID")
      if style.writesOwnerName { answeredZoneID(zone, style) } else { zoneID(zone) }
    }
    endObject()
  }

  mutating func asset(_ asset: Asset, _ style: WireStyle = WireStyle()) {
    beginObject()
    assetPairs(asset, style)
    endObject()
  }

  /// Writes what an asset's dictionary holds.
  mutating func assetPairs(_ asset: Asset, _ style: WireStyle) {
    pair("fileChecksum", asset.fileChecksum)
    pair("size", asset.size)
    if let text = asset.referenceChecksum { pair("referenceChecksum", text) }
    if let text = asset.wrappingKey { pair("wrappingKey", text) }
    if let text = asset.receipt { pair("receipt", text) }
    if let text = asset.downloadURL { pair("downloadURL", text.hasPrefix("/") ? style.assetBase + text : text) }
  }

  private mutating func location(_ location: Location) {
    beginObject()
    pair("latitude", location.latitude)
    pair("longitude", location.longitude)
    if let value = location.altitude { pair("altitude", value) }
    if let value = location.horizontalAccuracy { pair("horizontalAccuracy", value) }
    if let value = location.verticalAccuracy { pair("verticalAccuracy", value) }
    if let value = location.speed { pair("speed", value) }
    if let value = location.course { pair("course", value) }
    if let value = location.timestamp {
      key("timestamp")
      milliseconds(value)
    }
    endObject()
  }
}
