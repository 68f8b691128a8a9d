import Testing

@testable import CairnSQLite

@Suite("Schema introspection")
struct SchemaReaderTests {
  private func schema(_ sql: String) throws -> DatabaseSchema {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(sql)
    return try DatabaseSchema.read(from: connection)
  }

  @Test("columns: affinity, key order, generated ones, collation, default")
  func columns() throws {
    let schema = try schema(
      """
      CREATE TABLE t(a VARCHAR(10) NOT NULL DEFAULT 'x', b, c DECIMAL, d DOUBLE, e BIGINT COLLATE RTRIM, f LONGBLOB,
        g INT GENERATED ALWAYS AS (e + 1) STORED, h TEXT AS (a || 'y') VIRTUAL, "i j" DATE, PRIMARY KEY(e, a))
        WITHOUT ROWID
      """)
    let t = try #require(schema.table("T"))
    #expect(t.isWithoutRowID && !t.isStrict && t.rowIDAlias == nil)
    #expect(t.columns.map(\.name) == ["a", "b", "c", "d", "e", "f", "g", "h", "i j"])
    #expect(
      t.columns.map(\.affinity) == [.text, .blob, .numeric, .real, .integer, .blob, .integer, .text, .numeric])
    #expect(t.columns.map(\.generated) == [.no, .no, .no, .no, .no, .no, .stored, .virtual, .no])
    #expect(t.columns[6].declaredType == "INT")
    #expect(t.primaryKey == [4, 0])
    #expect(t.columns[4].collation == "RTRIM")
    #expect(t.columns[0].isNotNull && t.columns[0].defaultSQL == "'x'")
  }

  @Test("rowid alias: only a plain INTEGER PRIMARY KEY")
  func rowIDAlias() throws {
    let schema = try schema(
      """
      CREATE TABLE a(id INTEGER PRIMARY KEY AUTOINCREMENT);
      CREATE TABLE b(x, id INTEGER, PRIMARY KEY(id ASC));
      CREATE TABLE c(id INT PRIMARY KEY);
      CREATE TABLE d(id INTEGER PRIMARY KEY DESC);
      CREATE TABLE e(id INTEGER PRIMARY KEY) WITHOUT ROWID;
      CREATE TABLE f(id INTEGER PRIMARY KEY, v ANY) STRICT;
      """)
    #expect(schema.tables.map(\.rowIDAlias) == [0, 1, nil, nil, nil, 0])
    #expect(schema.table("a")?.isAutoincrement == true && schema.table("b")?.isAutoincrement == false)
    #expect(schema.table("f")?.columns[1].affinity == .blob)
  }

  @Test("views, virtual and shadow tables are told apart; TEMP and attached tables are not seen")
  func kinds() throws {
    let schema = try schema(
      """
      CREATE TABLE t(a); CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(a);
      CREATE TEMP TABLE hidden(a); ATTACH ':memory:' AS other; CREATE TABLE other.o(a);
      """)
    #expect(schema.table("t")?.kind == .table)
    #expect(schema.table("v")?.kind == .view)
    #expect(schema.table("f")?.kind == .virtual)
    #expect(schema.table("f_data")?.kind == .shadow)
    #expect(schema.table("hidden") == nil && schema.table("o") == nil)
  }

  @Test("indexes: terms, expressions as written, predicate, collation, origin")
  func indexes() throws {
    let schema = try schema(
      """
      CREATE TABLE t(a, b COLLATE NOCASE UNIQUE, "on" TEXT, PRIMARY KEY(a));
      CREATE UNIQUE INDEX "i(x" ON t /* ( */ ( lower( a ) || ',' DESC -- end, (
        , b COLLATE RTRIM , "on" ASC ) WHERE "on" > '(WHERE' -- tail
      ;
      CREATE INDEX j ON t(b);
      """)
    let t = try #require(schema.table("t"))
    let i = try #require(t.indexes.first { $0.name == "i(x" })
    #expect(i.isUnique && i.origin == .createIndex)
    #expect(i.terms.map(\.key) == [.expression("lower( a ) || ','"), .column(1), .column(2)])
    #expect(i.terms.map(\.collation) == ["BINARY", "RTRIM", "BINARY"])
    #expect(i.terms.map(\.isDescending) == [true, false, false])
    #expect(i.predicate == "\"on\" > '(WHERE'")
    let unique = try #require(t.indexes.first { $0.origin == .unique })
    #expect(unique.terms.map(\.key) == [.column(1)] && unique.terms[0].collation == "NOCASE")
    #expect(t.indexes.contains { $0.origin == .primaryKey })
    #expect(t.indexes.first { $0.name == "j" }?.isUnique == false)
  }

  @Test("foreign keys: composite, implicit parent key, actions, deferred, in declaration order")
  func foreignKeys() throws {
    let schema = try schema(
      """
      CREATE TABLE p(y, x, PRIMARY KEY(x, y));
      CREATE TABLE c(a REFERENCES q ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, b, d,
        FOREIGN KEY(b, d) REFERENCES p ON UPDATE SET NULL NOT DEFERRABLE INITIALLY DEFERRED,
        FOREIGN KEY(d) REFERENCES q(id) ON DELETE SET DEFAULT DEFERRABLE);
      CREATE TABLE q(id TEXT PRIMARY KEY);
      """)
    let keys = try #require(schema.table("c")).foreignKeys
    #expect(keys.map(\.columns) == [[0], [1, 2], [2]])
    #expect(keys.map(\.parentColumns) == [["id"], ["x", "y"], ["id"]])
    #expect(keys.map(\.onDelete) == [.cascade, .noAction, .setDefault])
    #expect(keys.map(\.onUpdate) == [.noAction, .setNull, .noAction])
    #expect(keys.map(\.isDeferred) == [true, false, false])
  }

  @Test("functions that are not registered are found in triggers too")
  func missingExtensions() throws {
    let schema = try schema(
      """
      CREATE TABLE ok(a TEXT PRIMARY KEY CHECK(length(a) > 1));
      CREATE TABLE z(a TEXT PRIMARY KEY);
      CREATE TRIGGER zt AFTER INSERT ON z BEGIN SELECT notify(new.a); END;
      """)
    #expect(schema.table("ok")?.missingExtension == nil)
    #expect(schema.table("z")?.missingExtension == .init(kind: .function, name: "notify", column: nil))
  }

  @Test("tokens follow SQLite's lexical rules")
  func tokens() {
    let tokens = SQLTokenizer.tokens("Select \"a\"\"b\",[c d],`e`,'f''g',x'0A',1.5e-3,.5,?1,:n--x\n/*y*/<>\u{e4}b")
    #expect(
      tokens.map(\.text) == [
        "select", "a\"b", ",", "c d", ",", "e", ",", "f'g", ",", "0A", ",", "1.5e-3", ",", ".5", ",", "?1", ",", ":n",
        "<",
        ">", "\u{e4}b",
      ])
    #expect(SQLTokenizer.tokens("'open").map(\.kind) == [.unfinished])
    #expect(SQLTokenizer.tokens("5").map(\.text) == ["5"] && SQLTokenizer.tokens("").isEmpty)
  }

  @Test("any text is split without loss or crash; seed 1")
  func anyText() {
    var state: UInt64 = 1
    let alphabet = Array("aX_5.'\"`[]-/*,()x?:e+\n é;".unicodeScalars)
    for _ in 0..<5_000 {
      var text = ""
      for _ in 0..<12 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        text.unicodeScalars.append(alphabet[Int(state >> 33) % alphabet.count])
      }
      var end = 0
      for token in SQLTokenizer.tokens(text) {
        #expect(token.range.lowerBound >= end && !token.range.isEmpty, "\(text)")
        end = token.range.upperBound
      }
      #expect(end <= text.utf8.count)
      _ = SchemaText.index(text)
      _ = SchemaText.deferredForeignKeys(text)
      _ = SchemaText.column(using: "x", in: text)
    }
  }
}
