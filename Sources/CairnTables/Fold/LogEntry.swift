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
  /// Names of the changed columns' fields.
  var changed: [String] = []
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
      return (next..<next + Int32(count)).map { s.value($0) }
    }
    func masks() -> [String] {
      defer { next += Int32(LogLayout(keyCount: shape.keyCount, columnCount: shape.columns.count).maskCount) }
      return shape.columns.indices.filter { bit in
        let mask = s.integer(next + Int32(bit / LogLayout.columnsPerMask))
        return mask >> Int64(bit % LogLayout.columnsPerMask) & 1 == 1
      }.map { shape.columns[$0] }
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
