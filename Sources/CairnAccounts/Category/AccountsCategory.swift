import CairnEngine
import CairnRecords

/// The category `accounts` of an engine (engine section 13): logins of a multi-account app, equal on all devices of a
/// user.
///
/// Used on the engine's thread only, like every category. Decisions are in ``ScopeState``; this hands them what the
/// engine brings, each call one commit of the profile's file, or a part of the engine's own transaction where the
/// engine keeps its rows in that file.
public final class AccountsCategory: RecordCategory {
  public let name = "accounts"
  public var delivery: CategoryDelivery { .sealedSet }
  /// Tombstones are records: what a snapshot does not show is not deleted (accounts.md A24).
  public var sweepsSnapshots: Bool { false }
  /// An older release may have moved the engine's token past these types (accounts.md A48, A49).
  public var bootstrap: BootstrapDemand { .own }
  public var fetchesBeforeSending: Bool { true }
  public var zones: [ZoneID]? { [zone] }

  /// The app's zone; the category shares it with others.
  public let zone: ZoneID
  private let core: AccountsCore
  private let store: any EngineStore
  private var scope: ScopeID?
  private var generation: Int64
  /// What the calls since the last ``resetCounts()`` did.
  public private(set) var counts = AccountsCounts()

  /// - Parameters:
  ///   - zone: where the records live.
  ///   - store: the engine's; where the profile's own file is it, ``AccountsCore/engineStore``.
  public init(_ core: AccountsCore, zone: ZoneID, store: any EngineStore) {
    self.core = core
    self.zone = zone
    self.store = store
    generation = core.file.generation
  }

  public func resetCounts() { counts = AccountsCounts() }

  // MARK: The scope of a session

  public func begin(as user: String?) throws {
    generation = core.file.generation
    let state = try core.file.read()
    scope = state.scope
    // A session of another identity than the store's does nothing (accounts.md A61, A62).
    if let user, scope != .identity(user) { scope = nil }
    if state.device.hasNeed { try SyncSession.raiseNeed(of: name, in: store) }
    // Until the engine says so again: a need may have been raised by whoever ran meanwhile.
    if let scope, state[scope].settings.isCurrent { try change { $0[$1].settings.isCurrent = false } }
  }

  /// Changes the session's scope, unless the identity has changed since it began (accounts.md A60, A64).
  private func change<Result>(_ body: (inout AccountsState, ScopeID) throws -> Result) throws -> Result {
    try core.file.change { state in
      guard let scope, scope != .local, state.scope == scope, core.file.generation == generation else {
        throw AccountsError.identityChanged
      }
      return try body(&state, scope)
    }
  }

  private func read() throws -> ScopeState? {
    guard let scope, scope != .local, core.file.generation == generation else { return nil }
    return try core.file.read()[scope]
  }

  public func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    guard zone == self.zone else { return false }
    return type.map { RecordKey.Kind.all.contains($0) } ?? (RecordKey(name: name) != nil)
  }

  public func isEnabled() throws -> Bool { try read()?.settings.isEnabled ?? false }

  // MARK: Sending

  /// Apps write through the store: nothing is to be gathered.
  public func gatherLocalChanges(now: Int64) throws {}

  public func zonesWithChanges() throws -> [ZoneID] { (try read()?.pendingCount ?? 0) > 0 ? [zone] : [] }

  public func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    guard zone == self.zone, let state = try read(), state.settings.isEnabled, !state.settings.isPausedByPurge else {
      return nil
    }
    if state.settings.isCurrent != request.isCurrent {
      try change { $0[$1].settings.isCurrent = request.isCurrent }
    }
    let permission = ScopeState.Permission(mayInsert: request.isCurrent, isFetched: request.hasFetched)
    var probe = state
    guard !probe.nextBatch(in: zone, request, permission).isEmpty else { return nil }
    let entries = try change { $0[$1].nextBatch(in: zone, request, permission) }
    return entries.isEmpty ? nil : OutgoingBatch(zone: zone, entries: entries)
  }

  public func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    var settled = ScopeState.Settled()
    var failed: [AccountsEvent] = []
    try change { state, scope in
      let bindings = state.device.bindings
      for (entry, result) in zip(batch.entries, results) {
        state[scope].settle(entry, result, bindings: bindings, scope: scope, now: now, &settled)
        if case .handedOver(let reason, _) = result, let event = Self.failure(entry, reason) { failed.append(event) }
      }
    }
    counts.saved += settled.saved
    counts.deleted += settled.deleted
    counts.conflicts += settled.conflicts
    for event in failed { core.eventStreams.send(event) }
  }

  private static func failure(_ entry: OutgoingEntry, _ reason: PendingReason) -> AccountsEvent? {
    guard case .account(let id)? = RecordKey(name: entry.operation.record.id.name) else { return nil }
    return .saveFailed(id, reason: reason.rawValue)
  }

  public func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    guard zone == self.zone, let state = try read(), state.settings.isEnabled, !state.settings.isPausedByPurge else {
      return false
    }
    return state.hasSendable(now, ScopeState.Permission(mayInsert: state.settings.isCurrent, isFetched: true))
  }

  public func nextAttempt(in zone: ZoneID) throws -> Int64? { zone == self.zone ? try read()?.nextAttempt : nil }

  // MARK: Receiving

  public func apply(_ page: ZonePage, now: Int64) throws {
    try change { state, scope in
      state[scope].stage(page.records, page.deletions)
      state[scope].seal()
      note(state.applySealed(scope, now: now))
    }
  }

  public func stage(_ page: ZonePage, now: Int64) throws {
    try change { $0[$1].stage(page.records, page.deletions) }
  }

  public func seal(_ zone: ZoneID) throws { try change { $0[$1].seal() } }

  public func applySealed(in zone: ZoneID, now: Int64) throws -> Bool {
    guard zone == self.zone, let state = try read(), state.staged.values.contains(where: \.isSealed) else {
      return false
    }
    try change { state, scope in note(state.applySealed(scope, now: now)) }
    return false
  }

  private func note(_ applied: ScopeState.Applied) {
    counts.fetched += applied.changed
    counts.removed += applied.removed
  }

  public func hasUnsealedRecords(in zone: ZoneID) throws -> Bool {
    try zone == self.zone && read()?.hasUnsealedRecords == true
  }

  /// What is parked stays parked (accounts.md A5).
  public func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {}

  public func bootstrapCompleted(in zone: ZoneID, now: Int64) throws {
    try change { state, scope in
      state[scope].requeueUnseen()
      state[scope].settings.isActivated = true
      state[scope].settings.isCurrent = true
      state.device.hasNeed = false
    }
  }

  // MARK: Snapshots and zones

  public func beginSnapshot(of zone: ZoneID) throws {}
  public func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] { [] }

  public func policy(for loss: ZoneLoss) -> ZoneLossPolicy { loss == .purged ? .ask : .recreateAndReupload }

  public func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
    guard zone == self.zone else { return }
    try change { state, scope in
      state[scope].forgetServer()
      state[scope].settings.isCurrent = false
      if loss == .purged {
        state[scope].settings.isPausedByPurge = true
      } else if !state[scope].settings.isPausedByPurge {
        // In the same commit: after a crash the engine knows nothing of the zone that it lost.
        state[scope].refill()
      }
    }
    if loss == .purged { core.eventStreams.send(.uploadsPausedByPurge) }
  }

  // MARK: The engine's events

  /// Tells that a fetch of the zone begins or has ended: what the evidence of a migration is measured by (accounts.md
  /// A18 b). An app forwards the events of its engine; without them only the first kind of evidence counts.
  public func note(_ event: Event) throws {
    guard let state = try read(), !state.flagsSeen.isEmpty else { return }
    switch event {
    case .willFetchRecordZoneChanges(zone): try change { $0[$1].settings.fetchesBegun += 1 }
    case .didFetchRecordZoneChanges(zone, nil, _):
      try change { $0[$1].settings.lastAppliedFetch = $0[$1].settings.fetchesBegun }
    default: break
    }
  }
}

/// What syncing did, for people.
public struct AccountsCounts: Hashable, Sendable {
  /// Accounts, markers and contexts that the server confirmed.
  public var saved = 0
  /// Deletions that the server confirmed.
  public var deleted = 0
  /// Accounts, markers and contexts that came or changed.
  public var fetched = 0
  /// Accounts that went because they were deleted elsewhere.
  public var removed = 0
  /// Saves that met another version and were joined with it.
  public var conflicts = 0

  public init() {}
}
