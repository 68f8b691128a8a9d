import CSQLite
import CairnRecords
import CairnSQLite
import Foundation
import Testing

@testable import CairnTables

/// The schema of tables section 8.
let scenarioSchema = """
  CREATE TABLE lists(id TEXT NOT NULL PRIMARY KEY, title, color);
  CREATE TABLE items(id TEXT NOT NULL PRIMARY KEY, list_id TEXT NOT NULL REFERENCES lists ON DELETE CASCADE, title, done, due);
  CREATE TABLE covers(list_id TEXT NOT NULL PRIMARY KEY REFERENCES lists ON DELETE CASCADE, image BLOB);
  CREATE TABLE tags(name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE);
  CREATE TABLE item_tags(item_id TEXT NOT NULL REFERENCES items ON DELETE CASCADE,
    tag TEXT NOT NULL REFERENCES tags ON DELETE CASCADE ON UPDATE CASCADE, PRIMARY KEY(item_id, tag));
  CREATE TABLE slots(id TEXT NOT NULL PRIMARY KEY, pos UNIQUE, label);
  CREATE TABLE notes(id INTEGER PRIMARY KEY, title, body);
  CREATE TABLE files(id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes ON DELETE SET NULL ON UPDATE CASCADE, name);
  CREATE TABLE labels(id INTEGER PRIMARY KEY, name UNIQUE);
  CREATE TABLE marks(note_id INTEGER REFERENCES notes ON DELETE CASCADE,
    label_id INTEGER REFERENCES labels ON DELETE CASCADE, PRIMARY KEY(note_id, label_id));
  CREATE TABLE employees(id INTEGER PRIMARY KEY, name, boss_id INTEGER REFERENCES employees ON DELETE RESTRICT);
  """

func memoryDatabase(_ sql: String) throws -> Connection {
  let connection = try Connection(path: ":memory:", mode: .create)
  try connection.execute(sql)
  return connection
}

func planning(
  _ sql: String, _ options: SelectionOptions = SelectionOptions(), remembered: [RememberedTable] = [],
  published: [PublishedTable] = []
) throws -> PlanningResult {
  SchemaPlanner.plan(
    try DatabaseSchema.read(from: memoryDatabase(sql)), options: options, remembered: remembered, published: published)
}

@Suite("Schema planner")
struct SchemaPlannerTests {
  private func plan(_ name: String, _ result: PlanningResult) throws -> TablePlan {
    try #require(result.plans.first { $0.name == name })
  }

  @Test("tables 1.2: kinds of keys, key parts, local targets")
  func keys() throws {
    let result = try planning(scenarioSchema)
    #expect(result.problems.isEmpty && result.warnings.isEmpty)
    let notes = try plan("notes", result)
    let labels = try plan("labels", result)
    #expect(notes.keyKind == .mapped && notes.rowIDAlias == 0 && !notes.isField(0) && notes.isField(1))
    #expect(notes.columns[0].localTarget == nil)
    #expect(try plan("lists", result).keyKind == .natural)
    #expect(try plan("covers", result).keyParts == [.reference(table: plan("lists", result).number)])
    let marks = try plan("marks", result)
    #expect(marks.keyKind == .natural && marks.isField(0) && marks.isField(1))
    #expect(marks.keyParts == [.reference(table: notes.number), .reference(table: labels.number)])
    #expect(marks.columns.map(\.localTarget) == [notes.number, labels.number])
    #expect(marks.columns.map(\.fieldType) == [.reference, .reference])
    let files = try plan("files", result)
    #expect(files.columns[1].localTarget == notes.number)
    #expect(try plan("items", result).columns[1].localTarget == nil)
    #expect(try plan("employees", result).isCyclic && !files.isCyclic)
  }

  @Test("tables U4: parents rank before children")
  func ranks() throws {
    let result = try planning(scenarioSchema)
    #expect(Set(result.plans.map(\.rank)).count == result.plans.count)
    let rank = Dictionary(uniqueKeysWithValues: result.plans.map { ($0.number, $0.rank) })
    for plan in result.plans {
      for key in plan.foreignKeys where key.parent != plan.number {
        #expect(try #require(rank[key.parent]) < plan.rank)
      }
    }
  }

  @Test("capture's gate: user triggers, ON UPDATE of keys whose bytes change, ON DELETE actions")
  func gates() throws {
    let result = try planning(
      scenarioSchema + "; CREATE TRIGGER u AFTER INSERT ON slots BEGIN DELETE FROM lists WHERE 0; END;")
    #expect(try plan("tags", result).writesElsewhere)
    #expect(try plan("notes", result).writesElsewhere == false)
    #expect(try plan("notes", result).deletesWriteElsewhere)
    #expect(try plan("slots", result).writesElsewhere)
    #expect(try plan("employees", result).deletesWriteElsewhere == false)
  }

  @Test("tables TS2: every problem of every table in one run")
  func allProblems() throws {
    let sql = """
      CREATE TABLE p(x); CREATE VIRTUAL TABLE f USING fts5(a); CREATE VIEW v AS SELECT 1;
      CREATE TABLE folders(id INTEGER PRIMARY KEY); CREATE TABLE n(id TEXT PRIMARY KEY, folder_id REFERENCES folders);
      """
    let result = try planning(sql, SelectionOptions(tables: ["p", "f", "v", "n", "nots"]))
    #expect(Set(result.problems.map(\.code)) == [.noPrimaryKey, .virtualTable, .view, .parentNotSynced])
    #expect(result.plans.isEmpty)
    #expect(result.usageErrors.map(\.code) == [.noSuchTable])
    #expect(
      result.problems.first { $0.code == .parentNotSynced }?.description
        == "n.folder_id: n.folder_id refers to folders, which is not synced and whose integers differ between devices: "
        + "sync folders, exclude n, or use --natural-key folders")
    let natural = try planning(sql, SelectionOptions(tables: ["n"], naturalKeys: ["FOLDERS"]))
    #expect(natural.problems.isEmpty && natural.plans[0].columns[1].localTarget == nil)
  }

  @Test("views, shadow tables and Cairn's own tables are left out without a word")
  func skipped() throws {
    let result = try planning(
      "CREATE TABLE t(a PRIMARY KEY); CREATE VIEW v AS SELECT 1; CREATE TABLE cairn_log(x)",
      SelectionOptions(ownTables: ["cairn_log"]))
    #expect(result.skipped.sorted() == ["cairn_log", "v"] && result.problems.isEmpty)
    let named = try planning(
      "CREATE TABLE cairn_log(x); CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT)",
      SelectionOptions(tables: ["cairn_log", "sqlite_sequence"], ownTables: ["cairn_log"]))
    #expect(named.problems.map(\.code) == [.reservedName] && named.usageErrors.map(\.table) == ["sqlite_sequence"])
    #expect(named.skipped == ["sqlite_sequence"])
    let foreign = try planning("CREATE TABLE cairn_mine(x PRIMARY KEY)")
    #expect(foreign.problems.map(\.code) == [.reservedName])
  }

  @Test("tables TS4: cycles, self references and unique indexes of every sort are accepted")
  func accepted() throws {
    let result = try planning(
      """
      CREATE TABLE a(id TEXT PRIMARY KEY, b TEXT REFERENCES b(id), me REFERENCES a ON DELETE RESTRICT);
      CREATE TABLE b(id TEXT PRIMARY KEY, a TEXT REFERENCES a(id), u UNIQUE, ok, g AS (u || 'x'));
      CREATE UNIQUE INDEX i ON b(lower(u)) WHERE ok = 1; CREATE UNIQUE INDEX j ON b(g);
      """)
    #expect(result.problems.isEmpty)
    #expect(result.plans.allSatisfy { $0.isCyclic })
    let b = try plan("b", result)
    #expect(b.generatedColumns == ["g"])
    #expect(
      b.uniqueIndexes.map(\.terms) == [
        [.expression("lower(u)", collation: "BINARY")], [.expression("\"g\"", collation: "BINARY")],
        [.column(2, collation: "BINARY")],
      ])
    #expect(b.uniqueIndexes[0].predicate == "ok = 1")
  }

  @Test("keyCycle: keys that name each other, until one is natural")
  func keyCycle() throws {
    let sql = """
      CREATE TABLE a(id INTEGER PRIMARY KEY REFERENCES b(id)); CREATE TABLE b(id INTEGER PRIMARY KEY REFERENCES a(id));
      """
    let result = try planning(sql)
    #expect(result.problems.map(\.code) == [.keyCycle] && result.plans.isEmpty)
    #expect(result.problems[0].remedy == "use --natural-key a")
    let natural = try planning(sql, SelectionOptions(naturalKeys: ["a"]))
    #expect(natural.problems.isEmpty)
    #expect(try plan("a", natural).keyParts == [.value])
    #expect(try plan("b", natural).keyParts == [.reference(table: plan("a", natural).number)])
  }

  @Test("parentInvalid: missing tables, columns that are not unique")
  func parentInvalid() throws {
    let result = try planning(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY, code, name UNIQUE);
      CREATE TABLE x(id TEXT PRIMARY KEY, c REFERENCES lists(code));
      CREATE TABLE y(id TEXT PRIMARY KEY, c REFERENCES nowhere);
      CREATE TABLE z(id TEXT PRIMARY KEY, c REFERENCES lists(name));
      """)
    #expect(result.problems.map(\.table) == ["x", "y"])
    #expect(result.problems.allSatisfy { $0.code == .parentInvalid })
    #expect(result.problems[0].reason == "x.c refers to lists(code), which does not exist or is not unique")
    #expect(result.plans.map(\.name) == ["lists", "z"])
  }

  @Test("tables TS6: only triggers that write synced tables without asking are warned of, with the clause")
  func triggerWarnings() throws {
    let result = try planning(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY); CREATE TABLE items(id TEXT PRIMARY KEY); CREATE TABLE log(x);
      CREATE TABLE other(id TEXT PRIMARY KEY REFERENCES lists ON DELETE CASCADE);
      CREATE TRIGGER a AFTER INSERT ON log BEGIN INSERT INTO lists VALUES(1); END;
      CREATE TRIGGER b AFTER INSERT ON items BEGIN UPDATE OR IGNORE "lists" SET id = 1; END;
      CREATE TRIGGER c AFTER INSERT ON items WHEN (SELECT applying FROM cairn_state)=0 BEGIN DELETE FROM lists; END;
      CREATE TRIGGER d AFTER UPDATE OF id ON items BEGIN INSERT INTO log VALUES(1); END;
      """, SelectionOptions(exclude: ["log", "other"]))
    #expect(result.warnings.map(\.code) == [.triggerWritesSynced, .excludedTableCascades])
    #expect(result.warnings[0].message.contains("WHEN (SELECT applying FROM cairn_state) = 0"))
    #expect(result.warnings[0].message.contains("trigger b "))
  }

  @Test("rows whose foreign keys point nowhere are counted")
  func violations() throws {
    let connection = try memoryDatabase(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE l(id TEXT PRIMARY KEY); CREATE TABLE i(id TEXT PRIMARY KEY, a REFERENCES l, b REFERENCES l);
      INSERT INTO i VALUES(1, 'x', NULL), (2, 'y', 'z');
      """)
    let schema = try DatabaseSchema.read(from: connection)
    let warnings = try SchemaWarnings.foreignKeyViolations(schema, SchemaPlanner.plan(schema).plans, in: connection)
    #expect(warnings.map(\.column) == ["a", "b"])
    #expect(warnings[0].message.hasPrefix("2 rows of i refer by a to rows of l "))
  }

  @Test("tables 1.5: field types by declaration")
  func fieldTypes() throws {
    let result = try planning(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, a BOOLEAN, b DATETIME, c DECIMAL(9), d, e ANY, f BLOB, g FLOAT, h TIMESTAMP, i INT8)
      """)
    #expect(
      result.plans[0].columns.map(\.fieldType) == [
        .string, .int64, .string, .double, .string, .string, .bytes, .double, .string, .int64,
      ])
  }

  @Test("defaults are expressions that mean the same in other statements")
  func defaults() throws {
    let sql = """
      CREATE TABLE t(id TEXT PRIMARY KEY, a DEFAULT Abc, b DEFAULT "x'y", c DEFAULT true, d DEFAULT (1 + 1), e DEFAULT -5,
        f DEFAULT 'q', g DEFAULT NULL, h DEFAULT x'00', i, j DEFAULT 1.5)
      """
    let connection = try memoryDatabase(sql + "; INSERT INTO t(id) VALUES('k')")
    let plan = SchemaPlanner.plan(try DatabaseSchema.read(from: connection)).plans[0]
    let row = try connection.rows("SELECT * FROM t")[0]
    for (column, value) in zip(plan.columns, row) where !column.isKey {
      #expect(try connection.scalar("SELECT (\(column.defaultSQL ?? "NULL"))") == value, "\(column.name)")
    }
  }

  @Test("needsExtension: collations and functions of a program, with the place")
  func extensions() throws {
    let path = "/tmp/cairn-extension-\(UInt64.random(in: 0...(.max))).db"
    defer { remove(path) }
    let program = try Connection(path: path, mode: .create)
    let compare:
      @convention(c) (
        UnsafeMutableRawPointer?, Int32, UnsafeRawPointer?, Int32, UnsafeRawPointer?
      ) -> Int32 = { _, _, _, _, _ in 0 }
    sqlite3_create_collation(program.handle, "german", SQLITE_UTF8, nil, compare)
    let call: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = { context, _, _ in
      sqlite3_result_int(context, 1)
    }
    sqlite3_create_function(program.handle, "fold", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nil, call, nil, nil)
    try program.execute(
      """
      CREATE TABLE a(id TEXT PRIMARY KEY, name TEXT COLLATE german);
      CREATE TABLE b(id TEXT PRIMARY KEY, x, y CHECK(fold(y) > 0));
      CREATE TABLE c(id TEXT PRIMARY KEY, x); CREATE UNIQUE INDEX i ON c(fold(x));
      CREATE TABLE d(id TEXT PRIMARY KEY, x, g AS (fold(x)));
      CREATE TABLE e(id TEXT PRIMARY KEY, x DEFAULT (fold(1)));
      CREATE TABLE f(id TEXT PRIMARY KEY, x); CREATE INDEX j ON f(x COLLATE german);
      CREATE TABLE g(id TEXT PRIMARY KEY, x); CREATE INDEX k ON g(id) WHERE fold(x);
      CREATE TABLE ok(id TEXT PRIMARY KEY, x CHECK(abs(x) > 0));
      """)
    #expect(SchemaPlanner.plan(try DatabaseSchema.read(from: program)).problems.isEmpty)
    let plain = try Connection(path: path)
    let result = SchemaPlanner.plan(try DatabaseSchema.read(from: plain))
    #expect(result.problems.map(\.table) == ["a", "b", "c", "d", "e", "f", "g"])
    #expect(result.problems.allSatisfy { $0.code == .needsExtension })
    #expect(result.problems.map(\.column) == ["name", "y", nil, "g", "x", "x", nil])
    #expect(
      result.problems[0].reason == "a.name uses the collation german, which SQLite does not have built in")
  }

  @Test("tables U4: ranks do not depend on the order in which tables are given; seed 3")
  func ranksAreStable() {
    var random = SplitMix(3)
    for _ in 0..<200 {
      let count = Int.random(in: 1...8, using: &random)
      let names = (0..<count).map { "t\($0)" }
      let parents = (0..<count).map { child in
        Set((0..<count).filter { $0 != child && Int.random(in: 0..<4, using: &random) == 0 })
      }
      let order = Array(0..<count).shuffled(using: &random)
      let ranks = TableRanks(names: names, parents: parents)
      let shuffled = TableRanks(
        names: order.map { names[$0] },
        parents: order.map { Set(parents[$0].compactMap { order.firstIndex(of: $0) }) })
      #expect(Set(ranks.ranks) == Set(0..<count))
      for (place, table) in order.enumerated() {
        #expect(shuffled.ranks[place] == ranks.ranks[table])
        for parent in parents[table] where !(ranks.isInCycle[table] && ranks.isInCycle[parent]) {
          #expect(ranks.ranks[parent] < ranks.ranks[table])
        }
      }
    }
  }

  @Test("any schema of keys that refer to each other is planned or refused with a reason; seed 9")
  func randomSchemas() throws {
    var random = SplitMix(9)
    for _ in 0..<150 {
      let count = Int.random(in: 1...5, using: &random)
      var statements: [String] = []
      for t in 0..<count {
        let types = ["INTEGER", "TEXT", ""]
        func reference() -> String {
          Int.random(in: 0..<3, using: &random) == 0 ? " REFERENCES t\(Int.random(in: 0...count, using: &random))" : ""
        }
        let columns = ["a", "b", "c"].map { name in
          "\(name) \(types.randomElement(using: &random) ?? "")\(reference())"
        }
        let key = ["PRIMARY KEY(a)", "PRIMARY KEY(a, b)", "UNIQUE(c)"].randomElement(using: &random) ?? ""
        statements.append("CREATE TABLE t\(t)(\(columns.joined(separator: ", ")), \(key));")
      }
      let sql = statements.joined(separator: "\n")
      let result = try planning(sql)
      #expect(Set(result.plans.map(\.name)).union(result.problems.map(\.table)).count <= count, "\(sql)")
      let namer = RecordNamer(result.plans)
      for plan in result.plans {
        #expect(!result.problems.contains { $0.table == plan.name })
        for key in plan.foreignKeys { #expect(result.plans.contains { $0.number == key.parent }) }
        for column in plan.columns {
          guard let target = column.localTarget else { continue }
          #expect(result.plans.contains { $0.number == target && $0.keyKind == .mapped }, "\(sql)")
        }
        guard plan.keyKind == .natural else { continue }
        let key = plan.keyColumns.map { _ in Value.integer(5) }
        let name = namer.name(plan, key: key) { table, integer in "m\(table):\(integer)" }
        #expect(name != nil, "\(sql)")
        #expect(name.flatMap { namer.key(plan, of: $0) }?.count == key.count, "\(sql)")
      }
    }
  }
}
