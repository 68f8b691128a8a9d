import CairnEngine
import CairnRecords
import CairnServerCore
import CairnTesting
import Foundation
import StoreSupport
import Testing

/// Runs the body of a test over every kind of store, one after the other.
struct EveryStore: SuiteTrait, TestTrait, TestScoping {
  @TaskLocal static var kind = StoreKind.memory

  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    for kind in StoreKind.allCases { try await Self.$kind.withValue(kind) { try await function() } }
  }
}

extension Trait where Self == EveryStore {
  static var everyStore: Self { EveryStore() }
}

/// One server, one user and one zone, with short words for requests. In memory, or on the store that ``EveryStore``
/// says.
struct World {
  /// Goes after the server.
  let store: TestStore
  let clock = ManualClock()
  let server: InMemoryServer
  let cloud: InMemoryCloud
  let zone = ZoneID(name: "Notes")

  init(settings: ServerSettings = ServerSettings(), limits: CloudLimits = CloudLimits()) throws {
    store = try TestStore(EveryStore.kind)
    server = try InMemoryServer(storage: try store.open(), clock: clock, settings: settings)
    cloud = try server.cloud(user: "anna", limits: limits)
    _ = try cloud.createZones([zone])
  }

  enum Backup {
    case memory(InMemoryServer.Backup)
    case copy(TestStore)
  }

  /// Nil for a store in a file, of which ``StorageTests`` makes copies.
  func backup() throws -> Backup? {
    switch store.kind {
    case .memory: .memory(try server.backup())
    case .file: nil
    case .postgres: .copy(try store.backup())
    }
  }

  /// Puts a copy in place of the store and starts the server again.
  func restore(_ backup: Backup) throws {
    switch backup {
    case .memory(let backup): try server.restore(backup)
    case .copy(let copy):
      try store.restore(copy)
      try server.restart()
    }
  }

  func note(_ name: String, _ fields: Fields = [:], tag: ChangeTag? = nil, type: String = "Note") -> Record {
    Record(id: RecordID(name: name, zone: zone), type: type, changeTag: tag, fields: fields)
  }

  /// The outcome of one operation.
  @discardableResult
  func run(_ kind: RecordOperation.Kind, _ record: Record, in zone: ZoneID? = nil) throws -> OperationOutcome {
    try cloud.modify(in: zone ?? self.zone, [RecordOperation(kind, record)], atomic: true)[0]
  }

  /// Saves without conditions and gives the stored record.
  @discardableResult
  func save(_ name: String, _ fields: Fields = [:]) throws -> Record {
    try run(.forceReplace, note(name, fields)).saved()
  }

  /// An asset with its receipt.
  func upload(_ bytes: [UInt8], for target: AssetTarget) throws -> Asset {
    try cloud.uploadAssets(in: zone, [target]) { (_) throws(CloudError) in bytes }[0].get()
  }

  func stored(_ name: String, in zone: ZoneID? = nil) throws -> Record? {
    try? cloud.lookup(in: zone ?? self.zone, names: [name])[0].get()
  }

  /// All pages from `token` on, in pages of `size`.
  func feed(since token: ChangeToken? = nil, size: Int? = nil, in zone: ZoneID? = nil) throws -> (
    records: [String], deletions: [String], token: ChangeToken
  ) {
    var (records, deletions): ([String], [String]) = ([], [])
    var token = token
    while true {
      var request = ZoneFeedQuery(zone: zone ?? self.zone, token: token)
      request.resultsLimit = size
      let page = try server.core.changes(cloud.caller, cloud.scope, [request])[0].get()
      for entry in page.entries {
        switch entry {
        case .record(let record): records.append(record.id.name)
        case .tombstone(let tombstone): deletions.append(tombstone.id.name)
        }
      }
      token = page.token
      if !page.moreComing { return (records, deletions, page.token) }
    }
  }
}

struct UnexpectedOutcome: Error { var outcome: OperationOutcome }

extension OperationOutcome {
  func saved() throws -> Record {
    guard case .saved(let record) = self else { throw UnexpectedOutcome(outcome: self) }
    return record
  }

  var error: CloudError? { if case .failed(_, let error) = self { error } else { nil } }
  var isDeleted: Bool { if case .deleted = self { true } else { false } }
}

/// The error that `body` throws; nil when it throws none.
func failure(_ body: () throws -> Void) -> CloudError? {
  do {
    try body()
    return nil
  } catch { return error as? CloudError }
}
