import CairnRecords
import CairnServerCore
import CairnWire

/// One operation of web-services section 2.
struct Endpoint: Sendable {
  typealias Answer = @Sendable (Result<ResponseMaker, CloudError>) -> Void

  /// The path after the database: `records/modify`.
  var name: String
  /// Whether GET is allowed beside POST.
  var allowsGet = false
  var databases: Set<DatabaseKind>
  /// Whether an API token alone opens it in the public database (section 3).
  var isPublicRead = false
  /// Does the work. Calls `answer` once, at once or later, from any thread.
  var run: @Sendable (EndpointCall, @escaping Answer) -> Void

  /// An endpoint whose work is done when `body` returns.
  init(
    _ name: String, allowsGet: Bool = false, _ databases: Set<DatabaseKind>,
    _ body: @escaping @Sendable (EndpointCall) throws(CloudError) -> HTTPResponse
  ) {
    self.init(
      name, allowsGet: allowsGet, databases,
      later: { call, answer in
        let result: Result<ResponseMaker, CloudError>
        do throws(CloudError) {
          let response = try body(call)
          result = .success({ response })
        } catch { result = .failure(error) }
        answer(result)
      })
  }

  init(
    _ name: String, allowsGet: Bool = false, _ databases: Set<DatabaseKind>,
    later run: @escaping @Sendable (EndpointCall, @escaping Answer) -> Void
  ) {
    self.name = name
    self.allowsGet = allowsGet
    self.databases = databases
    self.run = run
    isPublicRead = Endpoint.publicReads.contains(name)
  }

  private static let publicReads: Set<String> = [
    "records/query", "records/lookup", "zones/list", "zones/lookup", "zones/changes",
  ]

  /// Every endpoint by its path.
  static let all: [String: Endpoint] = {
    let list: [Endpoint] = [
      .recordsModify, .recordsQuery, .recordsLookup, .changesZone, .recordsChanges, .changesDatabase, .zonesChanges,
      .zonesList, .zonesLookup, .zonesModify, .usersCaller, .usersCurrent, .assetsUpload, .assetsRereference,
      .subscriptionsList, .subscriptionsLookup, .subscriptionsModify, .tokensCreate, .tokensRegister,
      .recordsResolve, .recordsAccept, .usersDiscover, .usersLookupEmail, .usersLookupID, .usersLookupContacts,
    ]
    return Dictionary(list.map { ($0.name, $0) }) { first, _ in first }
  }()
}

/// A request that has passed routing and authentication.
struct EndpointCall: Sendable {
  var server: CloudServer
  var caller: Caller
  var scope: DatabaseScope
  var features: Features
  /// `getCurrentSyncToken` among the query's arguments.
  var wantsToken: Bool
  var numbersAsStrings: Bool
  /// `clientId` among the query's arguments.
  var clientID: String?
  /// What stands in front of paths in addresses that are handed out.
  var base: String
  var body: [UInt8]

  /// The body as a request; a body that cannot be read is a `BAD_REQUEST`.
  func request<Request: WireRequest>(_ type: Request.Type) throws(CloudError) -> Request {
    do { return try Request(decoding: body) } catch { throw CloudError(.badRequest, error.description) }
  }

  func style(numbersAsStrings: Bool = false) -> WireStyle {
    var style = features.style(numbersAsStrings: numbersAsStrings || self.numbersAsStrings)
    style.assetBase = base
    return style
  }

  /// An error as this client understands it: expired tokens have a code of their own only where it was asked for.
  func spelled(_ error: CloudError) -> CloudError {
    guard error.code == .changeTokenExpired, !features.expiredCode else { return error }
    return CloudError(.badRequest, error.reason)
  }

  /// A zone as answers name it, whatever the request called its owner.
  func answered(_ zone: ZoneID) -> ZoneID {
    CloudServer.owns(caller, zone) ? ZoneID(name: zone.name, owner: caller.recordName) : zone
  }

  /// The answer whose body `write` writes.
  func response(_ capacity: Int = 4096, _ write: (inout JSONWriter) -> Void) -> HTTPResponse {
    var writer = JSONWriter(capacity: capacity)
    write(&writer)
    return HTTPResponse(status: 200, body: writer)
  }
}
