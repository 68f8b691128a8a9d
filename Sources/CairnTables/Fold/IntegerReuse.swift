import CairnRecords
import CairnSQLite

/// Mapped integers that pass from one record to another: each row that refers to such an integer then refers to another
/// record, though nothing in the row changed (tables F6).
///
/// Rows can only refer to an integer without a row where foreign keys are off or deferred. Integers that are left
/// behind like that are kept in `cairn_dangling`, so that nothing has to be searched when an integer is given to a new
/// row.
struct IntegerReuse {
  /// When integers got a record in this fold, by table.
  private(set) var times: [Int: [Int64: FieldClock]] = [:]

  mutating func begin(_ plan: TablePlan, _ key: Value, at time: FieldClock) {
    guard plan.keyKind == .mapped, case .integer(let integer) = key else { return }
    times[plan.number, default: [:]][integer] = time
  }

  /// The record that got an integer has moved on, and its referrers with it.
  mutating func forget(_ plan: TablePlan, _ key: Value) {
    if case .integer(let integer) = key { times[plan.number]?[integer] = nil }
  }
}

extension FoldRules {
  /// Called when all entries of a transaction are folded.
  mutating func settleIntegers() throws {
    // Nearly always nothing dangles: then new integers cost nothing here.
    let mayDangle = try file.connection.scalar("SELECT 1 FROM cairn_dangling LIMIT 1") != nil
    for (table, times) in integers.times {
      let ended = file.endedNames[table] ?? [:]
      let passed = try times.filter { integer, _ in
        try ended[integer] != nil || mayDangle && takeDangling(table, integer)
      }
      if !passed.isEmpty { try editReferrers(to: table, passed) }
    }
    for (table, names) in file.endedNames {
      let gone = try names.keys.filter { try file.records.storedName(table, key: .integer($0)) == nil }
      if !gone.isEmpty { try noteDangling(table, gone) }
    }
    integers = IntegerReuse()
    file.endedNames = [:]
  }

  private func takeDangling(_ table: Int, _ integer: Int64) throws -> Bool {
    try file.connection.run(
      "DELETE FROM cairn_dangling WHERE tbl = ?1 AND key = ?2", .integer(Int64(table)), .integer(integer))
    return file.connection.changes > 0
  }

  /// Columns that hold a table's integers.
  private func referringColumns(_ table: Int) -> [(plan: TablePlan, column: Int)] {
    file.catalog.plans.flatMap { plan in
      plan.columns.indices.filter { plan.columns[$0].localTarget == table }.map { (plan, $0) }
    }
  }

  private func list(_ integers: some Sequence<Int64>) -> String {
    integers.sorted().map(String.init).joined(separator: ", ")
  }

  /// Keeps what rows that refer to integers without a record need to know of it.
  private func noteDangling(_ table: Int, _ integers: [Int64]) throws {
    for (plan, column) in referringColumns(table) {
      for row in try referrers(plan, column, integers) {
        try file.connection.run(
          "INSERT INTO cairn_dangling(tbl, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING", .integer(Int64(table)),
          .integer(row.integer))
        guard plan.columns[column].isKey && plan.isNamedByParent,
          let record = try file.records.find(plan.number, key: row.key)
        else { continue }
        try file.records.update(record, to: withFormerName(record, plan))
      }
    }
  }

  private func withFormerName(_ record: RecordRow, _ plan: TablePlan) throws -> RecordRow {
    var named = record
    if named.name.isNull, let name = try file.names.formerName(ofKey: record.key, plan) { named.name = .text(name) }
    return named
  }

  private func referrers(
    _ plan: TablePlan, _ column: Int, _ integers: some Sequence<Int64>
  ) throws -> [(integer: Int64, key: Value)] {
    let name = SQLText.quoted(plan.columns[column].name)
    let keys = plan.keyColumns.map { ", " + SQLText.quoted(plan.columns[$0].name) }.joined()
    let statement = try file.connection.prepare(
      "SELECT \(name)\(keys) FROM main.\(SQLText.quoted(plan.name)) WHERE \(name) IN (\(list(integers)))")
    var rows: [(integer: Int64, key: Value)] = []
    while try statement.step() {
      let parts = plan.keyColumns.indices.map { statement.value(Int32($0 + 1)) }
      if let key = RowKey.canonical(parts, plan) { rows.append((statement.integer(0), key)) }
    }
    return rows
  }

  private mutating func editReferrers(to table: Int, _ times: [Int64: FieldClock]) throws {
    for (plan, column) in referringColumns(table) {
      for row in try referrers(plan, column, times.keys) {
        guard let time = times[row.integer] else { continue }
        try refersAnew(plan, row.key, column, at: time)
      }
    }
  }

  /// A row's column refers to another record since `time`. Rows written later than that did so knowingly.
  private mutating func refersAnew(_ plan: TablePlan, _ key: Value, _ column: Int, at time: FieldClock) throws {
    guard let record = try file.records.find(plan.number, key: key), record.isAlive else { return }
    if plan.columns[column].isKey && plan.isNamedByParent {
      // The row's own name holds the parent's: it is another record now.
      if record.pending == .save, record.clocks.life >= time { return }
      try delete(plan, withFormerName(record, plan), at: time)
      return try insert(plan, key, at: time)
    }
    let name = plan.columns[column].wireName
    if record.pending == .save, record.dirty.contains(name), record.clocks.columns[column] >= time { return }
    try file.records.update(record, to: edited(record, plan, [column], at: time))
  }
}
