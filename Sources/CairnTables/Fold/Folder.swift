import CairnRecords
import CairnSQLite

/// Turns log entries into record states (tables 3.1).
///
/// Entries are taken in log order. What an entry means may depend on entries of the same statement before it: a
/// *candidate* announces that an insert may replace a row, and is believed only when the insert follows; a *danger*
/// that a row may be removed by way of a unique index, and is believed when the row is gone and no later entry shows
/// that it was there (tables T14–T16). The folded entries are removed in the transaction that stores their result.
///
/// A fold is cut into several transactions, so that other programs get the write lock between; never between the
/// entries of one statement that explain each other. Long stretches of entries that need no others to be understood are
/// folded in the order of their keys (``SortedStretch``).
struct Folder {
  /// Entries per transaction.
  static let chunk = 2_000

  let file: FileContext
  private var rules: FoldRules
  /// Rows that a running statement may replace, by table and key.
  private var candidates: [TableKey: Candidate] = [:]
  /// Rows that statements may have removed, and when; until the log shows whether they did.
  private var dangers: [TableKey: FieldClock] = [:]

  private struct TableKey: Hashable {
    var table: Int
    var key: Value
  }

  private struct Candidate {
    var time: FieldClock
    var changed: [Int]
    /// The row was deleted after the announcement; a part of the replacement if the insert follows
    /// (recursive_triggers on), a delete like any other if not.
    var isDeleted = false
    var deletedID: Int64 = 0
    var deletedTotal: Int64 = 0

    /// Whether an insert belongs to the statement that deleted the row. Between the two, a single statement counts what
    /// its triggers logged and no more; a DELETE of its own adds the deleted row when it ends.
    func isReplaced(by insert: LogEntry, _ plan: TablePlan) -> Bool {
      if !isDeleted || plan.writesElsewhere { return true }
      let counted = insert.total - deletedTotal
      return counted >= 1 && counted <= insert.id - deletedID
    }
  }

  init(_ file: FileContext) {
    self.file = file
    rules = FoldRules(file)
  }

  /// Folds everything that is committed at this moment. Opens its own transactions, or takes part in the open one.
  /// - Returns: whether there was anything to fold.
  @discardableResult
  static func fold(_ file: FileContext) throws -> Bool {
    guard try file.connection.scalar("SELECT 1 FROM cairn_log LIMIT 1") != nil else { return false }
    var more = true
    while more {
      if let stretch = try SortedStretch.first(of: file) {
        try stretch.fold(file)
      } else {
        more = try file.transaction {
          var folder = Folder(file)
          return try folder.foldChunk()
        }
      }
      if more { file.letOthersWrite() }
    }
    return true
  }

  /// Folds at least one chunk in the order of the log; returns whether entries are left.
  private mutating func foldChunk() throws -> Bool {
    // Another process has begun a stretch since this one looked.
    if try FoldMark(file.settings) != nil { return true }
    let statement = try file.connection.cached("SELECT * FROM cairn_log ORDER BY id")
    defer { statement.reset() }
    var last: Int64 = 0
    var count = 0
    var more = false
    while try statement.step() {
      if count >= Self.chunk && candidates.isEmpty && rules.moves.isEmpty {
        more = true
        break
      }
      last = statement.integer(0)
      count += 1
      if let entry = LogEntry(statement, file.catalog) { try fold(entry) }
    }
    try finish()
    if more {
      try file.connection.run("DELETE FROM cairn_log WHERE id <= ?", .integer(last))
    } else {
      try file.connection.run("DELETE FROM cairn_log")
    }
    return more
  }

  /// Decides what the entries of one transaction left open.
  mutating func finish() throws {
    try dropCandidates { _, _ in true }
    try judgeDangers()
    try rules.settleIntegers()
  }

  /// Folds an entry that needs no others, where none has left anything open.
  mutating func fold(_ entry: IndependentEntry) throws {
    guard let plan = file.catalog.plan(entry.entry.shape.table) else { return }
    guard entry.key != .null else { return try foldNullKey(entry.entry, plan) }
    switch entry.entry.operation {
    case .insert: try rules.insert(plan, entry.key, at: entry.entry.time)
    case .update: try rules.edit(plan, entry.key, entry.entry.changed, at: entry.entry.time)
    case .delete: try rules.delete(plan, entry.key, at: entry.entry.time)
    case .rekey, .candidate, .danger, .begin, .announcement: try fold(entry.entry)
    }
  }

  mutating func fold(_ entry: LogEntry) throws {
    guard let plan = file.catalog.plan(entry.shape.table) else { return }
    try endOlderStatements(entry.time)
    switch entry.operation {
    case .begin: return try dropCandidates { place, _ in place.table == plan.number }
    case .announcement:
      let new = entry.key.first.map { TableKey(table: plan.number, key: $0) }
      return try rules.moves.announce(entry, isTaken: new.map { candidates[$0] != nil } ?? false, file)
    default: break
    }
    guard let key = RowKey.canonical(entry.key, plan) else { return try foldNullKey(entry, plan) }
    let place = TableKey(table: plan.number, key: key)
    let danger = dangers.isEmpty ? nil : dangers.removeValue(forKey: place)
    switch entry.operation {
    case .candidate:
      try dropCandidates { other, _ in other == place }
      candidates[place] = Candidate(time: entry.time, changed: entry.changed)
    case .danger:
      dangers[place] = entry.time
    case .insert:
      if let candidate = candidates[place], !candidate.isReplaced(by: entry, plan) {
        try dropCandidates { other, _ in other == place }
      }
      if let candidate = candidates.removeValue(forKey: place) {
        try rules.edit(plan, key, candidate.changed, at: entry.time)
      } else {
        if let danger { try rules.delete(plan, key, at: danger) }
        try rules.insert(plan, key, at: entry.time)
      }
    case .update:
      candidates[place] = nil
      try rules.edit(plan, key, entry.changed, at: entry.time)
    case .delete:
      // A delete inside the statement that announced a replacement is a part of it (recursive_triggers on).
      if candidates[place] != nil {
        candidates[place]?.isDeleted = true
        candidates[place]?.deletedID = entry.id
        candidates[place]?.deletedTotal = entry.total
      } else {
        try rules.delete(plan, key, at: entry.time)
      }
    case .rekey:
      if let danger, candidates[place] == nil { try rules.delete(plan, key, at: danger) }
      try foldRekey(entry, plan, place)
      rules.moves.end(plan.number)
    case .begin, .announcement: break
    }
  }

  private mutating func foldRekey(_ entry: LogEntry, _ plan: TablePlan, _ place: TableKey) throws {
    guard let old = RowKey.canonical(entry.oldKey, plan) else {
      // The row had no key and so no record.
      try rules.countNullKeys(plan, -1)
      return try rules.insert(plan, place.key, at: entry.time)
    }
    let oldPlace = TableKey(table: plan.number, key: old)
    try dropCandidates { other, _ in other == oldPlace }
    dangers[oldPlace] = nil
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
    case .update, .candidate, .danger, .begin, .announcement: break
    }
  }

  /// A row that was in danger, that no later entry shows, and that is gone was removed by the statement; SQLite ran no
  /// delete trigger for it (tables T15).
  private mutating func judgeDangers() throws {
    for (place, time) in dangers {
      guard let plan = file.catalog.plan(place.table), try !file.rowExists(plan, place.key) else { continue }
      try rules.delete(plan, place.key, at: time)
    }
    dangers = [:]
  }

  /// Announcements of statements that are over came to nothing: the row was skipped (OR IGNORE, DO NOTHING).
  private mutating func endOlderStatements(_ time: FieldClock) throws {
    if !candidates.isEmpty { try dropCandidates { $1.time != time } }
    rules.moves.endOlder(than: time)
  }

  /// Forgets candidates that were not replaced; those that were deleted since were deleted by statements of their own.
  private mutating func dropCandidates(_ isOver: (TableKey, Candidate) -> Bool) throws {
    guard !candidates.isEmpty else { return }
    for (place, candidate) in candidates where isOver(place, candidate) {
      candidates[place] = nil
      guard let plan = file.catalog.plan(place.table) else { continue }
      if candidate.isDeleted {
        try rules.delete(plan, place.key, at: candidate.time)
      } else if plan.isCyclic {
        // The row that was to take the key may have gone with the row that it refers to: then both are gone
        // (tables T16).
        dangers[place] = candidate.time
      }
    }
  }
}
