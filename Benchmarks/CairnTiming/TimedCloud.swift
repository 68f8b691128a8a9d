import CairnEngine
import CairnRecords
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A server's client that counts the CPU time of fetching: of requests, their answers and the decoding.
final class TimedCloud: CloudDatabase {
  private let inner: any CloudDatabase
  private let fetched = Mutex<Double>(0)

  init(_ inner: any CloudDatabase) { self.inner = inner }

  /// CPU seconds so far.
  var fetchSeconds: Double { fetched.withLock { $0 } }

  /// CPU seconds of the calling thread.
  static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private func timed<Result>(_ body: () throws(CloudError) -> Result) throws(CloudError) -> Result {
    let start = Self.now()
    defer {
      let spent = Self.now() - start
      fetched.withLock { $0 += spent }
    }
    return try body()
  }

  var limits: CloudLimits { inner.limits }

  func currentUser() throws(CloudError) -> String {
    try timed { () throws(CloudError) in try inner.currentUser() }
  }

  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try timed { () throws(CloudError) in try inner.databaseChanges(since: token) }
  }

  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try timed { () throws(CloudError) in try inner.zoneChanges(in: zone, since: token) }
  }

  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    try inner.modifyReportingPosition(in: zone, operations, atomic: atomic)
  }

  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try inner.lookup(in: zone, names: names)
  }

  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try inner.createZones(zones)
  }

  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try inner.deleteZones(zones)
  }

  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool { try inner.zoneExists(zone) }

  func cancel() { inner.cancel() }
}
