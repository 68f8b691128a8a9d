/// Which database of which server a ``WebServicesDatabase`` talks to, and as whom.
public struct ServiceOptions: Sendable {
  /// The two environments of a container.
  public enum Environment: String, Hashable, Sendable { case development, production }

  /// The databases that have change feeds (web-services section 2).
  public enum Scope: String, Hashable, Sendable {
    case `private`
    case shared
  }

  public var server: ServerURL
  /// Begins with `iCloud.`.
  public var container: String
  public var environment: Environment
  public var scope: Scope
  /// The web auth token. It is sent in the query and appears in no error and no description.
  public var token: String
  /// The API token that Apple's service wants beside the web auth token.
  public var apiToken: String?
  /// A file with the certificates of authorities to trust, PEM, in place of curl's own. Linux only.
  public var caFile: String?
  /// Names this client, so that a server tells it of others' changes only (web-services section 11).
  public var clientID: String?
  /// What this device calls itself on servers of Cairn's (web-services section 17), for people to read.
  public var deviceName: String?
  /// Called with each token that replaces the one before (web-services section 3), on the thread of the call.
  public var tokenChanged: (@Sendable (String) -> Void)?

  public init(
    server: ServerURL, container: String = "iCloud.cairn", environment: Environment = .production,
    scope: Scope = .private, token: String, apiToken: String? = nil, caFile: String? = nil
  ) {
    self.server = server
    self.container = container
    self.environment = environment
    self.scope = scope
    self.token = token
    self.apiToken = apiToken
    self.caFile = caFile
  }
}

extension ServiceOptions: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(server) \(container) \(environment.rawValue) \(scope.rawValue)" }
  public var debugDescription: String { description }
  /// Keeps the tokens out of `dump`.
  public var customMirror: Mirror { Mirror(self, children: ["service": description]) }
}
