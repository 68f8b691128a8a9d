import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import FuzzSupport
import Testing

@testable import CairnTables

/// Which records were ever in a batch, where a batch held all pending saves between two keys: only the two keys are
/// noted.
@Suite("F7 records that were in a batch (tables 3.1)")
struct AttemptTests {
  private let world: World
  private let a: Device

  init() throws {
    world = try World()
    a = try world.devices(
      ["A"],
      schema: """
        CREATE TABLE x(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE n(id INTEGER PRIMARY KEY, v);
        CREATE TABLE tree(id TEXT PRIMARY KEY NOT NULL, parent REFERENCES tree)
        """)[0]
  }

  /// Takes a batch of what is pending, as the engine does.
  private func take() throws -> (SyncedDatabase, OutgoingBatch) {
    let database = try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness)
    try database.category.gatherLocalChanges(now: a.time.wallClock)
    let request = BatchRequest(limits: CloudLimits(), now: a.time.wallClock, isManual: true, deletesOnly: false)
    return (database, try #require(try database.category.nextBatch(in: database.zone, request)))
  }

  private func isNoted() throws -> Bool {
    try a.scalar("SELECT 1 FROM cairn_setting WHERE key = 'attempted'") != nil
  }

  @Test(
    "F7 the process dies with a batch under way: deletes of its rows are sent, that of a row put between them is not")
  func crash() throws {
    try a.sql("INSERT INTO x VALUES ('a', 1), ('c', 1), ('e', 1)", at: 10)
    do { _ = try take() }
    #expect(try isNoted())
    try a.sql("INSERT INTO x VALUES ('b', 1), ('d', 1)", at: 20)
    try a.sql("DELETE FROM x WHERE id <> 'e'", at: 30)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete x:a", "delete x:c", "save x:e"])
    #expect(try !isNoted())
    try world.expectQuiet()
  }

  @Test("F7 a row that is put between those of a batch under way, and deleted after its answer, was in none")
  func between() throws {
    try a.sql("INSERT INTO x VALUES ('a', 1), ('c', 1)", at: 10)
    do {
      let (database, batch) = try take()
      try a.sql("INSERT INTO x VALUES ('b', 1)", at: 20)
      let tags = batch.entries.indices.map { EntryResult.saved(ChangeTag("t\($0)")) }
      try database.category.settle(batch, tags, now: a.time.wallClock)
    }
    #expect(try !isNoted())
    try a.sql("DELETE FROM x", at: 30)
    _ = try a.status()
    #expect(try a.picture("SELECT key, pending FROM cairn_record ORDER BY key") == ["a|2", "c|2"])
  }

  @Test(
    "F7 entries that were not saved, or not sent at all, were in a batch",
    arguments: [EntryResult.postponed(.rejected, retryAt: nil), nil])
  func refused(result: EntryResult?) throws {
    try a.sql("INSERT INTO n(v) VALUES (1), (2), (3)", at: 10)
    do {
      let (database, batch) = try take()
      #expect(batch.entries.count == 3)
      try #require(try isNoted())
      var (part, results) = (batch, [EntryResult.saved(ChangeTag("t")), .saved(ChangeTag("u"))])
      if let result { results.append(result) } else { part.entries.removeLast() }
      try database.category.settle(part, results, now: a.time.wallClock)
    }
    #expect(try !isNoted())
    try a.sql("DELETE FROM n", at: 20)
    _ = try a.status()
    #expect(try a.picture("SELECT pending FROM cairn_record") == ["2", "2", "2"])
  }

  @Test("F7 a batch that holds only some of what is pending between its keys marks those alone")
  func some() throws {
    try a.sql("INSERT INTO x VALUES ('a', 1), ('b', 1), ('c', 1)", at: 10)
    _ = try a.status()
    // One waits: it is not in the batch.
    try a.connection().run("UPDATE cairn_record SET rest = ?1 WHERE key = 'b'", .text(#"{"reason":"gated"}"#))
    do {
      let (_, batch) = try take()
      #expect(batch.entries.map(\.operation.record.id.name) == ["x:a", "x:c"])
    }
    #expect(try !isNoted())
    try a.sql("DELETE FROM x", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete x:a", "delete x:c"])
  }

  @Test("F7 U4 a batch that takes a parent first holds keys out of order: each of its records is marked")
  func parentsFirst() throws {
    try a.sql(
      "PRAGMA foreign_keys = OFF; INSERT INTO tree VALUES ('a', 'c'), ('c', NULL), ('cc', NULL), ('d', NULL), ('e', NULL)",
      at: 10)
    _ = try a.status()
    try a.connection().run("UPDATE cairn_record SET rest = ?1 WHERE key = 'cc'", .text(#"{"reason":"gated"}"#))
    do {
      let (_, batch) = try take()
      #expect(batch.entries.map(\.operation.record.id.name) == ["tree:c", "tree:a", "tree:d", "tree:e"])
    }
    #expect(try !isNoted())
    try a.sql("DELETE FROM tree", at: 20)
    _ = try a.status()
    #expect(try a.picture("SELECT key FROM cairn_record WHERE pending = 2 ORDER BY key") == ["a", "c", "d", "e"])
  }

  @Test("F7 a whole sync notes its batches and marks nothing; what dies with one under way is found by cairn alter too")
  func wholeSync() throws {
    try a.sql("INSERT INTO x VALUES ('a', 1), ('b', 1)", at: 10)
    a.meanwhile { device throws in
      let note = try device.scalar("SELECT 1 FROM cairn_setting WHERE key = 'attempted'")
      let flags = try device.picture("SELECT state & 4 FROM cairn_record")
      #expect(note == .integer(1) && flags == ["0", "0"])
    }
    try a.sync()
    #expect(try !isNoted())
    try a.sql("INSERT INTO x VALUES ('c', 1), ('d', 1)", at: 20)
    do { _ = try take() }
    try a.sql("DELETE FROM x WHERE id > 'b'", at: 30)
    a.restart()
    try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness).alter("ALTER TABLE x ADD COLUMN w")
    #expect(try a.picture("SELECT key FROM cairn_record WHERE pending = 2 ORDER BY key") == ["c", "d"])
  }

  @Test("a damaged note is an error that says so, or another range: never a trap")
  func damagedNote() throws {
    let keys: [Value] = [.text("key"), .blob([0, 1]), .integer(-70_000), .real(0.5), .malformedText([0xff])]
    for (i, key) in keys.enumerated() {
      let note = AttemptedRange(table: 3, first: key, last: keys[(i + 1) % keys.count]).text
      let range = try AttemptedRange(text: note)
      #expect(range.first == key && range.last == keys[(i + 1) % keys.count] && range.table == 3)
      for seed in UInt64(0)..<500 {
        var mutator = Mutator(seed: seed)
        do { _ = try AttemptedRange(text: mutator.mutant(of: note)) } catch is TablesError {}
      }
    }
  }

  @Test("F7 with a damaged note every row that was never confirmed counts as sent: its delete goes, and syncs go on")
  func unreadableNote() throws {
    try a.sql("INSERT INTO x VALUES ('a', 1), ('b', 1)", at: 10)
    do { _ = try take() }
    try a.connection().execute("UPDATE cairn_setting SET value = 'nonsense' WHERE key = 'attempted'")
    try a.sql("DELETE FROM x WHERE id = 'a'", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete x:a", "save x:b"])
    try world.expectQuiet()
  }

  @Test("U1 the type of a key column changes under a pending edit, and the edit is sent all the same")
  func changedType() throws {
    let world = try World()
    let d = try world.devices(["A", "B"], schema: "CREATE TABLE t(k INT PRIMARY KEY NOT NULL, v)", naturalKeys: ["t"])
    try d[0].sql("INSERT INTO t VALUES (5, 1)", at: 10)
    try world.expectConverged()
    try d[0].sql("UPDATE t SET v = 2", at: 20)
    _ = try d[0].status()
    d[0].restart()
    try SyncedDatabase(path: d[0].path, time: d[0].time, randomness: d[0].randomness).alter(
      "CREATE TABLE u(k TEXT PRIMARY KEY NOT NULL, v); INSERT INTO u SELECT * FROM t; DROP TABLE t; ALTER TABLE u RENAME TO t"
    )
    try d[0].sync()
    try d[1].sync()
    #expect(try d[1].picture("SELECT v FROM t") == ["2"])
  }
}
