/// A failure of a request, of a zone or of one record, as a value.
///
/// Decisions look at ``code`` only. ``reason`` is for people.
public struct CloudError: Error, Hashable, Sendable, CustomStringConvertible {
  public var code: Code
  public var reason: String
  /// Seconds after which the same request may be tried again, where the server named them.
  public var retryAfter: Double?
  /// The server's present record, on conflicts, where the server sends it.
  public var serverRecord: Record?
  /// Why a token expired: `retention`, `incarnation` or `epoch` (web-services section 15, `expired-code`).
  public var expiryCause: ExpiryCause?
  /// Where a user can sign in, on `authenticationRequired`.
  public var redirectURL: String?
  /// What a server's operator may know and its clients may not, as addresses and statements of the store: for the log.
  /// Never sent.
  public var detail: String?

  /// Pruned tombstones, another incarnation of the zone, or a store that was put back.
  public enum ExpiryCause: String, Hashable, Sendable { case retention, incarnation, epoch }

  public init(
    _ code: Code, _ reason: String, retryAfter: Double? = nil, serverRecord: Record? = nil,
    expiryCause: ExpiryCause? = nil, redirectURL: String? = nil, detail: String? = nil
  ) {
    self.code = code
    self.reason = reason
    self.retryAfter = retryAfter
    self.serverRecord = serverRecord
    self.expiryCause = expiryCause
    self.redirectURL = redirectURL
    self.detail = detail
  }

  public var description: String { "\(code.rawValue): \(reason)" }

  /// The wire codes of web-services section 4 and, below them, what only a client can see.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    case accessDenied = "ACCESS_DENIED"
    case atomicError = "ATOMIC_ERROR"
    case authenticationFailed = "AUTHENTICATION_FAILED"
    case authenticationRequired = "AUTHENTICATION_REQUIRED"
    case badRequest = "BAD_REQUEST"
    case conflict = "CONFLICT"
    case exists = "EXISTS"
    case internalError = "INTERNAL_ERROR"
    case notFound = "NOT_FOUND"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case throttled = "THROTTLED"
    case tryAgainLater = "TRY_AGAIN_LATER"
    case validatingReferenceError = "VALIDATING_REFERENCE_ERROR"
    case zoneNotFound = "ZONE_NOT_FOUND"
    // Understood, sent only by extensions or other servers.
    case uniqueFieldError = "UNIQUE_FIELD_ERROR"
    case zoneBusy = "ZONE_BUSY"
    case changeTokenExpired = "CHANGE_TOKEN_EXPIRED"
    // Seen only by a client.
    /// No connection could be made: the request never reached the server.
    case networkUnavailable
    /// The connection broke before the request was sent whole.
    case networkFailure
    /// The request was sent, its answer did not arrive: it may have happened.
    case serverResponseLost
    /// The answer could not be understood: it may have happened.
    case undecodableAnswer
    case cancelled
    /// A record is over the size limit and was not sent.
    case limitExceeded
  }
}
