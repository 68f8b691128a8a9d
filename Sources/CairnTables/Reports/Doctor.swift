import CairnEngine
import CairnRecords
import CairnSQLite

/// Something that `cairn doctor` found (tables T29–T31).
public struct Finding: Hashable, Sendable {
  /// The words of `--json`.
  public enum Kind: String, Hashable, Sendable {
    /// SQLite's own check of the file failed.
    case damagedFile
    /// Indexes do not agree with their tables; the tables themselves are sound.
    case damagedIndex
    /// Capture triggers are gone or changed: writes since then were not captured.
    case missingTriggers
    /// Rows that no record knows: inserted while capture was off.
    case rowsWithoutRecord
    /// Records whose rows are gone without a delete: removed while capture was off.
    case missingRows
    /// A counter does not agree with what it counts.
    case wrongCount
    /// A table whose primary key has changed, or that is gone.
    case suspendedTable
    /// A table that can't be synced.
    case refusedTable
    case brokenForeignKeys
  }

  public var kind: Kind
  public var table: String?
  public var count: Int
  /// What is wrong and what to do, as a sentence.
  public var text: String
  public var isRepaired = false
}

/// Checks schema, triggers, metadata, and whether rows and records agree. Reads every synced table.
struct Doctor {
  let file: FileContext

  func examine() throws -> [Finding] {
    var findings = try checkForeignKeys()
    findings += try checkSchema()
    for plan in file.catalog.plans {
      findings += try checkTriggers(plan)
      findings += try checkRows(plan)
    }
    return findings
  }

  /// SQLite's own check. A damaged file is not examined further: what is read there can't be trusted.
  func checkFile() throws -> [Finding] {
    let answers = try integrityCheck()
    guard let first = answers.first, answers != ["ok"] else { return [] }
    guard answers.allSatisfy(Self.isAboutIndex) else { return [Self.damaged(first, count: answers.count)] }
    return [
      Finding(
        kind: .damagedIndex, table: nil, count: answers.count,
        text: "indexes do not agree with their tables (\(first)): run cairn doctor --repair to build them again")
    ]
  }

  private func integrityCheck() throws(SQLiteError) -> [String] {
    do {
      return try file.connection.rows("PRAGMA integrity_check").compactMap(\.[0].text)
    } catch {
      guard error.isUnreadable else { throw error }
      return [error.message]
    }
  }

  static func damaged(_ what: String, count: Int) -> Finding {
    Finding(
      kind: .damagedFile, table: nil, count: count,
      text: "the file is damaged (\(what)): restore it from a backup, or try sqlite3 FILE .recover")
  }

  private static func isAboutIndex(_ answer: String) -> Bool {
    answer.contains(" missing from index ") || answer.hasPrefix("wrong # of entries in index ")
      || answer.contains("non-unique entry in index ")
  }

  private static func rows(_ count: Int) -> String { count == 1 ? "1 row" : "\(count) rows" }

  private func checkForeignKeys() throws -> [Finding] {
    var findings: [Finding] = []
    var broken: [String: Int] = [:]
    for row in try file.connection.rows("PRAGMA foreign_key_check") { broken[row[0].text ?? "", default: 0] += 1 }
    for (table, count) in broken.sorted(by: { $0.key < $1.key }) {
      findings.append(
        Finding(
          kind: .brokenForeignKeys, table: table, count: count,
          text:
            "\(Self.rows(count)) of \(table) \(count == 1 ? "refers" : "refer") to rows that are not there: other devices will park \(count == 1 ? "it" : "them") until the parents exist"
        ))
    }
    return findings
  }

  private func checkSchema() throws -> [Finding] {
    var findings = file.catalog.suspended.map { table in
      Finding(
        kind: .suspendedTable, table: table.name, count: 1,
        text: table.reason == .dropped
          ? "\(table.name) is gone, so its records are neither sent nor applied: create it again, or leave it"
          : "\(table.name) has another primary key than before, so it is not synced: put the key back, or run cairn deinit and cairn init"
      )
    }
    let schema = try DatabaseSchema.read(from: file.connection)
    let options = try Selection.read(file.settings).options
    let plan = SchemaPlanner.plan(schema, options: options, remembered: file.catalog.remembered)
    findings += plan.problems.map {
      Finding(kind: .refusedTable, table: $0.table, count: 1, text: $0.description)
    }
    return findings
  }

  private func checkTriggers(_ plan: TablePlan) throws -> [Finding] {
    let expected = CaptureTriggers(plan, generation: file.catalog.currentGeneration(plan.number)).statements
    let present = Set(
      try file.connection.rows(
        "SELECT sql FROM main.sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE", .text(plan.name)
      ).compactMap(\.[0].text))
    let missing = expected.filter { !present.contains($0) }
    if missing.isEmpty { return [] }
    return [
      Finding(
        kind: .missingTriggers, table: plan.name, count: missing.count,
        text: "\(missing.count) capture triggers of \(plan.name) are gone or changed: run cairn doctor --repair")
    ]
  }

  private func checkRows(_ plan: TablePlan) throws -> [Finding] {
    var findings: [Finding] = []
    let (rows, without) = try countRows(plan)
    if without > 0 {
      findings.append(
        Finding(
          kind: .rowsWithoutRecord, table: plan.name, count: without,
          text:
            "\(Self.rows(without)) of \(plan.name) \(without == 1 ? "was" : "were") written while capture was off: run cairn doctor --repair to send \(without == 1 ? "it" : "them")"
        ))
    }
    let missing = try missingRows(plan).count
    if missing > 0 {
      findings.append(
        Finding(
          kind: .missingRows, table: plan.name, count: missing,
          text:
            "\(Self.rows(missing)) of \(plan.name) \(missing == 1 ? "was" : "were") removed while capture was off: run cairn doctor --repair to bring what is missing back, or cairn decide DB deleteMissing to delete it everywhere"
        ))
    }
    let counted = try file.liveRows(plan)
    if counted != rows - without + missing + (try parkedRecords(plan)) {
      findings.append(
        Finding(
          kind: .wrongCount, table: plan.name, count: 1,
          text: "the counter of \(plan.name) says \(counted): run cairn doctor --repair to count again"))
    }
    return findings
  }

  private func countRows(_ plan: TablePlan) throws -> (rows: Int, withoutRecord: Int) {
    let key = plan.keyColumns.map { SQLText.quoted(plan.columns[$0].name) }.joined(separator: ", ")
    let statement = try file.connection.prepare("SELECT \(key) FROM main.\(SQLText.quoted(plan.name))")
    var rows = 0
    var without = 0
    while try statement.step() {
      guard let canonical = RowKey.canonical(plan.keyColumns.indices.map { statement.value(Int32($0)) }, plan) else {
        continue
      }
      rows += 1
      if try file.records.find(plan.number, key: canonical)?.isAlive != true { without += 1 }
    }
    return (rows, without)
  }

  private func parkedRecords(_ plan: TablePlan) throws -> Int {
    let count = try file.connection.scalar(
      "SELECT count(*) FROM cairn_record WHERE tbl = ? AND \(RecordStore.isAlive) AND \(RecordStore.isParked)",
      .integer(Int64(plan.number)))
    return Int(count?.integer ?? 0)
  }

  /// Live records, not parked, whose rows are not there.
  func missingRows(_ plan: TablePlan) throws -> [RecordRow] {
    var missing: [RecordRow] = []
    var cursor: Value?
    while true {
      let records = try file.records.all(table: plan.number, after: cursor, limit: 1_000)
      for record in records where record.isAlive && !record.flags.contains(.parked) {
        if try !file.rowExists(plan, record.key) { missing.append(record) }
      }
      guard records.count == 1_000 else { return missing }
      cursor = records.last?.key
    }
  }
}
