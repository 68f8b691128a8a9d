import CairnEngine
import CairnRecords
import Synchronization

/// A server's client that counts requests and the errors that come back; faults are injected in front of it, so that
/// what it counts is the server's own.
final class CountedCloud: CloudDatabase {
  struct Counts: Sendable {
    var requests = 0
    var records = 0
    var errors: [String: Int] = [:]
    /// Milliseconds per request, in the order of their ends.
    var times: [Double] = []

    mutating func add(_ other: Counts) {
      requests += other.requests
      records += other.records
      errors.merge(other.errors, uniquingKeysWith: +)
      times += other.times
    }
  }

  private let inner: any CloudDatabase
  private let state = Mutex(Counts())

  init(_ inner: any CloudDatabase) { self.inner = inner }

  var counts: Counts { state.withLock { $0 } }

  private func counted<Result>(
    records: Int = 0, _ body: () throws(CloudError) -> Result
  ) throws(CloudError) -> Result {
    let start = ContinuousClock.now
    defer {
      let spent = ContinuousClock.now - start
      state.withLock {
        $0.requests += 1
        $0.times.append(Double(spent.components.seconds) * 1_000 + Double(spent.components.attoseconds) / 1e15)
      }
    }
    do throws(CloudError) {
      let result = try body()
      state.withLock { $0.records += records }
      return result
    } catch {
      state.withLock { $0.errors[error.code.rawValue, default: 0] += 1 }
      throw error
    }
  }

  var limits: CloudLimits { inner.limits }

  func currentUser() throws(CloudError) -> String {
    try counted { () throws(CloudError) in try inner.currentUser() }
  }

  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try counted { () throws(CloudError) in try inner.databaseChanges(since: token) }
  }

  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try counted { () throws(CloudError) in try inner.zoneChanges(in: zone, since: token) }
  }

  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    try counted(records: operations.count) { () throws(CloudError) in
      try inner.modifyReportingPosition(in: zone, operations, atomic: atomic)
    }
  }

  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try counted { () throws(CloudError) in try inner.lookup(in: zone, names: names) }
  }

  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try counted { () throws(CloudError) in try inner.createZones(zones) }
  }

  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try counted { () throws(CloudError) in try inner.deleteZones(zones) }
  }

  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    try counted { () throws(CloudError) in try inner.zoneExists(zone) }
  }

  func cancel() { inner.cancel() }
}
