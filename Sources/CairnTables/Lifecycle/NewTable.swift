import CairnRecords
import CairnSQLite

/// Takes up a table that is synced from now on: parked records of it are applied, rows that are here already meet them
/// as in a merge, and the rest is uploaded (tables V4).
struct NewTable {
  private let file: FileContext
  private let plan: TablePlan
  private let time: FieldClock

  init(_ file: FileContext, _ plan: TablePlan, time: FieldClock) {
    self.file = file
    self.plan = plan
    self.time = time
  }

  func takeUp() throws {
    if try file.inbox.parked(ofUnknown: plan.wireName).isEmpty {
      return try RowTakeUp(file: file, clock: time).run(plan)
    }
    try file.transaction {
      try Folder.fold(file)
      try RowTakeUp(file: file, clock: RowPairing.oldest).run(plan)
      // A record that a newer release wrote stays where it is, with its new reason.
      let records = try file.inbox.parked(ofUnknown: plan.wireName).compactMap(\.record)
      if plan.keyKind == .mapped {
        var pairing = try RowPairing(file, records)
        try pairing.pair()
      }
      try Applier(file, now: time).apply(records, [])
      try RowPairing.age(plan, file, to: time)
    }
  }
}
