import CairnEngine
import CairnRecords
import Synchronization

/// A cloud that answers single operations of a modify request otherwise than the server did, or instead of it.
final class EntryFaults: CloudDatabase {
  typealias Rule = @Sendable (RecordOperation) -> CloudError?

  private let cloud: any CloudDatabase
  private let rule = Mutex<Rule?>(nil)

  init(_ cloud: any CloudDatabase) { self.cloud = cloud }

  /// An operation for which it gives an error never reaches the server.
  func refuse(_ rule: Rule?) { self.rule.withLock { $0 = rule } }

  var limits: CloudLimits { cloud.limits }
  func currentUser() throws(CloudError) -> String { try cloud.currentUser() }
  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try cloud.databaseChanges(since: token)
  }
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try cloud.zoneChanges(in: zone, since: token)
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
  func cancel() { cloud.cancel() }

  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    let rule = rule.withLock { $0 }
    let errors = operations.map { rule?($0) }
    let passing = zip(operations, errors).filter { $0.1 == nil }.map(\.0)
    var outcomes = passing.isEmpty ? [] : try cloud.modify(in: zone, passing, atomic: atomic)
    outcomes.reverse()
    return ModifyReport(
      zip(operations, errors).map { operation, error in
        if let error { return .failed(operation.record.id, error) }
        return outcomes.popLast() ?? .failed(operation.record.id, CloudError(.internalError, "no answer"))
      })
  }
}
