import CairnRecords
import CairnSQLite

/// What must be in the tables after everything has travelled, worked out from the edits alone: shares no code with the
/// merge. For tables without foreign keys.
///
/// A record lives if its latest edit is not older than its latest delete. A field's latest edit wins, of equal times
/// the greater value. An edit that is older than some delete of its record may have gone with the row; then the field
/// only has to have one of its values.
struct EditModel {
  struct Edit {
    var clock: Int64
    var value: Value
    var device: String
  }

  /// What a device knows of a record.
  struct Known: Equatable {
    var life: Int64?
    var cut: Int64?
    var deletedAt: Int64?
    var clocks: [String: Int64] = [:]
    var values: [String: Value] = [:]

    static let absent = Known()
    var isAlive: Bool { life != nil }
  }

  private struct History {
    var edits: [String: [Edit]] = [:]
    var lives: [Edit] = []
    var deletes: [Int64] = []

    /// A row that was inserted and deleted before it was ever in a batch is forgotten (F7).
    mutating func forget(_ device: String, since life: Int64) {
      edits = edits.mapValues { $0.filter { $0.device != device || $0.clock < life } }
      lives.removeAll { $0.device == device && $0.clock >= life }
    }
  }

  private var histories: [String: History] = [:]

  /// Notes what one statement, or several, did to a record on one device.
  mutating func note(_ record: String, on device: String, before: Known, after: Known) {
    if before == after { return }
    var history = histories[record] ?? History()
    if let life = before.life, after.life != life, after.deletedAt == nil, after.cut == before.cut {
      history.forget(device, since: life)
    }
    if let cut = after.cut, cut != before.cut { history.deletes.append(cut) }
    if let life = after.life {
      if before.life != life { history.lives.append(Edit(clock: life, value: .null, device: device)) }
      for (field, clock) in after.clocks where before.clocks[field] != clock || before.life != life {
        history.edits[field, default: []].append(
          Edit(clock: clock, value: after.values[field] ?? .null, device: device))
      }
    } else if let clock = after.deletedAt, clock != before.deletedAt {
      history.deletes.append(clock)
    }
    histories[record] = history
  }

  enum Expectation {
    case dead
    /// By field: the values that it may have.
    case alive([String: [Value]])
  }

  var records: [String] { histories.keys.sorted() }

  func expectation(_ record: String) -> Expectation {
    guard let history = histories[record] else { return .dead }
    let latestDelete = history.deletes.max() ?? -1
    var latestEdit = history.lives.map(\.clock).max() ?? -2
    for edits in history.edits.values { latestEdit = max(latestEdit, edits.map(\.clock).max() ?? -2) }
    if latestEdit < max(latestDelete, 0) { return .dead }
    return .alive(
      history.edits.mapValues { edits in
        let latest = edits.map(\.clock).max() ?? 0
        if latest <= latestDelete { return edits.map(\.value) }
        let winners = edits.filter { $0.clock == latest }.map(\.value)
        return [winners.max { Self.isLess($0, $1) } ?? .null]
      })
  }

  /// NULL < INTEGER < TEXT; the only values that the test writes.
  private static func isLess(_ a: Value, _ b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): false
    case (.null, _): true
    case (.integer, .null): false
    case (.integer(let x), .integer(let y)): x < y
    case (.integer, _): true
    case (.text(let x), .text(let y)): Array(x.utf8).lexicographicallyPrecedes(Array(y.utf8))
    default: false
    }
  }
}

extension Device {
  /// What this device knows of the records of a table, by record: `lists:a`, `notes:UUID`.
  func known(_ table: String, _ keyColumn: String, _ columns: [String]) throws -> [String: EditModel.Known] {
    let selected = columns.map { "x.\($0)" }.joined(separator: ", ")
    let rows = try rows(
      """
      SELECT r.key, coalesce(r.uuid, r.key), r.life, r.cut, r.deleted, r.clock,
        r.clocks, \(selected)
      FROM \(RecordView.sql) r JOIN cairn_table t ON t.number = r.tbl LEFT JOIN \(table) x ON x.\(keyColumn) = r.key
      WHERE t.name = '\(table)'
      """)
    var result: [String: EditModel.Known] = [:]
    for row in rows {
      var known = EditModel.Known()
      known.deletedAt = row[4].integerForTests
      if known.deletedAt == nil {
        // A life clock that equals the common clock is not stored twice.
        known.life = row[2].integerForTests ?? row[5].integerForTests
        known.cut = row[3].integerForTests
        for (i, column) in columns.enumerated() where table != "notes" || column != keyColumn {
          known.clocks[column] = row[5].integerForTests
          known.values[column] = row[7 + i]
        }
        for group in Device.text(row[6]).split(separator: ";") where row[6] != .null {
          let words = group.split(separator: " ").map(String.init)
          for name in words.dropFirst() { known.clocks[name] = words.first.flatMap(Int64.init) }
        }
      }
      result["\(table):\(Device.text(row[1]).lowercased())"] = known
    }
    return result
  }
}
