import CairnRecords
import Synchronization

/// Keeps one database in sync: a ``SyncSession`` on a thread of its own, with a schedule.
///
/// Every call may be made from anywhere. Calls that wait throw ``SyncFailure/reentrantCall`` at once when made from
/// inside an observer or a category, or from a task started there (engine E3).
public final class SyncEngine: Sendable {
  /// Makes the session. Runs once, on the engine's thread; everything that it creates stays there.
  public typealias MakeSession = @Sendable () throws -> SyncSession

  /// Whether the caller is inside a callback of an engine.
  @TaskLocal static var isInCallback = false

  private let worker: Worker
  private let thread: EngineThread

  /// - Parameters:
  ///   - automaticallySync: syncs at launch, after local changes and hints, and by polling (engine section 9). False:
  ///     only when called.
  public init(
    settings: SyncSettings = SyncSettings(), automaticallySync: Bool = true, time: any TimeSource,
    randomness: any Randomness, makeSession: @escaping MakeSession
  ) {
    worker = Worker(
      settings: settings, isAutomatic: automaticallySync, time: time, randomness: randomness,
      source: .session(makeSession))
    thread = EngineThread(name: "cairn.engine") { [worker] in worker.idle() }
  }

  /// Makes what keeps a session per identity. Runs once, on the engine's thread.
  public typealias MakeAccountSession = @Sendable () throws -> AccountSession

  /// An engine whose user may change. It is dormant until ``noteAccount(_:)`` has told it who is signed in.
  ///
  /// - Parameter generation: the one that the account session and its sessions are made with.
  public init(
    settings: SyncSettings = SyncSettings(), automaticallySync: Bool = true, time: any TimeSource,
    randomness: any Randomness, generation: EngineGeneration, makeAccountSession: @escaping MakeAccountSession
  ) {
    worker = Worker(
      settings: settings, isAutomatic: automaticallySync, time: time, randomness: randomness,
      source: .account(makeAccountSession, generation))
    thread = EngineThread(name: "cairn.engine") { [worker] in worker.idle() }
  }

  deinit { thread.close() }

  // MARK: Calls that wait

  /// Fetches, then sends, until nothing more can be done now.
  ///
  /// - Throws: ``SyncFailure`` for whatever kept the call from finishing.
  @discardableResult
  public func sync(zones: [ZoneID]? = nil) async throws -> SyncResult {
    try await call(SyncRequest(.all, zones: zones))
  }

  /// Fetches until nothing more can be fetched now; sends nothing. Throws as ``sync(zones:)`` does.
  @discardableResult
  public func fetchChanges(zones: [ZoneID]? = nil) async throws -> SyncResult {
    try await call(SyncRequest(.fetchOnly, zones: zones))
  }

  /// Sends until nothing more can be sent now. Throws as ``sync(zones:)`` does.
  @discardableResult
  public func sendChanges(zones: [ZoneID]? = nil) async throws -> SyncResult {
    try await call(SyncRequest(.sendOnly, zones: zones))
  }

  /// Fetches everything anew, as snapshots; no pending change and no row is lost (engine section 8).
  @discardableResult
  public func resync() async throws -> SyncResult {
    var request = SyncRequest()
    request.resync = true
    return try await call(request)
  }

  /// Answers the question that a lost zone raised (engine section 12).
  public func decide(_ zone: ZoneID, category: String, _ answer: ZoneLossAnswer) async throws {
    try await perform { session in try session.decide(zone, category: category, answer) }
    scheduleSync()
  }

  /// Zones to create or delete; durable when this returns.
  public func add(_ changes: [PendingState.DatabaseChange]) async throws {
    try await perform { session in try session.add(changes) }
    noteLocalChange()
  }

  // MARK: Calls that do not wait

  /// Stops new requests; an answer under way is still taken.
  public func cancelOperations() { worker.cancel() }

  /// Something was changed here: sent after a moment of quiet.
  public func noteLocalChange() {
    worker.schedule { scheduler, now in scheduler.noteLocalChange(now) }
    thread.wake()
  }

  /// The server has changes: a push, or a long poll that was answered.
  public func noteHint() {
    worker.schedule { scheduler, now in scheduler.noteHint(now) }
    thread.wake()
  }

  /// The network is back.
  public func noteReconnect() {
    worker.schedule { scheduler, now in scheduler.noteReconnect(now) }
    _ = thread.add { [worker] in worker.reconnect() }
  }

  /// Somebody else is signed in, or nobody, or it is not known who (engine section 11). What is under way for the
  /// identity of before is discarded at once; later calls are for the new one. Of several changes in a row the last
  /// wins.
  public func noteAccount(_ identity: Identity) {
    guard worker.expect(identity) else { return }
    _ = thread.add { [worker] in worker.resolveAccount() }
    scheduleSync()
  }

  /// Syncs soon, without waiting for it; legal inside callbacks.
  public func scheduleSync() {
    worker.schedule { scheduler, now in scheduler.noteReconnect(now) }
    thread.wake()
  }

  /// Ends the engine after the calls that wait.
  public func close() { thread.close() }

  // MARK: Inside

  private func call(_ request: SyncRequest) async throws -> SyncResult {
    let result = try await perform { [worker] session in try worker.sync(session, request) }
    if let failure = result.failure { throw failure }
    return result
  }

  @discardableResult
  private func perform<Answer: Sendable>(
    _ body: @escaping @Sendable (SyncSession) throws -> Answer
  ) async throws -> Answer {
    guard !Self.isInCallback else { throw SyncFailure.reentrantCall }
    return try await withCheckedThrowingContinuation { continuation in
      let isTaken = thread.add { [worker] in continuation.resume(with: Result { try body(try worker.session()) }) }
      if !isTaken { continuation.resume(throwing: SyncFailure.cancelled) }
    }
  }
}

extension SyncEngine {
  /// What the engine's thread works with.
  final class Worker: Sendable {
    /// The session is made and used on the engine's thread only; the reference is read elsewhere for cancelling, which
    /// is thread-safe.
    private struct Held: @unchecked Sendable {
      // See above: only `cancelOperations` is called on another thread.
      var session: SyncSession?
    }

    enum Source: Sendable {
      case session(MakeSession)
      case account(MakeAccountSession, EngineGeneration)
    }

    /// Used on the engine's thread only.
    private struct HeldAccount: @unchecked Sendable {
      // See above: never touched elsewhere.
      var account: AccountSession?
    }

    private let held = Mutex(Held())
    private let heldAccount = Mutex(HeldAccount())
    /// Who is signed in, as told last.
    private let expected = Mutex<Identity?>(nil)
    private let scheduler: Mutex<Scheduler>
    private let isAutomatic: Bool
    private let time: any TimeSource
    private let randomness: any Randomness
    private let source: Source

    init(
      settings: SyncSettings, isAutomatic: Bool, time: any TimeSource, randomness: any Randomness,
      source: Source
    ) {
      self.isAutomatic = isAutomatic
      self.time = time
      self.randomness = randomness
      self.source = source
      let now = Moment(wall: time.wallClock, uptime: time.uptime, random: randomness.next())
      scheduler = Mutex(Scheduler(settings: settings, now: now))
    }

    private var now: Moment { Moment(wall: time.wallClock, uptime: time.uptime, random: randomness.next()) }

    func schedule(_ body: (inout Scheduler, Moment) -> Void) {
      let now = now
      scheduler.withLock { body(&$0, now) }
    }

    func cancel() { held.withLock { $0 }.session?.cancelOperations() }

    /// The session; made at its first use. On the engine's thread.
    func session() throws -> SyncSession {
      if let session = held.withLock({ $0 }).session, !session.isReplaced { return session }
      let session: SyncSession
      switch source {
      case .session(let make): session = try make()
      case .account:
        resolveAccount()
        session = try account().current()
      }
      held.withLock { [box = Held(session: session)] in $0 = box }
      return session
    }

    /// Notes an identity and ends the work of the one before. False when it is the same. From any thread.
    func expect(_ identity: Identity) -> Bool {
      guard case .account(_, let generation) = source else { return false }
      let isNew = expected.withLock { expected in
        defer { expected = identity }
        return expected != identity
      }
      guard isNew else { return false }
      generation.raise()
      cancel()
      return true
    }

    /// Tells the account session who was noted last. On the engine's thread; what fails is tried again by the next
    /// call.
    func resolveAccount() {
      guard let identity = expected.withLock({ $0 }) else { return }
      SyncEngine.$isInCallback.withValue(true) {
        do { try account().resolve(identity) } catch {
          let observer = heldAccount.withLock { $0 }.account?.observer
          observer?.handle(.diagnostic(.store("\(error)"), nil))
        }
      }
    }

    private func account() throws -> AccountSession {
      if let account = heldAccount.withLock({ $0 }).account { return account }
      guard case .account(let make, _) = source else { throw SyncFailure.noAccount }
      let account = try make()
      heldAccount.withLock { [box = HeldAccount(account: account)] in $0 = box }
      return account
    }

    /// Syncs, and plans what follows. On the engine's thread.
    func sync(_ session: SyncSession, _ request: SyncRequest) throws -> SyncResult {
      scheduler.withLock { $0.noteStart() }
      return try SyncEngine.$isInCallback.withValue(true) {
        do {
          let result = try session.sync(request)
          schedule { scheduler, now in scheduler.noteFinish(result, now) }
          return result
        } catch {
          var failed = SyncResult()
          failed.failure = .store("\(error)")
          schedule { scheduler, now in scheduler.noteFinish(failed, now) }
          throw error
        }
      }
    }

    func reconnect() {
      // A session that cannot be made is reported by the next call that waits.
      guard let session = try? session() else { return }
      do { try session.noteReconnect() } catch { session.observer?.handle(.diagnostic(.store("\(error)"), nil)) }
    }

    /// Does what is due, and returns how long nothing will be. On the engine's thread.
    func idle() -> Int64? {
      guard isAutomatic else { return nil }
      let start = now
      if scheduler.withLock({ $0.isDue(start) }) { syncOnSchedule() }
      let end = now
      return scheduler.withLock { $0.wait(end) }
    }

    private func syncOnSchedule() {
      do {
        _ = try sync(try session(), SyncRequest(.all, isManual: false))
      } catch {
        // No session, or no readable state: tried again after the poll interval, and told to those who call.
        var failed = SyncResult()
        failed.failure = .store("\(error)")
        schedule { scheduler, now in scheduler.noteFinish(failed, now) }
      }
    }
  }
}
