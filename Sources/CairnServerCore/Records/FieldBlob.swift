import CairnRecords

/// The stored form of a record's fields.
///
/// A sequence of (name, value). Text and bytes are a length and the bytes; lengths are LEB128; a value is a tag and its
/// content: 0 string, 1 integer (zigzag LEB128), 2 double, 3 bytes, 4 timestamp (8 bytes little endian), 5 reference
/// (name, action, zone?), 6 asset, 7 location (mask, doubles), 8 list (element type, count, values), 9 encrypted value.
/// Null fields are not stored.
public enum FieldBlob {
  public static func encode(_ fields: Fields) -> [UInt8] {
    var writer = BlobWriter()
    writer.bytes.reserveCapacity(64 * fields.count)
    for field in fields {
      guard let value = field.value else { continue }
      writer.text(field.name)
      writer.value(value)
    }
    return writer.bytes
  }

  /// Throws `internalError` when the stored bytes are damaged.
  public static func decode(_ bytes: [UInt8]) throws(CloudError) -> Fields {
    try decode(bytes, keys: nil)
  }

  /// The fields with one of the names `keys`, or all for nil.
  public static func decode(_ bytes: [UInt8], keys: [String]?) throws(CloudError) -> Fields {
    if keys?.isEmpty == true { return Fields() }
    let fields: [Field]? = bytes.withUnsafeBytes { raw in
      var reader = BlobReader(raw)
      var fields: [Field] = []
      while !reader.isAtEnd {
        guard let name = reader.text(), let value = reader.value() else { return nil }
        if keys?.contains(name) ?? true { fields.append(Field(name, value)) }
      }
      return fields
    }
    guard let fields else { throw CloudError(.internalError, "A stored record is damaged") }
    return Fields(uniqueFields: fields)
  }
}

private struct BlobWriter {
  var bytes: [UInt8] = []

  mutating func number(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func text(_ text: String) {
    var text = text
    text.withUTF8 { utf8 in
      number(UInt64(utf8.count))
      bytes.append(contentsOf: utf8)
    }
  }

  mutating func optional(_ text: String?) {
    bytes.append(text == nil ? 0 : 1)
    if let text { self.text(text) }
  }

  mutating func double(_ value: Double) {
    withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func integer(_ value: Int64) { number(UInt64(bitPattern: value << 1 ^ value >> 63)) }

  mutating func value(_ value: FieldValue) {
    switch value {
    case .string(let text):
      bytes.append(0)
      self.text(text)
    case .int64(let integer):
      bytes.append(1)
      self.integer(integer)
    case .double(let real):
      bytes.append(2)
      double(real)
    case .bytes(let data):
      bytes.append(3)
      number(UInt64(data.count))
      bytes.append(contentsOf: data)
    case .timestamp(let time):
      bytes.append(4)
      double(time)
    case .reference(let reference): self.reference(reference)
    case .asset(let asset): self.asset(asset)
    case .location(let location): self.location(location)
    case .list(let type, let elements):
      bytes.append(8)
      bytes.append(type.blobTag)
      number(UInt64(elements.count))
      for element in elements { self.value(element) }
    case .encrypted(let inner):
      bytes.append(9)
      self.value(inner)
    }
  }

  private mutating func reference(_ reference: Reference) {
    bytes.append(5)
    text(reference.recordName)
    bytes.append(reference.action == .none ? 0 : reference.action == .deleteSelf ? 1 : 2)
    optional(reference.zone?.name)
    if let zone = reference.zone { text(zone.owner) }
  }

  private mutating func asset(_ asset: Asset) {
    bytes.append(6)
    text(asset.fileChecksum)
    integer(asset.size)
    for part in [asset.referenceChecksum, asset.wrappingKey, asset.receipt, asset.downloadURL] { optional(part) }
  }

  private mutating func location(_ location: Location) {
    bytes.append(7)
    let optionals = [
      location.altitude, location.horizontalAccuracy, location.verticalAccuracy, location.speed, location.course,
      location.timestamp,
    ]
    var mask: UInt8 = 0
    for (i, part) in optionals.enumerated() where part != nil { mask |= 1 << UInt8(i) }
    bytes.append(mask)
    double(location.latitude)
    double(location.longitude)
    for part in optionals { if let part { double(part) } }
  }
}

private struct BlobReader {
  let raw: UnsafeRawBufferPointer
  var offset = 0

  init(_ raw: UnsafeRawBufferPointer) { self.raw = raw }

  var isAtEnd: Bool { offset >= raw.count }

  mutating func byte() -> UInt8? {
    guard offset < raw.count else { return nil }
    defer { offset += 1 }
    return raw[offset]
  }

  mutating func number() -> UInt64? {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while let next = byte() {
      result |= UInt64(next & 0x7f) << shift
      if next < 0x80 { return result }
      shift += 7
      if shift > 63 { return nil }
    }
    return nil
  }

  mutating func slice() -> UnsafeRawBufferPointer? {
    guard let length = number(), length <= UInt64(raw.count - offset) else { return nil }
    defer { offset += Int(length) }
    return UnsafeRawBufferPointer(rebasing: raw[offset..<offset + Int(length)])
  }

  mutating func text() -> String? { slice().map { String(decoding: $0, as: UTF8.self) } }

  /// Nil outside means damage, nil inside an absent text.
  mutating func optional() -> String?? {
    guard let flag = byte() else { return nil }
    if flag == 0 { return .some(nil) }
    guard let text = text() else { return nil }
    return .some(text)
  }

  mutating func double() -> Double? {
    guard raw.count - offset >= 8 else { return nil }
    defer { offset += 8 }
    return Double(bitPattern: UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
  }

  mutating func integer() -> Int64? {
    number().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
  }

  mutating func value(depth: Int = 0) -> FieldValue? {
    guard depth < 4, let tag = byte() else { return nil }
    switch tag {
    case 0: return text().map { .string($0) }
    case 1: return integer().map { .int64($0) }
    case 2: return double().map { .double($0) }
    case 3: return slice().map { .bytes([UInt8]($0)) }
    case 4: return double().map { .timestamp($0) }
    case 5: return reference()
    case 6: return asset()
    case 7: return location()
    case 8:
      guard let type = byte().flatMap({ FieldType(blobTag: $0) }), let count = number(), count <= UInt64(raw.count)
      else {
        return nil
      }
      var elements: [FieldValue] = []
      elements.reserveCapacity(Int(count))
      for _ in 0..<count {
        guard let element = value(depth: depth + 1) else { return nil }
        elements.append(element)
      }
      return .list(type, elements)
    case 9: return value(depth: depth + 1).map { .encrypted($0) }
    default: return nil
    }
  }

  private mutating func reference() -> FieldValue? {
    guard let name = text(), let action = byte(), let zone = optional() else { return nil }
    var reference = Reference(recordName: name, action: action == 0 ? .none : action == 1 ? .deleteSelf : .validate)
    if let zone {
      guard let owner = text() else { return nil }
      reference.zone = ZoneID(name: zone, owner: owner)
    }
    return .reference(reference)
  }

  private mutating func asset() -> FieldValue? {
    guard let sum = text(), let size = integer(), let reference = optional(), let key = optional(),
      let receipt = optional(), let url = optional()
    else { return nil }
    return .asset(
      Asset(
        fileChecksum: sum, size: size, referenceChecksum: reference, wrappingKey: key, receipt: receipt,
        downloadURL: url))
  }

  private mutating func location() -> FieldValue? {
    guard let mask = byte(), let latitude = double(), let longitude = double() else { return nil }
    var parts: [Double?] = []
    for i in 0..<UInt8(6) {
      if mask & 1 << i == 0 {
        parts.append(nil)
      } else {
        guard let part = double() else { return nil }
        parts.append(part)
      }
    }
    var location = Location(latitude: latitude, longitude: longitude)
    location.altitude = parts[0]
    location.horizontalAccuracy = parts[1]
    location.verticalAccuracy = parts[2]
    location.speed = parts[3]
    location.course = parts[4]
    location.timestamp = parts[5]
    return .location(location)
  }
}

extension FieldType {
  fileprivate var blobTag: UInt8 {
    switch self {
    case .string: 0
    case .int64: 1
    case .double: 2
    case .bytes: 3
    case .timestamp: 4
    case .reference: 5
    case .asset: 6
    case .location: 7
    case .encryptedBytes: 8
    }
  }

  fileprivate init?(blobTag: UInt8) {
    switch blobTag {
    case 0: self = .string
    case 1: self = .int64
    case 2: self = .double
    case 3: self = .bytes
    case 4: self = .timestamp
    case 5: self = .reference
    case 6: self = .asset
    case 7: self = .location
    case 8: self = .encryptedBytes
    default: return nil
    }
  }
}
