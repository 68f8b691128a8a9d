import CairnSQLite
import CairnTables
import Testing

@Suite("Constraints (tables 8.9)")
struct ConstraintTests {
  @Test(
    "TS141 TS142 label 'red' on A@10 and B@20: A's in the table, B's parked on both; back when A's is renamed or deleted",
    arguments: ["UPDATE labels SET name = 'blue'", "DELETE FROM labels"], [true, false])
  func unique(repair: String, aFirst: Bool) throws {
    let world = try World()
    let d = try world.devices(["A", "B"])
    try d[0].sql("INSERT INTO labels(name) VALUES ('red')", at: 10)
    try d[1].sql("INSERT INTO labels(name) VALUES ('red')", at: 20)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged(parked: 1)
    #expect(try world.serverRecords().count == 2)
    let parked = try d.map { try $0.parked().map(\.record) }
    #expect(parked[0] == parked[1])
    #expect(try d[1].parked().map(\.reason) == [.unique])
    for device in d {
      // Section 7: a parked record is no row.
      let table = try #require(try device.status().tables.first { $0.name == "labels" })
      #expect(try device.scalar("SELECT count(*) FROM labels") == .integer(Int64(table.rows)))
      #expect(table.parked == 1)
    }
    try d[0].sql(repair, at: 30)
    try world.expectConverged()
    #expect(try d[1].scalar("SELECT count(*) FROM labels WHERE name = 'red'") == .integer(1))
  }

  @Test("TS141 M10 a row's own echo in the same page as the older row that takes its place: the row is put aside whole")
  func echoBesideTheOlderRow() throws {
    let world = try World()
    let d = try world.devices(["A", "B"])
    try d[0].sql("INSERT INTO slots VALUES ('s1', 1, 'first')", at: 10)
    try d[1].sql("INSERT INTO slots VALUES ('s2', 1, 'second')", at: 20)
    try d[1].sync(.sendOnly)
    try d[0].sync()
    try world.expectConverged(parked: 1)
    #expect(try d[1].picture("SELECT id, pos, label FROM slots") == ["s1|1|first"])
    try d[0].sql("DELETE FROM slots", at: 30)
    try world.expectConverged()
    #expect(try d[0].picture("SELECT id, pos, label FROM slots") == ["s2|1|second"])
  }

  @Test("TS143 label x of @10 renamed 'new'@30, B inserted 'new'@20: x stays, B's parked", arguments: [true, false])
  func renamed(aFirst: Bool) throws {
    let world = try World()
    let d = try world.devices(["A", "B"])
    try d[0].sql("INSERT INTO labels(name) VALUES ('x')", at: 10)
    try d[0].sync()
    try d[1].sync()
    try d[0].sql("UPDATE labels SET name = 'new'", at: 30)
    try d[1].sql("INSERT INTO labels(name) VALUES ('new')", at: 20)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged(parked: 1)
    #expect(try d[0].picture("SELECT id, name FROM labels") == ["1|new"])
    #expect(try d[1].picture("SELECT id, name FROM labels") == ["1|new"])
  }

  @Test("TS144 the parked label has marks: parked with it, back with it, never deleted")
  func dependants() throws {
    let world = try World()
    let d = try world.devices(["A", "B"], base: "INSERT INTO notes(id, title) VALUES (1, 'n')")
    try d[0].sql("INSERT INTO labels(name) VALUES ('red')", at: 10)
    try d[1].sql("INSERT INTO labels(name) VALUES ('red'); INSERT INTO marks VALUES (1, 1)", at: 20)
    try world.expectConverged(parked: 2)
    #expect(try world.serverRecords().keys.filter { $0.hasPrefix("marks") }.count == 1)
    try d[0].sql("DELETE FROM labels", at: 30)
    try world.expectConverged()
    #expect(try d[0].picture("SELECT l.name FROM marks JOIN labels l ON l.id = label_id") == ["red"])
  }

  @Test("M10 G6 a label parked unique stays parked when a staged set brings its own echo", arguments: [1, 2, 200])
  func stagedEcho(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let d = try world.devices(["A", "B"], base: "INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try d[1].sql("INSERT INTO labels(name) VALUES ('red')", at: 10)
    try d[1].sync()
    try d[0].sql("INSERT INTO labels(name) VALUES ('red')", at: 20)
    try d[0].sync(.fetchOnly)
    // From this deletion on, a set of several pages is staged.
    try d[1].sql("DELETE FROM lists; INSERT INTO labels(name) VALUES ('blue')", at: 30)
    try d[1].sync()
    try d[0].sync(.sendOnly)
    try d[0].sync()
    #expect(try d[0].parked().map(\.reason) == [.unique])
    try world.expectConverged(parked: 1)
    try d[1].sql("DELETE FROM labels WHERE name = 'red'", at: 40)
    try world.expectConverged()
    #expect(try d[0].picture("SELECT name FROM labels ORDER BY name") == ["blue", "red"])
  }

  @Test("M10 G6 edits that are parked with their row outlive a newer version that is staged", arguments: [1, 2, 200])
  func stagedOverEdits(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let d = try world.devices(
      ["A", "B"], schema: "CREATE TABLE s(id TEXT PRIMARY KEY NOT NULL, pos UNIQUE, label, other)",
      base: "INSERT INTO s VALUES ('x', 0, NULL, NULL), ('b', 1, NULL, NULL)")
    try d[0].sql("INSERT INTO s VALUES ('a', 5, 'base', 'base')", at: 2)
    try world.expectConverged()
    try d[1].sql("UPDATE s SET pos = 7 WHERE id = 'b'", at: 10)
    try d[0].sql("UPDATE s SET pos = 7, label = 'mine' WHERE id = 'a'", at: 20)
    try d[1].sync()
    try d[0].sync(.fetchOnly)
    #expect(try d[0].parked().map(\.record) == ["s:a"])
    try d[1].sql("DELETE FROM s WHERE id = 'x'", at: 30)
    try d[1].sync()
    try d[1].sql("INSERT INTO s VALUES ('c', 9, NULL, NULL); UPDATE s SET other = 'theirs' WHERE id = 'a'", at: 31)
    try d[1].sync()
    try d[0].sync()
    try world.expectConverged(parked: 1)
    try d[1].sql("UPDATE s SET pos = 1 WHERE id = 'b'", at: 40)
    try world.expectConverged()
    #expect(try d[1].picture("SELECT * FROM s WHERE id = 'a'") == ["a|7|mine|theirs"])
  }

  @Test(
    "M11 a row whose newer version refers to a parent that is parked unique is parked with it on every device",
    arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2]], ["up INTEGER REFERENCES u", "up TEXT REFERENCES u(pos)"])
  func movesToParked(order: [Int], reference: String) throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B", "C"],
      schema: """
        CREATE TABLE u(id INTEGER PRIMARY KEY, name TEXT UNIQUE, pos TEXT UNIQUE);
        CREATE TABLE c(k TEXT PRIMARY KEY NOT NULL, \(reference) ON DELETE SET NULL, note TEXT);
        """)
    let toID = reference.contains("INTEGER")
    try d[2].sql(
      "INSERT INTO u VALUES (1, 'y', 'p1'), (3, 'x', 'p3'); INSERT INTO c VALUES ('a', \(toID ? "3" : "'p3'"), 'old')",
      at: 10)
    try d[1].sql(
      "INSERT INTO u VALUES (1, 'y', 'p2'); INSERT INTO c VALUES ('a', \(toID ? "1" : "'p2'"), 'new')", at: 20)
    for i in order { try d[i].sync() }
    try world.expectConverged(parked: 2)
    try d[0].sql("DELETE FROM u WHERE name = 'y'", at: 30)
    try world.expectConverged()
    #expect(
      try d[2].picture("SELECT k, pos, note FROM c JOIN u ON up = u.\(toID ? "id" : "pos")") == ["a|p2|new"])
  }

  @Test("M2 M9 a save on a parked version as base does not take back what is newer there")
  func parkedNewerValue() throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, other)",
      base: "INSERT INTO t VALUES ('r', 1, 'o')")
    try d[1].sql("CREATE TRIGGER no BEFORE UPDATE ON t WHEN NEW.n = 6 BEGIN SELECT RAISE(ABORT, 'no'); END")
    try d[1].sql("UPDATE t SET n = 8, other = 'local'", at: 20)
    try d[0].sql("UPDATE t SET n = 6", at: 30)
    try d[0].sync()
    try d[1].sync()
    try d[0].sync()
    #expect(try d[0].picture("SELECT * FROM t") == ["r|6|local"])
    try d[1].sql("DROP TRIGGER no")
    d[1].restart()
    try SyncedDatabase(path: d[1].path, time: d[1].time, randomness: d[1].randomness).retryParked(
      now: world.clock.wallClock)
    try world.expectConverged()
    #expect(try d[1].picture("SELECT * FROM t") == ["r|6|local"])
  }

  @Test("M10 values swapped between rows of one set are no conflict", arguments: ["UNIQUE", "NOT NULL UNIQUE"])
  func swap(constraint: String) throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B"], schema: "CREATE TABLE s(id TEXT PRIMARY KEY NOT NULL, pos \(constraint), label)",
      base: "INSERT INTO s VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, 'z')")
    try d[0].sql(
      "UPDATE s SET pos = -pos; UPDATE s SET pos = CASE pos WHEN -1 THEN 2 WHEN -2 THEN 3 ELSE 1 END", at: 10)
    try world.expectConverged()
    #expect(try d[1].picture("SELECT id, pos, label FROM s") == ["a|2|x", "b|3|y", "c|1|z"])
  }

  @Test("TS145 TS150 CHECK only on B: parked, old values kept; applied after the check is gone")
  func check() throws {
    let world = try World()
    let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, other)"
    let a = try world.device("A", schema: schema)
    let b = try world.device("B", schema: schema)
    try a.prepare(.create)
    try a.sql("INSERT INTO t VALUES ('r', 1, 'o')", at: 1)
    try a.sync()
    try b.prepare(.join)
    try b.sync()
    try b.sql("CREATE TRIGGER no BEFORE UPDATE ON t WHEN NEW.n > 5 BEGIN SELECT RAISE(ABORT, 'no'); END")
    try a.sql("UPDATE t SET n = 9", at: 10)
    try a.sql("INSERT INTO t VALUES ('s', 2, 'p')", at: 11)
    try a.sync()
    try b.sync()
    #expect(try b.parked().map(\.reason) == [.trigger])
    #expect(try b.picture("SELECT id, n FROM t") == ["r|1", "s|2"])
    try b.sql("UPDATE t SET other = 'local' WHERE id = 'r'", at: 20)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT * FROM t WHERE id = 'r'") == ["r|9|local"])
    try b.sql("DROP TRIGGER no")
    b.restart()
    let database = try SyncedDatabase(path: b.path, time: b.time, randomness: b.randomness)
    try database.retryParked(now: world.clock.wallClock)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM t WHERE id = 'r'") == ["r|9|local"])
  }

  @Test(
    "TS147 M9 a user trigger that raises: the record is parked, the rest of the set applied",
    arguments: ["ABORT", "FAIL", "ROLLBACK", "IGNORE"])
  func raises(kind: String) throws {
    let world = try World()
    let d = try world.devices(["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n)")
    let raise = kind == "IGNORE" ? "RAISE(IGNORE)" : "RAISE(\(kind), 'no')"
    let when = kind == "FAIL" ? "AFTER" : "BEFORE"
    try d[1].sql("CREATE TRIGGER no \(when) INSERT ON t WHEN NEW.n = 5 BEGIN SELECT \(raise); END")
    try d[0].sql("INSERT INTO t VALUES ('a', 4), ('b', 5), ('c', 6), ('d', 5)", at: 10)
    try d[0].sync()
    let report = try d[1].sync()
    #expect(report.result.failure == nil)
    #expect(try d[1].picture("SELECT id FROM t") == ["a", "c"])
    #expect(try d[1].parked().map(\.record) == ["t:b", "t:d"])
    try d[1].sql("DROP TRIGGER no")
    d[1].restart()
    try SyncedDatabase(path: d[1].path, time: d[1].time, randomness: d[1].randomness).retryParked(
      now: world.clock.wallClock)
    try world.expectConverged()
  }

  @Test("M17 a trigger that stamps rows on every device: the merged values stand and no exchange goes on")
  func stamping() throws {
    let world = try World()
    let schema = """
      CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, n, stamp);
      CREATE TRIGGER stamp AFTER UPDATE OF n ON t BEGIN
        UPDATE t SET stamp = coalesce(NEW.stamp, 0) + 1 WHERE id = NEW.id; END;
      """
    let d = try world.devices(["A", "B"], schema: schema, base: "INSERT INTO t VALUES ('r', 1, 0)")
    try d[0].sql("UPDATE t SET n = 2", at: 10)
    try world.expectConverged()
    #expect(try d[1].picture("SELECT * FROM t") == ["r|2|1"])
  }
}
