import CairnEngine
import CairnRecords
import CairnSQLite

/// Which records were in a batch (`RecordFlags.attempted`, tables F7): written before the batch is sent.
///
/// Most batches hold all pending saves of one table between two keys, and most are confirmed as a whole. So instead of
/// a flag in each of these records the two keys are noted in `cairn_setting`. Before anything else than their
/// confirmation is done to records, the flags are written (``RecordStore/writeAttempts()``), after a crash too.
struct AttemptedRange {
  var table: Int
  var first: Value
  var last: Value

  init(table: Int, first: Value, last: Value) {
    self.table = table
    self.first = first
    self.last = last
  }

  /// The table's number and the keys as in a composite key, in hex.
  init(text: String) throws {
    let parts = text.split(separator: " ")
    guard parts.count == 2, let table = Int(parts[0]), let bytes = Hex.bytes(parts[1].utf8),
      case let keys = RowKey.unpacked(bytes), keys.count == 2, !keys.contains(.null)
    else { throw TablesError.damagedMetadata("cairn_setting has a range of records that is none: \(text)") }
    self.init(table: table, first: keys[0], last: keys[1])
  }

  var text: String { "\(table) \(Hex.lower(RowKey.packed([first, last])))" }
}

extension RecordStore {
  /// Notes that records without a tag travel in a batch.
  ///
  /// - Parameter isOrdered: whether those of one table are in the order of their keys, each once.
  func noteAttempts(_ rows: [RecordRow], isOrdered: Bool) throws {
    if isOrdered, let range = try wholeRange(rows) {
      return try settings.set(.attempted, range.text)
    }
    for row in rows {
      var marked = row
      marked.flags.insert(.attempted)
      try update(row, to: marked)
    }
  }

  /// The range that holds these pending saves and no others: as many are between the first and the last of them.
  private func wholeRange(_ rows: [RecordRow]) throws -> AttemptedRange? {
    guard rows.count > 1, let first = rows.first, let last = rows.last,
      rows.allSatisfy({ $0.table == first.table && $0.pending == .save })
    else { return nil }
    let statement = try connection.cached(
      """
      SELECT count(*) FROM cairn_record INDEXED BY cairn_record_pending
      WHERE pending > 0 AND pending = ?1 AND tbl = ?2 AND key BETWEEN ?3 AND ?4
      """)
    defer { statement.reset() }
    try statement.bind(1, first.pending.rawValue)
    try statement.bind(2, Int64(first.table))
    try statement.bind(3, first.key)
    try statement.bind(4, last.key)
    guard try statement.step(), statement.integer(0) == rows.count else { return nil }
    return AttemptedRange(table: first.table, first: first.key, last: last.key)
  }

  /// Writes the flags of the records that were noted. It may have been another process that noted them.
  func writeAttempts() throws {
    guard let text = try settings.get(.attempted) else { return }
    let untagged = "state & \(StateBits.attempted) = 0 AND (tag IS NULL OR tag = \(TagCoding.room))"
    do {
      let range = try AttemptedRange(text: text)
      let statement = try connection.cached(
        """
        UPDATE cairn_record INDEXED BY cairn_record_pending SET state = state | \(StateBits.attempted)
        WHERE pending > 0 AND pending = ?1 AND tbl = ?2 AND key BETWEEN ?3 AND ?4 AND \(untagged)
        """)
      try statement.bind(1, PendingChange.save.rawValue)
      try statement.bind(2, Int64(range.table))
      try statement.bind(3, range.first)
      try statement.bind(4, range.last)
      try statement.run()
    } catch is TablesError {
      // A damaged note: each of them may have been in the batch, and a delete too many does no harm.
      try connection.run(
        "UPDATE cairn_record SET state = state | \(StateBits.attempted) WHERE pending = ? AND \(untagged)",
        .integer(PendingChange.save.rawValue))
    }
    try forgetAttempts()
  }

  /// Called when all records that were noted are confirmed.
  func forgetAttempts() throws { try settings.set(.attempted, nil) }
}
