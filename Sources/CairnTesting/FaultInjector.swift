import CairnEngine
import CairnRecords
import Synchronization

/// A cloud that fails as it is told: a wrapper around another, with a log of every request. Thread-safe; used from one
/// thread, it is deterministic.
///
/// A fault of a call is the first of: offline, the rules of ``fail(_:times:where:)`` in their order, the script, the
/// random faults.
public final class FaultInjector: CloudDatabase {
  /// What goes wrong with a call.
  public enum Fault: Hashable, Sendable {
    /// The request never reaches the server: `networkFailure`.
    case lostRequest
    /// The request happens, its answer does not arrive: `serverResponseLost`.
    case lostAnswer
    /// `THROTTLED` with so many seconds to wait.
    case throttled(retryAfter: Double)
    /// Every save of a modify call fails with `QUOTA_EXCEEDED`; deletes and other calls work.
    case quotaExceeded
    case authenticationFailed
    /// `networkUnavailable`.
    case offline
    /// The request fails with this error before it happens.
    case error(CloudError)
  }

  /// A request as the engine made it.
  public enum Call: Hashable, Sendable {
    case currentUser
    case databaseChanges(since: ChangeToken?)
    case zoneChanges(ZoneID, since: ChangeToken?)
    case modify(ZoneID, [RecordOperation], atomic: Bool)
    case lookup(ZoneID, [String])
    case createZones([ZoneID])
    case deleteZones([ZoneID])
    case zoneExists(ZoneID)
    case uploadAssets(ZoneID, [AssetTarget])
    case downloadAsset(Asset)
  }

  /// A call and the fault that it met.
  public struct LoggedRequest: Hashable, Sendable {
    public var call: Call
    public var fault: Fault?
  }

  /// How often calls fail on their own, in percent.
  public struct Rates: Sendable {
    public var lostRequest = 0
    public var lostAnswer = 0
    public var throttled = 0
    public var temporary = 0

    public init(lostRequest: Int = 0, lostAnswer: Int = 0, throttled: Int = 0, temporary: Int = 0) {
      self.lostRequest = lostRequest
      self.lostAnswer = lostAnswer
      self.throttled = throttled
      self.temporary = temporary
    }
  }

  private struct Rule: Sendable {
    var fault: Fault
    var times: Int
    var matches: @Sendable (Call) -> Bool
  }

  private struct State: Sendable {
    var log: [LoggedRequest] = []
    var rules: [Rule] = []
    var script: [Fault?] = []
    var isOffline = false
    var hidesPositions = false
    var rates: Rates?
    var before: (@Sendable (Call) -> Void)?
    var after: (@Sendable (Call) -> Void)?
  }

  private let cloud: any CloudDatabase
  private let randomness: SeededRandomness
  private let keepsLog: Bool
  private let state = Mutex(State())

  /// - Parameter keepsLog: whether every request is kept for ``log``; long runs do without.
  public init(_ cloud: any CloudDatabase, seed: UInt64 = 0, keepsLog: Bool = true) {
    self.cloud = cloud
    self.keepsLog = keepsLog
    randomness = SeededRandomness(seed: seed)
  }

  // MARK: Setting up

  /// Every call fails with `networkUnavailable` while this is true.
  public var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set { state.withLock { $0.isOffline = newValue } }
  }

  /// Modifications do not tell where the feed stood, as on a server without `feed-position`, while this is true.
  public var hidesPositions: Bool {
    get { state.withLock { $0.hidesPositions } }
    set { state.withLock { $0.hidesPositions = newValue } }
  }

  /// The next `times` calls that match fail.
  public func fail(
    _ fault: Fault, times: Int = 1, where matches: @escaping @Sendable (Call) -> Bool = { _ in true }
  ) {
    state.withLock { $0.rules.append(Rule(fault: fault, times: times, matches: matches)) }
  }

  /// One entry per coming call, nil for a call that works.
  public func script(_ faults: [Fault?]) { state.withLock { $0.script += faults } }

  /// From now on calls fail at random, by the seed; nil ends that.
  public func setRates(_ rates: Rates?) { state.withLock { $0.rates = rates } }

  /// Ends every fault that was set up.
  public func heal() {
    state.withLock {
      $0.rules = []
      $0.script = []
      $0.isOffline = false
      $0.rates = nil
    }
  }

  /// Runs before each request happens, for example to let another device come first.
  public func setBefore(_ handler: (@Sendable (Call) -> Void)?) { state.withLock { $0.before = handler } }

  /// Runs after each request happened and before its answer arrives, for example to edit while it is under way.
  public func setAfter(_ handler: (@Sendable (Call) -> Void)?) { state.withLock { $0.after = handler } }

  // MARK: Looking at it

  /// Every request since the start or the last ``clearLog()``, in order.
  public var log: [LoggedRequest] { state.withLock { $0.log } }

  /// Forgets the calls so far.
  public func clearLog() { state.withLock { $0.log = [] } }

  /// The operations of every modify request, in order, those of failed requests included.
  public var sentOperations: [RecordOperation] {
    log.flatMap { request -> [RecordOperation] in
      if case .modify(_, let operations, _) = request.call { operations } else { [] }
    }
  }

  // MARK: CloudDatabase

  public var limits: CloudLimits { cloud.limits }

  public func currentUser() throws(CloudError) -> String {
    try run(.currentUser) { () throws(CloudError) in try cloud.currentUser() }
  }

  public func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try run(.databaseChanges(since: token)) { () throws(CloudError) in try cloud.databaseChanges(since: token) }
  }

  public func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try run(.zoneChanges(zone, since: token)) { () throws(CloudError) in
      try cloud.zoneChanges(in: zone, since: token)
    }
  }

  public func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    let call = Call.modify(zone, operations, atomic: atomic)
    let fault = begin(call)
    var report = try run(call, fault) { () throws(CloudError) in
      guard fault == .quotaExceeded else {
        return try cloud.modifyReportingPosition(in: zone, operations, atomic: atomic)
      }
      return ModifyReport(try overQuota(zone, operations, atomic))
    }
    if hidesPositions { report.position = nil }
    return report
  }

  public func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try run(.lookup(zone, names)) { () throws(CloudError) in try cloud.lookup(in: zone, names: names) }
  }

  public func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try run(.createZones(zones)) { () throws(CloudError) in try cloud.createZones(zones) }
  }

  public func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try run(.deleteZones(zones)) { () throws(CloudError) in try cloud.deleteZones(zones) }
  }

  public func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    try run(.zoneExists(zone)) { () throws(CloudError) in try cloud.zoneExists(zone) }
  }

  public func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    try run(.uploadAssets(zone, targets)) { () throws(CloudError) in
      try cloud.uploadAssets(in: zone, targets, bytes: bytes)
    }
  }

  public func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    try run(.downloadAsset(asset)) { () throws(CloudError) in try cloud.downloadAsset(asset) }
  }

  public func cancel() { cloud.cancel() }

  // MARK: Failing

  private func run<Answer>(_ call: Call, _ body: () throws(CloudError) -> Answer) throws(CloudError) -> Answer {
    try run(call, begin(call), body)
  }

  private func begin(_ call: Call) -> Fault? {
    let (fault, before) = state.withLock { state in
      let fault = nextFault(call, &state)
      if keepsLog { state.log.append(LoggedRequest(call: call, fault: fault)) }
      return (fault, state.before)
    }
    before?(call)
    return fault
  }

  private func run<Answer>(
    _ call: Call, _ fault: Fault?, _ body: () throws(CloudError) -> Answer
  ) throws(CloudError) -> Answer {
    switch fault {
    case .lostRequest: throw CloudError(.networkFailure, "The request was lost")
    case .throttled(let seconds): throw CloudError(.throttled, "Too many requests", retryAfter: seconds)
    case .authenticationFailed: throw CloudError(.authenticationFailed, "The token is not known")
    case .offline: throw CloudError(.networkUnavailable, "Offline")
    case .error(let error): throw error
    case .lostAnswer:
      // What became of the request is what the caller cannot know, its failure included.
      _ = Result(catching: body)
      state.withLock { $0.after }?(call)
      throw CloudError(.serverResponseLost, "The answer was lost")
    case .quotaExceeded, nil:
      let result = Result(catching: body)
      state.withLock { $0.after }?(call)
      return try result.get()
    }
  }

  private func nextFault(_ call: Call, _ state: inout State) -> Fault? {
    if state.isOffline { return .offline }
    if let i = state.rules.firstIndex(where: { $0.times > 0 && $0.matches(call) }) {
      state.rules[i].times -= 1
      return state.rules[i].fault
    }
    if !state.script.isEmpty { return state.script.removeFirst() }
    guard let rates = state.rates else { return nil }
    var draw = randomness.below(100)
    for (percent, fault) in [
      (rates.lostRequest, Fault.lostRequest), (rates.lostAnswer, .lostAnswer),
      (rates.throttled, .throttled(retryAfter: 1)),
      (rates.temporary, .error(CloudError(.tryAgainLater, "Try again later", retryAfter: 1))),
    ] {
      if draw < percent { return fault }
      draw -= percent
    }
    return nil
  }

  /// Deletes work, saves do not; an atomic request with a save does nothing (web-services section 12).
  private func overQuota(
    _ zone: ZoneID, _ operations: [RecordOperation], _ atomic: Bool
  ) throws(CloudError) -> [OperationOutcome] {
    let deletes = operations.filter(\.kind.isDelete)
    let isRefused = atomic && deletes.count < operations.count
    var outcomes = isRefused || deletes.isEmpty ? [] : try cloud.modify(in: zone, deletes, atomic: atomic)
    outcomes.reverse()
    return operations.map { operation in
      if !operation.kind.isDelete {
        return .failed(operation.record.id, CloudError(.quotaExceeded, "The user's quota is used up"))
      }
      return outcomes.popLast()
        ?? .failed(operation.record.id, CloudError(.atomicError, "Another operation of this atomic request failed"))
    }
  }
}
