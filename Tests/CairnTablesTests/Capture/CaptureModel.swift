import CairnSQLite

/// What a file's records must look like, found by comparing the tables before and after each statement. Shares no code
/// with capture and fold.
struct CaptureModel {
  struct Record: Equatable {
    var isAlive = true
    var life: Int64 = 0
    /// By column name.
    var clocks: [String: Int64] = [:]
    var deletedAt: Int64 = 0
    /// The server may know it.
    var isKnown = false
    /// Inserted over a dead record and not confirmed since.
    var isReinserted = false
  }

  /// One table as the model sees it.
  struct Table {
    var name: String
    var columns: [String]
    var key: [String]
    /// INTEGER key: rows have an identity of their own.
    var isMapped = false
    /// Columns that hold integers of a mapped table.
    var references: [String: String] = [:]
    /// Key columns compared without case.
    var folded: Set<String> = []
  }

  typealias Rows = [String: [[String: Value]]]

  static let tables = [
    Table(name: "r", columns: ["id", "pos", "a", "ok"], key: ["id"]),
    Table(name: "rg", columns: ["id", "x", "y"], key: ["id"]),
    Table(name: "w", columns: ["a", "b", "u", "v"], key: ["a", "b"], folded: ["a"]),
    Table(name: "m", columns: ["id", "name", "v"], key: ["id"], isMapped: true),
    Table(name: "c", columns: ["id", "m_id", "v"], key: ["id"], isMapped: true, references: ["m_id": "m"]),
    Table(name: "k", columns: ["id", "r_id", "v"], key: ["id"]),
    Table(name: "l", columns: ["m_id", "r_id", "v"], key: ["m_id", "r_id"], references: ["m_id": "m"]),
  ]

  static let schema = """
    CREATE TABLE r(id TEXT PRIMARY KEY NOT NULL, pos UNIQUE, a, ok, g AS (coalesce(a, '') || ok));
    CREATE UNIQUE INDEX r_a ON r(lower(a)) WHERE ok = 1;
    CREATE TABLE rg(id TEXT PRIMARY KEY NOT NULL, x INTEGER, g INTEGER AS (x % 5) UNIQUE, y CHECK (y IS NOT 13));
    CREATE TABLE w(a TEXT NOT NULL COLLATE NOCASE, b INTEGER NOT NULL, u UNIQUE ON CONFLICT REPLACE, v,
      PRIMARY KEY (a, b)) WITHOUT ROWID;
    CREATE TABLE m(id INTEGER PRIMARY KEY, name UNIQUE, v);
    CREATE TABLE c(id INTEGER PRIMARY KEY, m_id INTEGER REFERENCES m ON DELETE SET NULL ON UPDATE CASCADE, v);
    CREATE TABLE k(id TEXT PRIMARY KEY NOT NULL, r_id TEXT REFERENCES r ON DELETE CASCADE ON UPDATE CASCADE, v);
    CREATE TABLE l(m_id INTEGER NOT NULL REFERENCES m ON DELETE CASCADE ON UPDATE CASCADE,
      r_id TEXT NOT NULL REFERENCES r ON DELETE CASCADE ON UPDATE CASCADE, v, PRIMARY KEY (m_id, r_id));
    """

  private(set) var records: [String: Record] = [:]
  /// The record that an integer stands for, or last stood for.
  private(set) var identities: [String: [Int64: Int]] = [:]
  private var rows: Rows = [:]
  private var nextIdentity = 1

  static func read(_ connection: Connection) throws -> Rows {
    var result: Rows = [:]
    for table in tables {
      result[table.name] = try connection.rows("SELECT \(table.columns.joined(separator: ", ")) FROM \(table.name)").map
      {
        Dictionary(uniqueKeysWithValues: zip(table.columns, $0))
      }
    }
    return result
  }

  func name(_ table: Table, _ row: [String: Value]) -> String {
    let parts = table.key.map { column -> String in
      guard let value = row[column] else { return "" }
      if table.isMapped, case .integer(let integer) = value { return "#\(identities[table.name]?[integer] ?? 0)" }
      if let parent = table.references[column], case .integer(let integer) = value {
        return "#\(identities[parent]?[integer] ?? 0)"
      }
      let text = Device.text(value)
      return table.folded.contains(column) ? text.lowercased() : text
    }
    return "\(table.name):\(parts.joined(separator: ","))"
  }

  /// Takes in what one statement did.
  /// - Parameter moves: integers of mapped tables that the statement meant to change.
  mutating func step(_ after: Rows, at time: Int64, moves: [CaptureStatement.Move]) {
    let old = named(rows)
    identify(after, moves)
    let new = named(after)
    for (name, _) in old where new[name] == nil { delete(name, at: time) }
    for (name, row) in new {
      if let before = old[name] {
        edit(name, before.references, before.row, row, at: time)
      } else {
        insert(name, row.table, at: time)
      }
    }
    rows = after
  }

  private func named(_ rows: Rows) -> [String: (table: Table, row: [String: Value], references: [String: Int])] {
    var result: [String: (table: Table, row: [String: Value], references: [String: Int])] = [:]
    for table in Self.tables {
      for row in rows[table.name] ?? [] {
        var references: [String: Int] = [:]
        for (column, parent) in table.references {
          if case .integer(let integer)? = row[column] { references[column] = identities[parent]?[integer] ?? 0 }
        }
        result[name(table, row)] = (table, row, references)
      }
    }
    return result
  }

  private func integers(_ rows: Rows, _ table: Table) -> Set<Int64> {
    Set(
      (rows[table.name] ?? []).compactMap { row in
        guard case .integer(let integer)? = row[table.key[0]] else { return nil }
        return integer
      })
  }

  private mutating func identify(_ after: Rows, _ moves: [CaptureStatement.Move]) {
    for table in Self.tables where table.isMapped {
      let before = integers(rows, table)
      let now = integers(after, table)
      let known = identities[table.name] ?? [:]
      for integer in now.subtracting(before).sorted() {
        let source = moves.first { $0.table == table.name && $0.new == integer && before.contains($0.old) }?.old
        if let source, !now.contains(source) || moves.contains(where: { $0.new == source }) {
          identities[table.name, default: [:]][integer] = known[source]
        } else {
          identities[table.name, default: [:]][integer] = nextIdentity
          nextIdentity += 1
        }
      }
    }
  }

  private mutating func insert(_ name: String, _ table: Table, at time: Int64) {
    let dead = records[name]
    let clock = max(time, dead.map { $0.deletedAt + 1 } ?? 0)
    var record = Record(life: clock)
    for column in table.columns where !(table.isMapped && table.key.contains(column)) { record.clocks[column] = clock }
    record.isKnown = dead?.isKnown ?? false
    record.isReinserted = dead != nil
    records[name] = record
  }

  private mutating func edit(
    _ name: String, _ references: [String: Int], _ before: [String: Value],
    _ now: (table: Table, row: [String: Value], references: [String: Int]), at time: Int64
  ) {
    for column in now.table.columns {
      guard let clock = records[name]?.clocks[column] else { continue }
      let isEdit =
        now.table.references[column] != nil && references[column] != nil && now.references[column] != nil
        ? references[column] != now.references[column] : before[column] != now.row[column]
      if isEdit { records[name]?.clocks[column] = max(time, clock + 1) }
    }
  }

  private mutating func delete(_ name: String, at time: Int64) {
    guard var record = records[name] else { return }
    let touch = max(record.life, record.clocks.values.max() ?? 0)
    record.isAlive = false
    record.deletedAt = max(time, touch + 1)
    record.clocks = [:]
    records[name] = record.isKnown || record.isReinserted ? record : nil
  }

  /// Notes which records were in a batch.
  mutating func confirm(_ isKnown: (String) -> Bool) {
    for name in records.keys where isKnown(name) {
      records[name]?.isKnown = true
      records[name]?.isReinserted = false
    }
  }
}
