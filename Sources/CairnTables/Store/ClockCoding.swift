import CairnRecords
import CairnSQLite

/// How clocks lie in `cairn_record`: one number where all fields share one clock, else the exceptions beside it.
///
/// - `clock`: the clock of every field of trigger generation `shape` that `clocks` does not name.
/// - `life`: null where it equals `clock`.
/// - `clocks`: `clock name name … ; clock name …`, for fields with another clock; the clock `-1` marks fields of the
///   generation that were never set. Fields outside the generation appear here only.
enum ClockCoding {
  /// Reads life, cut, clock, shape and clocks from five columns beginning with `first`.
  static func read(_ s: Statement, from first: Int32, _ table: Int, _ catalog: TableCatalog) throws -> FieldClocks {
    guard let plan = catalog.plan(table) else { return FieldClocks(life: 0, columns: []) }
    var clocks = FieldClocks(
      life: 0, cut: s.optionalInteger(first + 1),
      columns: Array(repeating: FieldClocks.never, count: plan.columns.count))
    let shared = s.optionalInteger(first + 2)
    clocks.life = s.optionalInteger(first) ?? shared ?? 0
    if let shared {
      let generation = Int(s.integer(first + 3))
      if generation == catalog.currentGeneration(table) {
        let mappedKey = plan.keyKind == .mapped ? plan.keyColumns.first : nil
        for i in clocks.columns.indices where i != mappedKey { clocks.columns[i] = shared }
      } else {
        for name in try catalog.fieldNames(table, generation) { set(shared, name, plan, &clocks) }
      }
    }
    if !s.isNull(first + 4) {
      for group in s.text(first + 4).split(separator: ";") {
        let words = group.split(separator: " ")
        guard let clock = words.first.flatMap({ Int64($0) }) else { continue }
        for name in words.dropFirst() { set(clock, String(name), plan, &clocks) }
      }
    }
    return clocks
  }

  private static func set(_ clock: FieldClock, _ name: String, _ plan: TablePlan, _ clocks: inout FieldClocks) {
    if let column = plan.columns.firstIndex(where: { $0.wireName == name }) {
      clocks.columns[column] = clock
    } else if clock != FieldClocks.never {
      clocks.kept[name] = clock
    }
  }

  /// Binds life, cut, clock, shape and clocks to five parameters beginning with `first`.
  static func bind(
    _ clocks: FieldClocks, isAlive: Bool, _ table: Int, _ catalog: TableCatalog, to s: Statement, from first: Int32
  ) throws {
    guard isAlive, let plan = catalog.plan(table) else {
      for i in 0..<Int32(5) { try s.bindNull(first + i) }
      try s.bindOptional(first + 1, clocks.cut)
      return
    }
    if let shared = onlyClock(clocks, plan) {
      if clocks.life == shared { try s.bindNull(first) } else { try s.bind(first, clocks.life) }
      try s.bindOptional(first + 1, clocks.cut)
      try s.bind(first + 2, shared)
      try s.bind(first + 3, Int64(catalog.currentGeneration(table)))
      return try s.bindNull(first + 4)
    }
    let shared = commonClock(clocks, plan)
    try s.bindOptional(first, clocks.life == shared ? nil : clocks.life)
    try s.bindOptional(first + 1, clocks.cut)
    try s.bindOptional(first + 2, shared)
    try s.bindOptional(first + 3, shared == nil ? nil : Int64(catalog.currentGeneration(table)))
    try s.bindOptional(first + 4, exceptions(clocks, shared: shared, plan))
  }

  /// The clock that every field has: that of a record which was only inserted.
  private static func onlyClock(_ clocks: FieldClocks, _ plan: TablePlan) -> FieldClock? {
    guard clocks.kept.isEmpty else { return nil }
    let mappedKey = plan.keyKind == .mapped ? plan.keyColumns.first : nil
    var shared = FieldClocks.never
    for (i, clock) in clocks.columns.enumerated() where i != mappedKey {
      if clock == FieldClocks.never || (shared != FieldClocks.never && clock != shared) { return nil }
      shared = clock
    }
    return shared == FieldClocks.never ? nil : shared
  }

  /// The clock that most fields have; nil when no field was ever set.
  private static func commonClock(_ clocks: FieldClocks, _ plan: TablePlan) -> FieldClock? {
    var best: FieldClock?
    var bestCount = 0
    for (i, clock) in clocks.columns.enumerated() where clock != FieldClocks.never && clock != best {
      var count = 0
      for other in clocks.columns[i...] where other == clock { count += 1 }
      if count > bestCount {
        best = clock
        bestCount = count
      }
      if bestCount * 2 > clocks.columns.count { break }
    }
    return best
  }

  private static func exceptions(_ clocks: FieldClocks, shared: FieldClock?, _ plan: TablePlan) -> String? {
    var groups: [(clock: FieldClock, names: String)] = []
    func add(_ clock: FieldClock, _ name: String) {
      if let i = groups.firstIndex(where: { $0.clock == clock }) {
        groups[i].names += " " + name
      } else {
        groups.append((clock, name))
      }
    }
    for (i, clock) in clocks.columns.enumerated() where clock != shared && plan.isField(i) {
      if clock == FieldClocks.never && shared == nil { continue }
      add(clock, plan.columns[i].wireName)
    }
    for name in clocks.kept.keys.sorted() { add(clocks.kept[name] ?? 0, name) }
    if groups.isEmpty { return nil }
    return groups.map { "\($0.clock) \($0.names)" }.joined(separator: ";")
  }
}

/// How the names of unconfirmed fields lie in `cairn_record.dirty`: null for all, else names parted by spaces.
enum DirtyCoding {
  static func encode(_ dirty: DirtyFields) -> String? {
    switch dirty {
    case .all: nil
    case .some(let names): names.sorted().joined(separator: " ")
    }
  }

  static func decode(_ text: String) -> DirtyFields {
    .some(Set(text.split(separator: " ").map(String.init)))
  }
}

extension Statement {
  func bindOptional(_ index: Int32, _ value: Int64?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }

  func bindOptional(_ index: Int32, _ value: String?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }
}
