import CairnRecords
import Synchronization

/// Runs the state machine against a server, a store and categories, on the calling thread: no thread, no timer, no wait
/// of its own, so that a run on manual clocks is the same every time (DESIGN G9).
///
/// Not thread-safe but for ``cancelOperations()``. Apps use ``SyncEngine``, which gives it a thread.
public final class SyncSession {
  public let configuration: EngineConfiguration
  /// Receives events; weak.
  public weak var observer: (any EngineObserver)?
  /// Every input with its moment, before it is taken; for tests and the simulation (engine E48).
  public var inputLog: ((Input, Moment) -> Void)?

  let cloud: any CloudDatabase
  let store: any EngineStore
  let categories: [any RecordCategory]
  let time: any TimeSource
  let randomness: any Randomness
  private let prefix: String
  private var machine: SyncStateMachine?
  private var isBusy = false
  let generation: EngineGeneration?
  private let tag: Int64
  private let isCancelled = Mutex(false)
  var page: PageAtHand?
  var receipts = AssetReceipts()
  var wasCancelled: Bool { isCancelled.withLock { $0 } }

  /// How often a store that is busy is tried before the zone is left for this call (engine E40).
  private static let storeTries = 3

  /// - Parameters:
  ///   - zones: The zones to sync; nil for every custom zone of the database.
  ///   - expectedUser: The user whose data this is; checked once with the server. Its stored rows are apart from those
  ///     of other users (engine section 11).
  ///   - device: Names this installation; a copy of the file elsewhere, or a restored backup, has another name
  ///     (engine section 3).
  ///   - generation: Raised whenever the account changes or another session takes this one's place: from then on this
  ///     one writes nothing and applies nothing (engine C11).
  public init(
    cloud: any CloudDatabase, store: any EngineStore, categories: [any RecordCategory], zones: [ZoneID]?,
    settings: SyncSettings = SyncSettings(), expectedUser: String? = nil, device: String? = nil,
    generation: EngineGeneration? = nil, time: any TimeSource, randomness: any Randomness,
    observer: (any EngineObserver)? = nil
  ) {
    self.generation = generation
    tag = generation?.current ?? 0
    self.cloud = cloud
    self.store = store
    self.categories = categories
    self.time = time
    self.randomness = randomness
    self.observer = observer
    prefix = SyncSession.prefix(expectedUser)
    configuration = EngineConfiguration(
      zones: zones, categories: categories.map { CategoryTraits($0) }, settings: settings,
      expectedUser: expectedUser, device: device)
  }

  /// The durable facts of a user's sync as they are stored, for a status without a server or a session.
  public static func registry(in store: any EngineStore, expectedUser: String? = nil) throws -> ZoneRegistry {
    ZoneRegistry(rows: try rows(in: store, prefix(expectedUser)))
  }

  private static func rows(in store: any EngineStore, _ prefix: String) throws -> [String: String] {
    var rows: [String: String] = [:]
    for (key, value) in try store.loadState() {
      if key.hasPrefix(prefix) {
        rows[String(key.dropFirst(prefix.count))] = value
      } else if key.hasPrefix(sharedKey(StoredKeys.epoch(""))) {
        rows[String(key.dropFirst(root.count))] = value
      }
    }
    return rows
  }

  /// What the stored keys of a user begin with.
  static func prefix(_ user: String?) -> String { "\(root)\(user ?? "-")/" }

  private static let root = "engine/"

  /// The stored key of a row that belongs to no identity.
  static func sharedKey(_ key: String) -> String { root + key }

  /// Whether the account has changed, or another session has taken this one's place, since it was made.
  public var isReplaced: Bool { generation.map { $0.current != tag } ?? false }

  // MARK: Calls

  /// Syncs until nothing more can be done now, and says what was done and what waits.
  ///
  /// Failures of the server, the network, a category or the store are in the result. Throws
  /// ``SyncFailure/reentrantCall`` from inside a callback, and when the stored state cannot be read.
  public func sync(_ request: SyncRequest = SyncRequest()) throws -> SyncResult {
    try run(.sync(request))
  }

  /// Answers the question that a lost zone raised (engine section 12). The next sync acts on it. Without an open
  /// question it does nothing; after `keepLocal` another answer may follow.
  @discardableResult
  public func decide(_ zone: ZoneID, category: String, _ answer: ZoneLossAnswer) throws -> SyncResult {
    try run(.decide(zone, category: category, answer))
  }

  /// Zones to create or delete with the next sync; durable when this returns.
  public func add(_ changes: [PendingState.DatabaseChange]) throws { try tell(.addDatabaseChanges(changes)) }

  /// The server may have changes in these zones.
  public func noteHint(_ zones: [ZoneID]) throws { try tell(.hint(zones)) }

  /// The network is back: a wait that it caused is over.
  public func noteReconnect() throws { try tell(.reconnected) }

  /// Stops new requests of the call that runs; the answer under way is still taken. From any thread.
  public func cancelOperations() { isCancelled.withLock { $0 = true } }

  /// The durable facts, as stored.
  public func registry() throws -> ZoneRegistry { try open().registry }

  /// Pending zone changes, and record changes of apps that use the engine's queue.
  public func pending() throws -> PendingState { try open().pending }

  // MARK: The loop

  private func run(_ input: Input) throws -> SyncResult {
    guard !isBusy else { throw SyncFailure.reentrantCall }
    guard !isReplaced else { throw SyncFailure.replaced }
    var machine = try open()
    isBusy = true
    defer { isBusy = false }
    isCancelled.withLock { $0 = false }
    var next: Input? = input
    var open = OpenEvents()
    var result = SyncResult()
    do {
      while let input = next {
        next = nil
        try checkGeneration()
        for effect in take(input, &machine) {
          switch effect {
          case .commit(let delta): try write(delta)
          case .event(let event):
            open.note(event)
            observer?.handle(event)
          case .perform(let task): next = .answer(perform(task))
          case .finish(let done): result = done
          }
        }
      }
      self.machine = machine
    } catch {
      // What the machine believes is not stored: it is opened again from what is.
      let failure = isReplaced ? SyncFailure.replaced : SyncFailure.store("\(error)")
      self.machine = nil
      if isReplaced { noteDiscarded() }
      result.failure = failure
      result.condition = .paused(.internal)
      result.nextRetry = time.wallClock + configuration.settings.backoffFirst
      observer?.handle(.diagnostic(failure, nil))
      for event in open.closing(failure) { observer?.handle(event) }
    }
    page = nil
    return result
  }

  private func tell(_ input: Input) throws {
    guard !isBusy else { throw SyncFailure.reentrantCall }
    guard !isReplaced else { throw SyncFailure.replaced }
    var machine = try open()
    for effect in take(input, &machine) {
      if case .commit(let delta) = effect { try write(delta) }
    }
    self.machine = machine
  }

  private func take(_ input: Input, _ machine: inout SyncStateMachine) -> [Effect] {
    if machine.limits != cloud.limits { _ = step(.limits(cloud.limits), &machine) }
    if isCancelled.withLock({ $0 }) { _ = step(.cancel, &machine) }
    return step(input, &machine)
  }

  private func step(_ input: Input, _ machine: inout SyncStateMachine) -> [Effect] {
    let moment = Moment(wall: time.wallClock, uptime: time.uptime, random: randomness.next())
    inputLog?(input, moment)
    return machine.step(input, now: moment)
  }

  private func open() throws -> SyncStateMachine {
    if let machine { return machine }
    let rows = try Self.rows(in: store, prefix)
    let moment = Moment(wall: time.wallClock, uptime: time.uptime, random: randomness.next())
    let machine = try SyncStateMachine(configuration: configuration, rows: rows, now: moment)
    self.machine = machine
    return machine
  }

  // MARK: The store

  private func write(_ delta: StateDelta) throws {
    try retrying {
      try store.transaction {
        try writeRows(delta)
        try checkGeneration()
      }
    }
  }

  struct Replaced: Error, CustomStringConvertible {
    static let text = "the account changed: the answer is discarded"
    var description: String { Self.text }
  }

  func checkGeneration() throws {
    if isReplaced { throw Replaced() }
  }

  /// Records came and are not stored: every identity fetches anew what it may lack (engine C11). A need that cannot be
  /// stored is no loss: the token has not moved, so the records come again.
  private func noteDiscarded() {
    guard let page, !page.parts.isEmpty else { return }
    do {
      try store.transaction {
        for index in page.parts.keys { try Self.raiseNeed(of: categories[index].name, in: store) }
      }
    } catch {
      observer?.handle(.diagnostic(.store("\(error)"), nil))
    }
  }

  /// Writes rows inside a transaction.
  func writeRows(_ delta: StateDelta) throws {
    guard !delta.isEmpty else { return }
    var rows: StateDelta = [:]
    for (key, value) in delta {
      if key.hasPrefix(StoredKeys.sharedPrefix) {
        // The only shared rows that a session writes are epochs.
        rows[Self.sharedKey(key)] = .some(try Self.raised(key, value, in: store))
      } else {
        rows[prefix + key] = .some(value)
      }
    }
    try store.writeState(rows)
  }

  /// An epoch never falls, whatever another session has made of it meanwhile.
  private static func raised(_ key: String, _ value: String?, in store: any EngineStore) throws -> String? {
    let stored = try store.readState(sharedKey(key)).flatMap { Int64($0) } ?? 0
    return String(max(stored + 1, value.flatMap { Int64($0) } ?? 0))
  }

  /// Records of a category were lost or may have been missed: every identity bootstraps again (engine C10). Durable
  /// when it returns, and legal wherever the store may be written, inside a category's calls too.
  public static func raiseNeed(of category: String, in store: any EngineStore) throws {
    let key = StoredKeys.epoch(category)
    try store.transaction { try store.writeState([sharedKey(key): try raised(key, nil, in: store)]) }
  }

  /// Tries what may fail because another program holds the file; nothing of a failed try is stored.
  func retrying<Result>(_ body: () throws -> Result) throws -> Result {
    for _ in 1..<Self.storeTries {
      do { return try body() } catch is Replaced { throw Replaced() } catch { continue }
    }
    return try body()
  }
}

extension CategoryTraits {
  init(_ category: any RecordCategory) {
    self.init(
      name: category.name, delivery: category.delivery, sweepsSnapshots: category.sweepsSnapshots,
      asksAboutDeletedZones: category.policy(for: .deleted) == .ask, zones: category.zones)
    asksAboutPurgedZones = category.policy(for: .purged) == .ask
    bootstrap = category.bootstrap
    fetchesBeforeSending = category.fetchesBeforeSending
    wantsSavedRecords = category.wantsSavedRecords
    asksToAdopt = category.asksToAdopt
  }
}
