import Cairn
import CairnEngine
import CairnRecords
import CairnTables
import Foundation
import Synchronization

/// The borders between any two steps of a sync: requests, answers, and the begin, end and commit of every transaction.
///
/// At the chosen one the device dies: the file and its WAL are copied as they lie on the disk, and nothing works any
/// more. What runs on after that is thrown away with the file.
final class CrashBorders: Sendable {
  struct Crash: Error {}

  private struct State {
    var count = 0
    var isDead = false
    var names: [String] = []
  }

  private let state = Mutex(State())
  private let limit: Int
  private let path: String

  init(limit: Int, path: String) {
    self.limit = limit
    self.path = path
  }

  /// Borders that were passed, in order.
  var names: [String] { state.withLock { $0.names } }
  var hasCrashed: Bool { state.withLock { $0.isDead } }

  func pass(_ name: String) throws(Crash) {
    let dies = state.withLock { state -> Bool in
      if state.isDead { return true }
      state.count += 1
      state.names.append(name)
      guard state.count == limit else { return false }
      state.isDead = true
      for suffix in ["", "-wal"] {
        let copy = path + ".crash" + suffix
        try? FileManager.default.removeItem(atPath: copy)
        // Without WAL there is nothing to copy.
        try? FileManager.default.copyItem(atPath: path + suffix, toPath: copy)
      }
      return true
    }
    if dies { throw Crash() }
  }
}

final class CrashingStore: EngineStore {
  private let store: any EngineStore
  private let borders: CrashBorders

  init(_ store: any EngineStore, _ borders: CrashBorders) {
    self.store = store
    self.borders = borders
  }

  func loadState() throws -> [String: String] { try store.loadState() }

  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try borders.pass("begin")
    let result = try store.transaction {
      let result = try body()
      try borders.pass("before commit")
      return result
    }
    try borders.pass("after commit")
    return result
  }

  func writeState(_ delta: [String: String?]) throws {
    try store.writeState(delta)
    try borders.pass("state written")
  }
}

final class CrashingCategory: RecordCategory {
  private let category: TablesCategory
  private let borders: CrashBorders

  init(_ category: TablesCategory, _ borders: CrashBorders) {
    self.category = category
    self.borders = borders
  }

  var name: String { category.name }
  var delivery: CategoryDelivery { category.delivery }
  func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    category.claims(type: type, name: name, in: zone)
  }

  private func around<Result>(_ name: String, _ body: () throws -> Result) throws -> Result {
    try borders.pass("before \(name)")
    let result = try body()
    try borders.pass("after \(name)")
    return result
  }

  func gatherLocalChanges(now: Int64) throws { try around("gather") { try category.gatherLocalChanges(now: now) } }
  func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    try around("nextBatch") { try category.nextBatch(in: zone, request) }
  }
  func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    try around("settle") { try category.settle(batch, results, now: now) }
  }
  func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    try category.hasSendableChanges(in: zone, now: now)
  }
  func nextAttempt(in zone: ZoneID) throws -> Int64? { try category.nextAttempt(in: zone) }
  func apply(_ page: ZonePage, now: Int64) throws { try around("apply") { try category.apply(page, now: now) } }
  func stage(_ page: ZonePage, now: Int64) throws { try around("stage") { try category.stage(page, now: now) } }
  func seal(_ zone: ZoneID) throws { try around("seal") { try category.seal(zone) } }
  func applySealed(in zone: ZoneID, now: Int64) throws -> Bool {
    try around("applySealed") { try category.applySealed(in: zone, now: now) }
  }
  func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { try category.hasUnsealedRecords(in: zone) }
  func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {
    try around("retryParked") { try category.retryParked(in: zone, all: all, now: now) }
  }
  func beginSnapshot(of zone: ZoneID) throws { try around("snapshot") { try category.beginSnapshot(of: zone) } }
  func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
    try category.unseen(in: zone, after: cursor, limit: limit)
  }
  func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws { try category.zoneLost(zone, loss, now: now) }
  func recoverInFlight() throws { try around("recover") { try category.recoverInFlight() } }
}

final class CrashingCloud: CloudDatabase {
  private let cloud: any CloudDatabase
  private let borders: CrashBorders

  init(_ cloud: any CloudDatabase, _ borders: CrashBorders) {
    self.cloud = cloud
    self.borders = borders
  }

  private func around<Answer>(
    _ name: String, _ body: () throws(CloudError) -> Answer
  ) throws(CloudError) -> Answer {
    let answer: Result<Answer, CloudError>
    do {
      try borders.pass("before \(name)")
      answer = Result(catching: body)
      try borders.pass("after \(name)")
    } catch {
      throw CloudError(.cancelled, "the device is dead")
    }
    return try answer.get()
  }

  var limits: CloudLimits { cloud.limits }
  func currentUser() throws(CloudError) -> String {
    try around("user") { () throws(CloudError) in try cloud.currentUser() }
  }
  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage {
    try around("database") { () throws(CloudError) in try cloud.databaseChanges(since: token) }
  }
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage {
    try around("page") { () throws(CloudError) in try cloud.zoneChanges(in: zone, since: token) }
  }
  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport {
    try around("modify") { () throws(CloudError) in
      try cloud.modifyReportingPosition(in: zone, operations, atomic: atomic)
    }
  }
  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>] {
    try around("lookup") { () throws(CloudError) in try cloud.lookup(in: zone, names: names) }
  }
  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try around("create zones") { () throws(CloudError) in try cloud.createZones(zones) }
  }
  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>] {
    try around("delete zones") { () throws(CloudError) in try cloud.deleteZones(zones) }
  }
  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool {
    try around("zone exists") { () throws(CloudError) in try cloud.zoneExists(zone) }
  }
  func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    try around("upload") { () throws(CloudError) in try cloud.uploadAssets(in: zone, targets, bytes: bytes) }
  }
  func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    try around("download") { () throws(CloudError) in try cloud.downloadAsset(asset) }
  }
  func cancel() { cloud.cancel() }
}

extension Device {
  /// Syncs until the n-th border and dies there. Returns the borders that were passed; the file is then what lay on the
  /// disk. Did not die if there were fewer.
  func sync(dyingAt limit: Int, _ scope: SyncRequest.Scope = .all) throws -> CrashBorders {
    restart()
    let borders = CrashBorders(limit: limit, path: path)
    do {
      let database = try SyncedDatabase(path: path, time: time, randomness: randomness)
      let place = try database.place()
      let session = SyncSession(
        cloud: CrashingCloud(cloud, borders), store: CrashingStore(database.store, borders),
        categories: [CrashingCategory(database.category, borders)], zones: [database.zone],
        expectedUser: place.user.isEmpty ? nil : place.user, time: time, randomness: randomness)
      do {
        _ = try session.sync(SyncRequest(scope))
      } catch {
        guard borders.hasCrashed else { throw error }
      }
    }
    if borders.hasCrashed { try takeFile(from: path + ".crash") }
    return borders
  }

  /// Puts another file in the place of the device's, as a disk after a power loss has it.
  func takeFile(from source: String, walBytes: Int? = nil) throws {
    try reconnect {
      let manager = FileManager.default
      for suffix in ["", "-wal", "-shm"] where manager.fileExists(atPath: path + suffix) {
        try manager.removeItem(atPath: path + suffix)
      }
      for suffix in ["", "-wal"] where manager.fileExists(atPath: source + suffix) {
        try manager.copyItem(atPath: source + suffix, toPath: path + suffix)
      }
      if let walBytes, let handle = FileHandle(forWritingAtPath: path + "-wal") {
        try handle.truncate(atOffset: UInt64(walBytes))
        try handle.close()
      }
    }
  }
}
