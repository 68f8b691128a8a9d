import CairnRecords

/// Decides the whole of sync: what to ask the server, what to store, what an error means, when to stop (engine
/// section 1). A value without I/O, clock, randomness or concurrency: equal inputs give equal effects (engine E48).
///
/// A call begins with ``Input/sync(_:)`` and ends with ``Effect/finish(_:)``. In between the driver performs the
/// effects of each step in order; the last one of a step, unless it is `finish`, is a `perform`, and its answer is the
/// next input.
///
/// Invariants (docs/internals/engine.md):
/// 1. At most one task is out.
/// 2. `registry` holds what is stored, and nothing else: a delta is adopted when its transaction has committed.
/// 3. Every `will` event of a call is followed by its `did` before `finish`.
/// 4. Every job that needs the server is dropped once the call is aborted.
public struct SyncStateMachine: Sendable {
  public let configuration: EngineConfiguration
  public private(set) var registry: ZoneRegistry
  /// Zone changes, and the record changes of apps that keep no outbox of their own.
  public internal(set) var pending: PendingState

  /// The server's limits, as far as they are known.
  public private(set) var limits = CloudLimits()
  var run: Run?
  var waits = WaitClock()
  var now: Moment
  var effects: [Effect] = []
  var hasRecovered = false
  var hasIdentified = false
  /// Zones fetched to their end since the start and the last reconnect.
  var fetchedSinceStart: Set<ZoneID> = []

  var settings: SyncSettings { configuration.settings }

  /// Opens the stored state. Throws when it cannot be read: that is never "no state" (engine section 3).
  public init(configuration: EngineConfiguration, rows: [String: String], now: Moment) throws {
    if let version = rows[StoredKeys.format], version != StoredKeys.formatVersion {
      throw UnknownStateFormat(version: version)
    }
    self.configuration = configuration
    self.now = now
    registry = ZoneRegistry(rows: rows.filter { !$0.key.hasPrefix(StoredKeys.queuePrefix) })
    pending = try PendingState(rows: rows)
    let longest = configuration.settings.longestWait
    waits.load(StoredKeys.databaseHold, until: registry.databaseHold, now, longest: longest)
    waits.load(StoredKeys.backoff, until: registry.backoff?.until, now, longest: longest)
    waits.load(StoredKeys.quota, until: registry.quota?.until, now, longest: longest)
    for zone in registry.knownZones {
      waits.load(StoredKeys.zone(zone, .hold), until: registry.hold(zone), now, longest: longest)
    }
  }

  /// The stored state is one that this version does not know; nothing was changed.
  public struct UnknownStateFormat: Error, Sendable, CustomStringConvertible {
    public var version: String
    public var description: String {
      "the sync state was written by a newer version (format \(version)): update Cairn"
    }
  }

  /// Whether a call is under way.
  public var isRunning: Bool { run != nil }

  /// Takes an input and returns what is to be done, in order.
  public mutating func step(_ input: Input, now: Moment) -> [Effect] {
    self.now = now
    effects = []
    switch input {
    case .sync(let request): begin(request)
    case .answer(let answer): take(answer)
    case .cancel:
      run?.isCancelled = true
      return []
    case .limits(let limits):
      self.limits = limits
      return []
    case .decide(let zone, let category, let answer): begin(zone, category, answer)
    case .addDatabaseChanges(let changes):
      pending.add(changes)
      commit(pending.takeDelta())
      return effects
    case .hint(let zones):
      note(hint: zones)
      return effects
    case .reconnected:
      if registry.backoff?.isNetwork == true { commit([StoredKeys.backoff: nil as String?]) }
      waits.clear(StoredKeys.backoff)
      fetchedSinceStart = []
      return effects
    }
    advance()
    return effects
  }

  // MARK: Effects

  /// Starts jobs until one has a task out or the call is over.
  private mutating func advance() {
    while run != nil, run?.current == nil {
      if run?.isCancelled == true && run?.isAborted == false { abort(.cancelled) }
      guard let job = run?.agenda.first else {
        finish()
        return
      }
      run?.agenda.removeFirst()
      start(job)
    }
  }

  /// Sends a task out for `job`. Its delta is adopted when it has succeeded.
  mutating func perform(_ task: EngineTask, for job: Job) {
    run?.current = job
    run?.delta = task.delta
    if task.needsServer { run?.result.requests += 1 }
    effects.append(.perform(task))
  }

  /// Stores rows now. If that fails, the driver drops this machine and opens the stored state anew.
  mutating func commit(_ delta: StateDelta) {
    guard !delta.isEmpty else { return }
    adopt(delta)
    effects.append(.commit(delta))
  }

  private mutating func adopt(_ delta: StateDelta) {
    registry.adopt(delta.filter { !$0.key.hasPrefix(StoredKeys.queuePrefix) })
  }

  mutating func emit(_ event: Event) { effects.append(.event(event)) }

  private mutating func take(_ answer: EngineAnswer) {
    guard let job = run?.current else { return }
    run?.current = nil
    switch answer {
    case .storeFailed, .failed: break
    case .survey(_, let rows): adopt(rows)
    case .flag(false) where job.isAdoption: break
    default: adopt(run?.delta ?? [:])
    }
    run?.delta = [:]
    if answer.cameFromServer { noteSuccess() }
    take(answer, of: job)
  }
}
