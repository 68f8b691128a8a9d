import CairnRecords
import CairnSQLite

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
    let statement = try group.plan.keyKind == .mapped ? mappedEdit.get() : naturalEdit.get()
    try statement.bind(1, Int64(group.plan.number))
    try statement.bind(2, first)
    try statement.bind(3, last)
    try statement.bind(4, Int64(catalog.currentGeneration(group.plan.number)))
    editor.begin(group)
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

  /// - Parameter clock: of a record, as SQL.
  static func plainEdit(clock: String) -> String {
    """
    UPDATE cairn_record
    SET pending = \(PendingChange.save.rawValue), state = state + \(1 << StateBits.revisionShift),
      rest = \(PlainEditor.result)(key, \(clock))
    WHERE tbl = ?1 AND key BETWEEN ?2 AND ?3 AND pending = \(PendingChange.none.rawValue)
      AND rest IS NULL AND shape = ?4 AND state & \(StateBits.lifeMask | StateBits.parked | StateBits.dead) = 0
      AND tag <> \(TagCoding.room) AND \(PlainEditor.test)(key, \(clock))
    """
  }
}
