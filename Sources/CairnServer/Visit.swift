import CairnServerCore

/// What is known of a request while it is on its way to its answer.
struct Visit: Sendable {
  let uuid: String
  let method: String
  let bodyBytes: Int
  /// Of the peer.
  let address: String
  let takesGzip: Bool
  /// An endpoint's name, or a word for what else is served; never a path as it was sent, which may hold a secret.
  var operation = "unknown"
  var scope: DatabaseScope?
  var app: AppCredential?
  var caller: Caller?
  /// The token that has taken the place of the used one.
  var nextToken: String?
  /// Of the page that may read the answer.
  var origin: String?
  /// On the clock that no one sets, in ns.
  let started: UInt64

  init(_ request: HTTPRequest, uuid: String, started: UInt64) {
    self.uuid = uuid
    self.started = started
    method = request.method
    bodyBytes = request.body.count
    address = request.address
    takesGzip = request.acceptsGzip
  }
}
