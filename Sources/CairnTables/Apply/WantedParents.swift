import CairnEngine
import CairnRecords
import CairnSQLite

/// Parents that were deleted here, and whose deletes were dropped because a fetched child keeps them: their records are
/// looked up on the server and applied (tables M13).
///
/// The names stand in the file until that is done: it needs the server, and an apply does not talk to it.
struct WantedParents {
  private static let prefix = "wanted/"

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// Drops the delete of a parent that is not sent yet. The time of the delete stays known: other children of the set
  /// are judged by it all the same.
  func keep(_ name: String, for child: FetchedVersion) throws {
    guard let plan = file.names.plan(ofName: name), let dead = try file.names.record(named: name, plan),
      let deletedAt = dead.deletedAt, dead.pending == .delete
    else { return }
    var kept = dead
    kept.pending = .none
    kept.reason = nil
    kept.retryAt = nil
    kept.raiseRevision()
    try file.records.update(dead, to: kept)
    try file.settings.set(Self.prefix + name, "1")
    try file.outcomes.addLoss(
      "the delete", at: deletedAt, against: "the edit of \(child.name)", of: child.clocks.touch, table: plan.name,
      record: name)
  }

  /// Names of the records to look up, sorted. A record that lives again meanwhile is not wanted any more.
  func names() throws -> [String] {
    try file.settings.all(prefix: Self.prefix).keys.map { String($0.dropFirst(Self.prefix.count)) }.sorted()
  }

  /// Makes way for what was found: the record is taken as one that was never deleted here. Called in the transaction
  /// that applies it.
  func release(_ names: [String]) throws {
    for name in names {
      try file.settings.set(Self.prefix + name, nil)
      guard let plan = file.names.plan(ofName: name), let dead = try file.names.record(named: name, plan),
        !dead.isAlive, dead.pending == .none
      else { continue }
      try file.records.remove(dead)
    }
  }

  /// The record is gone from the server too: its child waits for a device that has it.
  func giveUp(_ name: String) throws { try file.settings.set(Self.prefix + name, nil) }
}

extension SyncedDatabase {
  /// Looks up the parents that fetched children keep, and applies them. Does nothing, at the cost of one read, where
  /// there are none.
  ///
  /// - Throws: what the server answers, as `CloudError`: then they are looked up after the next sync.
  public func fetchWantedParents(_ cloud: any CloudDatabase) throws {
    let wanted = try WantedParents(file).names()
    for start in stride(from: 0, to: wanted.count, by: cloud.limits.entriesPerRequest) {
      let part = Array(wanted[start..<min(start + cloud.limits.entriesPerRequest, wanted.count)])
      let answers = try cloud.lookup(in: file.zone, names: part)
      try category.takeWanted(zip(part, answers).map { (name: $0, answer: $1) }, now: file.clock.wallClock)
    }
  }
}
