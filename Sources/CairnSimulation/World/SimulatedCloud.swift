import CairnEngine
import CairnRecords
import CairnTesting

/// The network between one device and the server: performs requests as the present ``SyncPlan`` says.
///
/// Unchecked: a run works on one thread, which is the only one that ever touches this.
final class SimulatedCloud: CloudDatabase, @unchecked Sendable {
  private let cloud: InMemoryCloud
  var isTokenRefused = false
  var coverage = Coverage()
  /// The operations of modify requests since ``begin(_:during:)``.
  private(set) var sent: [RecordOperation] = []
  private(set) var requests = 0
  private var faults: [Int: NetworkFault] = [:]
  private var during: ((Int) -> Void)?
  /// Names of records whose deletion was fetched.
  private var deletedNames: Set<String> = []
  private var hasZone = false

  init(_ cloud: InMemoryCloud) { self.cloud = cloud }

  /// Starts a call to sync: requests are numbered from 0.
  func begin(_ faults: [Int: NetworkFault], during: ((Int) -> Void)?) {
    self.faults = faults
    self.during = during
    requests = 0
    sent = []
  }

  /// Ends a call: requests work from now on. What it sent can still be read.
  func end() { (faults, during) = ([:], nil) }

  var limits: CloudLimits { cloud.limits }

  func currentUser() throws(CloudError) -> String {
    try perform { () throws(CloudError) in try cloud.currentUser() }
  }

  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try perform(hasToken: token != nil) { () throws(CloudError) in try cloud.databaseChanges(since: token) }
  }

  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    let page = try perform(hasToken: token != nil) { () throws(CloudError) in
      try cloud.zoneChanges(in: zone, since: token)
    }
    for deletion in page.deletions { deletedNames.insert(deletion.id.name) }
    return page
  }

  /// Tells no position: the engine finds its own changes in the feed.
  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    sent += operations
    note(operations)
    if faults[requests] == .quota { return ModifyReport(try overQuota(zone, operations, atomic)) }
    return ModifyReport(
      try perform { () throws(CloudError) in try cloud.modify(in: zone, operations, atomic: atomic) })
  }

  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try perform { () throws(CloudError) in try cloud.lookup(in: zone, names: names) }
  }

  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    if hasZone { coverage.note(.zoneRecreated) }
    hasZone = true
    return try perform { () throws(CloudError) in try cloud.createZones(zones) }
  }

  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try perform { () throws(CloudError) in try cloud.deleteZones(zones) }
  }

  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    try perform { () throws(CloudError) in try cloud.zoneExists(zone) }
  }

  func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    try perform { () throws(CloudError) in try cloud.uploadAssets(in: zone, targets, bytes: bytes) }
  }

  func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    try perform { () throws(CloudError) in try cloud.downloadAsset(asset) }
  }

  func cancel() {}

  // MARK: Failing

  private func perform<Answer>(
    hasToken: Bool = false, _ body: () throws(CloudError) -> Answer
  ) throws(CloudError) -> Answer {
    let number = requests
    requests += 1
    if isTokenRefused {
      coverage.note(.tokenRefused)
      throw CloudError(.authenticationFailed, "The token is not known")
    }
    switch faults[number] {
    case .lostRequest:
      coverage.note(.lostRequest)
      throw CloudError(.networkFailure, "The request was lost")
    case .throttled:
      coverage.note(.throttled)
      throw CloudError(.throttled, "Too many requests", retryAfter: 3)
    case .busy:
      coverage.note(.busy)
      throw CloudError(.tryAgainLater, "Try again later", retryAfter: 1)
    case .expiredToken where hasToken:
      coverage.note(.expiredToken)
      throw CloudError(.changeTokenExpired, "The token is too old", expiryCause: .retention)
    case .lostAnswer:
      coverage.note(.lostAnswer)
      // What became of the request is what the caller can't know, its failure included.
      _ = Result(catching: body)
      during?(number)
      throw CloudError(.serverResponseLost, "The answer was lost")
    case .duplicated:
      coverage.note(.duplicatedRequest)
      _ = Result(catching: body)
    case .quota, .expiredToken, nil: break
    }
    let result = Result(catching: body)
    during?(number)
    return try result.get()
  }

  /// Deletes work, saves do not.
  private func overQuota(
    _ zone: ZoneID, _ operations: [RecordOperation], _ atomic: Bool
  ) throws(CloudError) -> [OperationOutcome] {
    coverage.note(.quota)
    let deletes = operations.filter(\.kind.isDelete)
    var outcomes = try perform { () throws(CloudError) -> [OperationOutcome] in
      deletes.isEmpty ? [] : try cloud.modify(in: zone, deletes, atomic: atomic)
    }
    outcomes.reverse()
    return operations.map { operation in
      guard operation.kind.isDelete, let outcome = outcomes.popLast() else {
        return .failed(operation.record.id, CloudError(.quotaExceeded, "The user's quota is used up"))
      }
      return outcome
    }
  }

  private func note(_ operations: [RecordOperation]) {
    for operation in operations where !operation.record.id.name.hasPrefix("cairn_table:") {
      switch operation.kind {
      case .replace, .forceReplace: coverage.note(.replaceSent)
      case .create: coverage.note(deletedNames.contains(operation.record.id.name) ? .revived : .createSent)
      case .delete: coverage.note(.conditionalDelete)
      default: break
      }
    }
  }
}
