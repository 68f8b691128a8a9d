import CairnEngine
import CairnRecords
import CairnSQLite

/// UUIDs of mapped records in few bytes (docs/internals/file-format.md, `cairn_prefix`).
///
/// New UUIDs are of version 8: ten bytes that the new records of one transaction and table share, and the creator's
/// integer in the last six. `cairn_prefix` holds the ten bytes once, and `cairn_record.name` their number there, as
/// long as the row has the creator's integer. So such a record needs neither its UUID nor an entry in an index of
/// names. The clock of the first of them stands beside the prefix: clocks of records made together are stored as small
/// differences.
///
/// A prefix names new records only within the transaction that drew it, and only until one of its records leaves its
/// integer: no name is given twice, whatever happens to the file between transactions.
final class NamePrefixes {
  /// The first ten bytes of a UUID.
  private struct Prefix: Hashable {
    var head: UInt64
    var tail: UInt16

    init(_ uuid: some RandomAccessCollection<UInt8>) {
      head = uuid.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      tail = uuid.dropFirst(8).prefix(2).reduce(0) { $0 << 8 | UInt16($1) }
    }

    /// Version 8 and the variant of RFC 9562.
    var isOurs: Bool { head >> 12 & 0xf == 8 && tail >> 14 == 2 }

    func uuid(_ integer: Int64) -> [UInt8] {
      [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
        for i in 0..<8 { buffer[i] = UInt8(truncatingIfNeeded: head >> UInt64(56 - 8 * i)) }
        buffer[8] = UInt8(truncatingIfNeeded: tail >> 8)
        buffer[9] = UInt8(truncatingIfNeeded: tail)
        for i in 0..<6 { buffer[10 + i] = UInt8(truncatingIfNeeded: integer >> Int64(40 - 8 * i)) }
        count = 16
      }
    }
  }

  private struct Entry {
    var number: Int64
    var table: Int
    var clock: FieldClock
  }

  /// What `cairn_record.name` holds, and the clock that `cairn_record.clock` counts from.
  struct Stored {
    var name: Value
    var base: FieldClock = 0
  }

  private let connection: Connection
  private var epoch = -1
  private var entries: [Prefix: Entry] = [:]
  private var prefixes: [Int64: (prefix: Prefix, clock: FieldClock)] = [:]
  /// What names new records of a table in the transaction that runs.
  private var current: [Int: Prefix] = [:]
  private static let greatest: Int64 = 1 << 48 - 1

  init(_ connection: Connection) { self.connection = connection }

  /// A UUID for a new record of a mapped table.
  func newUUID(_ table: Int, _ integer: Int64, _ randomness: any Randomness) -> [UInt8] {
    forgetOldTransaction()
    guard (0...Self.greatest).contains(integer) else { return Self.randomUUID(randomness) }
    if let prefix = current[table] { return prefix.uuid(integer) }
    let uuid = Self.randomUUID(randomness)
    var prefix = Prefix(uuid)
    prefix.head = prefix.head & ~0xf000 | 0x8000
    if connection.isInTransaction { current[table] = prefix }
    return prefix.uuid(integer)
  }

  /// Version 4.
  private static func randomUUID(_ randomness: any Randomness) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    for _ in 0..<2 {
      let word = randomness.next()
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    bytes[6] = bytes[6] & 0x0f | 0x40
    bytes[8] = bytes[8] & 0x3f | 0x80
    return bytes
  }

  /// Called when a record has lost its integer: another may get it, and must not get the name with it.
  func integerWasLeft(_ table: Int, _ name: Value) {
    guard !current.isEmpty, case .blob(let uuid) = name, current[table] == Prefix(uuid) else { return }
    current[table] = nil
  }

  // MARK: Storing

  /// The clock of a row of `cairn_record`, for SQL; NULL where its prefix is not known. In tables of natural keys it is
  /// the column `clock`.
  static let clock = """
    iif(typeof(name) <> 'integer', clock,
      clock + (SELECT p.clock FROM cairn_prefix AS p WHERE p.number = cairn_record.name))
    """

  /// What `cairn_record.name` holds for a name: the number of its prefix where name and key have the same integer.
  ///
  /// - Parameter clock: what others with a new prefix will count from.
  func stored(_ name: Value, _ table: Int, key: Value, clock: FieldClock) throws -> Stored {
    guard case .blob(let uuid) = name, case .integer(let integer) = key, uuid.count == 16,
      Self.integer(of: uuid) == integer
    else { return Stored(name: name) }
    let prefix = Prefix(uuid)
    guard prefix.isOurs else { return Stored(name: name) }
    let found = try entry(prefix)
    guard found == nil || found?.table == table else { return Stored(name: name) }
    let entry = try found ?? add(prefix, table, clock)
    return Stored(name: .integer(entry.number), base: entry.clock)
  }

  private func add(_ prefix: Prefix, _ table: Int, _ clock: FieldClock) throws -> Entry {
    let statement = try connection.cached("INSERT INTO cairn_prefix(tbl, prefix, clock) VALUES (?1, ?2, ?3)")
    try statement.bind(1, Int64(table))
    try statement.bind(2, Array(prefix.uuid(0).prefix(10)))
    try statement.bind(3, clock)
    try statement.run()
    let entry = Entry(number: connection.lastInsertRowID, table: table, clock: clock)
    remember(prefix, entry)
    return entry
  }

  /// The name that `cairn_record.name` stands for, and the clock that `cairn_record.clock` counts from.
  func expanded(_ stored: Value, key: Value) throws -> Stored {
    guard case .integer(let number) = stored, case .integer(let integer) = key else { return Stored(name: stored) }
    forgetOldTransaction()
    if let found = prefixes[number] { return Stored(name: .blob(found.prefix.uuid(integer)), base: found.clock) }
    let statement = try connection.cached("SELECT tbl, prefix, clock FROM cairn_prefix WHERE number = ?1")
    defer { statement.reset() }
    try statement.bind(1, number)
    guard try statement.step() else {
      throw TablesError.damagedMetadata("cairn_record names the prefix \(number), which is not known")
    }
    let prefix = Prefix(statement.blob(1))
    let entry = Entry(number: number, table: Int(statement.integer(0)), clock: statement.integer(2))
    remember(prefix, entry)
    return Stored(name: .blob(prefix.uuid(integer)), base: entry.clock)
  }

  /// Where the record of a UUID lies if its row has the creator's integer; nil if no prefix says so.
  func place(of uuid: [UInt8]) throws -> (table: Int, key: Int64, number: Int64)? {
    guard uuid.count == 16 else { return nil }
    let prefix = Prefix(uuid)
    guard prefix.isOurs, let entry = try entry(prefix) else { return nil }
    return (entry.table, Self.integer(of: uuid), entry.number)
  }

  private static func integer(of uuid: [UInt8]) -> Int64 { uuid[10...].reduce(0) { $0 << 8 | Int64($1) } }

  private func entry(_ prefix: Prefix) throws -> Entry? {
    forgetOldTransaction()
    if let entry = entries[prefix] { return entry }
    let statement = try connection.cached("SELECT number, tbl, clock FROM cairn_prefix WHERE prefix = ?1")
    defer { statement.reset() }
    try statement.bind(1, Array(prefix.uuid(0).prefix(10)))
    guard try statement.step() else { return nil }
    let entry = Entry(number: statement.integer(0), table: Int(statement.integer(1)), clock: statement.integer(2))
    remember(prefix, entry)
    return entry
  }

  private func remember(_ prefix: Prefix, _ entry: Entry) {
    guard connection.isInTransaction else { return }
    entries[prefix] = entry
    prefixes[entry.number] = (prefix, entry.clock)
  }

  /// What was found holds within one transaction: a rolled back one takes its prefixes with it.
  private func forgetOldTransaction() {
    guard epoch != connection.epoch || !connection.isInTransaction else { return }
    epoch = connection.epoch
    forget()
  }

  /// Called when `cairn_prefix` was emptied.
  func forget() {
    entries.removeAll(keepingCapacity: true)
    prefixes.removeAll(keepingCapacity: true)
    current.removeAll(keepingCapacity: true)
  }
}
