import CairnRecords
import CairnSQLite
import CairnTables
import Foundation
import Testing

@Suite("init (tables 1.1, 8.1)")
struct InitTests {
  let world: World

  init() throws { world = try World() }

  private func problems(_ device: Device, tables: [String] = [], exclude: [String] = []) -> [SchemaProblem] {
    do {
      try device.prepare(.create, tables: tables, exclude: exclude)
    } catch TablesError.schema(let problems), TablesError.usage(let problems) {
      return problems
    } catch {
      Issue.record("\(error)")
    }
    return []
  }

  private func cairnObjects(_ device: Device) throws -> [String] {
    try device.texts("SELECT name FROM sqlite_master WHERE name LIKE 'cairn%'")
  }

  @Test("TS1 a table without key is refused in one line, and nothing is installed")
  func noPrimaryKey() throws {
    let a = try world.device("A", schema: "CREATE TABLE p(x)")
    let found = problems(a)
    #expect(found.map(\.code) == [.noPrimaryKey])
    #expect(found[0].description.hasPrefix("p: ") && found[0].description.contains("--exclude p"))
    #expect(try cairnObjects(a).isEmpty)
  }

  @Test("TS2 every problem of every table in one run")
  func severalProblems() throws {
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE p(x); CREATE VIRTUAL TABLE f USING fts5(x); CREATE TABLE n(id INTEGER PRIMARY KEY);
        CREATE VIEW v AS SELECT 1 AS one; CREATE TABLE c(id TEXT PRIMARY KEY, n REFERENCES n);
        """)
    let found = problems(a, tables: ["p", "f", "v", "c"], exclude: ["n"])
    #expect(Set(found.map(\.code)) == [.noPrimaryKey, .virtualTable, .view, .parentNotSynced])
    #expect(try cairnObjects(a).isEmpty)
  }

  @Test("1.1 names that are no tables are wrong usage")
  func noSuchTable() throws {
    let a = try world.device("A", schema: "CREATE TABLE notes(id TEXT PRIMARY KEY)")
    #expect(throws: TablesError.self) { try a.prepare(.create, tables: ["nots"]) }
    #expect(problems(a, tables: ["nots"]).map(\.code) == [.noSuchTable])
    #expect(try cairnObjects(a).isEmpty)
  }

  @Test("TS3 an excluded table stays here")
  func exclude() throws {
    let a = try world.device(
      "A", schema: "CREATE TABLE p(x); INSERT INTO p VALUES (1); CREATE TABLE lists(id TEXT PRIMARY KEY, title)")
    try a.sql("INSERT INTO lists VALUES ('l1', 'one')")
    try a.prepare(.create, exclude: ["p"])
    try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["lists:l1"])
    try a.sql("INSERT INTO p VALUES (2)")
    #expect(try a.status().pending == 0)
  }

  @Test("TS4 actions, self-references, cycles, partial and expression indexes are accepted")
  func accepted() throws {
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE a(id TEXT PRIMARY KEY, b REFERENCES b ON DELETE NO ACTION);
        CREATE TABLE b(id TEXT PRIMARY KEY, a REFERENCES a ON DELETE RESTRICT, me REFERENCES b);
        CREATE TABLE c(id INTEGER PRIMARY KEY AUTOINCREMENT, x UNIQUE ON CONFLICT REPLACE, y CHECK (y > 0));
        CREATE TABLE w(k TEXT, n INT, PRIMARY KEY (k, n)) WITHOUT ROWID;
        CREATE TABLE s(id INTEGER PRIMARY KEY, v ANY) STRICT;
        CREATE UNIQUE INDEX part ON c(y) WHERE x IS NOT NULL;
        CREATE UNIQUE INDEX expr ON c(lower(x));
        """)
    let outcome = try a.prepare(.create)
    #expect(outcome.tables == ["a", "b", "c", "s", "w"])
    try a.sql(
      """
      BEGIN; INSERT INTO a VALUES ('a1', NULL); INSERT INTO b VALUES ('b1', 'a1', 'b1');
      UPDATE a SET b = 'b1'; INSERT INTO c VALUES (1, 'X', 2); INSERT INTO w VALUES ('k', 1);
      INSERT INTO s VALUES (1, x'00'); COMMIT
      """)
    let b = try world.device("B", schema: "")
    try b.prepare(.join)
    try world.expectConverged()
  }

  @Test("TS6 a trigger that writes synced rows is warned of, with the clause to add; both stay")
  func triggers() throws {
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, title); CREATE TABLE items(id TEXT PRIMARY KEY, x);
        CREATE TABLE counts(n);
        CREATE TRIGGER quiet AFTER INSERT ON counts BEGIN SELECT 1; END;
        CREATE TRIGGER loud AFTER INSERT ON items BEGIN UPDATE lists SET title = 'x'; END;
        """)
    let outcome = try a.prepare(.create, exclude: ["counts"])
    #expect(outcome.warnings.count == 1)
    #expect(outcome.warnings[0].contains("loud") && outcome.warnings[0].contains("SELECT applying FROM cairn_state"))
    #expect(
      try a.picture("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'cairn%'")
        == ["loud", "quiet"])
  }

  @Test("TS7 a table that is created later is taken up at the next open")
  func laterTable() throws {
    let a = try world.device("A", schema: "")
    try a.prepare(.create)
    try a.sync()
    try a.sql("CREATE TABLE t(id TEXT PRIMARY KEY, x); INSERT INTO t VALUES ('1', 'one')")
    try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["t:1"])
    try a.sql("CREATE TABLE bad(x)")
    a.restart()
    try a.sync()
    #expect(try a.status().tables.map(\.name) == ["t"])
    let findings = try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness).examine()
    #expect(findings.map(\.kind) == [.refusedTable] && findings[0].table == "bad")
    let b = try world.device("B", schema: "")
    try b.prepare(.join)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t") == ["1|one"])
  }

  @Test("TS8 a row without key waits for it")
  func nullKey() throws {
    let a = try world.device("A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY, x)")
    try a.sql("INSERT INTO t VALUES (NULL, 'before')")
    try a.prepare(.create)
    try a.sql("INSERT INTO t VALUES (NULL, 'none'), ('1', 'one')")
    let report = try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["t:1"])
    #expect(report.pending == 2 && report.waiting == 2 && !report.quiet)
    #expect(try a.status().reasons.map(\.reason) == [.nullKey])
    try a.sql("UPDATE t SET id = x WHERE id IS NULL")
    try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["t:1", "t:none", "t:before"])
    #expect(try a.status().pending == 0)
  }

  @Test("TS9 create uploads what is there, without running a trigger")
  func create() throws {
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE x(id TEXT PRIMARY KEY, v); CREATE TABLE y(id INTEGER PRIMARY KEY, v);
        CREATE TABLE z(k, n, PRIMARY KEY (k, n)); CREATE TABLE seen(n);
        INSERT INTO x VALUES ('a', 1), ('b', 2); INSERT INTO y VALUES (7, 'seven'); INSERT INTO z VALUES (1, 'k');
        CREATE TRIGGER tx AFTER UPDATE ON x BEGIN INSERT INTO seen VALUES (1); END;
        """)
    let outcome = try a.prepare(.create, exclude: ["seen"])
    #expect(outcome.rows == 4)
    let report = try a.sync()
    #expect(report.counts.saved == 4 && report.quiet)
    #expect(try a.rows("SELECT * FROM seen").isEmpty)
    for record in try world.serverRecords().values {
      #expect(record.fields["cairn_life"] == .int64(World.start))
    }
  }

  @Test("TS10 deinit, then merge: the same records, nothing saved or deleted")
  func deinitAndMerge() throws {
    let a = try world.device("A")
    try a.sql(
      """
      INSERT INTO lists VALUES ('l1', 'one', 'red'); INSERT INTO items VALUES ('i1', 'l1', 't', 0, NULL);
      INSERT INTO notes VALUES (1, 'n', 'b'), (2, 'm', NULL); INSERT INTO files VALUES (1, 2, 'f');
      INSERT INTO labels VALUES (1, 'x'); INSERT INTO marks VALUES (1, 1);
      INSERT INTO employees VALUES (1, 'boss', 1), (2, 'worker', 1), (3, 'apprentice', 2);
      """)
    let before = try a.picture("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    try a.prepare(.create)
    try a.sync()
    let records = try world.serverRecords()
    a.restart()
    #expect(try Deinstallation.run(path: a.path) == 0)
    #expect(try a.picture("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL") == before)
    _ = a.sentSinceLastAsked()
    try a.prepare(.merge)
    let report = try a.sync()
    #expect(report.counts.saved == 0 && report.counts.deleted == 0 && report.quiet)
    #expect(a.sentSinceLastAsked().isEmpty)
    #expect(try world.serverRecords() == records)
    try world.expectConverged()
  }

  @Test("1.1 rows whose foreign keys point nowhere are counted, and an excluded child that cascades is named")
  func warnings() throws {
    let a = try world.device(
      "A",
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY); CREATE TABLE items(id TEXT PRIMARY KEY, list REFERENCES lists);
        CREATE TABLE local(id TEXT PRIMARY KEY, list REFERENCES lists ON DELETE CASCADE);
        INSERT INTO lists VALUES ('l');
        """, foreignKeys: false)
    try a.sql("INSERT INTO items VALUES ('1', 'l'), ('2', 'gone'), ('3', 'gone')")
    let warnings = try a.prepare(.create, exclude: ["local"]).warnings
    #expect(warnings.count == 2)
    #expect(warnings.contains { $0.hasPrefix("2 rows of items refer by list to rows of lists") })
    #expect(warnings.contains { $0.hasPrefix("local is not synced") })
  }

  @Test("1.1 run again with the same options it changes nothing, and does not look at the mode")
  func again() throws {
    let a = try world.device("A")
    try a.sql("INSERT INTO lists VALUES ('l1', 'one', 'red')")
    try a.prepare(.create)
    try a.sync()
    _ = a.sentSinceLastAsked()
    let before = try a.rows("SELECT * FROM cairn_record")
    let outcome = try a.prepare(.create)
    #expect(outcome.mode == nil && outcome.backup == nil)
    #expect(try a.prepare(.join).backup == nil)
    #expect(try a.rows("SELECT * FROM cairn_record") == before)
    #expect(a.sentSinceLastAsked().isEmpty)
    try world.expectConverged()
  }

  @Test("TS165 tables named later are taken up, and named wrongly refused")
  func moreTables() throws {
    let a = try world.device(
      "A", schema: "CREATE TABLE lists(id TEXT PRIMARY KEY); CREATE TABLE other(id TEXT PRIMARY KEY); CREATE TABLE p(x)"
    )
    try a.sql("INSERT INTO lists VALUES ('l'); INSERT INTO other VALUES ('o')")
    try a.prepare(.create, tables: ["lists"])
    try a.sql("CREATE TABLE new(id TEXT PRIMARY KEY); INSERT INTO new VALUES ('n')")
    try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["lists:l"])
    #expect(throws: TablesError.self) { try a.prepare(nil, tables: ["p"]) }
    #expect(throws: TablesError.self) { try a.prepare(nil, tables: ["nothing"]) }
    try a.prepare(nil, tables: ["new"])
    a.restart()
    try a.sync()
    #expect(try Set(world.serverRecords().keys) == ["lists:l", "new:n"])
    try world.expectConverged()
  }

  @Test("V9 a file of a newer Cairn is refused with both versions")
  func newerFile() throws {
    let a = try world.device("A")
    try a.prepare(.create)
    try a.sql("UPDATE cairn_state SET version = 99")
    #expect(throws: TablesError.newerVersion(path: a.path, file: 99, library: 1)) { try a.sync() }
    #expect(throws: TablesError.newerVersion(path: a.path, file: 99, library: 1)) { try a.prepare(.create) }
  }
}
