import CairnRecords
import CairnSQLite

/// Answers what SQLite asks while it stores ``PlainEdits``. The connection keeps it as long as it lives, and asks the
/// one that was made last: any other finds that nothing was stored.
final class PlainEditor {
  private var edits: [PlainEdits.Edit] = []
  private var plan: TablePlan?
  /// Which edits were stored.
  private var isStored: [Bool] = []
  /// Where the last key was found, by question: keys are mostly asked for in their order.
  private var places = [0, 0]
  private var rest: [UInt8] = []
  /// What comes after the clock, for the columns that were edited last.
  private var ending: (columns: [Int], bytes: [UInt8]) = ([], [])

  /// Whether there is an edit of a key, by a clock that comes after the given one.
  static let test = "cairn_is_edited"
  /// The `rest` that a key gets by its edit.
  static let result = "cairn_edited"

  init(_ connection: Connection) throws(SQLiteError) {
    try connection.define(Self.test, arguments: 2) { [self] call in
      let hasClock = call.storageClass(1) == .integer && call.integer(1) >= 0 && call.integer(1) < FieldClock.greatest
      call.give(hasClock && find(call, 0) != nil ? 1 : 0)
    }
    try connection.define(Self.result, arguments: 2) { [self] call in
      guard let place = find(call, 1), let plan else {
        return call.fail("a record is edited for which there is no edit")
      }
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
    let result = isStored
    (edits, isStored, places) = ([], [], [0, 0])
    return result
  }

  /// The place of the edit of the key that is the first argument.
  private func find(_ call: FunctionCall, _ question: Int) -> Int? {
    var place = places[question]
    defer { places[question] = place }
    while true {
      if place < edits.count {
        switch call.order(0, edits[place].key) {
        case .same: return place
        case .after:
          place += 1
          continue
        case .before: break
        }
      }
      guard place > 0 else { return nil }
      switch call.order(0, edits[place - 1].key) {
      case .after: return nil
      case .same:
        place -= 1
        return place
      // SQLite has turned back.
      case .before: place = 0
      }
    }
  }

  private func write(_ clock: FieldClock, _ columns: [Int], _ plan: TablePlan) {
    if ending.columns != columns || ending.bytes.isEmpty {
      ending = (columns, RecordRest.editEnding(columns.filter(plan.isField).map { plan.columns[$0].wireName }))
    }
    rest.removeAll(keepingCapacity: true)
    rest += RecordRest.editStart
    var digits = String(clock)
    digits.withUTF8 { rest += $0 }
    rest += ending.bytes
  }
}

extension FunctionCall {
  fileprivate enum Order { case before, same, after }

  /// How an argument stands to a value that is not NULL in an index of SQLite, where the two are of one storage class
  /// or both numbers.
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
