import CairnEngine
import CairnRecords

/// Syncs one profile that has an engine of its own, on the calling thread. Apps with other categories give
/// ``AccountsCategory`` to their engine instead (accounts.md A1).
public final class AccountsSync: EngineObserver {
  public let category: AccountsCategory
  private let core: AccountsCore
  private let session: SyncSession
  /// Also told of every event; weak.
  public weak var observer: (any EngineObserver)?

  /// - Parameter user: whose profile this is; the server must say the same.
  public init(
    _ core: AccountsCore, cloud: any CloudDatabase, zone: ZoneID, user: String,
    settings: SyncSettings = SyncSettings()
  ) throws(AccountsError) {
    self.core = core
    let store = core.engineStore
    category = AccountsCategory(core, zone: zone, store: store)
    session = SyncSession(
      cloud: cloud, store: store, categories: [category], zones: [zone], settings: settings, expectedUser: user,
      device: try core.deviceName(), generation: core.file.generations, time: core.time, randomness: core.randomness)
    session.observer = self
  }

  /// Syncs until nothing more can be done now; takes up legacy logins afterwards.
  public func sync(_ request: SyncRequest = SyncRequest()) throws -> AccountsReport {
    category.resetCounts()
    try core.runIntents()
    try core.recordLegacyFlags()
    var result = try session.sync(request)
    // Another identity has come meanwhile: nothing more is this one's.
    if result.failure == .replaced {
      return AccountsReport(counts: category.counts, result: result, status: try core.status())
    }
    let migrated = try core.migrateLegacyLogins().migrated
    // A lost zone was made again in that call: accounts wait for the bootstrap that the next one begins with (A57).
    if result.failure == nil, try !migrated.isEmpty || core.status().holdsInserts { result = try session.sync(request) }
    try core.runIntents()
    let report = AccountsReport(counts: category.counts, result: result, status: try core.status())
    try core.noteSync(report)
    return report
  }

  /// Stops new requests of the call that runs. From any thread.
  public func cancel() { session.cancelOperations() }

  public func handle(_ event: Event) {
    do { try category.note(event) } catch { observer?.handle(.diagnostic(.store("\(error)"), nil)) }
    observer?.handle(event)
  }
}

/// What one call to sync did, and how things stand after it.
public struct AccountsReport: Sendable {
  public var counts: AccountsCounts
  public var result: SyncResult
  public var status: AccountsStatus

  /// Nothing is pending and the server had no more.
  public var quiet: Bool { result.failure == nil && result.endedQuiet && status.pending == 0 }

  /// The words of `cairn status`: the first that applies of `decision`, `signedOut`, `paused`, `offline`, `ready`.
  public var state: String {
    switch result.condition {
    case .decision: "decision"
    case .signedOut: "signedOut"
    case .paused: "paused"
    case .offline: "offline"
    case .ready: status.isPaused ? "paused" : "ready"
    }
  }
}

/// How a profile stands, without a server.
public struct AccountsStatus: Hashable, Sendable {
  /// Changes that the server has not confirmed.
  public var pending: Int
  /// Records kept because they can't be applied.
  public var parked: Int
  /// Pending changes that wait for more than their turn: record name to reason.
  public var waiting: [String: String]
  /// ms since 1970.
  public var lastSync: Int64?
  public var identity: CloudIdentity
  public var isEnabled: Bool
  public var isActivated: Bool
  public var isPausedByPurge: Bool
  /// Accounts that were never confirmed wait for a bootstrap.
  var holdsInserts: Bool
  /// How the last sync ended.
  public var lastState: String?

  /// Something needs the user.
  public var isPaused: Bool { !isEnabled || isPausedByPurge || !waiting.isEmpty }
}

extension AccountsCore {
  /// The engine's rows in the profile's own file.
  public var engineStore: any EngineStore { ProfileEngineStore(file) }

  /// Raised with every change of the identity: give it to the app's sessions, so that those of before write nothing
  /// more (accounts.md A60, A64).
  public var engineGeneration: EngineGeneration { file.generations }

  public func status() throws(AccountsError) -> AccountsStatus {
    try described {
      let state = try file.read()
      let scoped = state.scope.map { state[$0] } ?? ScopeState()
      let isLocal = state.scope == .local
      return AccountsStatus(
        pending: isLocal ? 0 : scoped.pendingCount, parked: scoped.parked.count + scoped.withheldCount,
        waiting: isLocal ? [:] : scoped.waiting, lastSync: scoped.settings.lastSync, identity: state.device.identity,
        isEnabled: scoped.settings.isEnabled, isActivated: state.scope.map { state.isActivated($0) } ?? false,
        isPausedByPurge: scoped.settings.isPausedByPurge,
        holdsInserts: scoped.settings.isActivated && !scoped.settings.isCurrent
          && scoped.accounts.values.contains { $0.send.isPending && !$0.send.isConfirmed },
        lastState: scoped.settings.lastState)
    }
  }

  /// Names this installation to the engine.
  func deviceName() throws(AccountsError) -> String { try described { try file.read().device.writer } }

  func noteSync(_ report: AccountsReport) throws(AccountsError) {
    let now = time.wallClock
    try described {
      try file.change { state in
        guard let scope = state.scope else { return }
        if report.quiet { state[scope].settings.lastSync = now }
        state[scope].settings.lastState = report.state
      }
    }
  }
}

extension ScopeState {
  /// Records of a newer format that are kept until understood.
  var withheldCount: Int {
    staged.values.count { item in
      guard item.isSealed, let record = item.record else { return false }
      if case .notUnderstood = AccountRecordCodec.read(record) { return true }
      return false
    }
  }
}
