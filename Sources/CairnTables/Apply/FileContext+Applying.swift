import CairnRecords
import CairnSQLite

/// The frame of an apply and what fold and apply do with parked records.
extension FileContext {
  /// Foreign keys are judged at the end of the transaction, and user triggers can tell where writes come from
  /// (tables T3, M8).
  func beginApplying() throws {
    try connection.execute("PRAGMA defer_foreign_keys = ON")
    if hasUserTriggers { try connection.run("UPDATE cairn_state SET applying = 1") }
  }

  func endApplying() throws {
    if hasUserTriggers { try connection.run("UPDATE cairn_state SET applying = 0") }
  }

  private var hasUserTriggers: Bool { catalog.plans.contains { $0.writesElsewhere || $0.deletesWriteElsewhere } }

  /// A row was inserted under the key of a parked record: the two merge at the next occasion (tables M11).
  func meetParked(_ row: RecordRow, _ plan: TablePlan) throws {
    guard plan.keyKind == .natural, try inbox.has(.parked), let name = try names.name(of: row, plan) else { return }
    try inbox.makeDue(name)
  }

  /// Parked records whose obstacle may be gone: the parent is here, the retry time has come, or all of them.
  func retriable(all: Bool, now: Int64) throws -> [Inbox.Entry] {
    guard try inbox.has(.parked) else { return [] }
    return try inbox.parked().filter { entry in
      guard let parking = entry.parking, let record = entry.record else { return false }
      guard catalog.plan(wireName: record.type) != nil else { return false }
      if all { return true }
      switch parking.reason {
      case .unique: return try !waitsForItself(entry)
      case .missingParent:
        if let waitsFor = parking.waitsFor, let found = try WaitKey.isHere(waitsFor, self) { return found }
        guard let waitsFor = parking.waitsFor, let plan = names.plan(ofName: waitsFor),
          let parent = try names.record(named: waitsFor, plan)
        else { return parking.waitsFor == nil || parking.isDue(now) }
        return parent.isAlive && !parent.flags.contains(.parked)
      default: return parking.isDue(now)
      }
    }
  }
}

extension Inbox.Parking {
  /// Milliseconds after which a record parked for the n-th time is tried again: 2 s doubled up to 15 min.
  static func delay(tries: Int64) -> Int64 { min(2_000 << min(tries, 9), 900_000) }

  func isDue(_ now: Int64) -> Bool {
    // A retry time further away than the longest delay is a clock that jumped.
    guard let retryAt, retryAt - now <= 900_000 else { return true }
    return retryAt <= now
  }
}
