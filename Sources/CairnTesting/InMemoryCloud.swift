import CairnEngine
import CairnRecords
import CairnServerCore
import Synchronization

/// One user's private database on an ``InMemoryServer``, as the engine sees it. Thread-safe.
///
/// Asks for the extensions that Cairn's own client asks for: conflicts carry the server's record, tombstones their type
/// and time, an expired token its cause, and modifications where the feed stood before and after.
public final class InMemoryCloud: CloudDatabase {
  public let limits: CloudLimits
  public let caller: Caller
  public let scope: DatabaseScope
  private let server: InMemoryServer
  private let isCancelled = Mutex(false)

  init(server: InMemoryServer, caller: Caller, scope: DatabaseScope, limits: CloudLimits) {
    self.server = server
    self.caller = caller
    self.scope = scope
    self.limits = limits
  }

  private var options: RequestOptions { RequestOptions(page: limits.entriesPerRequest, conflictRecords: true) }

  func core() throws(CloudError) -> CloudServer {
    guard !isCancelled.withLock({ $0 }) else { throw CloudError(.cancelled, "Cancelled") }
    return server.core
  }

  // MARK: CloudDatabase

  public func currentUser() throws(CloudError) -> String {
    _ = try core()
    return caller.recordName
  }

  public func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    let page = try core().databaseChanges(caller, scope, since: token, options)
    return DatabasePage(
      changed: page.zones.filter { !$0.isDeleted }.map { ZoneID(name: $0.id.name) },
      deleted: page.zones.filter(\.isDeleted).map { ZoneID(name: $0.id.name) },
      token: page.token, moreComing: page.moreComing)
  }

  public func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    let request = ZoneFeedQuery(zone: zone, token: token)
    let page = try one(try core().changes(caller, scope, [request], options))
    var result = ZonePage(zone: zone, records: [], deletions: [], token: page.token, moreComing: page.moreComing)
    for entry in page.entries {
      switch entry {
      case .record(let record): result.records.append(seen(record, in: zone))
      case .tombstone(let tombstone):
        result.deletions.append(
          RecordDeletion(
            id: RecordID(name: tombstone.id.name, zone: zone), type: tombstone.type,
            time: tombstone.modified.timestamp))
      }
    }
    return result
  }

  public func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    let incoming = operations.map { operation in
      var operation = operation
      operation.record.id.zone = zone
      return IncomingOperation(operation)
    }
    let request = Modification(operations: incoming, atomic: atomic, positionZone: zone)
    let answer = try core().modify(caller, scope, request, options)
    let outcomes = answer.outcomes.map { (outcome) -> OperationOutcome in
      switch outcome {
      case .saved(let record): return .saved(seen(record, in: zone))
      case .deleted(let id): return .deleted(RecordID(name: id.name, zone: zone))
      case .failed(let id, var error):
        error.serverRecord = error.serverRecord.map { seen($0, in: zone) }
        return .failed(RecordID(name: id.name, zone: zone), error)
      }
    }
    return ModifyReport(outcomes, position: answer.position)
  }

  public func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    let items = names.map { LookupItem(name: $0) }
    return try core().lookup(caller, scope, in: zone, items, options).records.map { result in
      result.map { seen($0, in: zone) }
    }
  }

  public func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try modifyZones(zones.map { .create($0) })
  }

  public func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try modifyZones(zones.map { .delete($0) })
  }

  public func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    switch try core().lookupZones(caller, scope, [zone], options).first {
    case .success: return true
    case .failure(let error) where error.code != .zoneNotFound: throw error
    default: return false
    }
  }

  public func cancel() { isCancelled.withLock { $0 = true } }

  // MARK: For tests

  /// Every live record of a zone, by name: what the server holds.
  public func allRecords(in zone: ZoneID) throws(CloudError) -> [Record] {
    var records: [Record] = []
    var token: ChangeToken?
    while true {
      let page = try zoneChanges(in: zone, since: token)
      records += page.records
      token = page.token
      if !page.moreComing { return records.sorted { $0.id.name < $1.id.name } }
    }
  }

  // MARK: Words

  private func modifyZones(_ operations: [ZoneOperation]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    let results = try core().modifyZones(caller, scope, operations, options)
    return zip(operations, results).map { operation, result in result.map { _ in operation.id } }
  }

  private func one<Answer>(_ results: [Result<Answer, CloudError>]) throws(CloudError) -> Answer {
    guard let result = results.first else { throw CloudError(.internalError, "The answer is empty") }
    return try result.get()
  }

  /// The record under the zone's name that the engine asked by, where the server answers the owner's own name.
  private func seen(_ record: Record, in zone: ZoneID) -> Record {
    var record = record
    record.id.zone = zone
    return record
  }
}
