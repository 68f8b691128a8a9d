import CairnSQLite

/// What the triggers of one table append to `cairn_log` (docs/internals/file-format.md).
///
/// An entry's `event` is `(table * 4096 + generation) * 8 + operation`; its values lie in `v1`, `v2`, … in this order:
///
///     insert      key
///     delete      key, total
///     update      key, masks
///     rekey       new key, masks, old key
///     candidate   key of the row in the way, masks of what would change, total
///     danger      key of the row in the way of a unique index
///
/// A key takes one value per key column. A mask takes one value per 63 columns; bit *i* of mask *j* stands for column
/// 63 *j* + *i*. `total` is SQLite's `total_changes()`: equal in all entries of one statement, greater in later ones of
/// the connection.
struct LogLayout {
  enum Operation: Int64 {
    case insert = 0
    case update = 1
    case delete = 2
    case rekey = 3
    case candidate = 4
    case danger = 5
  }

  static let columnsPerMask = 63

  let keyCount: Int
  let maskCount: Int

  init(keyCount: Int, columnCount: Int) {
    self.keyCount = keyCount
    maskCount = max(1, (columnCount + Self.columnsPerMask - 1) / Self.columnsPerMask)
  }

  /// How many value columns the longest entry takes.
  var width: Int { 2 * keyCount + maskCount }

  static func event(table: Int, generation: Int, _ operation: Operation) -> Int {
    ((table << 12) | generation) << 3 | Int(operation.rawValue)
  }

  /// The table, trigger generation and operation of an event; nil for a number that no trigger writes.
  static func parse(event: Int64) -> (table: Int, generation: Int, operation: Operation)? {
    guard let operation = Operation(rawValue: event & 7) else { return nil }
    return (Int(event >> 15), Int(event >> 3 & 4095), operation)
  }
}
