import CairnEngine
import CairnRecords
import CairnWire
import Synchronization

/// One database of one user on a server of the Web Services protocol.
///
/// Calls block the caller's thread, one at a time. The first one learns by users/caller what the server offers; the
/// extensions of web-services section 15 are requested on servers that announced them only.
public final class WebServicesDatabase: CloudDatabase {
  private struct State {
    /// Nil until the first answer.
    var features: ServerFeatures?
    var user: String?
  }

  let options: ServiceOptions
  let transport: any HTTPTransport
  private let compresses: Bool
  private let webAuthToken: WebAuthToken
  private let state = Mutex(State())

  /// Talks over the platform's transport.
  public convenience init(_ options: ServiceOptions) { self.init(options, token: WebAuthToken(options.token)) }

  /// Talks over connections of its own with the token that `other` has, and goes on with what replaces it.
  convenience init(besides other: WebServicesDatabase) { self.init(other.options, token: other.webAuthToken) }

  private convenience init(_ options: ServiceOptions, token: WebAuthToken) {
    let compresses = !options.server.isLoopback
    #if canImport(Darwin)
      let transport = URLSessionTransport()
    #else
      let transport = CurlTransport(caFile: options.caFile, acceptsGzip: compresses)
    #endif
    self.init(options, transport: transport, compresses: compresses, token: token)
  }

  /// - Parameter compresses: whether request bodies may be gzip. Not on loopback: there a page of 1,000 records takes
  ///   longer to compress than to send (docs/internals/wire-client.md).
  init(
    _ options: ServiceOptions, transport: any HTTPTransport, compresses: Bool = false, token: WebAuthToken? = nil
  ) {
    self.options = options
    self.compresses = compresses
    self.transport = transport
    webAuthToken = token ?? WebAuthToken(options.token)
  }

  /// The token of the next call: the one that was given, or what a server put in its place (web-services section 3). To
  /// be stored, never to be shown.
  public var token: String { webAuthToken.current }

  public var limits: CloudLimits {
    let page = state.withLock { $0.features?.page }
    return CloudLimits(entriesPerRequest: page ?? CloudLimits().entriesPerRequest)
  }

  public func cancel() { transport.cancel() }

  /// Whether an answer has said that this is one of Cairn's servers.
  var isCairnServer: Bool { state.withLock { $0.features.map { $0 != .none } ?? false } }

  // MARK: Calls

  /// A database in the path: the user's own calls go to the public one (section 2).
  enum Target { case database, user }

  /// Does a call and reads its answer.
  func call<Answer>(
    _ operation: String, at target: Target = .database, body: [UInt8]?,
    _ decode: ([UInt8]) throws(WireError) -> Answer
  ) throws(CloudError) -> Answer {
    try webAuthToken.inTurn { () throws(CloudError) in try callInTurn(operation, at: target, body: body, decode) }
  }

  private func callInTurn<Answer>(
    _ operation: String, at target: Target, body: [UInt8]?, _ decode: ([UInt8]) throws(WireError) -> Answer
  ) throws(CloudError) -> Answer {
    let token = webAuthToken.current
    let features = state.withLock { $0.features }
    let errors = AnswerErrors(server: options.server, secrets: [token, options.apiToken ?? ""])
    let database = target == .user ? "public" : options.scope.rawValue
    let path = RequestURL.path(options, database: database, operation: operation)
    let query = RequestURL.query(
      apiToken: options.apiToken, token: token, extensions: features?.request, clientID: options.clientID)
    var request = HTTPRequest(url: "\(path)?\(query)", headers: ["User-Agent: cairn"], body: body)
    if body != nil { request.headers.append("Content-Type: application/json") }
    // To a server that has not said that it is one of Cairn's, the name would be of no use.
    if let name = options.deviceName, let features, features != .none {
      request.headers.append("X-Cairn-Device: \(RequestURL.encoded(name))")
    }
    compress(&request, features)

    let answer: HTTPResponse
    do throws(HTTPFailure) {
      answer = try transport.perform(request)
    } catch {
      throw errors.error(error)
    }
    adopt(answer)
    guard (200..<300).contains(answer.status) else { throw errors.error(answer) }
    do throws(WireError) {
      return try decode(answer.body)
    } catch {
      throw errors.undecodable(answer, error)
    }
  }

  private func compress(_ request: inout HTTPRequest, _ features: ServerFeatures?) {
    guard let body = request.body, compresses, body.count >= ClientTuning.compressionThreshold,
      features?.takesGzip == true, let packed = Gzip.compress(body)
    else { return }
    request.body = packed
    request.headers.append("Content-Encoding: gzip")
  }

  /// Takes over what every answer may tell: features, and the token that replaces the used one (section 3).
  private func adopt(_ answer: HTTPResponse) {
    let next =
      answer.headers["x-apple-cloudkit-web-auth-token"] ?? answer.headers["x-apple-cloudkit-session"]
    state.withLock { state in
      if let header = answer.headers["x-cairn-features"] {
        state.features = ServerFeatures(header: header)
      } else if state.features == nil, (200..<300).contains(answer.status) {
        state.features = ServerFeatures.none
      }
    }
    if let next, webAuthToken.replace(with: next) { options.tokenChanged?(next) }
  }

  /// What the server offers, asked for where no answer has told yet.
  func features() throws(CloudError) -> ServerFeatures {
    if let known = state.withLock({ $0.features }) { return known }
    _ = try currentUser()
    return state.withLock { $0.features ?? .none }
  }

  public func currentUser() throws(CloudError) -> String {
    if let known = state.withLock({ $0.user }) { return known }
    let answer = try call("users/caller", at: .user, body: nil) { (body) throws(WireError) in
      try UserAnswer(decoding: body)
    }
    state.withLock { $0.user = answer.userRecordName }
    return answer.userRecordName
  }

  // MARK: Feeds

  public func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    let features = try features()
    let request = DatabaseChangesRequest(syncToken: token?.rawValue, resultsLimit: features.page)
    let body = Self.encode { request.encode(into: &$0) }
    var page = try withToken(token) { () throws(CloudError) in
      try call("changes/database", body: body) { (body) throws(WireError) in try DatabaseChangesAnswer.decode(body) }
    }
    page.changed = page.changed.map(relative)
    page.deleted = page.deleted.map(relative)
    return page
  }

  public func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try zoneChanges(in: zone, since: token, desired: nil)
  }

  public func zoneChanges(in zone: ZoneID, since token: ChangeToken?, types: [String]) throws(CloudError) -> ZonePage {
    var page = try zoneChanges(in: zone, since: token, desired: types)
    // Apple's service does not always limit (section 8).
    page.records.removeAll { !types.contains($0.type) }
    return page
  }

  private func zoneChanges(
    in zone: ZoneID, since token: ChangeToken?, desired types: [String]?
  ) throws(CloudError) -> ZonePage {
    let features = try features()
    var query = ZoneChangesQuery(zone: zone, syncToken: token?.rawValue, resultsLimit: features.page)
    query.desiredRecordTypes = types
    let body = Self.encode { ZoneChangesRequest.encode([query], into: &$0) }
    return try withToken(token) { () throws(CloudError) in
      try call("changes/zone", body: body) { (body) throws(WireError) in
        try ZoneChangesAnswer.decode(body, zone: zone, trustsDeletionTimes: features.reportsDeletionTimes)
      }.get()
    }
  }

  /// BAD_REQUEST to a call with a token means that the token is of no use (section 13, rule 4).
  private func withToken<Answer>(
    _ token: ChangeToken?, _ body: () throws(CloudError) -> Answer
  ) throws(CloudError) -> Answer {
    do throws(CloudError) {
      return try body()
    } catch {
      guard token != nil, error.code == .badRequest else { throw error }
      var expired = error
      expired.code = .changeTokenExpired
      throw expired
    }
  }

  /// The caller's own zones are named by the caller, so that they equal the engine's.
  private func relative(_ zone: ZoneID) -> ZoneID {
    options.scope == .private ? ZoneID(name: zone.name) : zone
  }

  // MARK: Records

  public func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    guard !operations.isEmpty else { return ModifyReport([]) }
    var style = WireStyle.client
    style.tombstoneTime = try features().reportsDeletionTimes
    let body = Self.encode(capacity: operations.count * 1024) {
      ModifyRequest.encode(zone: zone, operations, atomic: atomic, style: style, into: &$0)
    }
    let answer = try call("records/modify", body: body) { (body) throws(WireError) in
      try ModifyAnswer.decode(body, to: operations)
    }
    return ModifyReport(answer.outcomes, position: answer.position)
  }

  public func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    guard !names.isEmpty else { return [] }
    _ = try features()
    let body = Self.encode { LookupRequest.encode(zone: zone, names: names, into: &$0) }
    return try call("records/lookup", body: body) { (body) throws(WireError) in
      try LookupAnswer.decode(body, zone: zone, names: names)
    }
  }

  /// What may not be shown in an error of a request to another address than the service's.
  func errors(hiding secret: String) -> AnswerErrors {
    AnswerErrors(server: options.server, secrets: [token, options.apiToken ?? "", secret])
  }

  // MARK: Zones

  public func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try modifyZones(zones.map { .create($0) }).map { result in
      // Creating what exists succeeds (section 10).
      if case .failure(let zone, let error) = result { return error.code == .exists ? .success(zone) : .failure(error) }
      return .success(result.zone)
    }
  }

  public func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try modifyZones(zones.map { .delete($0) }).map { result in
      if case .failure(_, let error) = result { return .failure(error) }
      return .success(result.zone)
    }
  }

  private enum ZoneResult {
    case success(ZoneID)
    case failure(ZoneID, CloudError)

    var zone: ZoneID {
      switch self {
      case .success(let zone), .failure(let zone, _): zone
      }
    }
  }

  private func modifyZones(_ operations: [ZonesModifyRequest.Operation]) throws(CloudError) -> [ZoneResult] {
    guard !operations.isEmpty else { return [] }
    _ = try features()
    let body = Self.encode { ZonesModifyRequest.encode(operations, into: &$0) }
    return try call("zones/modify", body: body) { (body) throws(WireError) in
      let entries = try ZonesAnswer.decode(body)
      guard entries.count == operations.count else {
        throw WireError(.value, "another number of zones than were asked for", at: 0)
      }
      return zip(operations, entries).map { operation, entry in
        entry.error.map { .failure(operation.zone, $0) } ?? .success(operation.zone)
      }
    }
  }

  public func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    _ = try features()
    let body = Self.encode { ZonesLookupRequest.encode([zone], into: &$0) }
    do throws(CloudError) {
      let entry = try call("zones/lookup", body: body) { (body) throws(WireError) in
        guard let entry = try ZonesAnswer.decode(body).first else {
          throw WireError(.value, "the answer holds no zone", at: 0)
        }
        return entry
      }
      if let error = entry.error { throw error }
      return !entry.isDeleted
    } catch {
      // The zone is missing as an entry or as the whole request (section 4).
      if error.code == .zoneNotFound { return false }
      throw error
    }
  }

  static func encode(capacity: Int = 512, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter(capacity: capacity)
    body(&writer)
    return writer.bytes
  }
}
