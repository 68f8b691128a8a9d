import CairnEngine
import CairnRecords
import CairnSQLite
import CairnWire

/// What few records have, as one JSON object in `cairn_record.rest`; null where a record has nothing of it.
///
/// Keys: `life` (where it is not the shared clock), `cut`, `clocks` (fields with another clock than the shared one, as
/// `clock name name … ; clock name …`), `dirty` (unconfirmed fields parted by spaces; absent with a pending save: all),
/// `kept`, `wish`, `reason`, `retry`.
enum RecordRest {
  // MARK: Writing

  /// Binds `rest`; `shared` is the clock that stands beside it, if any.
  static func bind(
    _ row: RecordRow, shared: FieldClock?, _ plan: TablePlan?, to s: Statement, _ index: Int32,
    _ writer: inout JSONWriter
  ) throws {
    writer.reset()
    writer.beginObject()
    let empty = writer.count
    if row.isAlive, let plan {
      if row.clocks.life != shared { writer.pair("life", row.clocks.life) }
      if let exceptions = ClockCoding.exceptions(row.clocks, shared: shared, plan) { writer.pair("clocks", exceptions) }
    }
    if let cut = row.clocks.cut { writer.pair("cut", cut) }
    if row.pending == .save, case .some(let names) = row.dirty {
      writer.pair("dirty", names.count == 1 ? names.first! : names.sorted().joined(separator: " "))
    }
    if let kept = row.kept { writer.pair("kept", kept.json()) }
    if let wish = row.wish { writer.pair("wish", wish) }
    if let reason = row.reason { writer.pair("reason", reason.rawValue) }
    if let retry = row.retryAt { writer.pair("retry", retry) }
    if writer.count == empty { return try s.bindNull(index) }
    writer.endObject()
    try writer.withBytes { (bytes) throws(SQLiteError) in try s.bindText(index, bytes) }
  }

  // MARK: Reading

  /// Reads `rest` into a record whose clocks have their shared value already.
  static func read(_ s: Statement, _ column: Int32, into row: inout RecordRow, _ plan: TablePlan?) throws {
    if row.pending == .save { row.dirty = .all }
    guard !s.isNull(column) else { return }
    let problem = s.withText(column) { bytes -> (any Error)? in
      do {
        try JSONReader.parse(bytes) { (json) throws(WireError) in try read(&json, into: &row, plan) }
        return nil
      } catch {
        return TablesError.damagedMetadata("cairn_record.rest can't be read: \(error)")
      }
    }
    if let problem { throw problem }
  }

  private static func read(_ json: inout JSONReader, into row: inout RecordRow, _ plan: TablePlan?) throws(WireError) {
    try json.beginObject()
    while let key = try json.nextKey() {
      switch key {
      case "life": row.clocks.life = try json.readClock()
      case "cut": row.clocks.cut = try json.readClock()
      case "clocks":
        let text = try json.readRawString()
        if let plan { ClockCoding.read(exceptions: text.bytes, into: &row.clocks, plan) }
      case "dirty":
        let names = try json.readString()
        if row.pending == .save { row.dirty = .some(Set(names.split(separator: " ").map(String.init))) }
      case "kept":
        let text = try json.readString()
        do { row.kept = try KeptFields(json: text) } catch {
          throw WireError(.value, "the fields without a column can't be read", at: 0)
        }
      case "wish": row.wish = try json.readInt64()
      case "reason": row.reason = try json.readOptionalString().flatMap(PendingReason.init(rawValue:))
      case "retry": row.retryAt = try json.readInt64()
      default: try json.skip()
      }
    }
  }
}

extension JSONReader {
  fileprivate mutating func readClock() throws(WireError) -> FieldClock {
    let clock = try readInt64()
    guard clock.isValidClock else { throw WireError(.value, "a clock is out of range", at: 0) }
    return clock
  }
}
