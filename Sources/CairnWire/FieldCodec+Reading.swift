import CairnRecords

/// What stood under a field's name.
enum WireField {
  case null
  case typed(FieldValue)
  case untyped(UntypedValue)
  /// The value does not fit the type that was declared for it.
  case mismatched(WireError)
}

extension JSONReader {
  /// Reads `{"value":…,"type":…,"isEncrypted":…}`, `{}`, `{"value":null}` or null, keys in any order.
  mutating func readField() throws(WireError) -> WireField {
    if try readNull() { return .null }
    var kind: FieldKind?
    var declared: String?
    var isEncrypted = false
    var pending: UnsafePointer<UInt8>?
    var result = WireField.null
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "type":
        if try readNull() { break }
        let name = try readRawString()
        kind = FieldKind(name)
        if kind == nil { declared = name.string }
      case "value":
        pending = nil
        result = .null
        if try readNull() { break }
        if let kind {
          result = try readFitting(kind)
        } else {
          pending = position
          try skip()
        }
      case "isEncrypted": isEncrypted = try readNull() ? false : readBool()
      default: try skip()
      }
    }
    if let pending { result = try readLate(pending, kind, declared, isEncrypted) }
    if isEncrypted, case .typed(let value) = result, kind?.type != .encryptedBytes { return .typed(.encrypted(value)) }
    return result
  }

  /// Reads a value that stood before its type was known.
  private mutating func readLate(
    _ place: UnsafePointer<UInt8>, _ kind: FieldKind?, _ declared: String?, _ isEncrypted: Bool
  ) throws(WireError) -> WireField {
    let behind = position
    defer {
      position = behind
      isFirst = false
    }
    position = place
    if let kind { return try readFitting(kind) }
    return .untyped(UntypedValue(declaredType: declared, json: try readValue(), isEncrypted: isEncrypted))
  }

  /// Reads a value of a declared type. One that does not fit is skipped and reported, because it concerns one record
  /// only; what is not JSON fails the body.
  private mutating func readFitting(_ kind: FieldKind) throws(WireError) -> WireField {
    let place = position
    let outerDepth = depth
    do throws(WireError) {
      return .typed(try readFieldValue(kind))
    } catch {
      guard error.kind == .value else { throw error }
      position = place
      depth = outerDepth
      isFirst = false
      try skip()
      return .mismatched(error)
    }
  }

  /// Reads a bare value as the given type. Booleans are taken as INT64 (section 7).
  mutating func readFieldValue(_ kind: FieldKind) throws(WireError) -> FieldValue {
    guard kind.isList else {
      let value = try readScalar(kind.type)
      return kind.type == .encryptedBytes ? .encrypted(value) : value
    }
    var elements: [FieldValue] = []
    try beginArray()
    while try nextElement() { elements.append(try readScalar(kind.type)) }
    return .list(kind.type, elements)
  }

  private mutating func readScalar(_ type: FieldType) throws(WireError) -> FieldValue {
    switch type {
    case .string: return .string(try readString())
    case .int64:
      if try self.kind() == .bool { return .int64(try readBool() ? 1 : 0) }
      return .int64(try readInt64())
    case .double: return .double(try readDouble())
    case .timestamp: return .timestamp(try readDouble())
    case .bytes, .encryptedBytes: return .bytes(try readBase64())
    case .reference: return .reference(try readReference())
    case .asset: return .asset(try readAsset())
    case .location: return .location(try readLocation())
    }
  }

  mutating func readBase64() throws(WireError) -> [UInt8] {
    let text = try readRawString()
    let bytes = text.hasEscapes ? Base64.decode(text.string) : Base64.decode(text.bytes)
    guard let bytes else { throw error(.value, "base64 is expected") }
    return bytes
  }

  mutating func readReference() throws(WireError) -> Reference {
    var name: String?
    var zone: ZoneID?
    var action = Reference.Action.none
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "recordName": name = try readString()
      case "zoneID": zone = try readZoneID()
      case "action":
        guard let text = try readOptionalString() else { break }
        guard let known = Reference.Action(rawValue: text) else { throw error(.value, "unknown reference action") }
        action = known
      default: try skip()
      }
    }
    guard let name else { throw error(.value, "a reference without recordName") }
    return Reference(recordName: name, zone: zone, action: action)
  }

  mutating func readAsset() throws(WireError) -> Asset {
    var asset = Asset(fileChecksum: "", size: 0)
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "fileChecksum": asset.fileChecksum = try readOptionalString() ?? ""
      case "size": if try !readNull() { asset.size = try readInt64() }
      case "referenceChecksum": asset.referenceChecksum = try readOptionalString()
      case "wrappingKey": asset.wrappingKey = try readOptionalString()
      case "receipt": asset.receipt = try readOptionalString()
      case "downloadURL": asset.downloadURL = try readOptionalString()
      default: try skip()
      }
    }
    return asset
  }

  private mutating func readLocation() throws(WireError) -> Location {
    var latitude: Double?
    var longitude: Double?
    var location = Location(latitude: 0, longitude: 0)
    try beginObject()
    while let key = try nextKey() {
      if try readNull() { continue }
      switch key {
      case "latitude": latitude = try readDouble()
      case "longitude": longitude = try readDouble()
      case "altitude": location.altitude = try readDouble()
      case "horizontalAccuracy": location.horizontalAccuracy = try readDouble()
      case "verticalAccuracy": location.verticalAccuracy = try readDouble()
      case "speed": location.speed = try readDouble()
      case "course": location.course = try readDouble()
      case "timestamp": location.timestamp = try readDouble()
      default: try skip()
      }
    }
    guard let latitude, let longitude else { throw error(.value, "a location without latitude and longitude") }
    location.latitude = latitude
    location.longitude = longitude
    return location
  }
}
