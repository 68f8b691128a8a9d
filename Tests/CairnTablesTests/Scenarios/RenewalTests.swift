import CairnEngine
import CairnSQLite
import CairnTables
import Testing

/// Another program renews capture while an engine is at work: from then on the log has entries that the engine, as it
/// opened the file, does not know (tables F9, T26–T28).
@Suite("capture is renewed during a sync (tables F9, T26)")
struct RenewalTests {
  enum Change: String, CaseIterable, Sendable {
    case addColumn = "ALTER TABLE lists ADD COLUMN size"
    case newTable = "CREATE TABLE added(id TEXT PRIMARY KEY NOT NULL, v)"
    case rename = "ALTER TABLE lists RENAME COLUMN color TO colour"
    case index = "CREATE INDEX byColor ON lists(color)"
  }

  /// When, in the course of a sync, the other program comes.
  enum Moment: CaseIterable, Sendable { case first, answer, fetch }

  @Test(
    "what programs write from then on is sent, whatever the engine is doing", arguments: Change.allCases,
    Moment.allCases)
  func renewal(_ change: Change, _ moment: Moment) throws {
    let (_, a, b) = try World.pair(
      base: "INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue'), ('l3', 'three', 'green')")
    try a.sql("UPDATE lists SET title = 'first' WHERE id = 'l1'", at: 10)
    try b.sql("UPDATE lists SET color = 'b' WHERE id = 'l3'", at: 11)
    try b.sync()
    func renew(_ device: Device) throws {
      try device.sql(change.rawValue)
      // Takes the change up, as `cairn status` does.
      _ = try device.status()
      try device.sql("UPDATE lists SET title = 'later' WHERE id = 'l2'", at: 20)
      try device.sql("INSERT INTO lists(id, title) VALUES ('l4', 'new'); DELETE FROM lists WHERE id = 'l1'", at: 21)
      if change == .newTable { try device.sql("INSERT INTO added VALUES ('x', 1)", at: 22) }
    }
    var meanwhile: Device.Meanwhile?
    switch moment {
    case .first:
      _ = try a.open()
      try renew(a)
    case .answer: meanwhile = a.meanwhile(renew)
    case .fetch: meanwhile = a.meanwhile(at: { if case .zoneChanges = $0 { true } else { false } }, renew)
    }
    let report = try a.sync()
    #expect(report.result.failure == nil)
    // What was fetched before the sync began anew is counted, and but once.
    #expect(report.counts.fetched == 1, "\(report.counts)")
    #expect(meanwhile?.happened != false)
    #expect(try a.sync().quiet)
    try b.sync()
    #expect(
      try b.picture("SELECT id, title, color FROM lists") == ["l2|later|blue", "l3|three|b", "l4|new|∅"])
    let color = change == .rename ? "colour" : "color"
    #expect(
      try a.picture("SELECT id, title, \(color) FROM lists") == ["l2|later|blue", "l3|three|b", "l4|new|∅"])
    #expect(try a.status().pending == 0)
    let found = try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness).examine()
    #expect(found.isEmpty, "\(found)")
  }
}
