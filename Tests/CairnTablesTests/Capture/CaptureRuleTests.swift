import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Rules of capture and fold (tables 2, 3.1)")
struct CaptureRuleTests {
  private func two(_ base: String, schema: String = Schema.scenarios) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, devices[0], devices[1])
  }

  @Test("T1 triggers hold no SQL younger than 3.24, and work under trusted_schema=OFF")
  func oldSQL() throws {
    let (_, a, _) = try two("", schema: CaptureModel.schema)
    for text in try a.texts("SELECT sql FROM sqlite_master WHERE type = 'trigger'") {
      for young in [
        "RETURNING", "IIF(", "IS DISTINCT", "->", "OVER (", "FILTER (", "MATERIALIZED", "unixepoch", "NULLS ",
      ] {
        #expect(!text.contains(young))
      }
    }
    let program = try a.connection()
    try program.execute(
      """
      PRAGMA trusted_schema = OFF; INSERT INTO r(id, pos, a, ok) VALUES ('a', 1, 'x', 1);
      REPLACE INTO r(id, pos, a, ok) VALUES ('b', 1, 'X', 1); UPDATE OR REPLACE r SET id = 'c'; DELETE FROM r
      """)
    #expect(try a.status().pending == 0)
  }

  @Test("T7 changes(), last_insert_rowid() and RETURNING are as without Cairn")
  func counters() throws {
    let (_, a, _) = try two("INSERT INTO slots VALUES ('a', 1, ''), ('b', 2, '')")
    let program = try a.connection()
    let plain = try Connection(path: ":memory:", mode: .create)
    try plain.execute(Schema.scenarios + "; INSERT INTO slots VALUES ('a', 1, ''), ('b', 2, '')")
    for sql in [
      "INSERT INTO notes(title) VALUES ('x'), ('y')", "REPLACE INTO slots VALUES ('c', 1, 'n')",
      "UPDATE slots SET label = 'z'", "UPDATE OR REPLACE slots SET id = 'b' WHERE id = 'c'",
      "INSERT INTO notes VALUES (9, 't', 'b') ON CONFLICT DO NOTHING", "DELETE FROM notes",
      "INSERT INTO notes(title) VALUES ('r') RETURNING id, title", "UPDATE notes SET title = 's' RETURNING *",
    ] {
      #expect(try program.rows(sql) == plain.rows(sql), "\(sql)")
      let query = "SELECT changes(), last_insert_rowid()"
      #expect(try program.rows(query) == plain.rows(query), "\(sql)")
    }
  }

  @Test("T2 the user's conflict clause does not reach into the log")
  func conflictClauses() throws {
    let (world, a, b) = try two("INSERT INTO slots VALUES ('a', 1, '')")
    try a.sql("INSERT OR IGNORE INTO slots VALUES ('a', 9, ''), ('b', 2, ''), ('c', 1, '')")
    try a.sql("UPDATE OR IGNORE slots SET pos = 2")
    try world.expectConverged()
    #expect(try b.picture("SELECT id, pos FROM slots") == ["a|1", "b|2"])
  }

  @Test("T16 UPDATE OR REPLACE of a mapped integer onto another", arguments: [false, true])
  func mappedOntoMapped(recursive: Bool) throws {
    let (world, a, b) = try two("INSERT INTO notes VALUES (1, 'x', 'p'), (2, 'y', 'p')")
    try a.sql("PRAGMA recursive_triggers = \(recursive)")
    let names = Set(try world.serverNames())
    try a.sql("UPDATE OR REPLACE notes SET id = 2 WHERE id = 1", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT title, body FROM notes") == ["x|p"])
    let left = try world.serverNames()
    #expect(left.count == 1 && names.contains(left[0]))
    #expect(try world.clocks(left[0]) == ["title": 10, "body": 1])
  }

  @Test(
    "T19 F5 a changed mapped integer sends nothing, nor do the rows that follow it", arguments: ["id", "rowid", "oid"])
  func movedInteger(name: String) throws {
    let (world, a, b) = try two("INSERT INTO notes VALUES (1, 'x', NULL); INSERT INTO files VALUES (1, 1, 'f')")
    try a.sql("UPDATE notes SET \(name) = 5 WHERE id = 1", at: 10)
    try a.sql("UPDATE notes SET id = 6 WHERE id = 5", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked() == [])
    try a.sql("UPDATE files SET name = 'g'", at: 30)
    try world.expectConverged()
    #expect(try b.picture("SELECT note_id, files.name, title FROM files JOIN notes ON notes.id = note_id") == ["1|g|x"])
  }

  @Test("F5 an edit of a reference just before its target's integer changes is sent")
  func editBeforeMove() throws {
    let (world, a, b) = try two(
      "INSERT INTO notes VALUES (1, 'x', NULL), (2, 'y', NULL); INSERT INTO files VALUES (1, 1, 'f')")
    try a.sql("UPDATE files SET note_id = 2; UPDATE notes SET id = 7 WHERE id = 2", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM files JOIN notes ON notes.id = note_id") == ["y"])
  }

  @Test("T20 F6 an integer that passes to a new note takes the files with it, also without foreign keys")
  func reusedInteger() throws {
    let (world, a, b) = try two("INSERT INTO notes VALUES (1, 'old', NULL); INSERT INTO files VALUES (1, 1, 'f')")
    try a.sql("PRAGMA foreign_keys = OFF")
    let old = try world.serverNames().first { $0.hasPrefix("notes:") }
    try a.sql("DELETE FROM notes; INSERT INTO notes VALUES (1, 'new', NULL)", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM files JOIN notes ON notes.id = note_id") == ["new"])
    #expect(try !world.serverNames().contains(old ?? ""))
    // The delete and the insert in folds of their own.
    try a.sql("DELETE FROM notes", at: 20)
    #expect(try a.status().pending == 1)
    try a.sql("INSERT INTO notes VALUES (1, 'third', NULL)", at: 30)
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM files JOIN notes ON notes.id = note_id") == ["third"])
  }

  @Test("TS8 F8 a row without key waits as nullKey until the key is set")
  func nullKey() throws {
    let (world, a, b) = try two("", schema: "CREATE TABLE t(id TEXT PRIMARY KEY, v)")
    try a.sql("INSERT INTO t VALUES (NULL, 1), ('k', 2), (NULL, 3)", at: 10)
    try a.sync()
    #expect(try world.serverNames() == ["t:k"])
    #expect(try a.status().pending == 2)
    #expect(try a.status().reasons.map(\.reason) == [.nullKey])
    try a.sql("UPDATE t SET id = 'n' WHERE v = 1; DELETE FROM t WHERE v = 3", at: 20)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["k|2", "n|1"])
    try a.sql("UPDATE t SET id = NULL WHERE id = 'n'", at: 30)
    try a.sync()
    #expect(try a.status().pending == 1)
    #expect(try world.serverNames() == ["t:k"])
  }

  @Test("T22 triggers that write elsewhere, and INSTEAD OF a view, are captured")
  func userTriggers() throws {
    let (world, a, b) = try two(
      "",
      schema: """
        CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); CREATE TABLE h(id INTEGER PRIMARY KEY, t_id TEXT, v);
        CREATE TRIGGER history AFTER UPDATE ON t WHEN (SELECT applying FROM cairn_state) = 0
          BEGIN INSERT INTO h(t_id, v) VALUES (OLD.id, OLD.v); END;
        CREATE VIEW tv AS SELECT * FROM t;
        CREATE TRIGGER tv_insert INSTEAD OF INSERT ON tv BEGIN INSERT OR REPLACE INTO t VALUES (NEW.id, NEW.v); END
        """)
    try a.sql("INSERT INTO tv VALUES ('k', 1); UPDATE t SET v = 2; INSERT INTO tv VALUES ('k', 3)", at: 10)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["k|3"])
    #expect(try b.picture("SELECT t_id, v FROM h") == ["k|1"])
  }

  @Test(
    "F1 a program that holds the write lock: the sync fails as busy and nothing is lost", arguments: ["WAL", "DELETE"])
  func busy(journal: String) throws {
    let world = try World()
    let a = try world.device("A", journal: journal)
    try a.prepare(.create)
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    let other = try a.connection()
    let engine = try a.open()
    try engine.database.file.connection.execute("PRAGMA busy_timeout = 20")
    try other.execute("BEGIN IMMEDIATE; INSERT INTO lists VALUES ('l2', 'y', NULL)")
    #expect(throws: SQLiteError.self) { try Folder.fold(engine.database.file) }
    try other.execute("COMMIT")
    try world.expectConverged()
    #expect(try world.serverNames() == ["lists:l1", "lists:l2"])
  }
}
