import CairnEngine
import CairnRecords
import CairnSQLite
import CairnWire

/// What few records have, as one JSON object in `cairn_record.rest`; null where a record has nothing of it.
///
/// Keys: `life` (where it is not the shared clock), `cut`, `clocks` (fields with another clock than the shared one, as
/// `clock name name … ; clock name …`), `dirty` (unconfirmed fields parted by spaces; absent with a pending save: all),
/// `edit` (in place of `clocks` and `dirty` where both name the same fields with one clock, as nearly every edit makes
/// them: `clock name name …`), `kept`, `wish`, `reason`, `retry`.
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
    if row.isAlive, plan != nil, row.clocks.life != shared { writer.pair("life", row.clocks.life) }
    if let edit = plan.flatMap({ edit(row, shared: shared, $0) }) {
      writer.pair("edit", edit)
    } else {
      if row.isAlive, let plan, let exceptions = ClockCoding.exceptions(row.clocks, shared: shared, plan) {
        writer.pair("clocks", exceptions)
      }
      if row.pending == .save, case .some(let names) = row.dirty { writer.pair("dirty", names.joined(separator: " ")) }
    }
    if let cut = row.clocks.cut { writer.pair("cut", cut) }
    if let kept = row.kept { writer.pair("kept", kept.json()) }
    if let wish = row.wish { writer.pair("wish", wish) }
    if let reason = row.reason { writer.pair("reason", reason.rawValue) }
    if let retry = row.retryAt { writer.pair("retry", retry) }
    if writer.count == empty { return try s.bindNull(index) }
    writer.endObject()
    try writer.withBytes { (bytes) throws(SQLiteError) in try s.bindText(index, bytes) }
  }

  /// What `edit` holds; nil where the fields with another clock than the shared one are not just the unconfirmed ones,
  /// or have several clocks.
  private static func edit(_ row: RecordRow, shared: FieldClock?, _ plan: TablePlan) -> String? {
    guard let shared, row.isAlive, row.pending == .save, case .some(let names) = row.dirty, !names.isEmpty,
      row.clocks.kept.isEmpty
    else { return nil }
    var clock: FieldClock?
    var count = 0
    for column in row.clocks.columns.indices where row.clocks.columns[column] != shared && plan.isField(column) {
      clock = clock ?? row.clocks.columns[column]
      guard clock == row.clocks.columns[column], names.contains(plan.columns[column].wireName) else { return nil }
      count += 1
    }
    guard let clock, clock != FieldClocks.never, count == names.count else { return nil }
    var text = String(clock)
    for name in names {
      text += " "
      text += name
    }
    return text
  }

  // MARK: Reading

  /// Reads `rest` into a record whose clocks have their shared value already.
  static func read(_ s: Statement, _ column: Int32, into row: inout RecordRow, _ plan: TablePlan?) throws {
    if row.pending == .save { row.dirty = .all }
    guard !s.isNull(column) else { return }
    let problem = s.withText(column) { bytes -> (any Error)? in
      if let edit = loneEdit(bytes), let plan, read(edit: edit, into: &row, plan) { return nil }
      do {
        try JSONReader.parse(bytes) { (json) throws(WireError) in try read(&json, into: &row, plan) }
        return nil
      } catch {
        return TablesError.damagedMetadata("cairn_record.rest can't be read: \(error)")
      }
    }
    if let problem { throw problem }
  }

  // MARK: Nothing but an edit

  /// What stands before the clock.
  static let editStart = Array(#"{"edit":""#.utf8)

  /// What stands after the clock.
  static func editEnding(_ names: [String]) -> [UInt8] {
    var writer = JSONWriter(capacity: 64)
    writer.string(names.sorted().map { " " + $0 }.joined())
    return writer.bytes.dropFirst() + [UInt8(ascii: "}")]
  }

  /// The text of an object that holds `edit` and nothing else, where nothing in it is escaped.
  private static func loneEdit(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    let (start, end) = (editStart.count, bytes.count - 2)
    guard start < end, bytes[end] == UInt8(ascii: "\""), bytes.starts(with: editStart) else { return nil }
    let text = UnsafeBufferPointer(rebasing: bytes[start..<end])
    return text.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") } ? nil : text
  }

  /// - Returns: false for what is no clock with names.
  private static func read(edit: UnsafeBufferPointer<UInt8>, into row: inout RecordRow, _ plan: TablePlan) -> Bool {
    var rest = edit[...]
    func word() -> Slice<UnsafeBufferPointer<UInt8>>? {
      rest = rest.drop { $0 == UInt8(ascii: " ") }
      let word = rest.prefix { $0 != UInt8(ascii: " ") }
      rest = rest[word.endIndex...]
      return word.isEmpty ? nil : word
    }
    guard let digits = word(), let clock = FieldClock(String(decoding: digits, as: UTF8.self)), clock.isValidClock
    else {
      return false
    }
    var names: [String] = []
    while let bytes = word() {
      // Mostly a column's name, of which no copy is needed.
      let column = plan.wireNames.firstIndex { $0.utf8.elementsEqual(bytes) }
      let name = column.map { plan.wireNames[$0] } ?? String(decoding: bytes, as: UTF8.self)
      if let column { row.clocks.columns[column] = clock } else { row.clocks.kept[name] = clock }
      names.append(name)
    }
    if row.pending == .save { row.dirty = names.count == 1 ? .some(names) : DirtyFields(Set(names)) }
    return !names.isEmpty
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
        if row.pending == .save { row.dirty = DirtyFields(Set(names.split(separator: " ").map(String.init))) }
      case "edit":
        let text = try json.readRawString()
        if let plan, !read(edit: text.bytes, into: &row, plan) {
          throw WireError(.value, "an edit has no clock or no fields", at: 0)
        }
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
