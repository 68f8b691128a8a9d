import CairnRecords
import CairnSQLite

/// A long stretch of the log that is folded in the order of its keys.
///
/// Each of its entries changes one record and needs no other to be understood (``IndependentEntry``), so only the order
/// of the entries of one row counts (tables 3.1). In the order of keys each transaction writes pages of `cairn_record`
/// that lie side by side, and one statement writes many records; in the order of the log each transaction would write
/// nearly all pages.
///
/// The entries stay in the log until all are folded, which saves a write for each. How far the fold is stands in
/// `cairn_setting` and is stored with what was folded, so that a fold that was cut off goes on behind it.
struct SortedStretch {
  /// Entries per transaction.
  private static let chunk = 4_000
  /// In a shorter log the order of the keys gains nothing.
  private static let minimum: Int64 = 1_000
  /// As many as are kept in memory: about 20 MB.
  private static let limit = 100_000

  private let entries: [IndependentEntry]
  /// Indexes of entries in the order of their keys.
  private let order: [Int]
  /// The place in ``order`` of the first entry that is not folded.
  private let start: Int
  /// Id of the last entry in the log.
  private let through: Int64

  /// The stretch at the beginning of the log, or the one whose fold was cut off. Nil where there is none.
  static func first(of file: FileContext) throws -> SortedStretch? {
    if let mark = try FoldMark(file.settings) { return try SortedStretch(file, mark) }
    let span = try file.connection.scalar(
      "SELECT (SELECT max(id) FROM cairn_log) - (SELECT min(id) FROM cairn_log)")
    guard let span = span?.integer, span >= minimum else { return nil }
    let statement = try file.connection.cached("SELECT * FROM cairn_log ORDER BY id")
    defer { statement.reset() }
    var entries: [IndependentEntry] = []
    entries.reserveCapacity(min(limit, Int(span) + 1))
    var through: Int64 = 0
    while entries.count < limit, try statement.step() {
      if let entry = LogEntry(statement, file.catalog) {
        guard let independent = IndependentEntry(entry, file) else { break }
        entries.append(independent)
      }
      through = statement.integer(0)
    }
    return entries.count < minimum ? nil : SortedStretch(entries, through: through, after: nil)
  }

  /// Takes up the rest of a stretch.
  private init(_ file: FileContext, _ mark: FoldMark) throws {
    let statement = try file.connection.cached("SELECT * FROM cairn_log WHERE id <= ?1 ORDER BY id")
    defer { statement.reset() }
    try statement.bind(1, mark.through)
    var entries: [IndependentEntry] = []
    while try statement.step() {
      if let entry = LogEntry(statement, file.catalog), let plan = file.catalog.plan(entry.shape.table) {
        entries.append(IndependentEntry(entry, RowKey.canonical(entry.key, plan) ?? .null))
      }
    }
    self.init(entries, through: mark.through, after: mark.last)
  }

  private init(_ entries: [IndependentEntry], through: Int64, after last: Int64?) {
    self.entries = entries
    self.through = through
    let places = entries.indices.map { Place(order: entries[$0].order, prefix: entries[$0].key.orderPrefix, index: $0) }
    let order = places.sorted { a, b in
      if a.order != b.order { return a.order < b.order }
      if a.prefix != b.prefix { return a.prefix < b.prefix }
      return entries[a.index].key.isLess(than: entries[b.index].key) ?? (a.index < b.index)
    }.map(\.index)
    start = order.firstIndex { entries[$0].entry.id == last }.map { $0 + 1 } ?? 0
    self.order = order
  }

  /// What decides most comparisons of two entries' keys.
  private struct Place {
    let order: Int
    let prefix: UInt64
    let index: Int
  }

  /// Folds all of it, and removes it from the log.
  func fold(_ file: FileContext) throws {
    var next = start
    repeat {
      let end = min(next + Self.chunk, order.count)
      try file.transaction {
        try fold(next..<end, file)
        if end == order.count {
          try file.connection.run("DELETE FROM cairn_log WHERE id <= ?", .integer(through))
          try FoldMark.remove(file.settings)
        } else {
          try FoldMark(through: through, last: entries[order[end - 1]].entry.id).write(file.settings)
        }
      }
      next = end
    } while next < order.count
  }

  /// - Parameter places: in ``order``.
  private func fold(_ places: Range<Int>, _ file: FileContext) throws {
    var folder = Folder(file)
    // In place: a loop over elements would copy each.
    try entries.withUnsafeBufferPointer { entries in
      var next = places.lowerBound
      while next < places.upperBound {
        let first = order[next]
        var keys: [Value] = []
        var end = next
        while end < places.upperBound, entries[order[end]].order == entries[first].order {
          if entries[order[end]].key != keys.last {
            if keys.count == RecordGroup.size { break }
            keys.append(entries[order[end]].key)
          }
          end += 1
        }
        try file.records.grouped(entries[first].entry.shape.table, keys) {
          for place in next..<end { try folder.fold(entries[order[place]].entry) }
        }
        next = end
      }
    }
    try folder.finish()
  }
}

/// An entry of the log that changes one record and needs no other entry to be understood.
///
/// A record that is named by a parent, a row without a key, and an integer that passes to another record, have to do
/// with other records; a hashed name is looked for among those of all.
struct IndependentEntry {
  let entry: LogEntry
  /// The canonical key.
  let key: Value
  /// Table and kind of the key's value: keys of one order compare as SQLite compares them.
  let order: Int

  init?(_ entry: LogEntry, _ file: FileContext) {
    guard let plan = file.catalog.plan(entry.shape.table), !plan.isNamedByParent,
      let key = RowKey.canonical(entry.key, plan), !file.names.mayDiffer(key, plan)
    else { return nil }
    switch entry.operation {
    case .insert, .delete: guard plan.keyKind == .natural else { return nil }
    case .update: break
    case .rekey, .candidate, .danger, .begin, .announcement: return nil
    }
    self.init(entry, key)
  }

  init(_ entry: LogEntry, _ key: Value) {
    self.entry = entry
    self.key = key
    order = entry.shape.table << 3 | Int(key.storageClass.rawValue)
  }
}
