import CairnSQLite
import Testing

@Suite struct StatementTests {
  @Test func errorsCarryCodeMessageAndStatement() throws {
    let connection = try memory("CREATE TABLE t(id INTEGER PRIMARY KEY, v UNIQUE); INSERT INTO t VALUES (1, 'a')")
    let unique = sqliteError { try connection.run("INSERT INTO t VALUES (2, 'a')") }
    #expect(unique?.extendedCode == 2067)
    #expect(unique?.code == 19)
    #expect(unique?.isConstraint == true)
    #expect(unique?.isBusy == false)
    #expect(unique?.sql == "INSERT INTO t VALUES (2, 'a')")
    #expect(
      unique?.description == "UNIQUE constraint failed: t.v (SQLite 2067) in: INSERT INTO t VALUES (2, 'a')")
    #expect(sqliteError { try connection.run("SELEC 1") }?.message == "near \"SELEC\": syntax error")
    #expect(SQLiteError(extendedCode: 5, message: "m").description == "m (SQLite 5)")
  }

  @Test func exactlyOneStatementIsCompiled() throws {
    let connection = try memory("CREATE TABLE t(v)")
    for sql in ["", "  \n", "-- nothing", ";"] {
      #expect(sqliteError { _ = try connection.prepare(sql) }?.message == "empty statement", "\(sql)")
    }
    for sql in ["SELECT 1; SELECT 2", "SELECT 1; x", "INSERT INTO t VALUES (1); DROP TABLE t"] {
      #expect(sqliteError { try connection.run(sql) }?.message == "more than one statement", "\(sql)")
    }
    for sql in ["SELECT 1;", "SELECT 1; ", "SELECT 1; -- the end", "SELECT 1 /* open"] {
      #expect(try connection.scalar(sql) == .integer(1), "\(sql)")
    }
    #expect(sqliteError { _ = try connection.prepare("SELECT 1\u{0} garbage") }?.message == "NUL in a statement")
    #expect(sqliteError { try connection.execute("DELETE FROM t\u{0} WHERE v = 1") }?.message == "NUL in a statement")
    #expect(try connection.scalar("SELECT count(*) FROM t") == .integer(0))
  }

  @Test func executeRunsSeveral() throws {
    let connection = try memory("CREATE TABLE t(v); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);")
    #expect(try connection.rows("SELECT v FROM t ORDER BY v") == [[.integer(1)], [.integer(2)]])
    #expect(sqliteError { try connection.execute("INSERT INTO t VALUES (3); nonsense") } != nil)
    #expect(try connection.scalar("SELECT count(*) FROM t") == .integer(3))
  }

  @Test func theCacheGivesTheSameStatementResetAndUnbound() throws {
    let connection = try memory()
    let statement = try connection.cached("SELECT ?")
    try statement.bind(1, "left over")
    #expect(try statement.step())
    let again = try connection.cached("SELECT ?")
    #expect(again === statement)
    #expect(try again.step())
    #expect(again.value(0) == .null)
    connection.clearCache()
    #expect(try connection.cached("SELECT ?") !== statement)
  }

  @Test func theCacheIsBounded() throws {
    let connection = try memory()
    let first = try connection.cached("SELECT -1")
    for number in 0..<1_000 { #expect(try connection.scalar("SELECT \(number)") == .integer(Int64(number))) }
    #expect(try connection.cached("SELECT -1") !== first)
    #expect(try first.step())
  }

  @Test func aStatementRunsAgainAfterAnError() throws {
    let connection = try memory("CREATE TABLE t(v UNIQUE)")
    let insert = try connection.prepare("INSERT INTO t VALUES (?)")
    try insert.run([.integer(1)])
    #expect(sqliteError { try insert.run([.integer(1)]) }?.isConstraint == true)
    try insert.run([.integer(2)])
    insert.reset()
    try insert.run()
    #expect(try connection.rows("SELECT v FROM t") == [[.integer(1)], [.integer(2)], [.null]])
  }

  @Test func scalarOfNoRowIsNil() throws {
    let connection = try memory("CREATE TABLE t(v)")
    #expect(try connection.scalar("SELECT v FROM t") == nil)
    #expect(try connection.scalar("SELECT max(v) FROM t") == .null)
    #expect(try connection.rows("SELECT v FROM t").isEmpty)
  }

  @Test func readingOneRowLeavesNoLock() throws {
    let database = try TemporaryDatabase()
    let reader = try database.open()
    try reader.execute("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2)")
    #expect(try reader.scalar("SELECT v FROM t") == .integer(1))
    let writer = try database.open()
    try writer.execute("BEGIN EXCLUSIVE; COMMIT")
  }

  @Test func aStatementOutlivesItsConnection() throws {
    var connection: Connection? = try memory("CREATE TABLE t(v UNIQUE); INSERT INTO t VALUES (1)")
    let select = try #require(try connection?.prepare("SELECT v FROM t"))
    let insert = try #require(try connection?.prepare("INSERT INTO t VALUES (1)"))
    connection = nil
    #expect(try select.step())
    #expect(select.integer(0) == 1)
    #expect(sqliteError { try insert.run() }?.isConstraint == true)
  }

  @Test func aSchemaChangeIsSeenByPreparedStatements() throws {
    let connection = try memory("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    #expect(try connection.rows("SELECT * FROM t") == [[.integer(1)]])
    try connection.execute("ALTER TABLE t ADD COLUMN b DEFAULT 2")
    #expect(try connection.rows("SELECT * FROM t") == [[.integer(1), .integer(2)]])
  }
}
