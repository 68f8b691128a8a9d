import CairnRecords
import CairnSQLite
import CairnWire

/// Fetched records that are not in the rows: staged until their zone's set is complete, or parked because they can't be
/// applied now (DESIGN G3, G6). Callers hold a transaction wherever they write.
struct Inbox {
  enum Stage: Int64 {
    case staged = 0
    case sealed = 1
    case parked = 2
  }

  /// One fetched version, or a fetched deletion.
  struct Entry {
    var name: String
    var stage: Stage
    /// Nil for a deletion.
    var record: Record?
    /// Time of the delete, for deletions that carry it.
    var deletedAt: FieldClock?
    var parking: Parking?
  }

  /// Why, since when and for what a record is parked.
  struct Parking {
    var reason: ParkedReason
    /// What SQLite or Cairn said, for people.
    var detail: String
    /// Milliseconds since 1970.
    var since: Int64
    /// Name of the record whose coming removes the obstacle.
    var waitsFor: String?
    var tries: Int64 = 0
    var retryAt: Int64?
  }

  /// Whether nothing is parked, as found in a transaction: every applied record asks.
  private final class Emptiness {
    var epoch = -1
  }

  private let connection: Connection
  private let emptiness = Emptiness()
  private let zone: ZoneID
  private static let columns = "name, stage, body, time, reason, detail, since, waits, tries, retry"

  init(_ connection: Connection, _ zone: ZoneID) {
    self.connection = connection
    self.zone = zone
  }

  // MARK: Writing

  /// Puts a version in; it replaces an older one of the same record in the same stage. What is parked stays beside what
  /// is staged: its content may be nowhere else (DESIGN G6).
  func put(_ entry: Entry, table: TablePlan?) throws {
    emptiness.epoch = -1
    let statement = try connection.cached(
      """
      INSERT OR REPLACE INTO cairn_inbox(name, stage, type, tbl, rank, body, time, reason, detail, since, waits, tries,
        retry)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
      """)
    try statement.bind(1, entry.name)
    try statement.bind(2, entry.stage.rawValue)
    try statement.bindOptional(3, entry.record?.type)
    try statement.bindOptional(4, table.map { Int64($0.number) })
    // Saves parents first, then deletions children first: the order in which a sealed set is applied (tables M1).
    let rank = Int64(table?.rank ?? Int(Int32.max))
    try statement.bind(5, entry.record == nil ? (1 << 40) - rank : rank)
    if let record = entry.record { try statement.bind(6, RecordText.encode(record)) } else { try statement.bindNull(6) }
    try statement.bindOptional(7, entry.deletedAt)
    try statement.bindOptional(8, entry.parking?.reason.rawValue)
    try statement.bindOptional(9, entry.parking?.detail)
    try statement.bindOptional(10, entry.parking?.since)
    try statement.bindOptional(11, entry.parking?.waitsFor)
    try statement.bind(12, entry.parking?.tries ?? 0)
    try statement.bindOptional(13, entry.parking?.retryAt)
    try statement.run()
  }

  func removeSealed(_ name: String) throws { try remove(name, .sealed) }

  func removeParked(_ name: String?) throws {
    guard let name, try has(.parked) else { return }
    try remove(name, .parked)
  }

  private func remove(_ name: String, _ stage: Stage) throws {
    let statement = try connection.cached("DELETE FROM cairn_inbox WHERE name = ?1 AND stage = ?2")
    try statement.bind(1, name)
    try statement.bind(2, stage.rawValue)
    try statement.run()
  }

  /// Lets a parked record be tried at the next occasion.
  func makeDue(_ name: String) throws {
    try connection.run("UPDATE cairn_inbox SET retry = 0, waits = NULL WHERE name = ? AND stage = 2", .text(name))
  }

  /// What was sealed before and not applied yet gives way to newer versions of the same records.
  func seal() throws { try connection.run("UPDATE OR REPLACE cairn_inbox SET stage = 1 WHERE stage = 0") }

  // MARK: Reading

  func has(_ stage: Stage) throws -> Bool {
    if stage == .parked, emptiness.epoch == connection.epoch, connection.isInTransaction { return false }
    let some =
      try connection.scalar("SELECT 1 FROM cairn_inbox WHERE stage = ? LIMIT 1", .integer(stage.rawValue)) != nil
    if stage == .parked, !some { emptiness.epoch = connection.epoch }
    return some
  }

  func find(_ name: String, stage: Stage = .parked) throws -> Entry? {
    try entries("WHERE name = ?1 AND stage = ?2", .text(name), .integer(stage.rawValue)).first
  }

  /// The next entries of the sealed set, in the order of applying.
  func sealed(limit: Int) throws -> [Entry] {
    try entries("WHERE stage = 1 ORDER BY rank, name LIMIT ?1", .integer(Int64(limit)))
  }

  /// Parked records that wait for the record of this name.
  func waiting(for name: String) throws -> [Entry] {
    try entries("WHERE waits = ?1 AND stage = 2 ORDER BY rank, name", .text(name))
  }

  /// Parked records of a type that had no table when they came.
  func parked(ofUnknown type: String) throws -> [Entry] {
    try entries("WHERE stage = 2 AND reason = 'unknownTable' AND type = ?1 ORDER BY name", .text(type))
  }

  func parked() throws -> [Entry] { try entries("WHERE stage = 2 ORDER BY rank, name") }

  func parked(table: Int) throws -> [Entry] {
    try entries("WHERE stage = 2 AND tbl = ?1 ORDER BY rank, name", .integer(Int64(table)))
  }

  func parkedNames(table: Int) throws -> [String] {
    try connection.rows("SELECT name FROM cairn_inbox WHERE stage = 2 AND tbl = ?", .integer(Int64(table)))
      .compactMap { $0[0].text }
  }

  func parkedCount(table: Int? = nil) throws -> Int {
    let value =
      if let table {
        try connection.scalar(
          "SELECT count(*) FROM cairn_inbox WHERE stage = 2 AND tbl = ?", .integer(Int64(table)))
      } else {
        try connection.scalar("SELECT count(*) FROM cairn_inbox WHERE stage = 2")
      }
    guard case .integer(let count)? = value else { return 0 }
    return Int(count)
  }

  private func entries(_ clause: String, _ values: Value...) throws -> [Entry] {
    let statement = try connection.cached("SELECT \(Self.columns) FROM cairn_inbox \(clause)")
    defer { statement.reset() }
    try statement.bind(values)
    var result: [Entry] = []
    while try statement.step() { result.append(try read(statement)) }
    return result
  }

  private func read(_ s: Statement) throws -> Entry {
    var entry = Entry(name: s.text(0), stage: Stage(rawValue: s.integer(1)) ?? .staged)
    if !s.isNull(2) { entry.record = try RecordText.decode(s.blob(2), in: zone) }
    entry.deletedAt = s.optionalInteger(3)
    if let reason = s.optionalText(4).flatMap(ParkedReason.init(rawValue:)) {
      entry.parking = Parking(
        reason: reason, detail: s.optionalText(5) ?? "", since: s.integer(6), waitsFor: s.optionalText(7),
        tries: s.integer(8), retryAt: s.optionalInteger(9))
    }
    return entry
  }
}

/// Why a fetched record can't be applied now (tables section 7).
public enum ParkedReason: String, Hashable, Sendable, CaseIterable {
  case missingParent, unique, check, notNull, type, trigger, unknownTable, newerFormat, undecodable, assetMissing
}
