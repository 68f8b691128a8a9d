import CairnSQLite
import CairnTables
import Testing

@Suite("Rows that refer to each other (tables M8, 8.10)")
struct CircleTests {
  @Test("TS156 two employees, each the other's boss; one with itself as boss; then all deleted", arguments: [1, 200])
  func bosses(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let d = try world.devices(["A", "B"])
    try d[0].sql(
      """
      BEGIN; PRAGMA defer_foreign_keys = ON; INSERT INTO employees VALUES (1, 'a', 2), (2, 'b', 1), (3, 'self', 3);
      COMMIT
      """, at: 10)
    try world.expectConverged()
    #expect(
      try d[1].picture("SELECT e.name, b.name FROM employees e JOIN employees b ON b.id = e.boss_id") == [
        "a|b", "b|a", "self|self",
      ])
    try d[0].sql("BEGIN; PRAGMA defer_foreign_keys = ON; DELETE FROM employees; COMMIT", at: 20)
    try world.expectConverged()
    #expect(try world.serverRecords().isEmpty)
  }

  @Test(
    "M1 M12 a large set deletes children and then their parents in one table: both go, in however many transactions",
    arguments: ["NO ACTION", "SET NULL"])
  func largeFamily(action: String) throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B"], schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, boss REFERENCES t ON DELETE \(action), v)")
    let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 560)"
    try d[0].sql(
      """
      \(numbers) INSERT INTO t SELECT printf('a%04d', i), NULL, 1 FROM n;
      \(numbers) INSERT INTO t SELECT printf('b%04d', i), printf('a%04d', i), 1 FROM n;
      \(numbers) INSERT INTO t SELECT printf('c%04d', i), printf('b%04d', i), 1 FROM n WHERE i <= 30;
      """, at: 10)
    try world.expectConverged()
    try d[0].sql("DELETE FROM t WHERE id > 'c'", at: 20)
    try d[0].sql("DELETE FROM t WHERE id > 'b'", at: 30)
    try d[0].sql("DELETE FROM t WHERE id > 'a0002'", at: 40)
    // Two families have a member that is edited later: they stay as far as they must.
    try d[1].sql("UPDATE t SET v = 2 WHERE id = 'b0555'", at: 50)
    try d[0].sync()
    try d[1].sync()
    try world.expectConverged()
    let left =
      action == "SET NULL" ? ["a0001|∅", "a0002|∅", "b0555|∅"] : ["a0001|∅", "a0002|∅", "a0555|∅", "b0555|a0555"]
    #expect(try d[1].picture("SELECT id, boss FROM t ORDER BY id") == left)
  }

  private static let ring = """
    CREATE TABLE a(id TEXT PRIMARY KEY NOT NULL, b TEXT NOT NULL REFERENCES b DEFERRABLE INITIALLY DEFERRED, n);
    CREATE TABLE b(id INTEGER PRIMARY KEY, a TEXT NOT NULL REFERENCES a DEFERRABLE INITIALLY DEFERRED, n);
    """

  @Test("TS67 M8 rows of two tables that point at each other, in one page and in pages of one", arguments: [1, 200])
  func twoTables(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let schema = Self.ring.replacing("b TEXT", with: "b INTEGER")
    let d = try world.devices(["A", "B"], schema: schema)
    try d[0].sql(
      "BEGIN; INSERT INTO a VALUES ('x', 1, 0), ('y', 2, 0); INSERT INTO b VALUES (1, 'x', 0), (2, 'y', 0); COMMIT",
      at: 10)
    try world.expectConverged()
    #expect(try d[1].scalar("SELECT count(*) FROM a JOIN b ON b.id = a.b") == .integer(2))
  }

  @Test(
    "M8 M9 a circle with one member that can't be applied is parked as a whole and comes back as a whole",
    arguments: [1, 200])
  func badMember(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let schema = Self.ring.replacing("b TEXT", with: "b INTEGER")
    let d = try world.devices(["A", "B"], schema: schema)
    try d[1].sql("CREATE TRIGGER no BEFORE INSERT ON a WHEN NEW.n = 5 BEGIN SELECT RAISE(ABORT, 'no'); END")
    try d[0].sql(
      "BEGIN; INSERT INTO a VALUES ('x', 1, 5), ('y', 2, 0); INSERT INTO b VALUES (1, 'x', 0), (2, 'y', 0); COMMIT",
      at: 10)
    try d[0].sync()
    #expect(try d[1].sync().result.failure == nil)
    #expect(try d[1].picture("SELECT id FROM a") == ["y"])
    #expect(try d[1].parked().count == 2)
    try d[1].sql("DROP TRIGGER no")
    d[1].restart()
    try SyncedDatabase(path: d[1].path, time: d[1].time, randomness: d[1].randomness).retryParked(
      now: world.clock.wallClock)
    try world.expectConverged()
  }

  @Test("M8 M12 a chain of 1,500 rows arrives and goes")
  func chain() throws {
    let world = try World()
    let d = try world.devices(
      ["A", "B"],
      schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, up INTEGER REFERENCES t ON DELETE CASCADE)")
    try d[0].sql(
      """
      INSERT INTO t(id, up) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
        SELECT i, nullif(i - 1, 0) FROM n
      """, at: 10)
    try world.settle()
    #expect(try d[1].scalar("SELECT count(*) FROM t") == .integer(1500))
    try d[0].sql("PRAGMA foreign_keys = OFF; DELETE FROM t; PRAGMA foreign_keys = ON", at: 20)
    try world.settle()
    #expect(try d[1].scalar("SELECT count(*) FROM t") == .integer(0))
    #expect(try d[1].parked().isEmpty)
  }

  @Test("M8 foreign keys to a UNIQUE column of the same table, parents last", arguments: [1, 200])
  func uniqueTarget(perRequest: Int) throws {
    let world = try World(entriesPerRequest: perRequest)
    let d = try world.devices(
      ["A", "B"],
      schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, code UNIQUE, up REFERENCES t(code) ON UPDATE CASCADE)")
    try d[0].sql(
      "BEGIN; PRAGMA defer_foreign_keys = ON; INSERT INTO t VALUES ('a', 'x', 'y'), ('b', 'y', 'z'), ('c', 'z', 'x'); COMMIT",
      at: 10)
    try world.expectConverged()
    try d[0].sql("UPDATE t SET code = 'w' WHERE id = 'b'", at: 20)
    try world.expectConverged()
    #expect(try d[1].picture("SELECT id, code, up FROM t") == ["a|x|w", "b|w|z", "c|z|x"])
  }
}
