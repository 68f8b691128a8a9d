import CairnRecords
import CairnSQLite

/// Turns log entries into record states (tables 3.1).
///
/// Entries are taken in log order. What an entry means may depend on entries of the same statement before it: a
/// *candidate* announces that an insert may replace a row, a *danger* that a row may be removed by way of a unique
/// index (tables T14–T16). Both are believed only when the insert or update that they announced follows. The folded
/// entries are removed in the transaction that stores their result.
///
/// A fold is cut into several transactions, so that other programs get the write lock between; never between the
/// entries of one statement that explain each other.
struct Folder {
  /// Entries per transaction.
  static let chunk = 5_000

  let file: FileContext
  private var rules: FoldRules
  /// Rows that a running statement may replace, by table and key.
  private var candidates: [TableKey: Candidate] = [:]
  /// Rows that a running statement may remove, by table.
  private var dangers: [Int: [Danger]] = [:]

  private struct TableKey: Hashable {
    var table: Int
    var key: Value
  }

  private struct Candidate {
    var time: FieldClock
    var total: Int64
    var changed: [String]
  }

  private struct Danger {
    var key: Value
    var time: FieldClock
  }

  private init(_ file: FileContext, rekeys: RekeyedParents) {
    self.file = file
    rules = FoldRules(file, rekeys: rekeys)
  }

  /// Folds everything that is committed at this moment. Opens its own transactions, or takes part in the open one.
  /// - Returns: whether there was anything to fold.
  @discardableResult
  static func fold(_ file: FileContext) throws -> Bool {
    guard try file.connection.scalar("SELECT 1 FROM cairn_log LIMIT 1") != nil else { return false }
    var more = true
    while more {
      more = try file.transaction {
        var folder = try Folder(file, rekeys: RekeyedParents.read(file))
        return try folder.foldChunk()
      }
    }
    return true
  }

  /// Folds at least one chunk; returns whether entries are left.
  private mutating func foldChunk() throws -> Bool {
    let statement = try file.connection.cached("SELECT * FROM cairn_log ORDER BY id")
    var last: Int64 = 0
    var count = 0
    var more = false
    while try statement.step() {
      if count >= Self.chunk && candidates.isEmpty && dangers.isEmpty {
        more = true
        statement.reset()
        break
      }
      last = statement.integer(0)
      count += 1
      if let entry = LogEntry(statement, file.catalog) { try fold(entry) }
    }
    if more {
      try file.connection.run("DELETE FROM cairn_log WHERE id <= ?", .integer(last))
    } else {
      try file.connection.run("DELETE FROM cairn_log")
    }
    return more
  }

  private mutating func fold(_ entry: LogEntry) throws {
    guard let plan = file.catalog.plan(entry.shape.table) else { return }
    try endOlderStatements(entry.time)
    guard let key = RowKey.canonical(entry.key, plan) else { return try foldNullKey(entry, plan) }
    let place = TableKey(table: plan.number, key: key)
    switch entry.operation {
    case .candidate:
      candidates[place] = Candidate(time: entry.time, total: entry.total, changed: entry.changed)
    case .danger:
      candidates[place] = nil
      dangers[plan.number, default: []].append(Danger(key: key, time: entry.time))
    case .insert:
      try believeDangers(plan)
      if let candidate = candidates.removeValue(forKey: place) {
        try rules.edit(plan, key, candidate.changed, at: entry.time)
      } else {
        try rules.insert(plan, key, at: entry.time)
      }
    case .update:
      try believeDangers(plan)
      candidates[place] = nil
      try rules.edit(plan, key, entry.changed, at: entry.time)
    case .delete:
      // A delete inside the statement that announced a replacement is a part of it (recursive_triggers on).
      if let candidate = candidates[place], candidate.time == entry.time, candidate.total == entry.total { return }
      candidates[place] = nil
      try rules.delete(plan, key, at: entry.time)
    case .rekey:
      try believeDangers(plan)
      try foldRekey(entry, plan, place)
    }
  }

  private mutating func foldRekey(_ entry: LogEntry, _ plan: TablePlan, _ place: TableKey) throws {
    guard let old = RowKey.canonical(entry.oldKey, plan) else {
      // The row had no key and so no record.
      try rules.countNullKeys(plan, -1)
      return try rules.insert(plan, place.key, at: entry.time)
    }
    if old == place.key { return try rules.edit(plan, old, entry.changed, at: entry.time) }
    if let candidate = candidates.removeValue(forKey: place) {
      try rules.delete(plan, old, at: entry.time)
      return try rules.edit(plan, place.key, candidate.changed, at: entry.time)
    }
    try rules.rekey(plan, from: old, to: place.key, entry.changed, at: entry.time)
  }

  /// Rows with a NULL in their key are counted, not recorded (tables 1.1).
  private mutating func foldNullKey(_ entry: LogEntry, _ plan: TablePlan) throws {
    switch entry.operation {
    case .insert: try rules.countNullKeys(plan, 1)
    case .delete: try rules.countNullKeys(plan, -1)
    case .rekey:
      try rules.countNullKeys(plan, 1)
      if let old = RowKey.canonical(entry.oldKey, plan) {
        try rules.delete(plan, old, at: entry.time)
      } else {
        try rules.countNullKeys(plan, -1)
      }
    case .update, .candidate, .danger: break
    }
  }

  /// A row that was in danger and is gone was removed by the statement; SQLite ran no delete trigger (tables T15).
  private mutating func believeDangers(_ plan: TablePlan) throws {
    guard let threatened = dangers.removeValue(forKey: plan.number) else { return }
    for danger in threatened where try !file.rowExists(plan, danger.key) {
      try rules.delete(plan, danger.key, at: danger.time)
    }
  }

  /// Announcements of statements that are over came to nothing: the row was skipped (OR IGNORE, DO NOTHING).
  private mutating func endOlderStatements(_ time: FieldClock) throws {
    if !candidates.isEmpty { candidates = candidates.filter { $0.value.time == time } }
    if !dangers.isEmpty { dangers = dangers.filter { $0.value.contains { $0.time == time } } }
  }
}
