import CairnEngine
import CairnRecords
import Synchronization

/// True once.
final class Flag: Sendable {
  private let isFree = Mutex(true)

  func takes() -> Bool {
    isFree.withLock { value in
      defer { value = false }
      return value
    }
  }
}

/// Carries something into a `@Sendable` closure that is called on the thread that made it.
struct Handed<Value>: @unchecked Sendable {
  // The tests are single-threaded: the closure runs inside a call of the same thread.
  let value: Value
  init(_ value: Value) { self.value = value }
}

/// A server that stores something else than it was sent, as one with hooks of its own may.
final class EchoingCloud: CloudDatabase {
  private let cloud: any CloudDatabase
  private let text = Mutex<String?>(nil)
  var replaced: String? {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue } }
  }

  init(_ cloud: any CloudDatabase) { self.cloud = cloud }

  var limits: CloudLimits { cloud.limits }
  func currentUser() throws(CloudError) -> String { try cloud.currentUser() }
  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try cloud.databaseChanges(since: token)
  }
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try cloud.zoneChanges(in: zone, since: token)
  }
  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    let outcomes = try cloud.modify(in: zone, operations, atomic: atomic).map { outcome -> OperationOutcome in
      guard case .saved(var record) = outcome, let replaced else { return outcome }
      record.fields["value"] = .string(replaced)
      return .saved(record)
    }
    return ModifyReport(outcomes)
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
}
