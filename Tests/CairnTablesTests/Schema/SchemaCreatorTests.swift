import CSQLite
import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Creating the tables of a zone (tables L3, TS177)")
struct SchemaCreatorTests {
  private func published(_ name: String, _ statements: String...) -> PublishedTable {
    PublishedTable(
      wireName: name, name: name, isMapped: false, columns: [], statements: statements, statementsClock: 1)
  }

  private func published(_ sql: String) throws -> [PublishedTable] {
    let schema = try DatabaseSchema.read(from: memoryDatabase(sql))
    return SchemaPlanner.plan(schema).plans.compactMap { plan in
      schema.table(plan.name).map { PublishedTable(plan, $0, clock: 5) }
    }
  }

  @Test("TS177: tables and indexes as on the first device")
  func creates() throws {
    let sql =
      scenarioSchema + """
        ; CREATE TABLE "odd ""name" (id INTEGER PRIMARY KEY AUTOINCREMENT, d TEXT DEFAULT abc, e TEXT DEFAULT CURRENT_TIMESTAMP, a TEXT DEFAULT (lower('X')) CHECK(length(a) > 0),
          g TEXT AS (a || 'x') STORED) STRICT;
        CREATE TABLE w(a, b, PRIMARY KEY(a, b)) WITHOUT ROWID;
        CREATE UNIQUE INDEX i ON w(lower(a) DESC, b COLLATE NOCASE) WHERE b IS NOT NULL;
        """
    let tables = try published(sql)
    let connection = try memoryDatabase("PRAGMA foreign_keys = ON; CREATE TABLE lists(id TEXT PRIMARY KEY, mine)")
    let created = try SchemaCreator.create(tables, in: connection)
    #expect(created.count == tables.count - 1 && !created.contains("lists"))
    let here = try DatabaseSchema.read(from: connection).tables.filter { $0.name != "lists" }
    let there = try DatabaseSchema.read(from: memoryDatabase(sql)).tables.filter { $0.name != "lists" }
    #expect(here == there)
    try connection.execute("INSERT INTO w VALUES(1, 2)")
    #expect(try SchemaCreator.create(tables, in: connection) == [])
  }

  @Test(
    "TS177: hostile statements are refused and nothing runs",
    arguments: [
      ["CREATE TABLE t AS SELECT * FROM secret"],
      ["CREATE TABLE t(a PRIMARY KEY) AS SELECT 1"],
      ["CREATE TEMP TABLE t(a PRIMARY KEY)"],
      ["CREATE TABLE temp.t(a PRIMARY KEY)"],
      ["CREATE TABLE main.t(a PRIMARY KEY)"],
      ["CREATE TABLE other(a PRIMARY KEY)"],
      ["CREATE TABLE IF NOT EXISTS t(a PRIMARY KEY)"],
      ["CREATE VIEW t AS SELECT * FROM secret"],
      ["CREATE VIRTUAL TABLE t USING fts5(a)"],
      ["CREATE TRIGGER t AFTER INSERT ON secret BEGIN DELETE FROM secret; END"],
      ["DROP TABLE secret"], ["DELETE FROM secret"], ["PRAGMA writable_schema = ON"],
      ["ATTACH '/tmp/cairn-hostile.db' AS t"], ["VACUUM INTO '/tmp/cairn-hostile.db'"],
      ["CREATE TABLE t(a PRIMARY KEY); DROP TABLE secret"],
      ["CREATE TABLE t(a PRIMARY KEY);"],
      ["CREATE TABLE t(a PRIMARY KEY, b DEFAULT (evil()))"],
      ["CREATE TABLE t(a PRIMARY KEY, b CHECK(evil(b)))"],
      ["CREATE TABLE t(a PRIMARY KEY, b AS (evil(a)))"],
      ["CREATE TABLE t(a PRIMARY KEY, b DEFAULT (unknown()))"],
      ["CREATE TABLE t(a PRIMARY KEY, b DEFAULT ((SELECT x FROM secret)))"],
      ["CREATE TABLE t(a PRIMARY KEY, b DEFAULT (load_extension('x')))"],
      ["CREATE TABLE t(a PRIMARY KEY, b DEFAULT ('x' REGEXP 'y'))"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE INDEX i ON secret(x)"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE INDEX main.i ON t(a)"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE INDEX cairn_i ON t(a)"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE INDEX i ON t(evil(a))"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE INDEX i ON t(a) WHERE evil(a)"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE TABLE u(a PRIMARY KEY)"],
      ["CREATE TABLE t(a PRIMARY KEY)", "CREATE TRIGGER i AFTER INSERT ON t BEGIN DELETE FROM secret; END"],
      ["CREATE TABLE t(a PRIMARY KEY)", "REINDEX"],
      ["CREATE TABLE t(a PRIMARY KEY) /* ' */ -- \n, 'x"],
      ["CREATE TABLE t(a PRIMARY KEY)\0; DROP TABLE secret"],
      ["CREATE TABLE t(a DEFAULT (?1))"], [""], [],
    ])
  func hostile(statements: [String]) throws {
    let connection = try memoryDatabase("CREATE TABLE secret(x); INSERT INTO secret VALUES(1)")
    let evil: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = { context, _, _ in
      sqlite3_result_int(context, 1)
    }
    for (name, count) in [("evil", 0), ("evil", 1), ("regexp", 2)] as [(String, Int32)] {
      sqlite3_create_function(
        connection.handle, name, count, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nil, evil, nil, nil)
    }
    let before = try DatabaseSchema.read(from: connection)
    let good = published("good", "CREATE TABLE good(a PRIMARY KEY)")
    let bad = PublishedTable(
      wireName: "t", name: "t", isMapped: false, columns: [], statements: statements, statementsClock: 1)
    #expect(throws: SchemaCreator.Refusal.self) { try SchemaCreator.create([good, bad], in: connection) }
    #expect(try DatabaseSchema.read(from: connection) == before)
    #expect(try connection.scalar("SELECT count(*) FROM secret") == .integer(1))
    #expect(!connection.isInTransaction)
    // The authorizer is gone.
    try connection.execute("CREATE VIEW v AS SELECT 1")
  }

  @Test("TS177: reserved names are refused", arguments: ["cairn_log", "sqlite_x", "Cairn_State", ""])
  func reserved(name: String) throws {
    let connection = try memoryDatabase("")
    let table = published(name, "CREATE TABLE \"\(name)\"(a PRIMARY KEY)")
    #expect(throws: SchemaCreator.Refusal.self) { try SchemaCreator.create([table], in: connection) }
  }

  @Test("the cairn_table record comes back whole")
  func record() throws {
    for table in try published(scenarioSchema) {
      #expect(try PublishedTable(recordName: table.recordName, fields: table.fields) == table)
    }
    let table = try published(scenarioSchema)[0]
    for field in ["table_name", "key_kind", "columns", "statements", "statements_clock"] {
      var fields = table.fields
      fields.set(field, .string("{"))
      if field == "table_name" { fields.remove(field) }
      #expect(throws: RecordBodyError.self) {
        _ = try PublishedTable(recordName: table.recordName, fields: fields)
      }
    }
    #expect(throws: RecordBodyError.self) { _ = try PublishedTable(recordName: "cairn_table:", fields: table.fields) }
  }

  @Test(
    "names that would collide with Cairn's or the server's fields are not taken from the zone",
    arguments: ["cairn_clocks", "recordid", "A", "", "1a", "a b", "é"])
  func hostileNames(name: String) throws {
    let table = PublishedTable(
      wireName: "t", name: "t", isMapped: false,
      columns: [.init(name: "a", wireName: name, fieldType: .string, clock: 1)], statements: ["x"], statementsClock: 1)
    #expect(throws: RecordBodyError.self) { _ = try PublishedTable(recordName: "cairn_table:t", fields: table.fields) }
    var good = table
    good.columns[0].wireName = "a_2"
    #expect(try PublishedTable(recordName: "cairn_table:t", fields: good.fields) == good)
    #expect(throws: RecordBodyError.self) {
      _ = try PublishedTable(recordName: "cairn_table:cairn_\(name)", fields: good.fields)
    }
    good.columns[0].fieldType = .location
    #expect(throws: RecordBodyError.self) { _ = try PublishedTable(recordName: "cairn_table:t", fields: good.fields) }
  }

  @Test("every wire name that is given is valid; seed 21")
  func givenNames() {
    var random = SplitMix(21)
    for _ in 0..<2_000 {
      let name = String(decoding: random.bytes(upTo: 10), as: UTF8.self)
      #expect(WireName.isValid(column: WireName.column(name)), "\(name)")
      #expect(WireName.isValid(table: WireName.table(name)), "\(name)")
    }
  }

  @Test("tables 1.4: claims merge by union, of one claim the earlier clock stands; the later schema wins")
  func merges() {
    func table(_ claims: [(String, String, FieldType, Int64)], _ sql: String, _ clock: Int64) -> PublishedTable {
      PublishedTable(
        wireName: "t", name: "t", isMapped: false,
        columns: claims.map { .init(name: $0.0, wireName: $0.1, fieldType: $0.2, clock: $0.3) }, statements: [sql],
        statementsClock: clock)
    }
    let a = table([("a", "a", .string, 1), ("b", "b", .int64, 5)], "A", 5)
    let b = table([("a", "a", .int64, 2), ("c", "c", .string, 3)], "B", 7)
    let c = table([("B", "b", .double, 4), ("a", "a_2", .double, 9)], "C", 7)
    let all = a.merged(with: b).merged(with: c)
    #expect(all == c.merged(with: b).merged(with: a) && all == b.merged(with: a.merged(with: c)))
    #expect(all.merged(with: all) == all && all.merged(with: b) == all)
    #expect(all.statements == ["C"])
    #expect(all.claims(for: "A").map(\.wireName) == ["a", "a_2"] && all.fieldType(of: "a") == .string)
    #expect(all.claims(for: "b").map(\.fieldType) == [.double])
    #expect(a.lacks(b) && !all.lacks(b))
  }

  @Test("tables V5: a fresh device takes names and types from the zone, also after a rename")
  func fresh() throws {
    let zone = PublishedTable(
      wireName: "old", name: "notes", isMapped: false,
      columns: [
        .init(name: "id", wireName: "id", fieldType: .string, clock: 1),
        .init(name: "a", wireName: "a", fieldType: .int64, clock: 1),
        .init(name: "b", wireName: "a", fieldType: .int64, clock: 3),
        .init(name: "a", wireName: "a_2", fieldType: .string, clock: 5),
      ], statements: [], statementsClock: 5)
    let result = try planning("CREATE TABLE notes(id TEXT PRIMARY KEY, a, b, c)", published: [zone])
    let plan = result.plans[0]
    #expect(plan.wireName == "old")
    #expect(plan.columns.map(\.wireName) == ["id", "a_2", "a", "c"])
    #expect(plan.columns.map(\.fieldType) == [.string, .string, .int64, .string])
    let both = try planning(
      "CREATE TABLE notes(id TEXT PRIMARY KEY); CREATE TABLE old(id TEXT PRIMARY KEY)", published: [zone])
    #expect(both.plans.map(\.wireName) == ["old", "old_2"])
    let renamed = try planning("CREATE TABLE old(id TEXT PRIMARY KEY, b)", published: [zone])
    #expect(renamed.plans[0].wireName == "old" && renamed.plans[0].columns[1].wireName == "a")
    let mapped = try planning("CREATE TABLE notes(id INTEGER PRIMARY KEY)", published: [zone])
    #expect(mapped.problems.map(\.code) == [.keyKindDiffers])
    #expect(mapped.problems[0].remedy == "use --natural-key notes")
  }
}
