import CairnRecords

/// One thing that the driver has to do, and to answer before anything else happens (engine section 1).
///
/// Categories are named by their index in ``EngineConfiguration/categories``. A task with a delta commits it in the
/// same transaction as what the categories store.
public enum EngineTask: Hashable, Sendable {
  // Local
  /// Every category recovers what was in flight; answer `done`.
  case recover(StateDelta)
  /// Answer `survey`.
  case survey
  /// A category that was off checks its outbox.
  case revalidate([ZoneID], category: Int, StateDelta)
  /// Asks what becomes of changes made without an identity; the delta is for every answer but `undecided`. Answer
  /// `flag`: decided.
  case adopt(category: Int, user: String, StateDelta)
  /// Answer `zoneIDs`: where changes are pending, or `done`.
  case gather(category: Int)
  /// Answer `flag`: more is left.
  case applySealed(ZoneID, category: Int)
  /// Answer `staging`.
  case inspectStaging(ZoneID)
  case beginSnapshot(ZoneID, categories: [Int], StateDelta)
  /// Stores the page at hand.
  case storePage(ZoneID, PagePlan, StateDelta)
  /// Answer `ids`.
  case unseen(ZoneID, category: Int, after: String?, limit: Int)
  case retryParked(ZoneID, category: Int, all: Bool)
  /// Answer `batch`.
  case takeBatch(ZoneID, category: Int, BatchRequest)
  case settle(category: Int, OutgoingBatch, [EntryResult], StateDelta)
  case loseZone(ZoneID, [CategoryLoss], StateDelta)
  case answerLoss(ZoneID, [CategoryAnswer], StateDelta)
  /// Answer `count`.
  case abandonChanges(ZoneID, StateDelta)
  /// Answer `outlook`.
  case outlook(ZoneID, category: Int)
  // Server
  case identify
  case databaseChanges(ChangeToken?)
  /// The driver keeps the page at hand and answers with its outline.
  case fetchPage(ZoneID, ChangeToken?, categories: [Int])
  /// The driver keeps what was found as a page at hand, and answers `found`.
  case sweep(ZoneID, names: [String], category: Int)
  case modify(ZoneID, [RecordOperation], atomic: Bool)
  case lookup(ZoneID, names: [String])
  case zoneExists(ZoneID)
  case createZones([ZoneID])
  case deleteZones([ZoneID])
}

/// What becomes of the page at hand, category by category.
public struct PagePlan: Hashable, Sendable {
  /// Categories that apply their part at once, ascending.
  public var apply: [Int] = []
  /// Categories that stage their part, ascending.
  public var stage: [Int] = []
  /// Categories whose staged set is complete with this page, ascending.
  public var seal: [Int] = []
  /// The category whose bootstrap is complete with this page.
  public var bootstrapped: Int?
}

/// What a page holds for one category.
public struct PartOutline: Hashable, Sendable {
  public var category: Int
  public var records: Int
  public var deletions: Int

  public init(category: Int, records: Int, deletions: Int) {
    self.category = category
    self.records = records
    self.deletions = deletions
  }
}

/// What the machine needs to know of a page; the records stay with the driver.
public struct PageOutline: Hashable, Sendable {
  /// Only categories with something in it, ascending.
  public var parts: [PartOutline]
  /// Records that no category claims.
  public var unclaimed: Int
  public var token: ChangeToken
  public var moreComing: Bool

  public init(parts: [PartOutline], unclaimed: Int, token: ChangeToken, moreComing: Bool) {
    self.parts = parts
    self.unclaimed = unclaimed
    self.token = token
    self.moreComing = moreComing
  }
}

/// A category told that its zone is lost.
public struct CategoryLoss: Hashable, Sendable {
  public var category: Int
  public var loss: ZoneLoss
}

/// A category told what to do after its zone was lost.
public struct CategoryAnswer: Hashable, Sendable {
  public var category: Int
  public var answer: ZoneLossAnswer
}

/// What came of a task.
public enum EngineAnswer: Sendable {
  case done
  case flag(Bool)
  /// Which categories hold unsealed records, and which are switched on.
  case staging(unsealed: [Bool], enabled: [Bool])
  case ids([RecordID])
  case zoneIDs([ZoneID])
  case count(Int)
  case batch(OutgoingBatch?)
  /// Whether entries could be sent now, and when a waiting one may be tried again.
  case outlook(sendable: Bool, next: Int64?)
  /// Which categories are switched on, and the rows that all identities share.
  case survey([Bool], StateDelta)
  case user(String)
  case databasePage(DatabasePage)
  case page(PageOutline)
  /// Of a sweep: how many were found, and how many are gone.
  case found(records: Int, deletions: Int)
  /// With where the zone's feed stood before and after, if the server told.
  case outcomes([OperationOutcome], FeedStep? = nil)
  case records([Result<Record, CloudError>])
  case zones([Result<ZoneID, CloudError>])
  /// The request failed.
  case failed(CloudError)
  /// A category or the store threw: nothing was stored.
  case storeFailed(String)
}

/// What the driver does for the machine, in order. After a `perform` it waits for the answer.
public enum Effect: Hashable, Sendable {
  case commit(StateDelta)
  case event(Event)
  case perform(EngineTask)
  case finish(SyncResult)
}

/// What the machine is told.
public enum Input: Sendable {
  /// A sync call begins. Only while none runs.
  case sync(SyncRequest)
  case answer(EngineAnswer)
  /// Stops new requests; what is under way is still processed.
  case cancel
  /// The server's limits have become known.
  case limits(CloudLimits)
  /// The user's answer to a question. Only while no call runs.
  case decide(ZoneID, category: String, ZoneLossAnswer)
  /// Zones to create or delete with the next send.
  case addDatabaseChanges([PendingState.DatabaseChange])
  /// The server may have changes in these zones (S6).
  case hint([ZoneID])
  /// The network is back: ends a wait that it caused (engine section 9).
  case reconnected
}

extension EngineTask {
  /// The engine's rows that are committed with the task.
  var delta: StateDelta {
    switch self {
    case .adopt(_, _, let delta), .recover(let delta), .revalidate(_, _, let delta), .beginSnapshot(_, _, let delta),
      .storePage(_, _, let delta),
      .settle(_, _, _, let delta), .loseZone(_, _, let delta), .answerLoss(_, _, let delta),
      .abandonChanges(_, let delta):
      delta
    default: [:]
    }
  }

  var needsServer: Bool {
    switch self {
    case .identify, .databaseChanges, .fetchPage, .sweep, .modify, .lookup, .zoneExists, .createZones, .deleteZones:
      true
    default: false
    }
  }
}

extension EngineAnswer {
  var cameFromServer: Bool {
    switch self {
    case .user, .databasePage, .page, .found, .outcomes, .records, .zones: true
    default: false
    }
  }
}
