import CairnRecords

/// SplitMix64: the same seed gives the same values everywhere.
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }

  mutating func text() -> String {
    let pieces = [
      "", "a", "\"", "\\", "\n", "\u{0}", "\u{1F}", "ß", "日本", "🏔️", "/", "</script>", "\u{7F}", "0123456789abcdef",
    ]
    return (0..<Int.random(in: 0...6, using: &self)).map { _ in pieces.randomElement(using: &self) ?? "" }.joined()
  }

  mutating func double() -> Double {
    switch Int.random(in: 0...5, using: &self) {
    case 0: return Double(Int.random(in: -1000...1000, using: &self))
    case 1: return -0.0
    case 2: return Double.random(in: -1...1, using: &self)
    case 3: return .leastNonzeroMagnitude
    case 4: return 0.1
    default:
      let value = Double(bitPattern: next())
      return value.isFinite ? value : 1.7976931348623157e308
    }
  }

  mutating func int64() -> Int64 {
    let extremes: [Int64] = [0, -1, 9, 10, -10, .min, .max, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1]
    return Bool.random(using: &self) ? extremes.randomElement(using: &self) ?? 0 : Int64(bitPattern: next())
  }

  mutating func bytes() -> [UInt8] {
    (0..<Int.random(in: 0...40, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  mutating func scalar(_ type: FieldType) -> FieldValue {
    switch type {
    case .string: return .string(text())
    case .int64: return .int64(int64())
    case .double: return .double(double())
    case .bytes, .encryptedBytes: return .bytes(bytes())
    case .timestamp:
      return .timestamp(
        Bool.random(using: &self) ? double() : Double(Int.random(in: -1...2_000_000_000_000, using: &self)))
    case .reference:
      let zone = Bool.random(using: &self) ? ZoneID(name: "Elsewhere", owner: "_abc") : nil
      let action = [Reference.Action.none, .deleteSelf, .validate].randomElement(using: &self) ?? .none
      return .reference(Reference(recordName: "r" + text(), zone: zone, action: action))
    case .asset:
      return .asset(Asset(fileChecksum: text(), size: int64(), receipt: Bool.random(using: &self) ? "r" : nil))
    case .location:
      var location = Location(latitude: double(), longitude: double())
      if Bool.random(using: &self) { location.altitude = double() }
      if Bool.random(using: &self) { location.timestamp = double() }
      return .location(location)
    }
  }

  mutating func value() -> FieldValue {
    let type = FieldType.allCases.randomElement(using: &self) ?? .string
    if Int.random(in: 0...3, using: &self) == 0 {
      let elements = (0..<Int.random(in: 0...4, using: &self)).map { _ in scalar(type) }
      return .list(type, elements)
    }
    if type == .encryptedBytes || (type != .bytes && Int.random(in: 0...4, using: &self) == 0) {
      return .encrypted(scalar(type))
    }
    return scalar(type)
  }

  mutating func record(_ name: String, zone: ZoneID) -> Record {
    var fields = Fields()
    for i in 0..<Int.random(in: 0...20, using: &self) { fields.append("f\(i)", value()) }
    return Record(
      id: RecordID(name: name, zone: zone), type: "T", changeTag: ChangeTag("t" + name), fields: fields,
      created: RecordStamp(timestamp: 1, userRecordName: "_u", deviceID: "2"), modified: RecordStamp(timestamp: 2),
      parent: Bool.random(using: &self) ? "p" : nil)
  }
}
