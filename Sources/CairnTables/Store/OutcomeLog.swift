import CairnEngine
import CairnRecords
import CairnSQLite
import Foundation

/// The recent events that `cairn log` shows.
struct OutcomeLog {
  /// Events kept; older ones are dropped.
  static let limit: Int64 = 10_000

  public enum Kind: String, Hashable, Sendable {
    /// Numbers of a finished sync.
    case synced
    /// A local value or row lost a merge; the detail names both clocks (tables section 7).
    case merged
    case parked, unparked, error, reinserted, repaired, schema, identity
  }

  struct Event: Hashable, Sendable {
    /// Milliseconds since 1970.
    var time: Int64
    var kind: String
    var table: String?
    var record: String?
    var detail: String
  }

  private let connection: Connection
  private let clock: any TimeSource

  init(_ connection: Connection, _ clock: any TimeSource) {
    self.connection = connection
    self.clock = clock
  }

  func add(_ kind: Kind, table: String? = nil, record: String? = nil, _ detail: String) throws {
    let statement = try connection.cached(
      "INSERT INTO cairn_outcome(time, kind, tbl, record, detail) VALUES (?1, ?2, ?3, ?4, ?5)")
    try statement.bind(1, clock.wallClock)
    try statement.bind(2, kind.rawValue)
    try statement.bindOptional(3, table)
    try statement.bindOptional(4, record)
    try statement.bind(5, detail)
    try statement.run()
    let id = connection.lastInsertRowID
    if id % 1_000 == 0 { try connection.run("DELETE FROM cairn_outcome WHERE id <= ?", .integer(id - Self.limit)) }
  }

  /// Notes an edit or a delete made here that lost a merge, with both times (tables section 7).
  ///
  /// - Parameters:
  ///   - change: what was made here, for example `title: the edit`.
  ///   - winner: what it lost against, for example `the delete`.
  func addLoss(
    _ change: String, at time: FieldClock, against winner: String, of winnerTime: FieldClock, table: String,
    record: String
  ) throws {
    try add(
      .merged, table: table, record: record,
      "\(change) made here at \(Self.text(time)) lost against \(winner) of \(Self.text(winnerTime))")
  }

  /// A clock as people read it: ISO 8601 in UTC.
  static func text(_ clock: FieldClock) -> String {
    Date(timeIntervalSince1970: Double(clock) / 1_000)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  /// The newest events, oldest of them first.
  func events(limit: Int) throws -> [Event] {
    let rows = try connection.rows(
      "SELECT time, kind, tbl, record, detail FROM cairn_outcome ORDER BY id DESC LIMIT ?", .integer(Int64(limit)))
    return rows.reversed().map { row in
      Event(
        time: row[0].integer ?? 0, kind: row[1].text ?? "", table: row[2].text, record: row[3].text,
        detail: row[4].text ?? "")
    }
  }
}

extension Value {
  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var text: String? { if case .text(let value) = self { value } else { nil } }
}
