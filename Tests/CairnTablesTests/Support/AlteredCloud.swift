import CairnEngine
import CairnRecords
import Synchronization

/// A server whose pages are changed on their way to the devices: one that does not tell the time of deletes, or that
/// tells everything thrice and backwards. Also notes what the server stored.
final class AlteredCloud: CloudDatabase {
  /// Shared by the devices of a world.
  final class Alterations: Sendable {
    private struct State {
      var alter: (@Sendable (ZonePage) -> ZonePage)?
      var stored: [String: Int] = [:]
      var refuse: (@Sendable (RecordOperation) -> CloudError?)?
    }
    private let state = Mutex(State())

    /// What becomes of every page from now on.
    func set(_ alter: (@Sendable (ZonePage) -> ZonePage)?) { state.withLock { $0.alter = alter } }

    func apply(to page: ZonePage) -> ZonePage { state.withLock { $0.alter }?(page) ?? page }

    /// How often a save of a record was stored, by name, since the last ``clearStored()``.
    var stored: [String: Int] { state.withLock { $0.stored } }

    func clearStored() { state.withLock { $0.stored = [:] } }

    /// The server refuses operations of which `refusal` knows an error; the others of the request happen.
    func refuse(_ refusal: (@Sendable (RecordOperation) -> CloudError?)?) { state.withLock { $0.refuse = refusal } }

    func refusal(of operation: RecordOperation) -> CloudError? { state.withLock { $0.refuse }?(operation) }

    func note(_ outcomes: [OperationOutcome]) {
      state.withLock { state in
        for case .saved(let record) in outcomes where !record.id.name.hasPrefix("cairn_table:") {
          state.stored[record.id.name, default: 0] += 1
        }
      }
    }

    /// Deletions come without their time from now on.
    func hideDeleteTimes() {
      set { page in
        var page = page
        for i in page.deletions.indices { page.deletions[i].time = nil }
        return page
      }
    }
  }

  private let cloud: any CloudDatabase
  private let alterations: Alterations

  init(_ cloud: any CloudDatabase, _ alterations: Alterations) {
    self.cloud = cloud
    self.alterations = alterations
  }

  var limits: CloudLimits { cloud.limits }
  func currentUser() throws(CloudError) -> String { try cloud.currentUser() }
  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try cloud.databaseChanges(since: token)
  }
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    alterations.apply(to: try cloud.zoneChanges(in: zone, since: token))
  }
  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    let refusals = operations.map { alterations.refusal(of: $0) }
    let allowed = zip(operations, refusals).filter { $0.1 == nil }.map(\.0)
    let report =
      allowed.isEmpty ? ModifyReport([]) : try cloud.modifyReportingPosition(in: zone, allowed, atomic: atomic)
    var rest = report.outcomes
    alterations.note(rest)
    rest.reverse()
    var outcomes: [OperationOutcome] = []
    for (operation, refusal) in zip(operations, refusals) {
      if let refusal {
        outcomes.append(.failed(operation.record.id, refusal))
      } else if let outcome = rest.popLast() {
        outcomes.append(outcome)
      }
    }
    return ModifyReport(outcomes, position: report.position)
  }
  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try cloud.lookup(in: zone, names: names)
  }
  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try cloud.createZones(zones)
  }
  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try cloud.deleteZones(zones)
  }
  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool { try cloud.zoneExists(zone) }
  func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    try cloud.uploadAssets(in: zone, targets, bytes: bytes)
  }
  func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    try cloud.downloadAsset(asset)
  }
  func cancel() { cloud.cancel() }
}
