import CairnEngine
import CairnRecords
import CairnSQLite

/// Puts right what the doctor found (tables T29–T31).
struct Repair {
  let file: FileContext

  /// Repairs what can be repaired. Rows that are missing are looked up on the server; without one they stay missing.
  ///
  /// - Parameter cloud: nil when the server can't be asked.
  func run(_ findings: [Finding], cloud: (any CloudDatabase)?) throws -> [Finding] {
    try findings.map { finding in
      if finding.kind == .damagedIndex { return try rebuildIndexes(finding) }
      guard let plan = file.catalog.plans.first(where: { $0.name == finding.table }) else { return finding }
      var repaired = finding
      repaired.isRepaired = try repair(finding.kind, plan, cloud)
      if repaired.isRepaired { try file.outcomes.add(.repaired, table: plan.name, finding.text) }
      return repaired
    }
  }

  private func repair(_ kind: Finding.Kind, _ plan: TablePlan, _ cloud: (any CloudDatabase)?) throws -> Bool {
    switch kind {
    case .missingTriggers:
      // What was written meanwhile is found by comparing with the server (tables T29).
      try file.transaction {
        try CaptureInstaller(connection: file.connection).install([plan], file.catalog.remembered)
        try GapComparison(file).begin(plan, at: file.clock.wallClock)
      }
      return true
    case .rowsWithoutRecord:
      try RowTakeUp(file: file, clock: file.clock.wallClock).run(plan)
      return true
    case .missingRows:
      guard let cloud else { return false }
      return try bringBack(plan, cloud)
    case .wrongCount:
      try file.transaction { try recount(plan) }
      return true
    case .damagedFile, .damagedIndex, .suspendedTable, .refusedTable, .brokenForeignKeys:
      return false
    }
  }

  /// A unique index can't be built again where rows have the same values: then the file needs hands.
  private func rebuildIndexes(_ finding: Finding) throws -> Finding {
    do {
      try file.connection.execute("REINDEX")
    } catch {
      guard error.isConstraint else { throw error }
      return Doctor.damaged(error.message, count: finding.count)
    }
    guard let left = try Doctor(file: file).checkFile().first else {
      var repaired = finding
      repaired.isRepaired = true
      try file.outcomes.add(.repaired, finding.text)
      return repaired
    }
    return left
  }

  private func recount(_ plan: TablePlan) throws {
    try file.connection.run(
      """
      UPDATE cairn_table SET live = (SELECT count(*) FROM cairn_record WHERE tbl = ?1 AND \(RecordStore.isAlive))
      WHERE number = ?1
      """, .integer(Int64(plan.number)))
  }

  /// Asks the server for the records of missing rows and applies them. Returns whether none is missing any more.
  private func bringBack(_ plan: TablePlan, _ cloud: any CloudDatabase) throws -> Bool {
    let names = try Doctor(file: file).missingRows(plan).compactMap { try file.names.name(of: $0, plan) }
    for start in stride(from: 0, to: names.count, by: cloud.limits.entriesPerRequest) {
      let part = Array(names[start..<min(start + cloud.limits.entriesPerRequest, names.count)])
      let records = try cloud.lookup(in: file.zone, names: part).compactMap(Self.found)
      try file.transaction {
        try Folder.fold(file)
        try Applier(file, now: file.clock.wallClock, takesEchoes: true).apply(records, [])
      }
    }
    return try file.transaction { try MissingRows(file).count(plan) == 0 }
  }

  /// The record of an answer; nil for one that is gone from the server too.
  private static func found(_ result: Result<Record, CloudError>) throws -> Record? {
    switch result {
    case .success(let record): return record
    case .failure(let error) where error.code == .notFound: return nil
    case .failure(let error): throw error
    }
  }

  /// Records whose rows are missing become deletes, sent everywhere (tables T31, `deleteMissing`).
  func deleteMissing() throws -> Int {
    try file.transaction {
      var count = 0
      var rules = FoldRules(file)
      for plan in file.catalog.plans {
        for record in try Doctor(file: file).missingRows(plan) {
          try rules.delete(plan, record, at: file.clock.wallClock)
          count += 1
        }
        try MissingRows(file).count(plan)
      }
      try rules.settleIntegers()
      return count
    }
  }
}

extension SyncedDatabase {
  /// Checks the file (see ``Finding``). Reads every synced table.
  public func examine() throws -> [Finding] {
    let damage = try Doctor(file: file).checkFile()
    if !damage.isEmpty { return damage }
    try Folder.fold(file)
    let findings = try Doctor(file: file).examine()
    try file.transaction { try MissingRows(file).note(findings) }
    return findings
  }

  /// Repairs what was found, and says what is repaired.
  public func repair(_ findings: [Finding], cloud: (any CloudDatabase)?) throws -> [Finding] {
    let repaired = try Repair(file: file).run(findings, cloud: cloud)
    // What lies behind the damage could not be seen before.
    guard repaired.contains(where: { $0.kind == .damagedIndex && $0.isRepaired }) else { return repaired }
    return try repaired + Repair(file: file).run(examine(), cloud: cloud)
  }

  /// Deletes everywhere the records whose rows were removed while capture was off. Returns their number.
  public func deleteMissing() throws -> Int { try Repair(file: file).deleteMissing() }
}
