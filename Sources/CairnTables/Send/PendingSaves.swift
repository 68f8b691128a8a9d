import CairnRecords
import CairnSQLite

/// Reads the records of a table that wait to be saved, each with its row (tables 3.3).
///
/// A key of one column is compared by SQLite itself: one statement reads records and rows. A row of a longer key is
/// read when it is asked for.
struct PendingSaves {
  /// A record, and its row where that was read with it.
  struct Item {
    var record: RecordRow
    var row: Row
  }

  enum Row {
    /// Values by column.
    case read([Value])
    case notRead
  }

  /// SQLite could not read one of the rows: they have to be read one by one to find out which.
  struct RowsUnreadable: Error {}

  /// Records per statement at most.
  static let step = 200
  /// Columns of a table at most: SQLite's limit is 2,000 for a result, those of the record included.
  private static let columns = 1_900
  /// Bytes of rows per statement, about; at least one row is read.
  private static let bytes = 1 << 20

  private let file: FileContext
  private let plan: TablePlan
  private let readsRows: Bool

  private let limit: Int

  /// - Parameters:
  ///   - readsRows: whether rows may be read with their records.
  ///   - limit: how many the batch may take.
  init(_ file: FileContext, _ plan: TablePlan, readsRows: Bool, limit: Int) {
    self.limit = min(limit, Self.step)
    self.file = file
    self.plan = plan
    self.readsRows = readsRows && plan.keyColumns.count == 1 && plan.columns.count <= Self.columns
  }

  /// The next records by key; empty when there are no more. Rows of records that wait, however large, are not read.
  func next(after cursor: Value?) throws -> [Item] {
    guard readsRows else {
      return try file.records.pending(.save, table: plan.number, after: cursor, limit: limit).map {
        Item(record: $0, row: .notRead)
      }
    }
    do {
      return try read(cursor)
    } catch let error as SQLiteError where error.isUnreadable {
      throw RowsUnreadable()
    }
  }

  private func read(_ cursor: Value?) throws -> [Item] {
    let statements = file.statements(plan)
    let statement = try cursor == nil ? statements.firstPending.get() : statements.nextPending.get()
    defer { statement.reset() }
    try statement.bind(1, PendingChange.save.rawValue)
    try statement.bind(2, Int64(plan.number))
    try statement.bind(3, Int64(limit))
    if let cursor { try statement.bind(4, cursor) }
    let first = RecordStore.columnCount
    let key = first + Int32(plan.keyColumns[0])
    var items: [Item] = []
    items.reserveCapacity(limit)
    var bytes = 0
    while bytes < Self.bytes, try statement.step() {
      items.append(Item(record: try file.records.read(statement), row: .notRead))
      let place = items.count - 1
      // A declared collation other than that of the key may show two rows for one record.
      if place > 0, items[place].record.key == items[place - 1].record.key {
        items.removeLast()
        continue
      }
      if statement.isNull(key) { continue }
      let row = plan.columns.indices.map { statement.value(first + Int32($0)) }
      for value in row { bytes += value.size }
      items[place].row = .read(row)
    }
    return items
  }
}

extension Value {
  /// Bytes of a TEXT or BLOB.
  fileprivate var size: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .malformedText(let bytes), .blob(let bytes): bytes.count
    case .null, .integer, .real: 0
    }
  }
}
