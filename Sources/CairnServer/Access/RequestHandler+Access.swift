import CairnRecords
import CairnServerCore

/// Who asks (web-services section 3): an app by its API token, a user by a token, a server by its signature.
extension RequestHandler {
  /// Finds out who asks, and notes it in `visit` as far as it is known when something is wrong: the answer is spelled
  /// by it.
  func authenticate(
    _ request: HTTPRequest, _ endpoint: Endpoint, _ scope: DatabaseScope, _ visit: inout Visit
  ) throws(CloudError) {
    let userToken = given(request.argument("ckWebAuthToken") ?? request.argument("ckSession")) ?? bearer(request)
    let apiToken = given(request.argument("ckAPIToken"))
    if request.header(SignedRequest.keyHeader) != nil || request.header(SignedRequest.signatureHeader) != nil {
      guard userToken == nil, apiToken == nil else {
        throw CloudError(.authenticationFailed, "A signature is not mixed with tokens")
      }
      return visit.caller = try signer(request, endpoint, scope, &visit)
    }
    if let apiToken {
      let app = try app(apiToken, scope)
      try admitOrigin(request, app, &visit)
      visit.app = app
    }
    if let userToken { return visit.caller = try user(userToken, &visit) }
    guard visit.app != nil, scope.kind == .public, endpoint.isPublicRead else {
      throw CloudError(
        .authenticationRequired, "request needs authorization",
        redirectURL: SignInPlace.address(base(request), visit.app, origin: visit.origin))
    }
    visit.caller = .anonymous
  }

  /// A user's token in a header, where it stands in no log of addresses.
  func bearer(_ request: HTTPRequest) -> String? {
    guard let header = request.header("authorization"), header.lowercased().hasPrefix("bearer ") else { return nil }
    return given(header.dropFirst(7).trimmingCharacters(in: .whitespaces))
  }

  /// What the client's device calls itself (web-services section 17).
  func device(_ request: HTTPRequest) -> String? {
    request.header("x-cairn-device").flatMap { $0.removingPercentEncoding }
  }

  private func given(_ text: String?) -> String? { text.flatMap { $0.isEmpty ? nil : $0 } }

  /// The app of an API token.
  func app(_ token: String, _ scope: DatabaseScope?) throws(CloudError) -> AppCredential {
    // 64 hex digits; their case does not matter.
    let app = try server.appCredential(id: WebAuthToken.hash(token.lowercased()))
    guard let app, app.kind == .apiToken else { throw CloudError(.authenticationFailed, "The API token is not known") }
    guard app.container == nil || scope == nil || app.container == scope?.container else {
      throw CloudError(.authenticationFailed, "The API token is another container's")
    }
    return app
  }

  // MARK: Users

  /// The token of a user; the one that takes its place, if one does, goes into `visit`.
  func user(_ token: String, _ visit: inout Visit) throws(CloudError) -> Caller {
    // A plus that was not percent-encoded arrives as a space.
    let hash = WebAuthToken.hash(token.replacing(" ", with: "+"))
    guard let caller = try server.caller(tokenHash: hash) else {
      throw CloudError(.authenticationFailed, "The web auth token is not known")
    }
    guard server.settings.singleUseTokens else { return caller }
    let next = WebAuthToken.make(randomness)
    guard try server.replaceToken(hash: hash, with: WebAuthToken.hash(next)) else {
      throw CloudError(.authenticationFailed, "The web auth token has been used")
    }
    visit.nextToken = next
    return caller
  }

  // MARK: Servers

  private func signer(
    _ request: HTTPRequest, _ endpoint: Endpoint, _ scope: DatabaseScope, _ visit: inout Visit
  ) throws(CloudError) -> Caller {
    guard scope.kind == .public else { throw CloudServer.publicOnly }
    let now = server.now
    let signed = try SignedRequest(request, now: now)
    guard let found = try server.appCredential(id: signed.keyID), found.kind == .serverKey,
      found.container == nil || found.container == scope.container, let key = P256Key(der: found.publicKey)
    else { throw CloudError(.authenticationFailed, "The server-to-server key is not known") }
    guard signed.isSigned(by: key, allowsUnsignedLargeBody: found.switches.contains(.largeBodyHash)),
      let nonce = P256Key.nonce(of: signed.signature)
    else { throw CloudError(.authenticationFailed, "The signature is not that of date, body and path") }
    // What only reads may be repeated: a client that asks twice in a second may sign twice alike.
    if !endpoint.isPublicRead { try replays.use(key: signed.keyID, nonce: nonce, now: now) }
    visit.app = found
    return found.caller
  }

  // MARK: Web pages

  /// Lets a page of an origin that the app allows use the API token, and read the answer. Programs send no origin.
  private func admitOrigin(_ request: HTTPRequest, _ app: AppCredential, _ visit: inout Visit) throws(CloudError) {
    guard let origin = request.header("origin") else { return }
    guard app.origins.contains("*") || app.origins.contains(origin.lowercased()) else {
      throw CloudError(.accessDenied, "The API token is not for pages of \(origin)")
    }
    visit.origin = origin
  }

  /// The answer to an OPTIONS request: whether a page may make the request that it announces. Addresses of assets and
  /// notifications are their own credential and open to every page that knows one.
  func preflight(_ request: HTTPRequest, _ visit: inout Visit) throws(CloudError) -> HTTPResponse {
    guard request.header("origin") != nil else {
      throw CloudError(.badRequest, "OPTIONS is answered to web pages only, which name their origin")
    }
    if isAssetPath(request.path) || request.path.hasPrefix(RequestHandler.courierPath) {
      visit.origin = "*"
    } else {
      let (_, scope) = try route(request, isPreflight: true)
      guard let token = given(request.argument("ckAPIToken")) else {
        throw CloudError(.accessDenied, "Web pages need an API token")
      }
      try admitOrigin(request, try app(token, scope), &visit)
    }
    let response = HTTPResponse(status: 204, copying: [])
    response.addHeader("Access-Control-Allow-Methods", "GET, POST, PUT, HEAD, OPTIONS")
    // What a page may say in a header of its own; a signature is made by servers, not by pages.
    response.addHeader("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Accept, X-Requested-With")
    response.addHeader("Access-Control-Max-Age", "3600")
    return response
  }
}
