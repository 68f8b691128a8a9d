import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation
import Testing

/// One file, two users: Anna, whose devices are A and B, and Berta, who signs in on A.
@Suite("Another user's token, a mode, and back (tables L10, TS173)")
struct IdentityTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    world = try World()
    let devices = try world.devices(
      ["A", "B"],
      base: """
        INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue'), ('l3', 'three', NULL);
        INSERT INTO items VALUES ('i1', 'l1', 'milk', 0, 1); INSERT INTO notes VALUES (1, 'n', x'00ff'), (2, 'm', 2.0);
        INSERT INTO files VALUES (1, 2, 'f'); INSERT INTO slots VALUES ('s1', 1, 'x');
        INSERT INTO employees VALUES (1, 'boss', 1), (2, 'worker', 1);
        """)
    (a, b) = (devices[0], devices[1])
  }

  private func editsOfAnna() throws {
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'; DELETE FROM lists WHERE id = 'l2'", at: 10)
    try a.sql("INSERT INTO notes VALUES (3, 'new', NULL); UPDATE notes SET title = 'N' WHERE id = 1", at: 11)
    try a.sql("DELETE FROM lists WHERE id = 'l3'; INSERT INTO lists VALUES ('l3', 'drei', 'green')", at: 12)
  }

  private func rows(_ device: Device) throws -> [[String]] {
    try ["lists", "items", "notes", "files", "slots", "employees"].map { try device.picture("SELECT * FROM \($0)") }
  }

  private func message(_ body: () throws -> Void) -> String {
    do {
      try body()
      return ""
    } catch {
      return "\(error)"
    }
  }

  @Test(
    "L10 TS173 with a mode the file is Berta's: nothing of Anna's pending is sent; back again it is as it was, and is sent",
    arguments: Preparation.Mode.allCases)
  func thereAndBack(mode: Preparation.Mode) throws {
    try editsOfAnna()
    let before = try rows(a)
    let pending = try a.status().pending
    let onServer = try world.serverRecords()
    #expect(pending == 5)

    try a.signIn(as: "berta", world)
    #expect(message { try a.prepare(nil) }.contains("belongs to another user"))
    #expect(try rows(a) == before && a.status().pending == pending)
    let outcome = try a.prepare(mode)
    #expect(outcome.setAside == (try world.server.cloud(user: world.user).currentUser()) && outcome.mode == mode)
    #expect(try a.status().setAside == [outcome.setAside ?? "": pending])
    #expect(try mode == .join || rows(a) == before)
    try a.sql("INSERT INTO lists VALUES ('berta', 'hers', NULL)", at: 20)
    if mode != .join { try a.sql("UPDATE lists SET color = 'hers' WHERE id = 'l1'", at: 20) }
    #expect(try a.sync().state == "ready")
    let hers = try rows(a)
    let bertas = try world.serverRecords(of: "berta")
    #expect(bertas.keys.contains("lists:berta") && bertas.keys.contains("lists:l1") == (mode != .join))
    #expect(try world.serverRecords() == onServer)
    try a.sql("INSERT INTO slots VALUES ('hers', 9, 'unsent')", at: 21)

    try a.signIn(as: world.user, world)
    #expect(message { try a.prepare(.create) }.isEmpty)
    #expect(try rows(a) == before)
    #expect(try a.status().pending == pending && a.status().setAside.values.first == 1)
    _ = a.sentSinceLastAsked()
    try a.sync()
    #expect(a.sentSinceLastAsked().count == pending)
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM lists") == ["l1|eins", "l3|drei"])
    #expect(try world.serverRecords(of: "berta") == bertas)

    try a.signIn(as: "berta", world)
    try a.prepare(nil)
    #expect(try rows(a).flatMap { $0 }.sorted() == (hers.flatMap { $0 } + ["hers|9|unsent"]).sorted())
    try a.sync()
    #expect(try world.serverRecords(of: "berta").count == bertas.count + 1)
    #expect(try a.status().pending == 0)
  }

  @Test("L10 parked records, tokens and tags come back: nothing is fetched or sent again")
  func everything() throws {
    try b.sql("INSERT INTO slots VALUES ('s2', 2, 'y')", at: 10)
    try b.sync()
    try a.sql("INSERT INTO slots VALUES ('s3', 2, 'z')", at: 11)
    for device in [a, b, a] { try device.sync() }
    let parked = try a.parked()
    #expect(parked.count == 1)
    try a.signIn(as: "berta", world)
    try a.prepare(.create)
    try a.sync()
    #expect(try a.parked().isEmpty)
    try a.signIn(as: world.user, world)
    try a.prepare(nil)
    #expect(try a.parked() == parked)
    let report = try a.sync()
    #expect(report.counts.fetched == 0 && report.counts.saved == 0 && report.counts.removed == 0)
    try world.expectConverged(parked: 1)
  }

  @Test("L10 what was done to a table that Berta does not sync is Anna's edit")
  func excludedMeanwhile() throws {
    try a.signIn(as: "berta", world)
    try a.prepare(.merge, exclude: ["notes", "files", "marks", "employees"])
    try a.sync()
    try a.sql("UPDATE employees SET name = 'chief' WHERE id = 1; INSERT INTO employees VALUES (3, 'new', 2)")
    try a.sql("UPDATE lists SET title = 'hers' WHERE id = 'l1'")
    try a.signIn(as: world.user, world)
    try a.prepare(nil)
    try world.expectConverged()
    #expect(try b.picture("SELECT name FROM employees") == ["chief", "new", "worker"])
    #expect(try b.picture("SELECT title FROM lists WHERE id = 'l1'") == ["one"])
  }

  @Test("L10 V2 a column that came meanwhile is taken up; one that went keeps the rows where they are")
  func schemaChangedMeanwhile() throws {
    try editsOfAnna()
    let pending = try a.status().pending
    try a.signIn(as: "berta", world)
    try a.prepare(.merge)
    try a.sync()
    try a.sql("ALTER TABLE lists ADD COLUMN icon DEFAULT 'star'; ALTER TABLE slots RENAME TO places")
    let hers = try a.picture("SELECT * FROM lists")
    try a.signIn(as: world.user, world)
    let refused = message { try a.prepare(nil) }
    #expect(refused.contains("slots is gone or renamed"), "\(refused)")
    #expect(try a.picture("SELECT * FROM lists") == hers && a.status().setAside.values.first == pending)
    try a.sql("ALTER TABLE places RENAME TO slots")
    try a.prepare(nil)
    #expect(try a.picture("SELECT * FROM lists") == ["l1|eins|red|star", "l3|drei|green|star"])
    try a.sql("UPDATE lists SET icon = 'moon' WHERE id = 'l1'")
    try a.sync()
    #expect(try world.serverRecords()["lists:l1"]?.fields["icon"] != nil)
    try b.sql("ALTER TABLE lists ADD COLUMN icon DEFAULT 'star'")
    b.restart()
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title, icon FROM lists") == ["l1|eins|moon", "l3|drei|star"])
  }

  @Test("L10 an interrupted init has to be finished by its own user; deinit counts and drops what was filed")
  func unfinishedAndDeinit() throws {
    try editsOfAnna()
    try a.signIn(as: "berta", world)
    a.cloud.isOffline = true
    #expect(throws: CloudError.self) { try a.prepare(.merge) }
    #expect(try a.status().setAside.isEmpty)
    a.cloud.heal()
    try a.prepare(.merge)
    let before = try rows(a)
    let hers = try a.status().pending
    a.restart()
    #expect(try Deinstallation.run(path: a.path) == hers + 5)
    #expect(try a.texts("SELECT name FROM sqlite_master WHERE name LIKE '%cairn%'").isEmpty)
    #expect(try rows(a) == before)
  }
}

/// What triggers of the user keep of the rows stays right when tables change as a whole.
@Suite("Triggers of the user and whole tables (tables L2, L10, L11, M17)")
struct WholeTableTests {
  private static let indexed = """
    CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, body);
    CREATE VIRTUAL TABLE words USING fts5(body, content = 'note', content_rowid = 'rowid');
    CREATE TRIGGER note_in AFTER INSERT ON note BEGIN INSERT INTO words(rowid, body) VALUES (new.rowid, new.body); END;
    CREATE TRIGGER note_out AFTER DELETE ON note BEGIN
      INSERT INTO words(words, rowid, body) VALUES ('delete', old.rowid, old.body);
    END;
    CREATE TRIGGER note_set AFTER UPDATE ON note BEGIN
      INSERT INTO words(words, rowid, body) VALUES ('delete', old.rowid, old.body);
      INSERT INTO words(rowid, body) VALUES (new.rowid, new.body);
    END;
    """

  private func found(_ device: Device, _ word: String) throws -> Int {
    try device.rows("SELECT rowid FROM words WHERE words MATCH '\(word)'").count
  }

  private func expectSound(_ device: Device) throws {
    try device.sql("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
  }

  @Test("L2 M17 a join over rows leaves no word of theirs in a full-text index")
  func fullTextAfterJoin() throws {
    let world = try World()
    let a = try world.device(
      "A", schema: Self.indexed + "INSERT INTO note VALUES ('1', 'alpha one'), ('2', 'alpha two')")
    try a.prepare(.create, tables: ["note"])
    try a.sync()
    let b = try world.device("B", schema: Self.indexed + "INSERT INTO note VALUES ('8', 'beta'), ('9', 'beta two')")
    try b.prepare(.join, tables: ["note"])
    #expect(try found(b, "beta") == 0)
    try world.expectConverged()
    #expect(try found(b, "beta") == 0 && found(b, "alpha") == 2)
    try expectSound(b)
  }

  @Test("L10 M17 a full-text index follows the rows of the user whose they are")
  func fullTextOfTwoUsers() throws {
    let world = try World()
    let a = try world.device(
      "A", schema: Self.indexed + "INSERT INTO note VALUES ('1', 'alpha one'), ('2', 'alpha two')")
    try a.prepare(.create, tables: ["note"])
    try a.sync()
    try a.signIn(as: "berta", world)
    try a.prepare(.join)
    try a.sql("INSERT INTO note VALUES ('b', 'beta')")
    try a.sync()
    #expect(try found(a, "alpha") == 0 && found(a, "beta") == 1)
    try a.signIn(as: world.user, world)
    try a.prepare(nil)
    #expect(try found(a, "alpha") == 2 && found(a, "beta") == 0)
    try expectSound(a)
    try world.expectConverged()
  }

  @Test(
    "L2 triggers that refuse, keep, or put back rows do not keep a table from being emptied",
    arguments: ["ABORT, 'no'", "ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
  func refusingTriggers(kind: String) throws {
    let world = try World()
    let a = try world.device(
      "A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('a', 1)")
    try a.prepare(.create)
    try a.sync()
    let schema = """
      CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('x', 1), ('y', 2), ('z', 3);
      CREATE TRIGGER no BEFORE DELETE ON t WHEN old.id = 'y' BEGIN SELECT RAISE(\(kind)); END;
      CREATE TRIGGER back AFTER DELETE ON t BEGIN INSERT INTO t VALUES (old.id || '+', NULL); END;
      """
    let b = try world.device("B", schema: schema)
    #expect(try b.prepare(.join).backup != nil)
    #expect(try b.rows("SELECT * FROM t").isEmpty)
    #expect(try b.status().pending == 0)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["a|1"])
  }

  @Test(
    "L10 triggers that refuse, keep, or put back rows do not keep a user's rows from coming back",
    arguments: ["ABORT, 'no'", "ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
  func refusingTriggersOfTwoUsers(kind: String) throws {
    let world = try World()
    let schema = """
      CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('x', 1), ('y', 2), ('z', 3);
      CREATE TRIGGER out BEFORE DELETE ON t WHEN old.id = 'y' BEGIN SELECT RAISE(\(kind)); END;
      CREATE TRIGGER into_t BEFORE INSERT ON t WHEN new.id = 'z' BEGIN SELECT RAISE(\(kind)); END;
      CREATE TRIGGER more AFTER INSERT ON t WHEN new.id = 'x' BEGIN INSERT INTO t VALUES ('more', 0); END;
      """
    let a = try world.device("A", schema: schema)
    let before = try a.picture("SELECT * FROM t")
    try a.prepare(.create)
    try a.sync()
    try a.signIn(as: "berta", world)
    try a.prepare(.merge)
    try a.sql("UPDATE t SET v = 'hers'")
    try a.signIn(as: world.user, world)
    try a.prepare(nil)
    #expect(try a.picture("SELECT * FROM t") == before)
    try a.sync()
    #expect(try a.status().pending == 0 && a.picture("SELECT * FROM t") == before)
  }
}
