import CairnRecords

/// The fetch of one zone: pages until the server has no more, then the sweep of a snapshot, then what was sealed is
/// applied (engine sections 7, 8 and C2–C5).
///
/// Invariants:
/// 1. A token is stored in the transaction that applies or stages the records before it.
/// 2. A category with something staged and not sealed stages everything that follows, until the last page seals it.
/// 3. Nothing staged is applied before the zone was fetched to its end.
/// 4. A bootstrap neither reads nor writes the engine's token; until it is complete, nothing of its category is sealed.
struct ZoneFetch: Sendable {
  enum End: Sendable {
    case complete
    /// The zone does not exist and was never confirmed: an empty success (engine C10).
    case missing
    /// The zone was confirmed and is gone.
    case gone
    /// The server lost history: nothing is swept, the user is asked (tables L12).
    case historyLost(ZoneQuestion.Cause)
    case failed(CloudError)
    case storeFailed(String)
  }

  enum Step: Sendable {
    case task(EngineTask)
    case done(End)
  }

  private enum Stage {
    case inspecting, beginningSnapshot, requesting, checkingExistence, storing, unseen, sweeping, applying
  }

  let zone: ZoneID
  /// Indices of the categories that take part, ascending.
  let categories: [Int]
  let configuration: EngineConfiguration
  /// Categories that only stage: off, or not yet activated (engine C9, C10).
  var staging: Set<Int>
  /// The category whose bootstrap this is; nil for the engine's own fetch.
  let bootstrap: Int?
  /// Categories that had to stage something in the page being stored.
  private(set) var stagers: [Int] = []
  private(set) var isSnapshot = false
  /// What the page being stored holds.
  private(set) var storedParts: [PartOutline] = []
  private(set) var storedUnclaimed = 0
  var isStoring: Bool { stage == .storing }

  private var stage = Stage.inspecting
  private var token: ChangeToken?
  private var isResync: Bool
  private var unsealed: Set<Int> = []
  private var toApply: [Int] = []
  private var toSweep: [Int] = []
  private var cursor: String?
  private var sweepIsLast = false
  private var sweptCategory: Int?
  private var isLastPage = false
  private var feedEnded = false
  private var restarts = 0

  /// How often a fetch begins anew because its token was refused, before that counts as a failure.
  private static let mostRestarts = 3

  init(
    zone: ZoneID, categories: [Int], configuration: EngineConfiguration, isResync: Bool, staging: Set<Int> = [],
    bootstrap: Int? = nil
  ) {
    self.staging = staging
    self.bootstrap = bootstrap
    self.zone = zone
    self.categories = categories
    self.configuration = configuration
    self.isResync = isResync
  }

  var firstTask: EngineTask { .inspectStaging(zone) }

  var job: Job { bootstrap.map { .bootstrap(Lane(zone: zone, category: $0)) } ?? .fetch(zone) }

  private var bootstrapName: String? { bootstrap.map { configuration.categories[$0].name } }

  /// Where this fetch keeps its position.
  private var tokenKey: String {
    bootstrapName.map { StoredKeys.bootstrap(zone, $0, .token) } ?? StoredKeys.zone(zone, .token)
  }

  mutating func step(_ answer: EngineAnswer, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    if case .storeFailed(let message) = answer { return .done(.storeFailed(message)) }
    switch (stage, answer) {
    case (.inspecting, .staging(let flags, _)):
      unsealed = Set(categories.filter { $0 < flags.count && flags[$0] })
      return bootstrap == nil ? begin(registry) : beginBootstrap(registry)
    case (.beginningSnapshot, .done): return request()
    case (.requesting, .page(let page)): return store(page, registry, now)
    case (.requesting, .failed(let error)): return react(to: error, registry, now)
    case (.checkingExistence, .flag(false)) where bootstrap != nil && !registry.isConfirmed(zone):
      return endSweep(registry, now)
    case (.checkingExistence, .flag(let exists)):
      return .done(
        exists ? .failed(CloudError(.internalError, "the zone exists, but its changes are not found")) : .gone)
    case (.storing, .done): return afterStoring(registry, now)
    case (.unseen, .ids(let ids)): return sweep(ids, registry, now)
    case (.sweeping, .found(let records, let deletions)):
      return storeSweep(records: records, deletions: deletions, registry, now)
    case (.applying, .flag(let more)):
      if !more { toApply.removeFirst() }
      return apply()
    case (_, .failed(let error)): return .done(.failed(error))
    default: return .done(.storeFailed("the driver answered \(answer) in \(stage)"))
    }
  }

  // MARK: Pages

  private mutating func begin(_ registry: ZoneRegistry) -> Step {
    token = registry.token(zone)
    let isCutOff = registry.isInSnapshot(zone)
    isSnapshot = isCutOff || isResync || (token == nil && registry.isConfirmed(zone))
    let continues = isCutOff && token != nil && !isResync
    return isSnapshot && !continues ? beginSnapshot(registry) : request()
  }

  /// Goes on from its own token, which is younger than its beginning; else from nil.
  private mutating func beginBootstrap(_ registry: ZoneRegistry) -> Step {
    guard let name = bootstrapName, registry.bootstrapStart(zone, name) != nil,
      let stored = registry.bootstrapToken(zone, name)
    else { return beginSnapshot(registry) }
    isSnapshot = true
    token = stored
    return request()
  }

  private mutating func beginSnapshot(_ registry: ZoneRegistry) -> Step {
    isSnapshot = true
    isResync = false
    token = nil
    stage = .beginningSnapshot
    if let name = bootstrapName {
      let delta: StateDelta = [
        tokenKey: nil as String?, StoredKeys.bootstrap(zone, name, .start): String(registry.epoch(name)),
      ]
      return .task(.beginSnapshot(zone, categories: categories, delta))
    }
    let delta: StateDelta = [
      StoredKeys.zone(zone, .token): nil as String?, StoredKeys.zone(zone, .snapshot): "1",
    ]
    return .task(.beginSnapshot(zone, categories: categories, delta))
  }

  private mutating func request() -> Step {
    stage = .requesting
    return .task(.fetchPage(zone, token, categories: categories))
  }

  private mutating func store(_ page: PageOutline, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    if page.moreComing && page.token == token {
      return .done(.failed(CloudError(.undecodableAnswer, "the change feed of \(zone) does not move")))
    }
    token = page.token
    feedEnded = !page.moreComing
    toSweep = feedEnded && isSnapshot ? categories.filter { configuration.categories[$0].sweepsSnapshots } : []
    isLastPage = feedEnded && toSweep.isEmpty
    let plan = plan(for: page.parts, registry)
    note(page)
    var delta: StateDelta = [:]
    if registry.rows[tokenKey] != page.token.rawValue { delta[tokenKey] = page.token.rawValue }
    set(.confirmed, "1", in: &delta, registry)
    if isLastPage { addEnd(to: &delta, registry, now) }
    stage = .storing
    if plan == PagePlan() && delta.isEmpty { return afterStoring(registry, now) }
    return .task(.storePage(zone, plan, delta))
  }

  /// C3, C5 and tables M1: at once where nothing before it waits and either the set ends here or the result does not
  /// depend on where it is cut; else staged until the seal.
  ///
  /// A category that is off or not activated stages everything. So does one whose bootstrap is under way: its pages are
  /// no whole set, and the end of the engine's fetch must not seal them.
  private mutating func plan(for parts: [PartOutline], _ registry: ZoneRegistry) -> PagePlan {
    var plan = PagePlan()
    let booting = bootstrap == nil ? categories.filter { isBooting($0, registry) } : []
    for part in parts {
      let isUncuttable = configuration.categories[part.category].delivery == .sealedSet || part.deletions > 0
      let onlyStages = bootstrap != nil || staging.contains(part.category) || booting.contains(part.category)
      if !onlyStages && !unsealed.contains(part.category) && (isLastPage || !isUncuttable) {
        plan.apply.append(part.category)
      } else {
        plan.stage.append(part.category)
        unsealed.insert(part.category)
      }
    }
    if isLastPage {
      plan.seal = unsealed.subtracting(booting).sorted()
      if bootstrap != nil { plan.seal = categories }
      toApply = plan.seal.filter { !staging.contains($0) }
      unsealed = []
      plan.bootstrapped = bootstrap
    }
    stagers = plan.stage
    return plan
  }

  private func isBooting(_ category: Int, _ registry: ZoneRegistry) -> Bool {
    registry.bootstrapStart(zone, configuration.categories[category].name) != nil
  }

  private mutating func note(_ page: PageOutline) {
    storedUnclaimed = page.unclaimed
    storedParts = page.parts
  }

  private func addEnd(to delta: inout StateDelta, _ registry: ZoneRegistry, _ now: Moment) {
    if let name = bootstrapName {
      let start = registry.bootstrapStart(zone, name) ?? registry.epoch(name)
      for attribute in StoredKeys.Bootstrap.allCases {
        delta[StoredKeys.bootstrap(zone, name, attribute)] = .some(attribute == .done ? String(start) : nil)
      }
      return
    }
    set(.snapshot, nil, in: &delta, registry)
    set(.unfetched, nil, in: &delta, registry)
    // An hour is fine enough for what it is used for, and saves a write in every idle sync.
    if let last = registry.lastFetch(zone), abs(now.wall - last) < 3_600_000 { return }
    set(.lastFetch, String(now.wall), in: &delta, registry)
  }

  private func set(
    _ attribute: StoredKeys.Zone, _ value: String?, in delta: inout StateDelta, _ registry: ZoneRegistry
  ) {
    let key = StoredKeys.zone(zone, attribute)
    if registry.rows[key] != value { delta[key] = .some(value) }
  }

  private mutating func afterStoring(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    if isLastPage { return apply() }
    if feedEnded { return askUnseen(registry, now) }
    return request()
  }

  private mutating func apply() -> Step {
    guard let category = toApply.first else { return .done(.complete) }
    stage = .applying
    return .task(.applySealed(zone, category: category))
  }

  // MARK: Errors

  private mutating func react(to error: CloudError, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    if error.code == .zoneNotFound {
      guard bootstrap != nil || registry.isConfirmed(zone) else { return .done(.missing) }
      stage = .checkingExistence
      return .task(.zoneExists(zone))
    }
    guard token != nil, ErrorReactions.tokenIsBad(error), restarts < Self.mostRestarts else {
      return .done(.failed(error))
    }
    restarts += 1
    if bootstrap != nil { return beginSnapshot(registry) }
    let settings = configuration.settings
    let last = registry.lastFetch(zone)
    if let cause = ErrorReactions.lostHistory(error, lastFetch: last, now: now.wall, settings: settings) {
      return .done(.historyLost(cause))
    }
    return beginSnapshot(registry)
  }

  // MARK: The sweep of a snapshot

  private mutating func askUnseen(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    guard let category = toSweep.first else { return endSweep(registry, now) }
    stage = .unseen
    let limit = configuration.settings.sweepChunk
    return .task(.unseen(zone, category: category, after: cursor, limit: limit))
  }

  private mutating func sweep(_ ids: [RecordID], _ registry: ZoneRegistry, _ now: Moment) -> Step {
    let isShort = ids.count < configuration.settings.sweepChunk
    guard let category = toSweep.first, let last = ids.last else {
      toSweep = Array(toSweep.dropFirst())
      cursor = nil
      return askUnseen(registry, now)
    }
    sweepIsLast = isShort && toSweep.count == 1
    cursor = isShort ? nil : last.name
    if isShort { toSweep.removeFirst() }
    sweptCategory = category
    stage = .sweeping
    return .task(.sweep(zone, names: ids.map(\.name), category: category))
  }

  private mutating func storeSweep(records: Int, deletions: Int, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    isLastPage = sweepIsLast
    let parts = sweptPart(records: records, deletions: deletions)
    let plan = plan(for: parts, registry)
    (storedParts, storedUnclaimed) = (parts, 0)
    var delta: StateDelta = [:]
    if isLastPage { addEnd(to: &delta, registry, now) }
    stage = .storing
    return .task(.storePage(zone, plan, delta))
  }

  private func sweptPart(records: Int, deletions: Int) -> [PartOutline] {
    guard records + deletions > 0, let category = sweptCategory else { return [] }
    return [PartOutline(category: category, records: records, deletions: deletions)]
  }

  /// Nothing was left to look up: what is staged is complete all the same.
  private mutating func endSweep(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    isLastPage = true
    let plan = plan(for: [], registry)
    (storedParts, storedUnclaimed) = ([], 0)
    var delta: StateDelta = [:]
    addEnd(to: &delta, registry, now)
    stage = .storing
    return .task(.storePage(zone, plan, delta))
  }
}
