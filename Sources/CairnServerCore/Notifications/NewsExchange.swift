import CairnRecords

/// How the servers of a shared store tell each other what has happened. Hints only: a message that is lost costs a
/// client the wait for its next fetch, no data.
public protocol NewsExchange: AnyObject, Sendable {
  /// Begins to listen. `hear` is called on the exchange's thread.
  func start(_ hear: @escaping @Sendable (NewsEvent) -> Void)

  /// Sends to the others, without waiting. A message has at most ``NewsMessage/longest`` bytes.
  func tell(_ message: [UInt8])

  /// Ends listening and sending.
  func stop()
}

/// What an exchange hears.
public enum NewsEvent: Sendable {
  /// Sent by another server.
  case message([UInt8])
  /// The exchange listens from now on. Messages of before may be missing, at its start or after a loss of its
  /// connection.
  case gap
}

/// An address for notifications, as a shared store keeps it.
public struct StoredCourier: Hashable, Sendable {
  public var token: String
  /// Storage's key of the user.
  public var user: Int64
  /// The client that it belongs to, where it has a name.
  public var clientID: String?
  /// The containers of which it is told.
  public var apps: [App]
  /// When it was last seen, in ms since 1970, give or take some hours.
  public var used: Int64

  public struct App: Hashable, Sendable {
    public var container: String
    public var environment: ServerEnvironment

    public init(container: String, environment: ServerEnvironment) {
      self.container = container
      self.environment = environment
    }
  }

  public init(token: String, user: Int64, clientID: String?, apps: [App], used: Int64) {
    self.token = token
    self.user = user
    self.clientID = clientID
    self.apps = apps
    self.used = used
  }
}

/// What one server tells another, in the form of ``FieldBlob``.
public enum NewsMessage: Hashable, Sendable {
  case news(CloudNotification, user: Int64, clientID: String?)
  /// An address is new, or is told of more containers than before.
  case courier(String)
  /// An address has ended.
  case ended(String)

  /// In bytes; what does not fit is not sent.
  public static let longest = 5_000

  var encoded: [UInt8] {
    var fields: [(String, FieldValue?)]
    switch self {
    case .news(let news, let user, let clientID):
      fields = [
        ("k", .string("n")), ("u", .int64(user)), ("b", clientID.map { .string($0) }), ("c", .string(news.container)),
        ("e", .string(news.environment.rawValue)), ("s", .string(news.subscription)), ("z", .string(news.zone.name)),
        ("o", .string(news.zone.owner)), ("r", news.change.map { .string($0.record) }),
        ("f", news.change.map { .int64(Int64($0.event.rawValue)) }),
      ]
    case .courier(let token): fields = [("k", .string("c")), ("t", .string(token))]
    case .ended(let token): fields = [("k", .string("e")), ("t", .string(token))]
    }
    fields.removeAll { $0.1 == nil }
    return FieldBlob.encode(Fields(uniqueFields: fields.map { Field($0.0, $0.1) }))
  }

  /// Nil for what a newer server may say.
  init?(_ bytes: [UInt8]) {
    // A message that can't be read is a hint that is lost.
    guard let fields = try? FieldBlob.decode(bytes) else { return nil }
    func text(_ name: String) -> String? { if case .string(let text)? = fields[name] { text } else { nil } }
    func number(_ name: String) -> Int64? { if case .int64(let number)? = fields[name] { number } else { nil } }
    switch text("k") {
    case "c": self = .courier(text("t") ?? "")
    case "e": self = .ended(text("t") ?? "")
    case "n":
      guard let user = number("u"), let container = text("c"), let environment = text("e"),
        let environment = ServerEnvironment(rawValue: environment), let subscription = text("s"),
        let zone = text("z"), let owner = text("o")
      else { return nil }
      var change: CloudNotification.Change?
      if let record = text("r"), let event = number("f"), let event = Subscription.Event(rawValue: Int(event)) {
        change = CloudNotification.Change(record: record, event: event)
      }
      self = .news(
        CloudNotification(
          container: container, environment: environment, subscription: subscription,
          zone: ZoneID(name: zone, owner: owner), change: change), user: user, clientID: text("b"))
    default: return nil
    }
  }
}
