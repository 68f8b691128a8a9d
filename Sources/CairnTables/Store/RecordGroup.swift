import CairnRecords
import CairnSQLite

/// Records of one table that are read by one statement, changed in memory, and written by as few as possible: where
/// keys lie side by side, most of the time that a statement for each would take is spent on starting it.
struct RecordGroup {
  /// As many as one statement writes.
  static let size = 64

  /// What decides how a changed record is written.
  struct Before {
    var pending: PendingChange
    var name: Value
  }

  let table: Int
  /// In the order of the index on them.
  let keys: [Value]
  /// As they are now; nil where there is none.
  private(set) var rows: [RecordRow?]
  /// What is stored; nil where nothing is.
  let before: [Before?]
  private(set) var isChanged: [Bool]
  /// Where a record was found last: they are asked for in their order.
  private var place = 0

  init(table: Int, keys: [Value], rows: [RecordRow?]) {
    self.table = table
    self.keys = keys
    self.rows = rows
    before = rows.map { row in row.map { Before(pending: $0.pending, name: $0.name) } }
    isChanged = Array(repeating: false, count: keys.count)
  }

  mutating func set(_ row: RecordRow?, at place: Int) {
    rows[place] = row
    isChanged[place] = true
  }

  /// Where a record of the group is; nil for one that is not in it.
  mutating func index(_ table: Int, _ key: Value) -> Int? {
    guard table == self.table else { return nil }
    if keys[place] == key { return place }
    if place + 1 < keys.count, keys[place + 1] == key {
      place += 1
      return place
    }
    guard let found = keys.firstIndex(of: key) else { return nil }
    place = found
    return found
  }
}

extension RecordStore {
  /// Runs `body` with records of a table at hand; what it does to them is written when it ends.
  ///
  /// Until then a statement of SQL sees these records as they were, and so do ``pending(_:table:after:limit:)`` and
  /// ``all(table:after:limit:)``; what finds, inserts, updates or removes one record sees them as they are.
  ///
  /// - Parameter keys: without repetition, of one storage class, in the order of their bytes or as numbers; not empty.
  func grouped(_ table: Int, _ keys: [Value], _ body: () throws -> Void) throws {
    group = RecordGroup(table: table, keys: keys, rows: try stored(table, keys))
    defer { group = nil }
    try body()
    try writeGroup()
  }

  /// What is stored between the first and the last key; where much else is between them, each record is looked up.
  private func stored(_ table: Int, _ keys: [Value]) throws -> [RecordRow?] {
    guard try isInIndexOrder(keys[0]) else { return try keys.map { try find(table, key: $0) } }
    let statement = try connection.cached(
      "SELECT \(Self.columns) FROM cairn_record WHERE tbl = ?1 AND key BETWEEN ?2 AND ?3 ORDER BY key")
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, keys[0])
    try statement.bind(3, keys[keys.count - 1])
    var rows = [RecordRow?](repeating: nil, count: keys.count)
    var place = 0
    var others = 0
    while try statement.step() {
      let row = try read(statement)
      if let found = keys[place...].firstIndex(of: row.key) {
        rows[found] = row
        place = found
      } else {
        others += 1
        if others > keys.count { return try keys.map { try find(table, key: $0) } }
      }
    }
    return rows
  }

  /// Whether keys in the order of their bytes, or as numbers, are in the order of SQLite's index: text in a UTF-16 file
  /// is compared by other bytes than its own.
  func isInIndexOrder(_ key: Value) throws -> Bool {
    guard key.storageClass == .text else { return true }
    if let isUTF8 { return isUTF8 }
    let found = try connection.scalar("PRAGMA encoding") == .text("UTF-8")
    isUTF8 = found
    return found
  }

  private func writeGroup() throws {
    guard let group else { return }
    self.group = nil
    var moved: [Int] = []
    var inPlace: [Int] = []
    for place in group.keys.indices where group.isChanged[place] {
      guard let pending = group.rows[place]?.pending else {
        if group.before[place] != nil { try delete(table: group.table, key: group.keys[place]) }
        continue
      }
      if let before = group.before[place], let row = group.rows[place], before.name != row.name {
        try write(row, replacing: before)
      } else if group.before[place]?.pending == pending {
        inPlace.append(place)
      } else {
        moved.append(place)
      }
    }
    try write(moved, of: group, upserts)
    try write(inPlace, of: group, upsertsInPlace)
  }

  /// Powers of two: few different statements for groups of all sizes.
  private func write(_ places: [Int], of group: RecordGroup, _ statements: [PreparedStatement]) throws {
    var rest = places[...]
    while !rest.isEmpty {
      var count = RecordGroup.size
      while count > rest.count { count /= 2 }
      let statement = try statements[count.trailingZeroBitCount].get()
      for (i, place) in rest.prefix(count).enumerated() {
        if let row = group.rows[place] { try bind(row, to: statement, after: Int32(9 * i)) }
      }
      try statement.run()
      rest = rest.dropFirst(count)
    }
  }

  /// Statements that write 1, 2, 4, … records, new ones or in place of others.
  ///
  /// - Parameter isInPlace: for records of which pending does not change: the indexes are left alone.
  static func upserts(_ connection: Connection, isInPlace: Bool) -> [PreparedStatement] {
    (0...RecordGroup.size.trailingZeroBitCount).map { power in
      let values = Array(repeating: "(?, ?, ?, ?, ?, ?, ?, ?, ?)", count: 1 << power).joined(separator: ", ")
      return PreparedStatement(
        connection,
        """
        INSERT INTO cairn_record(\(columns)) VALUES \(values)
        ON CONFLICT(tbl, key) DO UPDATE SET \(isInPlace ? "" : "pending = excluded.pending, ")state = excluded.state,
          tag = excluded.tag, clock = excluded.clock, shape = excluded.shape, rest = excluded.rest
        """)
    }
  }
}
