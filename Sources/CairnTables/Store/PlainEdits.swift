import CairnRecords
import CairnSQLite
import CairnWire

/// Edits of records of one table, of each at most one, that one statement stores where the records are *plain*:
/// confirmed, with one clock for all fields, and nothing in `rest`.
///
/// Nearly all edited records are plain, and of such a record an edit changes what needs no look at the rest of it. So
/// SQLite walks over the records between the first and the last key, and asks for each plain one whether there is an
/// edit of it and what `rest` it gets (``PlainEditor``).
struct PlainEdits {
  struct Edit {
    let key: Value
    let time: FieldClock
    /// Indexes of the table's columns.
    let columns: [Int]
  }

  let plan: TablePlan
  /// By key, in the order of the index.
  let edits: [Edit]

  /// Whether the clock that the fields shared stays the one that stands beside the exceptions (``ClockCoding``): most
  /// fields have it still, or half of them and the first.
  ///
  /// - Parameters:
  ///   - columns: those that were edited.
  ///   - fields: all columns that are fields, ascending.
  static func fits(_ columns: [Int], _ fields: [Int]) -> Bool {
    guard let first = fields.first else { return false }
    let count = columns.count { fields.contains($0) }
    return count > 0 && (2 * count < fields.count || 2 * count == fields.count && !columns.contains(first))
  }
}

/// Answers what SQLite asks while it stores ``PlainEdits``. The connection keeps it as long as it lives, and asks the one
/// that was made last: any other finds that nothing was stored.
final class PlainEditor {
  private var edits: [PlainEdits.Edit] = []
  private var plan: TablePlan?
  /// Which edits were stored.
  private var isStored: [Bool] = []
  /// Where the last key was found, by question: keys are asked for in their order.
  private var places = [0, 0]
  private var rest: [UInt8] = []
  /// What comes after the clock, for the columns that were edited last.
  private var ending: (columns: [Int], bytes: [UInt8]) = ([], [])
  private static let start = Array(#"{"edit":""#.utf8)

  static let test = "cairn_is_edited"
  static let result = "cairn_edited"

  init(_ connection: Connection) throws(SQLiteError) {
    try connection.define(Self.test, arguments: 1) { [self] call in
      call.give(find(call, 0) == nil ? 0 : 1)
    }
    try connection.define(Self.result, arguments: 2) { [self] call in
      guard let place = find(call, 1), let plan else { return }
      isStored[place] = true
      write(max(edits[place].time, call.integer(1).next), edits[place].columns, plan)
      call.give(text: rest)
    }
  }

  /// Takes edits that SQLite will ask for, until ``end()``.
  func begin(_ group: PlainEdits) {
    edits = group.edits
    plan = group.plan
    ending = ([], [])
    isStored = Array(repeating: false, count: edits.count)
    places = [0, 0]
  }

  /// - Returns: which edits were stored.
  func end() -> [Bool] {
    defer { (edits, isStored) = ([], []) }
    return isStored
  }

  /// The place of the edit of the key that is the first argument.
  private func find(_ call: FunctionCall, _ question: Int) -> Int? {
    while places[question] < edits.count {
      switch call.order(0, edits[places[question]].key) {
      case .same: return places[question]
      case .before: return nil
      case .after: places[question] += 1
      }
    }
    return nil
  }

  /// `{"edit":"CLOCK NAME …"}`, as ``RecordRest`` reads it.
  private func write(_ clock: FieldClock, _ columns: [Int], _ plan: TablePlan) {
    if ending.columns != columns || ending.bytes.isEmpty {
      let names = columns.filter(plan.isField).map { " " + plan.columns[$0].wireName }.sorted()
      var writer = JSONWriter(capacity: 64)
      writer.string(names.joined())
      ending = (columns, writer.bytes.dropFirst() + [UInt8(ascii: "}")])
    }
    rest.removeAll(keepingCapacity: true)
    rest += Self.start
    var digits = String(clock)
    digits.withUTF8 { rest += $0 }
    rest += ending.bytes
  }
}

extension RecordStore {
  /// Stores edits of plain records.
  ///
  /// - Returns: for each edit whether it was stored; nil where too much else lies between the keys to look for them in
  ///   this way. What was not stored is to be folded as it comes.
  func edit(_ group: PlainEdits) throws -> [Bool]? {
    guard let first = group.edits.first?.key, let last = group.edits.last?.key, try isInIndexOrder(first),
      try isDense(group.plan.number, first, last, 2 * group.edits.count)
    else { return nil }
    let editor = try editor()
    editor.begin(group)
    let statement = try plainEdit.get()
    try statement.bind(1, Int64(group.plan.number))
    try statement.bind(2, first)
    try statement.bind(3, last)
    try statement.bind(4, Int64(catalog.currentGeneration(group.plan.number)))
    do { try statement.run() } catch {
      _ = editor.end()
      throw error
    }
    return editor.end()
  }

  /// Whether no more than `count` records lie between two keys.
  private func isDense(_ table: Int, _ first: Value, _ last: Value, _ count: Int) throws -> Bool {
    let statement = try plainCount.get()
    defer { statement.reset() }
    try statement.bind(1, Int64(table))
    try statement.bind(2, first)
    try statement.bind(3, last)
    try statement.bind(4, Int64(count) + 1)
    return try statement.step() && statement.integer(0) <= count
  }

  static let plainCounting =
    "SELECT count(*) FROM (SELECT 1 FROM cairn_record WHERE tbl = ?1 AND key BETWEEN ?2 AND ?3 LIMIT ?4)"

  /// Names that a key does not give are left out: clocks of such records may be stored as differences.
  static let plainEditing = """
    UPDATE cairn_record
    SET pending = \(PendingChange.save.rawValue), state = state + \(1 << StateBits.revisionShift),
      rest = \(PlainEditor.result)(key, clock)
    WHERE tbl = ?1 AND key BETWEEN ?2 AND ?3 AND \(PlainEditor.test)(key) AND pending = \(PendingChange.none.rawValue)
      AND rest IS NULL AND shape = ?4 AND state & \(StateBits.lifeMask | StateBits.parked | StateBits.dead) = 0
      AND name IS NULL AND tag <> \(TagCoding.room) AND clock BETWEEN 0 AND \(FieldClock.greatest - 1)
    """
}

extension FunctionCall {
  fileprivate enum Order { case before, same, after }

  /// How an argument stands to a value that is not NULL in an index of SQLite, where the two are of one storage class or
  /// both numbers.
  fileprivate func order(_ argument: Int, _ value: Value) -> Order {
    switch value {
    case .text(var text): text.withUTF8 { order(argument, UnsafeRawBufferPointer($0)) }
    case .malformedText(let bytes), .blob(let bytes): bytes.withUnsafeBytes { order(argument, $0) }
    case .integer(let integer):
      if storageClass(argument) == .integer {
        order(self.integer(argument), integer)
      } else {
        // No real is the key that an integer is (``RowKey``), as far as those go that are compared here.
        order(real(argument), Double(integer), .after)
      }
    case .real(let real): order(self.real(argument), real, storageClass(argument) == .real ? .same : .after)
    case .null: .before
    }
  }

  private func order<Number: Comparable>(_ a: Number, _ b: Number, _ equal: Order = .same) -> Order {
    a == b ? equal : a < b ? .before : .after
  }

  private func order(_ argument: Int, _ bytes: UnsafeRawBufferPointer) -> Order {
    order(compare(argument, bytes), 0)
  }
}
