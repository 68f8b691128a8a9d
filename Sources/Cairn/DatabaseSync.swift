import CairnClient
import CairnEngine
import CairnRecords
import CairnTables
import Foundation
import Synchronization

/// Syncs one prepared database file with its server.
///
/// Holds the file's lock while it lives, so that no second engine works on the file. Calls block; use it from a thread
/// of its own, never from Swift's cooperative pool. Only ``cancel()`` may be called from elsewhere.
public final class DatabaseSync {
  public private(set) var database: SyncedDatabase
  private var session: SyncSession
  private var cloud: any CloudDatabase
  private let path: String
  private let settings: SyncSettings
  private let time: any TimeSource
  private let randomness: any Randomness
  private weak var observer: (any EngineObserver)?
  private let others: (any EngineStore) throws -> [any RecordCategory]
  private let connect: (SyncPlace) throws -> any CloudDatabase
  private let lock: FileLock
  /// What another thread cancels: the client of the running call.
  private let running = Mutex<Running>(Running())

  private struct Running {
    var cancel: (@Sendable () -> Void)?
    var isCancelled = false
  }

  /// The file's ``SyncedDatabase/dataVersion()`` when the last sync began: what other programs commit from then on
  /// makes another one. The engine's own commits don't count.
  public private(set) var versionAtSync: Int64 = -1
  /// The failure that the file's log told of last.
  private var lastFailure: (text: String, time: Int64)?

  /// - Parameters:
  ///   - categories: makes others that sync in the same zone by the same engine, like CairnAccounts'; they are given
  ///     the engine's store and live on its thread. Called again when the file is opened anew after a change of its
  ///     schema.
  ///   - connect: makes the client for the place that the file syncs with.
  /// - Throws: ``TablesError`` for the file, ``FileLock/Held`` when another engine has it, and what `connect` throws.
  public init(
    path: String, settings: SyncSettings = SyncSettings(), time: any TimeSource = SystemTime(),
    randomness: any Randomness = SystemRandomness(), observer: (any EngineObserver)? = nil,
    categories: @escaping (any EngineStore) throws -> [any RecordCategory] = { _ in [] },
    connect: @escaping (SyncPlace) throws -> any CloudDatabase
  ) throws {
    self.path = path
    self.settings = settings
    self.time = time
    self.randomness = randomness
    self.observer = observer
    others = categories
    self.connect = connect
    let database = try SyncedDatabase(path: path, time: time, randomness: randomness)
    lock = try FileLock(database: path)
    try database.beginSyncing()
    self.database = database
    cloud = try connect(database.place())
    session = try Self.session(database, cloud, settings, time, randomness, observer, categories)
    noteRunning()
  }

  private static func session(
    _ database: SyncedDatabase, _ cloud: any CloudDatabase, _ settings: SyncSettings, _ time: any TimeSource,
    _ randomness: any Randomness, _ observer: (any EngineObserver)?,
    _ others: (any EngineStore) throws -> [any RecordCategory]
  ) throws -> SyncSession {
    let user = try database.place().user
    return try SyncSession(
      cloud: cloud, store: database.store, categories: [database.category] + others(database.store),
      zones: [database.zone], settings: settings,
      expectedUser: user.isEmpty ? nil : user, time: time, randomness: randomness, observer: observer)
  }

  /// Takes up what changed outside since the last call: the schema, the token, an answer of the user.
  private func refresh() throws {
    let needsToken = lastCondition == .signedOut
    if try needsToken || database.schemaHasChanged() {
      database = try SyncedDatabase(path: path, time: time, randomness: randomness)
      if needsToken { cloud = try connect(database.place()) }
      session = try Self.session(database, cloud, settings, time, randomness, observer, others)
      noteRunning()
    }
    if let answer = try database.answer() {
      if let answer = ZoneLossAnswer(rawValue: answer) { try decide(answer) }
      // Not before it was acted on: to act twice does no harm.
      try database.dropAnswer()
    }
  }

  private var lastCondition: EngineCondition = .ready

  private func noteRunning() {
    let cloud = cloud
    running.withLock { running in
      running.cancel = { cloud.cancel() }
      if running.isCancelled { cloud.cancel() }
    }
  }

  /// How often a sync begins anew at most.
  private static let mostChanges = 10

  /// Syncs until nothing more can be done now (tables section 7).
  ///
  /// Where another program changes the schema meanwhile, the file is opened anew and the sync begins again: what it had
  /// under way is as after a crash.
  public func sync(_ request: SyncRequest = SyncRequest()) throws -> SyncReport {
    var changes = 0
    var earlier = TablesCounts()
    while true {
      try refresh()
      do {
        return try syncOnce(request, earlier)
      } catch {
        guard changes < Self.mostChanges, try database.schemaHasChanged() else { throw error }
        earlier += database.category.counts
      }
      changes += 1
    }
  }

  /// - Parameter earlier: what this sync did before it began anew.
  private func syncOnce(_ request: SyncRequest, _ earlier: TablesCounts) throws -> SyncReport {
    // Not before: a file that was opened anew counts from another number.
    versionAtSync = try database.dataVersion()
    database.category.resetCounts()
    var request = request
    // Rows that may have changed unseen are compared with all that the zone holds (tables T29).
    if database.hasGaps && request.scope != .sendOnly && request.zones == nil { request.resync = true }
    let result = try session.sync(request)
    if case .store = result.failure, try database.schemaHasChanged() { throw TablesError.outdated(path) }
    if request.resync && result.failure == nil && result.questions.isEmpty { try database.endGaps() }
    lastCondition = result.condition
    if result.failure == nil && request.scope != .fetchOnly && result.condition == .ready { try publishSchema() }
    if result.failure == nil && request.scope != .sendOnly { try fetchWantedParents() }
    var counts = earlier
    counts += database.category.counts
    let status = try database.counters()
    var report = SyncReport(counts: counts, result: result, parked: status.parked, pending: status.pending)
    report.waiting = status.waiting
    report.needsSchemaRepair = status.needsSchemaRepair
    try note(report, request)
    return report
  }

  /// Keeps what commands that read tell of the sync. A watch polls every second: what a scheduled sync without work
  /// finds is written once a minute, and when it changes.
  private func note(_ report: SyncReport, _ request: SyncRequest) throws {
    let now = time.wallClock
    let isPoll = !request.isManual && report.counts == TablesCounts()
    if report.quiet { try database.noteGoodSync(at: now, isPoll: isPoll) }
    try database.noteCondition(report.state)
    var failure = report.result.failure.map(SyncReport.describe)
    if isPoll, !isNew(report.result.failure, at: now) { failure = nil }
    if let failure { lastFailure = (failure, now) }
    try database.noteSync(report.counts, failure: failure)
  }

  /// Whether the log should tell of a failure that a poll met: not that it still waits, nor the same every second.
  private func isNew(_ failure: SyncFailure?, at now: Int64) -> Bool {
    switch failure {
    case nil, .backingOff, .rateLimited: return false
    case let failure?:
      guard let last = lastFailure, last.text == SyncReport.describe(failure) else { return true }
      return !(0..<60_000).contains(now - last.time)
    }
  }

  /// Tells other devices how tables look that have changed here. Tried again after the next sync if it fails.
  private func publishSchema() throws {
    do { try database.publishSchema(cloud) } catch is CloudError { return }
  }

  /// Parents that fetched children keep (tables M13). Tried again after the next sync if it fails.
  private func fetchWantedParents() throws {
    do { try database.fetchWantedParents(cloud) } catch is CloudError { return }
  }

  /// Answers the question that a lost zone raised (tables L11).
  public func decide(_ answer: ZoneLossAnswer) throws {
    let result = try session.decide(database.zone, category: database.category.name, answer)
    if let failure = result.failure { throw failure }
  }

  /// Makes a running call end soon, and every later one fail. From any thread.
  public func cancel() {
    running.withLock { running in
      running.isCancelled = true
      running.cancel?()
    }
  }
}

/// What one call to sync did, and how things stand after it.
public struct SyncReport: Sendable {
  public var counts: TablesCounts
  public var result: SyncResult
  /// Records parked now.
  public var parked: Int
  /// Changes that the server has not confirmed.
  public var pending: Int
  /// Pending changes with a reason other than not having been tried.
  public var waiting = 0
  /// Tables are suspended, or rows are missing (tables T30).
  public var needsSchemaRepair = false

  init(counts: TablesCounts, result: SyncResult, parked: Int, pending: Int) {
    self.counts = counts
    self.result = result
    self.parked = parked
    self.pending = pending
  }

  /// Nothing is pending and the server had no more.
  public var quiet: Bool { result.failure == nil && result.endedQuiet && pending == 0 }

  /// The first that applies of `decision`, `signedOut`, `schema`, `paused`, `offline`, `ready` (tables section 7).
  public var state: String {
    switch result.condition {
    case .decision: "decision"
    case .signedOut: "signedOut"
    case _ where needsSchemaRepair: "schema"
    case .paused: "paused"
    case .offline: "offline"
    case .ready: waiting > 0 ? "paused" : "ready"
    }
  }

  /// A sentence for people.
  public static func describe(_ failure: SyncFailure) -> String {
    switch failure {
    case .cloud(let error): error.reason
    case .rateLimited(let until): "the server asked to wait until \(moment(until))"
    case .backingOff(let until): "waiting until \(moment(until)) before the next try"
    case .store(let text): text
    case .anotherUser: "the token belongs to another user than this file"
    case .noAccount: "nobody is signed in"
    case .unresolvedAccount: "who is signed in could not be found out"
    case .replaced: "the account changed while it was synced"
    case .reentrantCall: "sync was called while it runs"
    case .cancelled: "interrupted"
    }
  }

  /// A time in ms since 1970, as the log writes times.
  private static func moment(_ ms: Int64) -> String {
    Date(timeIntervalSince1970: Double(ms) / 1_000).ISO8601Format()
  }
}
