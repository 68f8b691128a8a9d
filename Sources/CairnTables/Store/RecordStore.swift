import CairnEngine
import CairnRecords
import CairnSQLite
import CairnWire

/// Reads and writes `cairn_record`. Callers hold a transaction wherever they write.
final class RecordStore {
  static let columns = "tbl, key, name, pending, state, tag, clock, shape, rest"
  static let columnCount: Int32 = 9
  /// Conditions on `state`, for SQL.
  static let isAlive = "state & \(StateBits.dead) = 0"
  static let isParked = "state & \(StateBits.parked) <> 0"

  private static let insertion = """
    INSERT INTO cairn_record(\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(tbl, key) DO NOTHING
    """
  private static let updateInPlace = """
    UPDATE cairn_record SET state = ?5, tag = ?6, clock = ?7, shape = ?8, rest = ?9 WHERE tbl = ?1 AND key = ?2
    """
  private static let updateAll = """
    UPDATE cairn_record SET name = ?3, pending = ?4, state = ?5, tag = ?6, clock = ?7, shape = ?8, rest = ?9
    WHERE tbl = ?1 AND key = ?2
    """

  let connection: Connection
  let catalog: TableCatalog
  let prefixes: NamePrefixes
  private let tags: TagCoding
  private var found = Found()
  private var textNames = (epoch: -1, some: true)
  private var writer = JSONWriter(capacity: 256)
  private let byKey: PreparedStatement
  private let byName: PreparedStatement
  private let insertStatement: PreparedStatement
  private let inPlaceStatement: PreparedStatement
  private let allStatement: PreparedStatement
  let settings: FileSettings
  /// Whether the file's text is UTF-8, once it was asked for (``isInIndexOrder(_:)``).
  var isUTF8: Bool?
  /// Records that are read and written together, while that is so.
  var group: RecordGroup?
  let naturalEdit: PreparedStatement
  let mappedEdit: PreparedStatement
  let plainCount: PreparedStatement
  private var plainEditor: PlainEditor?
  private(set) lazy var upserts = Self.upserts(connection, isInPlace: false)
  private(set) lazy var upsertsInPlace = Self.upserts(connection, isInPlace: true)
  /// Change of the number of live records per table since the last flush to `cairn_table`.
  private var liveDeltas: [Int: Int] = [:]

  init(_ connection: Connection, _ catalog: TableCatalog) {
    self.connection = connection
    self.catalog = catalog
    settings = FileSettings(connection)
    prefixes = NamePrefixes(connection)
    tags = TagCoding(connection)
    byKey = PreparedStatement(connection, "SELECT \(Self.columns) FROM cairn_record WHERE tbl = ?1 AND key = ?2")
    byName = PreparedStatement(
      connection,
      "SELECT \(Self.columns) FROM cairn_record INDEXED BY cairn_record_name WHERE name = ?1 AND name >= ''")
    insertStatement = PreparedStatement(connection, Self.insertion)
    inPlaceStatement = PreparedStatement(connection, Self.updateInPlace)
    allStatement = PreparedStatement(connection, Self.updateAll)
    naturalEdit = PreparedStatement(connection, Self.plainEdit(clock: "clock"))
    mappedEdit = PreparedStatement(connection, Self.plainEdit(clock: NamePrefixes.clock))
    plainCount = PreparedStatement(connection, Self.plainCounting)
  }

  /// Made with the first edits: until then the connection does not know its functions.
  func editor() throws(SQLiteError) -> PlainEditor {
    if let plainEditor { return plainEditor }
    let editor = try PlainEditor(connection)
    plainEditor = editor
    return editor
  }

  // MARK: Reading

  func find(_ table: Int, key: Value) throws -> RecordRow? {
    if let place = group?.index(table, key) { return group?.rows[place] }
    if found.holds(connection), found.table == table, found.key == key { return found.row }
    let row = try read(table, key)
    found = Found(connection, table, key, row)
    return row
  }

  private func read(_ table: Int, _ key: Value) throws -> RecordRow? {
    let statement = try byKey.get()
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, key)
    return try statement.step() ? try read(statement) : nil
  }

  /// The stored name of a live or dead record, without reading the rest of it.
  func storedName(_ table: Int, key: Value) throws -> Value? {
    if let place = group?.index(table, key) { return group?.rows[place]?.name }
    let statement = try connection.cached("SELECT name FROM cairn_record WHERE tbl = ?1 AND key = ?2")
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, key)
    return try statement.step() ? try prefixes.expanded(statement.value(0), key: key).name : nil
  }

  /// The record with a stored name: a UUID of a mapped table, or a name that its key does not give.
  func find(name: Value) throws -> RecordRow? {
    if case .text = name, try !mayHaveTextNames() { return nil }
    if case .blob(let uuid) = name, let place = try prefixes.place(of: uuid) {
      if let row = try find(place.table, key: .integer(place.key)), row.name == name { return row }
    }
    let statement = try byName.get()
    defer { statement.reset() }
    try statement.bind(1, name)
    guard try statement.step() else { return nil }
    let row = try read(statement)
    if let place = group?.index(row.table, row.key) { return group?.rows[place] }
    return row
  }

  /// Whether some record is stored under a text name. Most files have none, and every new record of a natural key is
  /// looked for by name.
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
    let state = StateBits(s.integer(4))
    let key = s.value(1)
    let stored = try prefixes.expanded(s.value(2), key: key)
    let clock = s.optionalInteger(6).map { $0 &+ stored.base }
    guard clock?.isValidClock ?? true else {
      throw TablesError.damagedMetadata("cairn_record has a clock out of range")
    }
    var row = RecordRow(
      table: table, key: key, name: stored.name,
      clocks: try ClockCoding.clocks(shared: state.isDead ? nil : clock, Int(s.integer(7)), table, catalog))
    row.pending = PendingChange(rawValue: s.integer(3)) ?? .none
    row.life = state.life
    row.flags = state.flags
    row.revision = state.revision
    row.tag = try tags.read(s, 5)
    if state.isDead { row.deletedAt = clock ?? 0 }
    try RecordRest.read(s, 8, into: &row, catalog.plan(table))
    return row
  }

  // MARK: Writing

  /// Stores a record that is not there yet. Returns false, and does nothing, if its key is taken.
  func insert(_ row: RecordRow) throws -> Bool {
    if let place = group?.index(row.table, row.key) {
      guard group?.rows[place] == nil else { return false }
      group?.set(row, at: place)
      if row.isAlive { liveDeltas[row.table, default: 0] += 1 }
      return true
    }
    let statement = try insertStatement.get()
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
    if let place = group?.index(row.table, row.key) {
      group?.set(row, at: place)
    } else {
      try write(row, replacing: RecordGroup.Before(pending: old.pending, name: old.name))
    }
    if row.isAlive != old.isAlive { liveDeltas[row.table, default: 0] += row.isAlive ? 1 : -1 }
  }

  /// - Parameter old: of what is stored under the same key.
  func write(_ row: RecordRow, replacing old: RecordGroup.Before) throws {
    // Where neither name nor pending changes, the indexes on them are left alone.
    let isInPlace = old.pending == row.pending && old.name == row.name
    let statement = try isInPlace ? inPlaceStatement.get() : allStatement.get()
    try bind(row, to: statement)
    try statement.run()
  }

  func remove(_ row: RecordRow) throws {
    prefixes.integerWasLeft(row.table, row.name)
    if row.isAlive { liveDeltas[row.table, default: 0] -= 1 }
    if let place = group?.index(row.table, row.key) {
      group?.set(nil, at: place)
    } else {
      try delete(table: row.table, key: row.key)
    }
  }

  /// Removes what is stored under a key.
  func delete(table: Int, key: Value) throws {
    let statement = try connection.cached("DELETE FROM cairn_record WHERE tbl = ?1 AND key = ?2")
    try statement.bind(1, Int64(table))
    try statement.bind(2, key)
    try statement.run()
  }

  /// Binds the columns of a record to nine parameters.
  ///
  /// - Parameter last: the number of the parameter before them.
  func bind(_ row: RecordRow, to s: Statement, after last: Int32 = 0) throws {
    if case .text = row.name { textNames.some = true }
    let plan = catalog.plan(row.table)
    let shared = row.isAlive ? plan.flatMap { ClockCoding.shared(row.clocks, $0) } : nil
    try s.bind(last + 1, Int64(row.table))
    try s.bind(last + 2, row.key)
    let stored = try prefixes.stored(row.name, row.table, key: row.key, clock: shared ?? row.clocks.life)
    try s.bind(last + 3, stored.name)
    try s.bind(last + 4, row.pending.rawValue)
    try s.bind(last + 5, StateBits(row).rawValue)
    try tags.bind(row.tag, row.pending == .save && row.isAlive, to: s, last + 6)
    try s.bindOptional(last + 7, (row.deletedAt ?? shared).map { $0 - stored.base })
    try s.bindOptional(last + 8, shared == nil ? nil : Int64(catalog.currentGeneration(row.table)))
    try RecordRest.bind(row, shared: shared, plan, to: s, last + 9, &writer)
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
