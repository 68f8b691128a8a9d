import CairnRecords

/// What a client wants to be told of (web-services section 11).
public struct Subscription: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable, CaseIterable { case query, zone, database }

  /// What happened to a record; the raw value is a notification's `fo`.
  public enum Event: Int, Hashable, Sendable, CaseIterable {
    case create = 1
    case update
    case delete

    public init?(name: String) {
      switch name {
      case "create": self = .create
      case "update": self = .update
      case "delete": self = .delete
      default: return nil
      }
    }
  }

  /// Empty where the client left the name to the server.
  public var id: String
  public var kind: Kind
  /// The zone that it looks at; nil for all.
  public var zone: ZoneID?
  /// Which records, for ``Kind/query``.
  public var query: RecordQuery?
  /// Which events, for ``Kind/query``.
  public var firesOn: Set<Event>
  /// Whether it ends with its first notification.
  public var firesOnce: Bool
  /// What answers show beside name and zone, in the form of the layer that spells them.
  public var content: [UInt8]

  public init(
    id: String, kind: Kind, zone: ZoneID? = nil, query: RecordQuery? = nil, firesOn: Set<Event> = [],
    firesOnce: Bool = false, content: [UInt8] = []
  ) {
    self.id = id
    self.kind = kind
    self.zone = zone
    self.query = query
    self.firesOn = firesOn
    self.firesOnce = firesOnce
    self.content = content
  }
}

/// A subscription row.
public struct StoredSubscription: Sendable {
  public var id: String
  public var kind: Subscription.Kind
  /// The zone's name; nil for all zones.
  public var zone: String?
  /// In the form of ``RecordQuery/encoded``.
  public var query: [UInt8]?
  /// Bits by the events' raw values.
  public var events: Int64
  public var firesOnce: Bool
  public var content: [UInt8]

  public init(
    id: String, kind: Subscription.Kind, zone: String?, query: [UInt8]?, events: Int64, firesOnce: Bool,
    content: [UInt8]
  ) {
    self.id = id
    self.kind = kind
    self.zone = zone
    self.query = query
    self.events = events
    self.firesOnce = firesOnce
    self.content = content
  }
}

/// One element of a subscriptions/modify request.
public enum SubscriptionOperation: Sendable {
  case create(Subscription)
  case update(Subscription)
  case delete(String)
  /// What is wrong with it already; it fails with this.
  case failed(String, CloudError)

  public var id: String {
    switch self {
    case .create(let subscription), .update(let subscription): subscription.id
    case .delete(let id), .failed(let id, _): id
    }
  }
}
