import CairnSQLite

/// What the triggers of one table append to `cairn_log` (docs/internals/file-format.md).
///
/// An entry's `event` is `(table * 4096 + generation) * 8 + operation`; its values lie in `v1`, `v2`, … in this order:
///
///     insert        key, total
///     update        key, masks
///     delete        key, total
///     rekey         new key, masks, old key
///     candidate     key of the row in the way, masks of what would change
///     danger        key of the row in the way of a unique index
///     begin         nothing; an insert or change of key begins, and the entry before it is no part of it
///     announcement  new key, old key; a mapped integer is about to change
///
/// A key takes one value per key column. A mask takes one value per 63 columns; bit *i* of mask *j* stands for column
/// 63 *j* + *i*. `total` is SQLite's `total_changes()`: it counts what triggers write at once, and the rows of a
/// statement when the statement ends.
struct LogLayout {
  enum Operation: Int64 {
    case insert = 0
    case update = 1
    case delete = 2
    case rekey = 3
    case candidate = 4
    case danger = 5
    case begin = 6
    case announcement = 7
  }

  static let columnsPerMask = 63

  let keyCount: Int
  let maskCount: Int

  init(keyCount: Int, columnCount: Int) {
    self.keyCount = keyCount
    maskCount = max(1, (columnCount + Self.columnsPerMask - 1) / Self.columnsPerMask)
  }

  /// How many value columns the longest entry takes.
  var width: Int { max(2 * keyCount + maskCount, keyCount + 1) }

  static func event(table: Int, generation: Int, _ operation: Operation) -> Int {
    ((table << 12) | generation) << 3 | Int(operation.rawValue)
  }

  /// The table, trigger generation and operation of an event; nil for a number that no trigger writes.
  static func parse(event: Int64) -> (table: Int, generation: Int, operation: Operation)? {
    guard let operation = Operation(rawValue: event & 7) else { return nil }
    return (Int(event >> 15), Int(event >> 3 & 4095), operation)
  }
}
