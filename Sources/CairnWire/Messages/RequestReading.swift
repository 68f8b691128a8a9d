import CairnRecords

/// A message that a server reads. An empty body means `{}` (web-services section 1).
public protocol WireRequest {
  init()
  /// Reads the value of one top-level key, or skips it.
  mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError)
  /// Called when all keys are read, whatever their order was.
  mutating func finish() throws(WireError)
}

extension WireRequest {
  public mutating func finish() throws(WireError) {}

  /// Reads a request body.
  public init(decoding body: UnsafeBufferPointer<UInt8>, limits: JSONLimits = JSONLimits()) throws(WireError) {
    var request = Self()
    if !body.isEmpty {
      try JSONReader.parse(body, limits: limits) { (reader) throws(WireError) in
        try reader.beginObject()
        while let key = try reader.nextKey() { try request.read(key, &reader) }
      }
    }
    try request.finish()
    self = request
  }

  /// Reads a request body.
  public init(decoding body: [UInt8], limits: JSONLimits = JSONLimits()) throws(WireError) {
    self = try body.withUnsafeBufferPointer { (buffer) throws(WireError) -> Self in
      try Self(decoding: buffer, limits: limits)
    }
  }
}

/// What the requests about records have in common (web-services sections 5, 6 and 9).
protocol RecordsRequest: WireRequest {
  /// The request's own zone.
  var zone: ZoneID? { get set }
  /// Fields that the answer shall carry; nil means all.
  var desiredKeys: [String]? { get set }
  var numbersAsStrings: Bool { get set }
  var getCurrentSyncToken: Bool { get set }
}

extension RecordsRequest {
  /// Reads the value of a key that these requests have in common, or skips it.
  mutating func readCommon(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "zoneID": zone = try reader.readZoneID()
    case "desiredKeys": desiredKeys = try reader.readStrings()
    case "numbersAsStrings", "numberAsStrings": numbersAsStrings = try reader.readFlag()
    case "getCurrentSyncToken": getCurrentSyncToken = try reader.readFlag()
    default: try reader.skip()
    }
  }
}

extension JSONReader {
  /// Reads a Boolean; null means false.
  mutating func readFlag() throws(WireError) -> Bool { try readNull() ? false : readBool() }

  /// Reads a token; null and the empty string mean none (section 8).
  mutating func readToken() throws(WireError) -> String? {
    guard let token = try readOptionalString(), !token.isEmpty else { return nil }
    return token
  }

  /// Reads a count; null means none.
  mutating func readCount() throws(WireError) -> Int? {
    if try readNull() { return nil }
    return Int(clamping: try readInt64())
  }
}
