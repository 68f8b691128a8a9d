import CairnEngine
import CairnRecords
import CairnSQLite

/// Reads and writes `cairn_record`. Callers hold a transaction wherever they write.
final class RecordStore {
  static let columns = """
    tbl, key, name, pending, state, revision, tag, deleted, life, cut, clock, shape, clocks, dirty, kept, wish, reason, \
    retry
    """

  private static let selectByKey = "SELECT \(columns) FROM cairn_record WHERE tbl = ?1 AND key = ?2"
  private static let selectByName = "SELECT \(columns) FROM cairn_record WHERE name = ?1"
  private static let insertion = """
    INSERT INTO cairn_record(\(columns))
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
    ON CONFLICT(tbl, key) DO NOTHING
    """

  private static let updateInPlace = """
    UPDATE cairn_record SET state = ?5, revision = ?6, tag = ?7, deleted = ?8, life = ?9, cut = ?10, clock = ?11,
      shape = ?12, clocks = ?13, dirty = ?14, kept = ?15, wish = ?16, reason = ?17, retry = ?18
    WHERE tbl = ?1 AND key = ?2
    """
  private static let updateAll = """
    UPDATE cairn_record SET name = ?3, pending = ?4, state = ?5, revision = ?6, tag = ?7, deleted = ?8, life = ?9,
      cut = ?10, clock = ?11, shape = ?12, clocks = ?13, dirty = ?14, kept = ?15, wish = ?16, reason = ?17,
      retry = ?18
    WHERE tbl = ?1 AND key = ?2
    """
  private static let progress = """
    UPDATE cairn_record SET state = ?3, revision = ?4, tag = ?5, dirty = ?6, reason = ?7, retry = ?8
    WHERE tbl = ?1 AND key = ?2
    """
  private static let progressWithPending = """
    UPDATE cairn_record SET state = ?3, revision = ?4, tag = ?5, dirty = ?6, reason = ?7, retry = ?8, pending = ?9
    WHERE tbl = ?1 AND key = ?2
    """

  let connection: Connection
  let catalog: TableCatalog
  private var found = Found()
  private var textNames = (epoch: -1, some: true)
  /// Change of the number of live records per table since the last flush to `cairn_table`.
  private var liveDeltas: [Int: Int] = [:]

  init(_ connection: Connection, _ catalog: TableCatalog) {
    self.connection = connection
    self.catalog = catalog
  }

  // MARK: Reading

  func find(_ table: Int, key: Value) throws -> RecordRow? {
    if found.holds(connection), found.table == table, found.key == key { return found.row }
    let row = try read(table, key)
    found = Found(connection, table, key, row)
    return row
  }

  private func read(_ table: Int, _ key: Value) throws -> RecordRow? {
    let statement = try connection.cached(Self.selectByKey)
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, key)
    return try statement.step() ? try read(statement) : nil
  }

  /// The stored name of a live or dead record, without reading the rest of it.
  func storedName(_ table: Int, key: Value) throws -> Value? {
    let statement = try connection.cached("SELECT name FROM cairn_record WHERE tbl = ?1 AND key = ?2")
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, key)
    return try statement.step() ? statement.value(0) : nil
  }

  /// The record with a stored name: a UUID of a mapped table, or a name that its key does not give.
  func find(name: Value) throws -> RecordRow? {
    if case .text = name, try !mayHaveTextNames() { return nil }
    let statement = try connection.cached(Self.selectByName)
    defer { statement.reset() }
    try statement.bind(1, name)
    return try statement.step() ? try read(statement) : nil
  }

  /// Whether some record is stored under a text name. Most files have none, and every new record of a natural key is looked
  /// for by name.
  private func mayHaveTextNames() throws -> Bool {
    if connection.isInTransaction, textNames.epoch == connection.epoch { return textNames.some }
    let some =
      try connection.scalar("SELECT 1 FROM cairn_record WHERE name IS NOT NULL AND name >= '' AND name < x'' LIMIT 1")
      != nil
    textNames = (connection.epoch, some)
    return some
  }

  /// Records of a table with a pending change, by key, after `cursor`. `pending > 0` is said so that SQLite may use the
  /// index of pending records: without it every record of the table is read.
  func pending(_ change: PendingChange, table: Int, after cursor: Value?, limit: Int) throws -> [RecordRow] {
    let statement = try connection.cached(
      """
      SELECT \(Self.columns) FROM cairn_record INDEXED BY cairn_record_pending
      WHERE pending > 0 AND pending = ?1 AND tbl = ?2 \(cursor == nil ? "" : "AND key > ?4") ORDER BY key LIMIT ?3
      """)
    defer { statement.reset() }
    try statement.bind(1, change.rawValue)
    try statement.bind(2, Int64(table))
    try statement.bind(3, Int64(limit))
    if let cursor { try statement.bind(4, cursor) }
    var rows: [RecordRow] = []
    while try statement.step() { rows.append(try read(statement)) }
    return rows
  }

  /// Records of a table by key, after `cursor`.
  func all(table: Int, after cursor: Value?, limit: Int) throws -> [RecordRow] {
    let statement = try connection.cached(
      """
      SELECT \(Self.columns) FROM cairn_record WHERE tbl = ?1 \(cursor == nil ? "" : "AND key > ?3")
      ORDER BY key LIMIT ?2
      """)
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, Int64(limit))
    if let cursor { try statement.bind(3, cursor) }
    var rows: [RecordRow] = []
    while try statement.step() { rows.append(try read(statement)) }
    return rows
  }

  func read(_ s: Statement) throws -> RecordRow {
    let table = Int(s.integer(0))
    let state = s.integer(4)
    var row = RecordRow(
      table: table, key: s.value(1), name: s.value(2), clocks: try ClockCoding.read(s, from: 8, table, catalog))
    row.pending = PendingChange(rawValue: s.integer(3)) ?? .none
    row.life = LifeStatus(rawValue: state & 3) ?? .none
    row.flags = RecordFlags(rawValue: state >> 2)
    row.revision = s.integer(5)
    row.tag = s.optionalText(6).map(ChangeTag.init)
    row.deletedAt = s.optionalInteger(7)
    if row.pending == .save { row.dirty = s.isNull(13) ? .all : DirtyCoding.decode(s.text(13)) }
    row.kept = try s.optionalText(14).map(KeptFields.init(json:))
    row.wish = s.optionalInteger(15)
    row.reason = s.optionalText(16).flatMap(PendingReason.init(rawValue:))
    row.retryAt = s.optionalInteger(17)
    return row
  }

  // MARK: Writing

  /// Stores a record that is not there yet. Returns false, and does nothing, if its key is taken.
  func insert(_ row: RecordRow) throws -> Bool {
    let statement = try connection.cached(Self.insertion)
    try bind(row, to: statement)
    try statement.run()
    guard connection.changes == 1 else { return false }
    if row.isAlive { liveDeltas[row.table, default: 0] += 1 }
    return true
  }

  /// Replaces what is stored under `old`'s key by `row`; the key may differ.
  func update(_ old: RecordRow, to row: RecordRow) throws {
    if old == row { return }
    if old.key != row.key {
      try remove(old)
      _ = try insert(row)
      return
    }
    if old.differsOnlyInProgress(from: row) {
      return try updateProgress(row, pendingChanges: old.pending != row.pending)
    }
    // Where neither name nor pending changes, the indexes on them are left alone.
    let isInPlace = old.name == row.name && old.pending == row.pending
    let statement = try connection.cached(isInPlace ? Self.updateInPlace : Self.updateAll)
    try bind(row, to: statement)
    try statement.run()
    liveDeltas[row.table, default: 0] += (row.isAlive ? 1 : 0) - (old.isAlive ? 1 : 0)
  }

  /// Writes what sending changes of a record: no clocks, and the index of pending records only where it changes.
  private func updateProgress(_ row: RecordRow, pendingChanges: Bool) throws {
    let statement = try connection.cached(pendingChanges ? Self.progressWithPending : Self.progress)
    try statement.bind(1, Int64(row.table))
    try statement.bind(2, row.key)
    try statement.bind(3, row.life.rawValue | row.flags.rawValue << 2)
    try statement.bind(4, row.revision)
    try statement.bindOptional(5, row.tag?.rawValue)
    try statement.bindOptional(6, row.pending == .save ? DirtyCoding.encode(row.dirty) : nil)
    try statement.bindOptional(7, row.reason?.rawValue)
    try statement.bindOptional(8, row.retryAt)
    if pendingChanges { try statement.bind(9, row.pending.rawValue) }
    try statement.run()
  }

  func remove(_ row: RecordRow) throws {
    let statement = try connection.cached("DELETE FROM cairn_record WHERE tbl = ?1 AND key = ?2")
    try statement.bind(1, Int64(row.table))
    try statement.bind(2, row.key)
    try statement.run()
    if row.isAlive { liveDeltas[row.table, default: 0] -= 1 }
  }

  private func bind(_ row: RecordRow, to s: Statement) throws {
    if case .text = row.name { textNames.some = true }
    try s.bind(1, Int64(row.table))
    try s.bind(2, row.key)
    try s.bind(3, row.name)
    try s.bind(4, row.pending.rawValue)
    try s.bind(5, row.life.rawValue | row.flags.rawValue << 2)
    try s.bind(6, row.revision)
    try s.bindOptional(7, row.tag?.rawValue)
    try s.bindOptional(8, row.deletedAt)
    try ClockCoding.bind(row.clocks, isAlive: row.isAlive, row.table, catalog, to: s, from: 9)
    try s.bindOptional(14, row.pending == .save ? DirtyCoding.encode(row.dirty) : nil)
    try s.bindOptional(15, row.kept?.json())
    try s.bindOptional(16, row.wish)
    try s.bindOptional(17, row.reason?.rawValue)
    try s.bindOptional(18, row.retryAt)
  }

  /// Adds the changes of the live counts to `cairn_table`. Called before the transaction commits.
  func flushCounts() throws {
    for (table, delta) in liveDeltas.sorted(by: { $0.key < $1.key }) where delta != 0 {
      try connection.run(
        "UPDATE cairn_table SET live = live + ?2 WHERE number = ?1", .integer(Int64(table)), .integer(Int64(delta)))
    }
    liveDeltas.removeAll(keepingCapacity: true)
  }

  /// Forgets changes of counts whose transaction was rolled back.
  func discardCounts() { liveDeltas.removeAll(keepingCapacity: true) }

  /// The counts that are not flushed yet, for going back to a savepoint.
  var countsMark: [Int: Int] { liveDeltas }

  func restoreCounts(_ mark: [Int: Int]) { liveDeltas = mark }
}

/// The last record that was looked for: applying a version asks for the same one several times.
private struct Found {
  var table = 0
  var key = Value.null
  var row: RecordRow?
  private var epoch = -1
  private var changes: Int64 = -1

  init() {}

  init(_ connection: Connection, _ table: Int, _ key: Value, _ row: RecordRow?) {
    self.table = table
    self.key = key
    self.row = row
    epoch = connection.epoch
    changes = connection.totalChanges
  }

  /// Whether nothing can have changed since: no row was written, nothing rolled back, and the transaction is the same.
  func holds(_ connection: Connection) -> Bool {
    epoch == connection.epoch && changes == connection.totalChanges && connection.isInTransaction
  }
}

extension RecordRow {
  /// Whether two states of one record are alike but for what sending changes.
  fileprivate func differsOnlyInProgress(from other: RecordRow) -> Bool {
    name == other.name && clocks == other.clocks && deletedAt == other.deletedAt && kept == other.kept
      && wish == other.wish
  }
}
