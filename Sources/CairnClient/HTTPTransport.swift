/// One way to do an HTTP request: libcurl on Linux, URLSession on Apple.
///
/// Calls block on the caller's thread. Redirects are not followed, because a request carries a token.
protocol HTTPTransport: AnyObject, Sendable {
  func perform(_ request: HTTPRequest) throws(HTTPFailure) -> HTTPResponse

  /// Ends a call that is under way, and every later one, with ``HTTPFailure/cancelled``. From any thread.
  func cancel()
}

/// A request.
struct HTTPRequest: Sendable {
  /// With its token: never to be shown.
  var url: String
  /// `Name: value`.
  var headers: [String]
  /// Nil makes it a GET, otherwise a POST.
  var body: [UInt8]?
  /// Bytes of the answer, decompressed.
  var answerLimit = ClientTuning.maximalAnswer
}

/// A whole answer, decompressed.
struct HTTPResponse: Sendable {
  var status: Int
  var headers: HTTPHeaders
  var body: [UInt8]
}

/// Header fields of an answer; of equal names the last counts.
struct HTTPHeaders: Sendable {
  private var values: [String: String] = [:]

  /// By lower-case name.
  subscript(name: String) -> String? {
    get { values[name] }
    set { values[name] = newValue }
  }

  mutating func removeAll() { values.removeAll() }
}

/// Why there is no answer. The texts come from the transport and are scrubbed of the token before they are shown.
enum HTTPFailure: Error, Hashable, Sendable {
  /// No connection came about: the server has seen nothing.
  case notConnected(String)
  /// The connection ended before the request was sent whole.
  case notSent(String)
  /// The request was sent and its answer did not come whole: the server may have acted.
  case answerLost(String)
  /// The answer is larger than a client takes.
  case answerTooLarge
  case cancelled
}
