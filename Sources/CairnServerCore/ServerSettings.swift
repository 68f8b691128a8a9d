/// What an operator may set, and the limits of web-services section 12.
public struct ServerSettings: Sendable {
  /// Operations, look-ups and entries per request where the client asked for no more.
  public var entriesPerRequest = 200
  /// The most that the extension `page=N` gives.
  public var announcedMaximum = 2_000
  /// Bytes of a stored record without assets.
  public var bytesPerRecord = 1_000_000
  /// Bytes of fields after which a page of a feed ends, so that memory per answer is bounded.
  public var bytesPerPage = 8_000_000
  /// Rows that one page looks at before it ends empty-handed.
  public var rowsPerScan = 20_000
  /// `DELETE_SELF` references to one target.
  public var deleteSelfReferrers = 750
  /// How long tombstones are kept, in ms.
  public var tombstoneRetention: Int64 = 180 * 86_400_000
  /// How often tombstones are looked through for old ones, in ms.
  public var pruningInterval: Int64 = 3_600_000
  /// Whether `_defaultZone` has a change feed. Apple's has none (web-services section 8).
  public var defaultZoneHasFeed = true
  /// Environments whose schema refuses unknown types and fields (web-services section 7).
  public var lockedEnvironments: Set<ServerEnvironment> = []

  /// Whether a web auth token serves one request, whose answer carries the next one (web-services section 3).
  public var singleUseTokens = false
  /// Requests of one user; ten seconds' worth may come at once. Nil does not limit.
  public var requestsPerSecond: Double?

  /// Subscriptions of one database, and bytes of what one holds beside its query.
  public var subscriptionsPerDatabase = 200
  public var bytesPerSubscription = 32_000
  /// Addresses for notifications of one user.
  public var couriersPerUser = 100
  /// Notifications that wait at one address before they collapse to one per zone.
  public var notificationsPerCourier = 50
  /// Polls that wait at once. Fewer than the connections of the listener, so that requests have theirs.
  public var waitingPolls = 700
  /// How long a poll is held, in ms.
  public var pollHold = 55_000

  /// Who may take part in one share, everybody counted who was invited or has come with its short GUID.
  public var participantsPerShare = 500

  /// Bytes of an asset.
  public var bytesPerAsset: Int64 = 50 << 20
  /// How long an upload address works, in ms.
  public var uploadLife: Int64 = 900_000
  /// How long a receipt can be used, in ms; so long are uploaded bytes kept that no record has.
  public var receiptLife: Int64 = 3_600_000
  /// How long a download address works at least, in ms.
  public var downloadLife: Int64 = 3_600_000
  /// The address under which clients reach the server, `https://HOST[:PORT][/PATH]`, for addresses of assets; nil takes
  /// the host that each request names.
  public var publicURL: String?

  public init() {}
}

/// The two environments of a container.
public enum ServerEnvironment: String, Hashable, Sendable, CaseIterable {
  case development, production
}

/// The three databases of a container.
public enum DatabaseKind: String, Hashable, Sendable, CaseIterable {
  case `public`, `private`, shared
}

/// Which database a request is about.
public struct DatabaseScope: Hashable, Sendable {
  public var container: String
  public var environment: ServerEnvironment
  public var kind: DatabaseKind

  public init(container: String, environment: ServerEnvironment = .production, kind: DatabaseKind = .private) {
    self.container = container
    self.environment = environment
    self.kind = kind
  }

  /// The words under which storage keeps it; nil where this version does not know one.
  public init?(stored container: String, _ environment: String, _ kind: String) {
    guard let environment = ServerEnvironment(rawValue: environment), let kind = DatabaseKind(rawValue: kind) else {
      return nil
    }
    self.init(container: container, environment: environment, kind: kind)
  }

  /// Another database of the same container and environment.
  func of(_ kind: DatabaseKind) -> DatabaseScope {
    DatabaseScope(container: container, environment: environment, kind: kind)
  }
}

/// What a client asked for beside the request proper (web-services section 15).
public struct RequestOptions: Hashable, Sendable {
  /// `page=N`: entries and operations up to the lesser of this and the announced maximum.
  public var page: Int?
  /// `conflict-record`: conflicts carry the server's record.
  public var conflictRecords = false
  /// `tombstone-all`: a fetch without a token replays retained tombstones.
  public var allTombstones = false

  public init(page: Int? = nil, conflictRecords: Bool = false, allTombstones: Bool = false) {
    self.page = page
    self.conflictRecords = conflictRecords
    self.allTombstones = allTombstones
  }
}
