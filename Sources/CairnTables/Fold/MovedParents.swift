import CairnRecords
import CairnSQLite

/// Changes of mapped integers that are under way at a place in the log. What ON UPDATE CASCADE writes in children lies
/// between the announcement of such a change and the change itself, so a child's entry there is no edit (tables F5,
/// T19).
struct MovedParents {
  private struct Move {
    var old: Value
    var new: Value
    var time: FieldClock
  }

  /// By number of the parent table.
  private var moves: [Int: Move] = [:]

  var isEmpty: Bool { moves.isEmpty }

  /// Takes an announcement; it counts only if the change followed, which the next entry of its kind tells, and if no
  /// other record had the new integer: then that record stays and takes the referring rows over (tables T16).
  mutating func announce(_ entry: LogEntry, isTaken: Bool, _ file: FileContext) throws {
    let (table, generation) = (entry.shape.table, entry.shape.generation)
    let change = Int64(LogLayout.event(table: table, generation: generation, .rekey))
    let other = Int64(LogLayout.event(table: table, generation: generation, .announcement))
    let next = try file.connection.scalar(
      "SELECT event FROM cairn_log WHERE id > ?1 AND event IN (?2, ?3) ORDER BY id LIMIT 1", .integer(entry.id),
      .integer(change), .integer(other))
    guard !isTaken, next == .integer(change), let old = entry.oldKey.first, let new = entry.key.first else {
      moves[table] = nil
      return
    }
    moves[table] = Move(old: old, new: new, time: entry.time)
  }

  mutating func end(_ table: Int) {
    if !moves.isEmpty { moves[table] = nil }
  }

  /// Forgets changes of statements that are over.
  mutating func endOlder(than time: FieldClock) {
    if !moves.isEmpty { moves = moves.filter { $0.value.time == time } }
  }

  func isMoving(_ table: Int) -> Bool { moves[table] != nil }

  /// The integer that stood for the same record before the change under way made it `new`.
  func previous(_ table: Int, _ new: Value) -> Value? {
    guard let move = moves[table], move.new == new else { return nil }
    return move.old
  }
}
