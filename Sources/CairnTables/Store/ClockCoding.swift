import CairnRecords
import CairnSQLite

/// How clocks lie in `cairn_record`: one number where all fields share one clock, else the exceptions beside it.
///
/// - `clock`: the clock of every field of trigger generation `shape` that the exceptions do not name.
/// - exceptions (in `rest`): `clock name name … ; clock name …`, for fields with another clock; the clock `-1` marks
///   fields of the generation that were never set. Fields outside the generation appear here only.
enum ClockCoding {
  /// The clocks of a record whose fields all have the clock `shared`, as fields of trigger generation `generation`.
  static func clocks(
    shared: FieldClock?, _ generation: Int, _ table: Int, _ catalog: TableCatalog
  ) throws -> FieldClocks {
    guard let plan = catalog.plan(table) else { return FieldClocks(life: 0, columns: []) }
    guard let shared else {
      return FieldClocks(life: 0, columns: Array(repeating: FieldClocks.never, count: plan.columns.count))
    }
    if generation == catalog.currentGeneration(table) {
      return FieldClocks(uniform: shared, plan: plan)
    }
    var clocks = FieldClocks(
      life: shared, columns: Array(repeating: FieldClocks.never, count: plan.columns.count))
    for name in try catalog.fieldNames(table, generation) { set(shared, name, plan, &clocks) }
    return clocks
  }

  /// Takes exceptions in. What is no clock or name is left out.
  static func read(exceptions: UnsafeBufferPointer<UInt8>, into clocks: inout FieldClocks, _ plan: TablePlan) {
    for group in exceptions.split(separator: UInt8(ascii: ";")) {
      let words = group.split(separator: UInt8(ascii: " "))
      guard let clock = words.first.flatMap({ Int64(String(decoding: $0, as: UTF8.self)) }),
        clock.isValidClock || clock == FieldClocks.never
      else { continue }
      for name in words.dropFirst() { set(clock, String(decoding: name, as: UTF8.self), plan, &clocks) }
    }
  }

  private static func set(_ clock: FieldClock, _ name: String, _ plan: TablePlan, _ clocks: inout FieldClocks) {
    if let column = plan.column(wireName: name) {
      clocks.columns[column] = clock
    } else if clock != FieldClocks.never {
      clocks.kept[name] = clock
    }
  }

  /// The clock to store beside the exceptions: the one that most fields have; nil when no field was ever set.
  static func shared(_ clocks: FieldClocks, _ plan: TablePlan) -> FieldClock? {
    let columns = clocks.columns
    guard let first = columns.indices.first(where: plan.isField) else { return nil }
    let candidate = columns[first]
    if candidate != FieldClocks.never, columns.indices.allSatisfy({ columns[$0] == candidate || !plan.isField($0) }) {
      return candidate
    }
    var best: FieldClock?
    var bestCount = 0
    for (i, clock) in columns.enumerated() where clock != FieldClocks.never && clock != best {
      var count = 0
      for other in columns[i...] where other == clock { count += 1 }
      if count > bestCount {
        best = clock
        bestCount = count
      }
      if bestCount * 2 > columns.count { break }
    }
    return best
  }

  /// Whether a clock that all fields share stays the one to store (``shared(_:_:)``) when some of them get a later one:
  /// it does while most fields have it, or half of them and the first.
  ///
  /// - Parameter edited: indexes of columns, not empty; those that are no fields count for nothing.
  static func keepsShared(_ edited: [Int], _ plan: TablePlan) -> Bool {
    let twice = 2 * edited.count(where: plan.isField)
    guard twice == plan.fieldCount else { return twice < plan.fieldCount }
    return plan.columns.indices.first(where: plan.isField).map { !edited.contains($0) } ?? false
  }

  static func exceptions(_ clocks: FieldClocks, shared: FieldClock?, _ plan: TablePlan) -> String? {
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

extension Statement {
  func bindOptional(_ index: Int32, _ value: Int64?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }

  func bindOptional(_ index: Int32, _ value: String?) throws(SQLiteError) {
    if let value { try bind(index, value) } else { try bindNull(index) }
  }
}
