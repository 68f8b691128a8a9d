import CairnRecords
import CairnSQLite

/// One entry of `cairn_log`, read with the layout of the trigger generation that wrote it (tables F9).
struct LogEntry {
  var id: Int64
  var shape: TableCatalog.Shape
  var operation: LogLayout.Operation
  /// Milliseconds since 1970.
  var time: FieldClock
  /// The key values as the triggers saw them.
  var key: [Value]
  /// The changed columns that the table still has, as indexes into its plan's columns.
  var changed: [Int] = []
  /// The key before a change of the key.
  var oldKey: [Value] = []
  /// SQLite's count of changes on the connection that wrote the entry, of inserts and deletes.
  var total: Int64 = 0

  /// Julian day of 1970-01-01T00:00Z.
  private static let epoch = 2_440_587.5

  /// Reads `id, event, time, v1, …` from a row. Nil for entries of tables that are not synced any more.
  init?(_ s: Statement, _ catalog: TableCatalog) {
    guard let (table, generation, operation) = LogLayout.parse(event: s.integer(1)),
      let shape = catalog.shape(table, generation)
    else { return nil }
    id = s.integer(0)
    self.shape = shape
    self.operation = operation
    let milliseconds = ((s.real(2) - Self.epoch) * 86_400_000).rounded()
    // Only a damaged file has another time than SQLite's calendar knows.
    time = FieldClock(exactly: milliseconds).flatMap { $0 <= FieldClock.greatest ? $0 : nil } ?? 0
    var next: Int32 = 3
    func values(_ count: Int) -> [Value] {
      defer { next += Int32(count) }
      return count == 1 ? [s.value(next)] : (next..<next + Int32(count)).map { s.value($0) }
    }
    func masks() -> [Int] {
      defer { next += Int32(shape.maskCount) }
      func mask(_ word: Int) -> UInt64 {
        UInt64(bitPattern: s.integer(next + Int32(word))) & (1 << LogLayout.columnsPerMask - 1)
      }
      if shape.maskCount == 1 { return shape.columns(ofMask: mask(0)) }
      return (0..<shape.maskCount).flatMap { word in
        shape.columns(ofMask: mask(word), from: word * LogLayout.columnsPerMask)
      }
    }
    key = operation == .begin ? [] : values(shape.keyCount)
    switch operation {
    case .danger, .begin:
      break
    case .insert, .delete:
      total = s.integer(next)
    case .update, .candidate:
      changed = masks()
    case .rekey:
      changed = masks()
      oldKey = values(shape.keyCount)
    case .announcement:
      oldKey = values(shape.keyCount)
    }
  }
}
