import CairnRecords
import Synchronization

/// One thing that a client is told. A hint: losing it loses no data.
public struct CloudNotification: Hashable, Sendable {
  public struct Change: Hashable, Sendable {
    public var record: String
    public var event: Subscription.Event
  }

  public var container: String
  public var environment: ServerEnvironment
  public var subscription: String
  public var zone: ZoneID
  /// Which record, for a query's subscription; nil says that the zone has something new.
  public var change: Change?
}

/// How a poll ends.
public enum PollAnswer: Sendable {
  /// The notification under its name.
  case notification(String, CloudNotification)
  /// Time is up, or a newer poll has come.
  case nothing
  /// There is no such address (any more).
  case unknown
  /// Too many clients wait, or the server stops.
  case busy
}

/// Who waits for notifications, and what they have not fetched yet (web-services section 11). In memory only: clients
/// of a server that was started again make new addresses. The servers of a shared store know each other's.
///
/// Waiting costs no thread: a poll is a closure that is called once. All calls from any thread; closures are called
/// without a lock held.
public final class NotificationHub: Sendable {
  /// Whose changes, of which container.
  public struct App: Hashable, Sendable {
    let user: Int64
    var container: String
    var environment: ServerEnvironment

    public init(_ caller: Caller, _ scope: DatabaseScope) {
      user = caller.key
      container = scope.container
      environment = scope.environment
    }

    init(_ user: Int64, _ scope: DatabaseScope) {
      self.user = user
      container = scope.container
      environment = scope.environment
    }

    init(_ user: Int64, _ news: CloudNotification) {
      self.user = user
      container = news.container
      environment = news.environment
    }

    init(_ user: Int64, _ app: StoredCourier.App) {
      self.user = user
      container = app.container
      environment = app.environment
    }
  }

  /// A poll that may have to be ended by the clock.
  public struct Poll: Hashable, Sendable {
    fileprivate var courier: String
    fileprivate var number: Int
  }

  typealias Answer = @Sendable (PollAnswer) -> Void

  fileprivate struct WaitingPoll {
    var number: Int
    /// Whether the client has left: nothing would reach it.
    var isAbandoned: @Sendable () -> Bool
    var answer: Answer
  }

  fileprivate struct Courier {
    var user: Int64
    var apps: Set<App>
    /// Changes that came with the same name are not told here: their maker knows them.
    var clientID: String?
    var queue: [CloudNotification] = []
    var poll: WaitingPoll?
    var lastUse: Int
  }

  private struct State {
    var couriers: [String: Courier] = [:]
    /// The couriers of each app that has any.
    var listeners: [App: Set<String>] = [:]
    var number = 0
    var waiting = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let settings: ServerSettings

  init(_ settings: ServerSettings) { self.settings = settings }

  // MARK: Addresses

  /// Makes the address `token`. A user who has too many loses the one that was not used for the longest time.
  ///
  /// - Returns: the one that was lost.
  @discardableResult
  func add(_ token: String, _ app: App, clientID: String?) -> String? {
    let (lost, ended): (String?, Answer?) = state.withLock { state in
      var lost: String?
      var ended: Answer?
      let own = state.couriers.filter { $0.value.user == app.user }
      if own.count >= settings.couriersPerUser, let oldest = own.min(by: { $0.value.lastUse < $1.value.lastUse }) {
        lost = oldest.key
        ended = remove(oldest.key, &state)
      }
      state.number += 1
      state.couriers[token] = Courier(user: app.user, apps: [app], clientID: clientID, lastUse: state.number)
      state.listeners[app, default: []].insert(token)
      return (lost, ended)
    }
    ended?(.unknown)
    return lost
  }

  func knows(_ token: String) -> Bool { state.withLock { $0.couriers[token] != nil } }

  /// Takes an address that another server has made or changed. What waits here for one that is known stays.
  func adopt(_ stored: StoredCourier) {
    state.withLock { state in
      guard !state.isClosed else { return }
      let apps = Set(stored.apps.map { App(stored.user, $0) })
      if state.couriers[stored.token] == nil {
        state.number += 1
        state.couriers[stored.token] = Courier(
          user: stored.user, apps: [], clientID: stored.clientID, lastUse: state.number)
      }
      state.couriers[stored.token]?.apps.formUnion(apps)
      for app in apps { state.listeners[app, default: []].insert(stored.token) }
    }
  }

  /// Ends an address that another server has ended.
  func remove(_ token: String) {
    let ended = state.withLock { remove(token, &$0) }
    ended?(.unknown)
  }

  private func remove(_ token: String, _ state: inout State) -> Answer? {
    guard let courier = state.couriers.removeValue(forKey: token) else { return nil }
    for app in courier.apps {
      state.listeners[app]?.remove(token)
      if state.listeners[app]?.isEmpty == true { state.listeners[app] = nil }
    }
    if courier.poll != nil { state.waiting -= 1 }
    return courier.poll?.answer
  }

  /// Has the address told of another container too.
  ///
  /// - Returns: false when the user has no such address.
  func join(_ token: String, _ app: App) -> Bool {
    state.withLock { state in
      guard let courier = state.couriers[token], courier.user == app.user,
        courier.apps.contains(app) || courier.apps.count < settings.couriersPerUser
      else { return false }
      state.couriers[token]?.apps.insert(app)
      state.listeners[app, default: []].insert(token)
      return true
    }
  }

  /// Whether anybody would hear of a change.
  func hasListener(_ app: App) -> Bool { state.withLock { $0.listeners[app] != nil } }

  /// Everything that anybody would hear of.
  var apps: [App] { state.withLock { Array($0.listeners.keys) } }

  /// The users who would hear of something in a container, by their keys.
  func listeners(_ container: String, _ environment: ServerEnvironment) -> Set<Int64> {
    state.withLock { state in
      Set(state.listeners.keys.filter { $0.container == container && $0.environment == environment }.map(\.user))
    }
  }

  /// Polls that wait now.
  public var waiting: Int { state.withLock { $0.waiting } }

  // MARK: Polls

  /// Asks for the next notification. `answer` is called at once, or later, once.
  ///
  /// - Parameter isAbandoned: whether the client has left meanwhile; what it would have been told stays for its next
  ///   poll. Called with a lock held, until `answer` is.
  /// - Returns: what ``timeOut(_:)`` ends, where the poll has to wait.
  @discardableResult
  public func poll(
    _ token: String, isAbandoned: @escaping @Sendable () -> Bool = { false },
    _ answer: @escaping @Sendable (PollAnswer) -> Void
  ) -> Poll? {
    var older: Answer?
    let (now, poll): (PollAnswer?, Poll?) = state.withLock { state in
      guard !state.isClosed else { return (.busy, nil) }
      guard var courier = state.couriers.removeValue(forKey: token) else { return (.unknown, nil) }
      defer { state.couriers[token] = courier }
      state.number += 1
      courier.lastUse = state.number
      if let waiting = courier.poll {
        older = waiting.answer
        courier.poll = nil
        state.waiting -= 1
      }
      if !courier.queue.isEmpty {
        return (.notification("n\(state.number)", courier.queue.removeFirst()), nil)
      }
      guard state.waiting < settings.waitingPolls else { return (.busy, nil) }
      courier.poll = WaitingPoll(number: state.number, isAbandoned: isAbandoned, answer: answer)
      state.waiting += 1
      return (nil, Poll(courier: token, number: state.number))
    }
    older?(.nothing)
    if let now { answer(now) }
    return poll
  }

  /// Ends a poll whose time is up. Does nothing to one that has ended.
  public func timeOut(_ poll: Poll) {
    let answer: Answer? = state.withLock { state in
      guard let waiting = state.couriers[poll.courier]?.poll, waiting.number == poll.number else { return nil }
      state.couriers[poll.courier]?.poll = nil
      state.waiting -= 1
      return waiting.answer
    }
    answer?(.nothing)
  }

  /// Ends all polls; later ones are refused.
  public func close() {
    let answers: [Answer] = state.withLock { state in
      state.isClosed = true
      state.waiting = 0
      let answers = state.couriers.values.compactMap { $0.poll?.answer }
      state.couriers = [:]
      state.listeners = [:]
      return answers
    }
    for answer in answers { answer(.busy) }
  }

  // MARK: News

  /// Tells everybody who listens, but for couriers with the maker's `clientID`.
  func post(_ notifications: [CloudNotification], _ app: App, from clientID: String?) {
    guard !notifications.isEmpty else { return }
    var answers: [(Answer, PollAnswer)] = []
    state.withLock { state in
      for token in state.listeners[app] ?? [] {
        guard var courier = state.couriers[token] else { continue }
        if let own = courier.clientID, own == clientID { continue }
        for notification in notifications { courier.add(notification, limit: settings.notificationsPerCourier) }
        if let poll = courier.poll {
          if poll.isAbandoned() {
            answers.append((poll.answer, .nothing))
          } else {
            state.number += 1
            answers.append((poll.answer, .notification("n\(state.number)", courier.queue.removeFirst())))
          }
          courier.poll = nil
          state.waiting -= 1
        }
        state.couriers[token] = courier
      }
    }
    for (answer, result) in answers { answer(result) }
  }
}

extension NotificationHub.Courier {
  /// Takes one more; equal ones are kept once, and a full queue becomes one entry per zone.
  fileprivate mutating func add(_ notification: CloudNotification, limit: Int) {
    guard !queue.contains(notification) else { return }
    queue.append(notification)
    guard queue.count > limit else { return }
    struct Place: Hashable {
      var container: String
      var environment: ServerEnvironment
      var zone: ZoneID
    }
    var seen: Set<Place> = []
    queue = queue.filter {
      seen.insert(Place(container: $0.container, environment: $0.environment, zone: $0.zone)).inserted
    }
    for i in queue.indices { queue[i].change = nil }
    // More zones than that: what is left out is found by the next fetch, which any hint leads to.
    if queue.count > limit { queue.removeFirst(queue.count - limit) }
  }
}
