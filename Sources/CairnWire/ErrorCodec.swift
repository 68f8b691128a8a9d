import CairnRecords

extension CloudError.Code {
  /// The HTTP status of a request that fails with this code (web-services section 4).
  public var httpStatus: Int {
    switch self {
    case .accessDenied: 403
    case .atomicError, .badRequest, .changeTokenExpired: 400
    case .authenticationFailed: 401
    case .authenticationRequired: 421
    case .conflict, .exists, .uniqueFieldError: 409
    case .notFound, .zoneNotFound: 404
    case .quotaExceeded, .limitExceeded: 413
    case .throttled: 429
    case .tryAgainLater, .zoneBusy: 503
    case .validatingReferenceError: 412
    case .internalError, .networkUnavailable, .networkFailure, .serverResponseLost, .undecodableAnswer, .cancelled: 500
    }
  }

  /// Whether an answer may tell when to come back (section 4).
  public var isRetryable: Bool {
    switch self {
    case .throttled, .tryAgainLater, .zoneBusy, .internalError: true
    default: false
    }
  }

  /// The code of a wire name. Names that are not known count as INTERNAL_ERROR; names of codes that only a client can
  /// see are not known.
  public init(wire name: String) {
    let isWireName = name.utf8.allSatisfy {
      $0 == UInt8(ascii: "_") || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
    }
    self = isWireName ? CloudError.Code(rawValue: name) ?? .internalError : .internalError
  }
}

/// The keys of a failed request or entry, collected while its object is read.
struct ErrorKeys {
  var code: String?
  var reason: String?
  var retryAfter: Double?
  var redirectURL: String?
  var cause: String?
  var serverRecord: Record?

  var error: CloudError? {
    guard let code else { return nil }
    let known = CloudError.Code(wire: code)
    var text = reason ?? code
    if known == .internalError, code != CloudError.Code.internalError.rawValue { text = "\(code): \(text)" }
    return CloudError(
      known, text, retryAfter: retryAfter, serverRecord: serverRecord,
      expiryCause: cause.flatMap { CloudError.ExpiryCause(rawValue: $0) }, redirectURL: redirectURL)
  }
}

extension JSONReader {
  /// Reads the value of `key` if it belongs to an error; otherwise leaves it and returns false.
  mutating func readErrorKey(_ key: JSONKey, into keys: inout ErrorKeys, zone: ZoneID) throws(WireError) -> Bool {
    switch key {
    case "serverErrorCode": keys.code = try readOptionalString()
    case "reason": keys.reason = try readOptionalString()
    case "retryAfter": keys.retryAfter = try readNull() ? nil : readDouble()
    case "redirectURL": keys.redirectURL = try readOptionalString()
    case "cause": keys.cause = try readOptionalString()
    case "serverRecord":
      if try readNull() { break }
      var entry = try readEntry(zone: zone, isRequest: false)
      keys.serverRecord = entry.takeRecord(in: zone)
    default: return false
    }
    return true
  }
}

extension JSONWriter {
  /// Writes the keys of an error; the caller has written the entry's identity. Codes that no server sends are written
  /// as INTERNAL_ERROR.
  mutating func errorKeys(_ error: CloudError, _ style: WireStyle) {
    let isSendable = CloudError.Code(wire: error.code.rawValue) == error.code
    pair("serverErrorCode", (isSendable ? error.code : .internalError).rawValue)
    pair("reason", error.reason)
    guard !style.strictKeys else { return }
    if let seconds = error.retryAfter, error.code.isRetryable { retryAfter(seconds) }
    if let url = error.redirectURL { pair("redirectURL", url) }
    if let cause = error.expiryCause, error.code == .changeTokenExpired { pair("cause", cause.rawValue) }
    if style.conflictRecord, let record = error.serverRecord {
      key("serverRecord")
      self.record(record, style)
    }
  }

  private mutating func retryAfter(_ seconds: Double) {
    key("retryAfter")
    milliseconds(seconds)
  }
}

/// The body of a request that failed as a whole (section 4).
public enum RequestFailure {
  public static func encode(_ error: CloudError, uuid: String) -> [UInt8] {
    var writer = JSONWriter(capacity: 512)
    writer.beginObject()
    writer.pair("uuid", uuid)
    writer.errorKeys(error, WireStyle())
    writer.endObject()
    return writer.bytes
  }

  /// The error in an answer, or nil if the body is JSON without `serverErrorCode`.
  public static func decode(_ body: [UInt8]) throws(WireError) -> CloudError? {
    try JSONReader.parse(body) { (reader) throws(WireError) -> CloudError? in
      var keys = ErrorKeys()
      try reader.beginObject()
      while let key = try reader.nextKey() {
        if try !reader.readErrorKey(key, into: &keys, zone: .defaultZone) { try reader.skip() }
      }
      return keys.error
    }
  }
}
