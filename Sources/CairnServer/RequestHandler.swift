import CairnRecords
import CairnServerCore
import CairnWire

/// Routes requests, finds out who asks, and spells answers and errors (web-services sections 1 to 4).
///
/// Checks run in this order: route, authentication, JSON, request limits, zone, operations.
final class RequestHandler: HTTPHandler {
  let server: CloudServer
  /// Prefixes the request UUIDs and signs nothing: it only has to be different each time.
  private let randomness: any ServerRandomness
  private let features: String
  private let bodyBytes: Int
  /// Takes one line about a fault of the server itself.
  let log: @Sendable (String) -> Void

  init(
    server: CloudServer, randomness: any ServerRandomness = SystemServerRandomness(), bodyBytes: Int,
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.server = server
    self.randomness = randomness
    self.bodyBytes = bodyBytes
    self.log = log
    features = Features.announcement(server.settings)
  }

  func handle(_ request: HTTPRequest, respond: @escaping @Sendable (@escaping ResponseMaker) -> Void) {
    let uuid = self.uuid()
    let takesGzip = request.header("accept-encoding")?.contains("gzip") ?? false
    @Sendable func answer(_ result: Result<ResponseMaker, CloudError>, _ nextToken: String? = nil) {
      respond { [self] in
        let response: HTTPResponse
        switch result {
        case .success(let maker): response = maker()
        case .failure(let error): response = failure(error, uuid)
        }
        addHeaders(to: response, uuid)
        if let nextToken { response.addHeader("X-Apple-CloudKit-Web-Auth-Token", nextToken) }
        if takesGzip { response.compress() }
        return response
      }
    }
    if isAssetPath(request.path) { return handleAsset(request) { answer($0) } }
    if request.path.hasPrefix(RequestHandler.courierPath) { return handleCourier(request) { answer($0) } }
    do {
      if let fixed = try fixedAnswer(request) { return answer(.success({ fixed })) }
      let (endpoint, scope) = try route(request)
      let (caller, nextToken) = try authenticate(request)
      // From here on every answer carries the token that has taken the place of the used one.
      let call: EndpointCall
      do throws(CloudError) { call = try self.call(request, caller, scope) } catch {
        return answer(.failure(error), nextToken)
      }
      endpoint.run(call) { answer($0, nextToken) }
    } catch { answer(.failure(error)) }
  }

  private func call(
    _ request: HTTPRequest, _ caller: Caller, _ scope: DatabaseScope
  ) throws(CloudError) -> EndpointCall {
    try server.admit(caller)
    return EndpointCall(
      server: server, caller: caller, scope: scope, features: Features(request.argument("cairn")),
      wantsToken: request.argument("getCurrentSyncToken") == "true",
      numbersAsStrings: request.argument("numbersAsStrings") == "true"
        || request.argument("numberAsStrings") == "true",
      clientID: request.argument("clientId"), base: base(request), body: try body(request))
  }

  func refusal(_ error: CloudError) -> HTTPResponse {
    let uuid = self.uuid()
    let response = failure(error, uuid)
    addHeaders(to: response, uuid)
    response.addHeader("Connection", "close")
    return response
  }

  // MARK: Route

  private func fixedAnswer(_ request: HTTPRequest) throws(CloudError) -> HTTPResponse? {
    if request.path == "/health" { return HTTPResponse(status: 200, copying: Array(#"{"status":"ok"}"#.utf8)) }
    return nil
  }

  /// `/database/1/{container}/{environment}/{database}/{operation}`; calls about tokens also without the database, and
  /// under `/device`.
  private func route(_ request: HTTPRequest) throws(CloudError) -> (Endpoint, DatabaseScope) {
    let parts = request.path.split(separator: "/", maxSplits: 5, omittingEmptySubsequences: true)
    guard parts.count == 6, parts[1] == "1" else { throw unknown(request.path) }
    let container = String(parts[2])
    let isAboutTokens = parts[4] == "tokens" || parts[5].hasPrefix("tokens/")
    guard parts[0] == "database" || parts[0] == "device" && isAboutTokens else { throw unknown(request.path) }
    let operation = parts[4] == "tokens" ? "tokens/\(parts[5])" : String(parts[5])
    guard RequestHandler.isValidContainer(container), let environment = ServerEnvironment(rawValue: String(parts[3])),
      let kind = parts[4] == "tokens" ? .private : DatabaseKind(rawValue: String(parts[4])),
      let endpoint = Endpoint.all[operation]
    else { throw unknown(request.path) }
    guard endpoint.databases.contains(kind) else {
      throw CloudError(.badRequest, "\(endpoint.name) does not work in the \(kind.rawValue) database")
    }
    guard request.method == "POST" || endpoint.allowsGet && request.method == "GET" else {
      throw CloudError(.badRequest, "\(endpoint.name) is not called with \(request.method)")
    }
    return (endpoint, DatabaseScope(container: container, environment: environment, kind: kind))
  }

  private func unknown(_ path: String) -> CloudError { CloudError(.notFound, "There is nothing at \(path)") }

  /// `iCloud.` and letters, digits, dots and hyphens.
  static func isValidContainer(_ name: String) -> Bool {
    let bytes = name.utf8
    return name.hasPrefix("iCloud.") && (8...255).contains(bytes.count)
      && bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  // MARK: Who asks

  /// A web auth token alone is enough (section 3). The second part is the token that takes its place, if one does.
  private func authenticate(_ request: HTTPRequest) throws(CloudError) -> (Caller, String?) {
    if request.header("x-apple-cloudkit-request-keyid") != nil {
      throw CloudError(.authenticationFailed, "Server-to-server keys are not known here")
    }
    guard let token = request.argument("ckWebAuthToken") ?? request.argument("ckSession"), !token.isEmpty else {
      throw CloudError(.authenticationRequired, "request needs authorization", redirectURL: signInURL(request))
    }
    // A plus that was not percent-encoded arrives as a space.
    let hash = WebAuthToken.hash(token.replacing(" ", with: "+"))
    guard let caller = try server.caller(tokenHash: hash) else {
      throw CloudError(.authenticationFailed, "The web auth token is not known")
    }
    guard server.settings.singleUseTokens else { return (caller, nil) }
    let next = WebAuthToken.make(randomness)
    guard try server.replaceToken(hash: hash, with: WebAuthToken.hash(next)) else {
      throw CloudError(.authenticationFailed, "The web auth token has been used")
    }
    return (caller, next)
  }

  private func signInURL(_ request: HTTPRequest) -> String {
    "\(base(request))/signin/\(uuid().prefix(8))"
  }

  /// What stands in front of paths in addresses that are handed out. A proxy says how it was spoken to; a client that
  /// lies about it gets addresses that do not work for itself.
  func base(_ request: HTTPRequest) -> String {
    if let url = server.settings.publicURL { return url.hasSuffix("/") ? String(url.dropLast()) : url }
    let scheme = request.header("x-forwarded-proto") == "https" ? "https" : "http"
    return "\(scheme)://\(request.header("host") ?? "localhost")"
  }

  // MARK: Body

  private func body(_ request: HTTPRequest) throws(CloudError) -> [UInt8] {
    switch request.header("content-encoding")?.lowercased() {
    case nil, "identity", "": return request.body
    case "gzip", "x-gzip":
      do { return try Gzip.decompress(request.body, limit: bodyBytes) } catch {
        throw CloudError(.badRequest, error.description)
      }
    case let other?: throw CloudError(.badRequest, "Content-Encoding \(other) is not understood")
    }
  }

  // MARK: Answers

  private func failure(_ error: CloudError, _ uuid: String) -> HTTPResponse {
    var error = error
    if error.code == .internalError {
      // The reason may hold paths and SQL: for the operator, not for the client.
      log("request \(uuid) failed: \(error.reason)")
      error.reason = "The server failed; its log has the reason under this uuid"
    }
    let response = HTTPResponse(status: error.code.httpStatus, copying: RequestFailure.encode(error, uuid: uuid))
    if let seconds = error.retryAfter, error.code.isRetryable {
      response.addHeader("Retry-After", String(Int(seconds.rounded(.up))))
    }
    return response
  }

  private func addHeaders(to response: HTTPResponse, _ uuid: String) {
    if !response.hasHeader("Content-Type") {
      response.addHeader("Content-Type", "application/json; charset=UTF-8")
    }
    response.addHeader("X-Apple-Request-UUID", uuid)
    response.addHeader("X-Cairn-Features", features)
    response.addHeader(
      "Access-Control-Expose-Headers", "X-Apple-Request-UUID, X-Apple-CloudKit-Web-Auth-Token")
  }

  private func uuid() -> String { randomness.uuid() }
}
