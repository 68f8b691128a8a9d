import CairnEngine
import CairnRecords
import CairnTesting

/// Another category of the same app, as far as a release that knows no accounts goes: it takes what it is given.
final class OtherCategory: RecordCategory {
  let name = "notes"
  let delivery = CategoryDelivery.pages
  func claims(type: String?, name: String, in zone: ZoneID) -> Bool { type == "Note" }
  func gatherLocalChanges(now: Int64) throws {}
  func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? { nil }
  func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {}
  func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool { false }
  func nextAttempt(in zone: ZoneID) throws -> Int64? { nil }
  func apply(_ page: ZonePage, now: Int64) throws {}
  func stage(_ page: ZonePage, now: Int64) throws {}
  func seal(_ zone: ZoneID) throws {}
  func applySealed(in zone: ZoneID, now: Int64) throws -> Bool { false }
  func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { false }
  func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {}
  func beginSnapshot(of zone: ZoneID) throws {}
  func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] { [] }
  func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {}
}

extension TestDevice {
  /// Syncs as a release of the app that knows no accounts does, on the same engine state.
  func syncAsOlderRelease() throws {
    let session = SyncSession(
      cloud: cloud, store: core.engineStore, categories: [OtherCategory()], zones: [TestWorld.zone],
      expectedUser: try cloud.currentUser(), time: time, randomness: SeededRandomness(seed: 1))
    _ = try session.sync()
  }
}

/// The engine's rows of an app that keeps them elsewhere than accounts.
final class PlainStore: EngineStore {
  private var rows: [String: String] = [:]
  func loadState() throws -> [String: String] { rows }
  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    let before = rows
    do { return try body() } catch {
      rows = before
      throw error
    }
  }
  func writeState(_ delta: [String: String?]) throws { for (key, value) in delta { rows[key] = value } }
}
