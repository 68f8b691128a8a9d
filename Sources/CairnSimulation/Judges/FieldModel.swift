import CairnSQLite

/// Says what each field of the modelled tables must be, from the statements that were run and nothing else (DESIGN G4,
/// G5; tables F3, M2, M5).
///
/// In these tables every value is written once only, so the value that a device shows tells which write it has seen
/// last: that is all that is needed to know the clock of the next write there. A row is alive if its latest write is
/// not older than its latest delete; a field has its latest write; of equal clocks the greater value.
struct FieldModel {
  struct Key: Hashable {
    var table: Int
    var name: String
  }

  private struct Write {
    var clock: Int64
    var value: Value
    var device: Int
    /// Counts all the model's statements, in the order they ran.
    var statement: Int
  }

  private struct History {
    /// By field.
    var writes: [[Write]]
    var deletes: [Int64] = []
    /// Why the outcome can't be told from the statements alone.
    var doubt: String?
  }

  /// What a device knows of a key beside its row.
  private struct Local {
    /// Its own delete since the last call to sync.
    var deletedAt: Int64?
    /// The row was inserted here, and whether it was ever in a batch.
    var unsent: Unsent?
  }

  private enum Unsent {
    /// No call to sync since the statement that inserted it.
    case certainly(Int)
    case perhaps
  }

  private var histories: [Key: History] = [:]
  private var locals: [Int: [Key: Local]] = [:]
  /// Devices that are in a call to sync now.
  private var syncing: Set<Int> = []
  private var statements = 0
  private(set) var voidDeletes = 0
  private(set) var reinserts = 0

  // MARK: Statements

  /// Takes note of what a statement made of a table's rows, by the name of their key.
  mutating func note(
    table: Int, from before: [String: [Value]], to after: [String: [Value]], device: Int, at time: Int64
  ) {
    statements += 1
    for (name, old) in before.sorted(by: { $0.key < $1.key }) {
      let key = Key(table: table, name: name)
      guard let new = after[name] else {
        delete(key, old, device, at: time)
        continue
      }
      for (field, value) in new.enumerated() where value != old[field] {
        let clock = max(time, held(key, field, old[field]) + 1)
        histories[key]?.writes[field].append(Write(clock: clock, value: value, device: device, statement: statements))
      }
    }
    for (name, row) in after.sorted(by: { $0.key < $1.key }) where before[name] == nil {
      insert(Key(table: table, name: name), row, device, at: time)
    }
  }

  private func held(_ key: Key, _ field: Int, _ value: Value) -> Int64 {
    histories[key]?.writes[field].filter { $0.value == value }.map(\.clock).max() ?? 0
  }

  private mutating func insert(_ key: Key, _ row: [Value], _ device: Int, at time: Int64) {
    var history = histories[key] ?? History(writes: row.map { _ in [] })
    var clock = time
    if let own = locals[device]?[key]?.deletedAt {
      clock = max(time, own + 1)
      reinserts += 1
    } else if let last = history.deletes.max(), last >= time {
      // Which of the deletes this device has heard of is not known here.
      clock = last + 1
      history.doubt = "reinserted by a clock behind a delete"
    }
    for (field, value) in row.enumerated() {
      history.writes[field].append(Write(clock: clock, value: value, device: device, statement: statements))
    }
    let isNew = history.deletes.isEmpty && !syncing.contains(device)
    histories[key] = history
    locals[device, default: [:]][key] = Local(unsent: isNew ? .certainly(statements) : .perhaps)
  }

  private mutating func delete(_ key: Key, _ row: [Value], _ device: Int, at time: Int64) {
    guard var history = histories[key] else { return }
    let touch = row.indices.map { held(key, $0, row[$0]) }.max() ?? 0
    let clock = max(time, touch + 1)
    switch locals[device]?[key]?.unsent {
    case .certainly(let insert):
      // Nobody will ever hear of this row (tables F7).
      voidDeletes += 1
      for field in history.writes.indices {
        history.writes[field].removeAll { $0.device == device && $0.statement >= insert }
      }
      histories[key] = history
      locals[device]?[key] = nil
      return
    case .perhaps: history.doubt = "deleted when perhaps never sent"
    case nil: break
    }
    history.deletes.append(clock)
    histories[key] = history
    locals[device, default: [:]][key] = Local(deletedAt: clock)
  }

  // MARK: Sync

  mutating func willSync(_ device: Int) {
    syncing.insert(device)
    locals[device] = locals[device]?.compactMapValues { local in
      local.unsent == nil ? nil : Local(unsent: .perhaps)
    }
  }

  /// - Parameter confirmed: whether everything written on the device is known to the server now.
  mutating func didSync(_ device: Int, confirmed: Bool) {
    syncing.remove(device)
    if confirmed { locals[device] = nil }
  }

  /// The device's file is another's now.
  mutating func replaceDevice(_ device: Int, by other: Int) {
    locals[other] = locals[other]?.mapValues { Local(unsent: $0.unsent == nil ? nil : .perhaps) }
    locals[device] = locals[other]
  }

  /// Deletes may be forgotten, or have unknown times: keys that were ever deleted are not judged any more.
  mutating func doubtDeletes(_ reason: String) { doubtAllDeletes = reason }
  private var doubtAllDeletes: String?

  // MARK: Judging

  /// A value in the rows that nobody wrote.
  func unknownValue(table: Int, in rows: [String: [Value]]) -> String? {
    for (name, row) in rows.sorted(by: { $0.key < $1.key }) {
      guard let history = histories[Key(table: table, name: name)] else { return "row \(name) was never inserted" }
      for (field, value) in row.enumerated() where !history.writes[field].contains(where: { $0.value == value }) {
        return "row \(name): field \(field) holds \(value), which was never written there"
      }
    }
    return nil
  }

  /// What is wrong with the rows that all devices have at the end.
  func mistake(table: Int, in rows: [String: [Value]]) -> String? {
    if let unknown = unknownValue(table: table, in: rows) { return unknown }
    for (key, history) in histories.sorted(by: { $0.key.name < $1.key.name }) where key.table == table {
      if history.doubt != nil || (doubtAllDeletes != nil && !history.deletes.isEmpty) { continue }
      let lastDelete = history.deletes.max() ?? -1
      let lastWrite = history.writes.flatMap { $0 }.map(\.clock).max() ?? -1
      guard let row = rows[key.name] else {
        if lastWrite >= lastDelete && lastWrite >= 0 {
          return "row \(key.name) is gone, but was written at \(lastWrite) and deleted at \(lastDelete)"
        }
        continue
      }
      if lastWrite < lastDelete {
        return "row \(key.name) is alive, but was written at \(lastWrite) and deleted at \(lastDelete)"
      }
      for (field, writes) in history.writes.enumerated() {
        guard let last = writes.max(by: FieldModel.precedes), last.clock >= lastDelete else { continue }
        if row[field] != last.value {
          return
            "row \(key.name): field \(field) holds \(row[field]) of \(held(key, field, row[field])), not \(last.value) of \(last.clock)"
        }
      }
    }
    return nil
  }

  private static func precedes(_ a: Write, _ b: Write) -> Bool {
    if a.clock != b.clock { return a.clock < b.clock }
    let (x, y) = (rank(a.value), rank(b.value))
    if x != y { return x < y }
    switch (a.value, b.value) {
    case (.integer(let x), .integer(let y)): return x < y
    case (.real(let x), .real(let y)): return x < y
    case (.text(let x), .text(let y)): return x.utf8.lexicographicallyPrecedes(y.utf8)
    case (.blob(let x), .blob(let y)): return x.lexicographicallyPrecedes(y)
    default: return false
    }
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer: 1
    case .real: 2
    case .text, .malformedText: 3
    case .blob: 4
    }
  }
}
