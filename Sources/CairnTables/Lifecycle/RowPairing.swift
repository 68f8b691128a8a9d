import CairnRecords
import CairnSQLite

/// Pairs rows of tables with local integers with records of the same content (tables L5).
///
/// A row's content includes the records that its foreign keys stand for, which pairing itself finds out: passes follow
/// each other until none pairs anything more. In each, records whose integer is the row's come first.
struct RowPairing {
  /// The clock of local fields that the server's must win over (tables L4).
  static let oldest: FieldClock = 0

  private let file: FileContext
  private let versions: [Int: [FetchedVersion]]
  /// Names of records that have their row.
  private var used: Set<String> = []
  /// Keys of rows that have their record, by table.
  private var paired: [Int: Set<Int64>] = [:]

  init(_ file: FileContext, _ records: [Record]) throws {
    self.file = file
    var versions: [Int: [FetchedVersion]] = [:]
    for record in records {
      guard let plan = file.catalog.plan(wireName: record.type), plan.keyKind == .mapped,
        case .success(let version) = FetchedVersion.decode(
          try IncomingAssets(file).resolved(record, plan) ?? record, file.codec(plan))
      else { continue }
      versions[plan.number, default: []].append(version)
    }
    self.versions = versions
  }

  private var plans: [TablePlan] { file.catalog.plans.filter { versions[$0.number] != nil } }

  mutating func pair() throws {
    var isProgressing = true
    while isProgressing {
      isProgressing = false
      for plan in plans {
        if try pass(plan) { isProgressing = true }
      }
    }
  }

  /// Pairs what is left by integer, in the tables that `matches` names.
  mutating func pairByInteger(_ matches: (TablePlan) -> Bool) throws {
    for plan in plans where matches(plan) {
      let byInteger = freeByInteger(plan)
      for row in try rows(plan) {
        if let version = byInteger[row.integer] { try adopt(row.record, version) }
      }
    }
  }

  /// Rows without record whose integer stands for another record, by table.
  func leftOver() throws -> [(plan: TablePlan, count: Int)] {
    try plans.compactMap { plan in
      let byInteger = freeByInteger(plan)
      let count = try rows(plan).count { byInteger[$0.integer] != nil }
      return count == 0 ? nil : (plan, count)
    }
  }

  /// Rows that met no record count as written at `clock`.
  static func age(_ plan: TablePlan, _ file: FileContext, to clock: FieldClock) throws {
    var cursor: Value?
    while true {
      let records = try file.records.all(table: plan.number, after: cursor, limit: 1_000)
      for record in records where record.tag == nil && record.isAlive && record.pending == .save {
        guard record.clocks == FieldClocks(uniform: 0, plan: plan) else { continue }
        var aged = record
        aged.clocks = FieldClocks(uniform: clock, plan: plan)
        try file.records.update(record, to: aged)
      }
      guard records.count == 1_000 else { return }
      cursor = records.last?.key
    }
  }

  // MARK: One pass

  private mutating func pass(_ plan: TablePlan) throws -> Bool {
    let before = used.count
    let byInteger = freeByInteger(plan)
    var left: [LocalRow] = []
    for row in try rows(plan) {
      if let version = byInteger[row.integer], Content(version.cells, plan, of: version.name) == row.content {
        try adopt(row.record, version)
      } else {
        left.append(row)
      }
    }
    var byContent = Dictionary(grouping: free(plan).reversed(), by: { Content($0.cells, plan, of: $0.name) })
    for row in left {
      if let version = byContent[row.content]?.popLast() { try adopt(row.record, version) }
    }
    return used.count > before
  }

  private func free(_ plan: TablePlan) -> [FetchedVersion] {
    (versions[plan.number] ?? []).filter { !used.contains($0.name) }
  }

  private func freeByInteger(_ plan: TablePlan) -> [Int64: FetchedVersion] {
    var result: [Int64: FetchedVersion] = [:]
    for version in free(plan) {
      guard let wish = version.wish, result[wish] == nil else { continue }
      result[wish] = version
    }
    return result
  }

  // MARK: Rows

  private struct LocalRow {
    var record: RecordRow
    var integer: Int64
    var content: Content
  }

  /// Rows of a table that have no record of the server's yet.
  private func rows(_ plan: TablePlan) throws -> [LocalRow] {
    var result: [LocalRow] = []
    var cursor: Value?
    while true {
      let records = try file.records.all(table: plan.number, after: cursor, limit: 1_000)
      for record in records {
        guard record.isAlive, record.tag == nil, case .integer(let integer) = record.key,
          paired[plan.number]?.contains(integer) != true, let row = try file.row(plan, record.key)
        else { continue }
        let name = try file.names.name(of: record, plan)
        let content = Content(try file.cells(of: row, plan).all, plan, of: name)
        result.append(LocalRow(record: record, integer: integer, content: content))
      }
      guard records.count == 1_000 else { return result }
      cursor = records.last?.key
    }
  }

  /// The values of a row without its own integer; what refers to the row itself does so in any row.
  private struct Content: Hashable {
    var cells: [MergeCell]

    init(_ cells: [MergeCell], _ plan: TablePlan, of name: String?) {
      self.cells = plan.columns.indices.filter { plan.isField($0) }.map { column in
        if case .reference(name) = cells[column] { .reference("") } else { cells[column] }
      }
    }
  }

  /// The row is the server's record from now on.
  private mutating func adopt(_ record: RecordRow, _ version: FetchedVersion) throws {
    guard let uuid = RecordNameCodec.uuid(version.name, table: version.plan.wireName) else { return }
    var adopted = record
    adopted.name = .blob(uuid)
    try file.records.update(record, to: adopted)
    used.insert(version.name)
    if case .integer(let integer) = record.key { paired[record.table, default: []].insert(integer) }
  }
}
