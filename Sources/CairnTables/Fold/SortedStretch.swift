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
  private static let chunk = 6_000
  /// In a shorter log the order of the keys gains nothing.
  private static let minimum: Int64 = 1_000
  /// As many as are kept in memory: about 20 MB.
  private static let limit = 100_000

  private let entries: [IndependentEntry]
  /// Indexes of entries in the order of their keys.
  private let order: [Int]
  /// The place in ``order`` of the first entry that is not folded.
  private let start: Int
  /// What the file has of it: how far it was folded when it was read.
  private let extent: Extent

  /// Tells the stretch that was read from what the log holds later: another process may fold it too.
  private struct Extent {
    /// Id and time of the first entry; of a stretch that was begun the mark says enough.
    var first: LogPlace?
    var last: LogPlace
    var count: Int64 = 0
    /// Id of the entry that was folded last.
    var folded: Int64?
  }

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
    var first: LogPlace?
    var last: LogPlace?
    var count: Int64 = 0
    while entries.count < limit, try statement.step() {
      if let entry = LogEntry(statement, file.catalog) {
        guard let independent = IndependentEntry(entry, file) else { break }
        entries.append(independent)
      }
      last = LogPlace(statement)
      first = first ?? last
      count += 1
    }
    guard let last, entries.count >= minimum else { return nil }
    return SortedStretch(entries, Extent(first: first, last: last, count: count)) { _ in 0 }
  }

  /// Takes up the rest of a stretch; nil where the log does not hold it any more, and the mark is removed.
  private init?(_ file: FileContext, _ mark: FoldMark) throws {
    guard try LogPlace(mark.through.id, file) == mark.through, let folded = try LogPlace(mark.folded, file) else {
      try file.transaction { if try FoldMark(file.settings) == mark { try FoldMark.remove(file.settings) } }
      return nil
    }
    let statement = try file.connection.cached("SELECT * FROM cairn_log WHERE id <= ?1 ORDER BY id")
    defer { statement.reset() }
    try statement.bind(1, mark.through.id)
    var entries: [IndependentEntry] = []
    while try statement.step() {
      if let entry = LogEntry(statement, file.catalog), let plan = file.catalog.plan(entry.shape.table) {
        entries.append(IndependentEntry(entry, RowKey.canonical(entry.key, plan) ?? .null))
      }
    }
    self.init(entries, Extent(last: mark.through, folded: mark.folded)) { order in
      if let place = order.firstIndex(where: { entries[$0].entry.id == mark.folded }) { return place + 1 }
      // Its table is not synced any more, and no entry of it is here: those of later tables are left.
      return order.firstIndex { entries[$0].entry.shape.table > folded.table } ?? order.count
    }
  }

  private init(_ entries: [IndependentEntry], _ extent: Extent, start: ([Int]) -> Int) {
    let places = entries.indices.map { Place(kind: entries[$0].kind, prefix: entries[$0].prefix, index: $0) }
    order = places.sorted { a, b in
      if a.kind != b.kind { return a.kind < b.kind }
      if a.prefix != b.prefix { return a.prefix < b.prefix }
      return entries[a.index].key.isLess(than: entries[b.index].key) ?? (a.index < b.index)
    }.map(\.index)
    self.entries = entries
    self.extent = extent
    self.start = start(order)
  }

  /// What decides most comparisons of two entries' keys.
  private struct Place {
    let kind: Int
    let prefix: UInt64
    let index: Int
  }

  /// Folds all of it, and removes it from the log; stops where another process goes on with it.
  func fold(_ file: FileContext) throws {
    var next = start
    var folded = extent.folded
    while true {
      let end = min(next + Self.chunk, order.count)
      let isMine = try file.transaction {
        guard try isInLog(file, folded) else { return false }
        try fold(next..<end, file)
        if end == order.count {
          try removeFromLog(file)
          try FoldMark.remove(file.settings)
        } else {
          try FoldMark(through: extent.last, folded: entries[order[end - 1]].entry.id).write(file.settings)
        }
        return true
      }
      if !isMine || end == order.count { return }
      folded = entries[order[end - 1]].entry.id
      next = end
      file.letOthersWrite()
    }
  }

  private func removeFromLog(_ file: FileContext) throws {
    let isAll = try file.connection.scalar("SELECT 1 FROM cairn_log WHERE id > ?", .integer(extent.last.id)) == nil
    if isAll {
      // Without a condition SQLite does not look at the rows.
      try file.connection.run("DELETE FROM cairn_log")
    } else {
      try file.connection.run("DELETE FROM cairn_log WHERE id <= ?", .integer(extent.last.id))
    }
  }

  /// Whether the log holds the stretch as it was read, and nobody has folded more of it. In a transaction.
  private func isInLog(_ file: FileContext, _ folded: Int64?) throws -> Bool {
    let mark = try FoldMark(file.settings)
    if let folded { return mark == FoldMark(through: extent.last, folded: folded) }
    guard mark == nil, let first = extent.first, try LogPlace(first.id, file) == first,
      try LogPlace(extent.last.id, file) == extent.last
    else { return false }
    return try file.connection.scalar("SELECT count(*) FROM cairn_log WHERE id <= ?", .integer(extent.last.id))
      == .integer(extent.count)
  }

  /// - Parameter places: in ``order``.
  private func fold(_ places: Range<Int>, _ file: FileContext) throws {
    var folder = Folder(file)
    var next = places.lowerBound
    while next < places.upperBound {
      let end = endOfGroup(next, places.upperBound)
      let rest = try editPlain(next..<end, file)
      if !rest.isEmpty {
        var keys: [Value] = []
        for place in rest where keys.last != entry(place).key { keys.append(entry(place).key) }
        try file.records.grouped(entry(next).entry.shape.table, keys) {
          for place in rest { try folder.fold(entry(place)) }
        }
      }
      next = end
    }
    try folder.finish()
  }

  private func entry(_ place: Int) -> IndependentEntry { entries[order[place]] }

  /// Whether two entries of one group have the same key.
  private func isOneRow(_ a: Int, _ b: Int) -> Bool {
    entry(a).prefix == entry(b).prefix && entry(a).key == entry(b).key
  }

  /// Where the entries end that are folded together with the first: of its table and the kind of its key, for as many
  /// records as a group has.
  private func endOfGroup(_ first: Int, _ limit: Int) -> Int {
    var end = first + 1
    var count = 1
    while end < limit, entry(end).kind == entry(first).kind {
      if !isOneRow(end - 1, end) {
        if count == RecordGroup.size { break }
        count += 1
      }
      end += 1
    }
    return end
  }

  /// Folds edits of plain records, as far as they are the only entries of their rows (``PlainEdits``).
  ///
  /// - Returns: the places of the other entries.
  private func editPlain(_ places: Range<Int>, _ file: FileContext) throws -> [Int] {
    guard let plan = file.catalog.plan(entry(places.lowerBound).entry.shape.table) else { return Array(places) }
    var edited: [Int] = []
    for place in places where isEdit(place, plan) {
      if place > places.lowerBound, isOneRow(place - 1, place) { continue }
      if place + 1 < places.upperBound, isOneRow(place, place + 1) { continue }
      edited.append(place)
    }
    let edits = edited.map { place in
      PlainEdits.Edit(
        key: entry(place).key, time: entry(place).entry.time, columns: entry(place).entry.changed)
    }
    guard let isStored = try file.records.edit(PlainEdits(plan: plan, edits: edits)) else { return Array(places) }
    var stored = Set<Int>()
    for (place, isStored) in zip(edited, isStored) where isStored { stored.insert(place) }
    return places.filter { !stored.contains($0) }
  }

  private func isEdit(_ place: Int, _ plan: TablePlan) -> Bool {
    let columns = entry(place).entry.changed
    return entry(place).entry.operation == .update && columns.contains(where: plan.isField)
      && ClockCoding.keepsShared(columns, plan)
  }
}

/// An entry of the log that changes one record and needs no other entry to be understood.
///
/// A record that is named by a parent, a row without a key, and an integer that passes to another record, have to do
/// with other records; a hashed name is looked for among those of all; of two numbers beyond 2^53, an integer and a
/// real, SQLite may find one under the other.
///
/// A class, because each is looked at in several places.
final class IndependentEntry {
  let entry: LogEntry
  /// The canonical key.
  let key: Value
  /// Table and kind of the key's value: keys of one kind are compared by their bytes or as numbers.
  let kind: Int
  /// The beginning of the key, which tells most keys of one kind apart.
  let prefix: UInt64

  convenience init?(_ entry: LogEntry, _ file: FileContext) {
    guard let plan = file.catalog.plan(entry.shape.table), !plan.isNamedByParent,
      let key = RowKey.canonical(entry.key, plan), !file.names.mayDiffer(key, plan), !key.mayEqualAnotherNumber
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
    prefix = key.orderPrefix
    kind = entry.shape.table << 3 | Int(key.storageClass.rawValue)
  }
}
