import CairnRecords
import CairnServerCore
import CairnWire

/// Routes requests, finds out who asks, and spells answers and errors (web-services sections 1 to 4).
///
/// Checks run in this order: route, authentication, JSON, request limits, zone, operations.
final class RequestHandler: HTTPHandler {
  let server: CloudServer
  /// Prefixes the request UUIDs and signs nothing: it only has to be different each time.
  let randomness: any ServerRandomness
  private let features: String
  private let bodyBytes: Int
  /// Whether clients speak TLS with this process itself.
  private let isSecure: Bool
  let servesConsole: Bool
  let replays = ReplayGuard()
  /// Is told of every answer.
  let observer: any RequestObserver
  /// Takes one line about a fault of the server itself.
  let log: @Sendable (String) -> Void

  init(
    server: CloudServer, randomness: any ServerRandomness = SystemServerRandomness(), bodyBytes: Int,
    isSecure: Bool = false, servesConsole: Bool = true, observer: any RequestObserver = NoObserver(),
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.server = server
    self.randomness = randomness
    self.bodyBytes = bodyBytes
    self.isSecure = isSecure
    self.servesConsole = servesConsole
    self.observer = observer
    self.log = log
    features = Features.announcement(server.settings)
  }

  func handle(_ request: HTTPRequest, respond: @escaping @Sendable (@escaping ResponseMaker) -> Void) {
    var visit = Visit(request, uuid: uuid(), started: MonotonicClock.now)
    do throws(CloudError) {
      if let later = try handleOutsideDatabases(request, &visit) {
        let visit = visit
        return later { [self] in answer($0, visit, respond) }
      }
      let (endpoint, scope) = try route(request)
      visit.operation = endpoint.name
      visit.scope = scope
      try authenticate(request, endpoint, scope, &visit)
      let call = try call(request, scope, visit)
      server.noteVisit(call.caller, device: device(request), container: scope.container)
      let visit = visit
      endpoint.run(call) { [self] in answer($0, visit, respond) }
    } catch {
      // With what was found out up to there: a token that was replaced, the origin that may read the answer.
      answer(.failure(error), visit, respond)
    }
  }

  /// What is served beside the databases; nil where the path is none of that.
  private func handleOutsideDatabases(
    _ request: HTTPRequest, _ visit: inout Visit
  ) throws(CloudError) -> ((@escaping Answer) -> Void)? {
    if request.method == "OPTIONS" {
      visit.operation = "preflight"
      let response = try preflight(request, &visit)
      return { $0(.success({ response })) }
    }
    if isAssetPath(request.path) {
      visit.operation = request.path.hasPrefix(CloudServer.uploadPath) ? "asset-upload" : "asset"
      visit.origin = request.header("origin").map { _ in "*" }
      return { [self] in handleAsset(request, $0) }
    }
    if request.path.hasPrefix(RequestHandler.courierPath) {
      visit.operation = "courier"
      visit.origin = request.header("origin").map { _ in "*" }
      return { [self] in handleCourier(request, $0) }
    }
    if handlesSignIn(request.path) {
      visit.operation = "signin"
      let response = try signIn(request)
      return { $0(.success({ response })) }
    }
    if isConsolePath(request.path) {
      visit.operation = "console"
      let answer = try console(request, &visit)
      return { $0(.success(answer)) }
    }
    guard request.path == "/health" else { return nil }
    visit.operation = "health"
    guard request.method == "GET" || request.method == "HEAD" else {
      throw CloudError(.badRequest, "The health is fetched with GET")
    }
    return { [self] answer in answer(health()) }
  }

  /// Whether the store can be read.
  func health() -> Result<ResponseMaker, CloudError> {
    do throws(CloudError) {
      try server.checkStore()
      return .success({ HTTPResponse(status: 200, copying: Array(#"{"status":"ok"}"#.utf8)) })
    } catch { return .failure(CloudError(.tryAgainLater, "The store can't be read", retryAfter: 5)) }
  }

  private func answer(
    _ result: Result<ResponseMaker, CloudError>, _ visit: Visit,
    _ respond: @Sendable (@escaping ResponseMaker) -> Void
  ) {
    respond { [self] in
      let response: HTTPResponse
      var code: CloudError.Code?
      switch result {
      case .success(let maker): response = maker()
      case .failure(let error):
        code = error.code
        response = failure(error, visit.uuid)
      }
      addHeaders(to: response, visit.uuid)
      if let token = visit.nextToken { response.addHeader("X-Apple-CloudKit-Web-Auth-Token", token) }
      if let origin = visit.origin {
        response.addHeader("Access-Control-Allow-Origin", origin)
        response.addHeader("Vary", "Origin")
      }
      if visit.takesGzip { response.compress() }
      observer.answered(visit, status: response.status, code: code, bytes: response.bodyCount)
      return response
    }
  }

  private func call(
    _ request: HTTPRequest, _ scope: DatabaseScope, _ visit: Visit
  ) throws(CloudError) -> EndpointCall {
    let caller = visit.caller ?? .anonymous
    try server.admit(caller)
    let switches = visit.app?.switches ?? []
    return EndpointCall(
      server: server, caller: caller, scope: scope, features: Features(request.argument("cairn"), switches),
      wantsToken: request.isTrue("getCurrentSyncToken"),
      numbersAsStrings: request.isTrue("numbersAsStrings") || request.isTrue("numberAsStrings"),
      clientID: request.argument("clientId"), base: base(request), body: try body(request))
  }

  func refusal(_ error: CloudError) -> HTTPResponse {
    let uuid = self.uuid()
    let response = failure(error, uuid)
    addHeaders(to: response, uuid)
    response.addHeader("Connection", "close")
    observer.refused(uuid, status: response.status, code: error.code)
    return response
  }

  // MARK: Route

  /// `/database/1/{container}/{environment}/{database}/{operation}`; calls about tokens also without the database, and
  /// under `/device`.
  func route(
    _ request: HTTPRequest, isPreflight: Bool = false
  ) throws(CloudError) -> (Endpoint, DatabaseScope) {
    let parts = request.path.split(separator: "/", maxSplits: 5, omittingEmptySubsequences: true)
    guard parts.count == 6, parts[1] == "1" else { throw unknown }
    let container = String(parts[2])
    let isAboutTokens = parts[4] == "tokens" || parts[5].hasPrefix("tokens/")
    guard parts[0] == "database" || parts[0] == "device" && isAboutTokens else { throw unknown }
    let operation = parts[4] == "tokens" ? "tokens/\(parts[5])" : String(parts[5])
    guard CloudServer.isValidContainer(container), let environment = ServerEnvironment(rawValue: String(parts[3])),
      let kind = parts[4] == "tokens" ? .private : DatabaseKind(rawValue: String(parts[4])),
      let endpoint = Endpoint.all[operation]
    else { throw unknown }
    guard endpoint.databases.contains(kind) else {
      throw CloudError(.badRequest, "\(endpoint.name) does not work in the \(kind.rawValue) database")
    }
    guard isPreflight || request.method == "POST" || endpoint.allowsGet && request.method == "GET" else {
      throw CloudError(.badRequest, "\(endpoint.name) is not called with \(request.method)")
    }
    return (endpoint, DatabaseScope(container: container, environment: environment, kind: kind))
  }

  private var unknown: CloudError { CloudError(.notFound, "There is nothing at this path") }

  /// What stands in front of paths in addresses that are handed out. A proxy says how it was spoken to; a client that
  /// lies about it gets addresses that do not work for itself.
  func base(_ request: HTTPRequest) -> String {
    if let url = server.settings.publicURL { return url.hasSuffix("/") ? String(url.dropLast()) : url }
    let scheme = isSecure || request.header("x-forwarded-proto") == "https" ? "https" : "http"
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
    } else if let detail = error.detail {
      log("request \(uuid) can't be answered now: \(detail)")
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
    // What clients store must not be taken for a page of this server.
    if !response.hasHeader("X-Content-Type-Options") { response.addHeader("X-Content-Type-Options", "nosniff") }
    response.addHeader("X-Apple-Request-UUID", uuid)
    response.addHeader("X-Cairn-Features", features)
    response.addHeader(
      "Access-Control-Expose-Headers", "X-Apple-Request-UUID, X-Apple-CloudKit-Web-Auth-Token")
  }

  func uuid() -> String { randomness.uuid() }
}
