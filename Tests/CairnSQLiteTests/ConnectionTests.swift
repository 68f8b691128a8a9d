import CairnSQLite
import Foundation
import Testing

@Suite struct ConnectionTests {
  @Test func modesSayWhoMayCreateAndWrite() throws {
    let database = try TemporaryDatabase()
    for mode in [Connection.Mode.readOnly, .readWrite] {
      #expect(sqliteError { _ = try database.open(mode) }?.code == 14)
    }
    #expect(!FileManager.default.fileExists(atPath: database.path))
    let writer = try database.open(.create)
    try writer.execute("CREATE TABLE t(v); INSERT INTO t VALUES (1)")
    #expect(writer.path == database.path)
    let reader = try database.open(.readOnly)
    #expect(try reader.scalar("SELECT v FROM t") == .integer(1))
    let error = sqliteError { try reader.run("INSERT INTO t VALUES (2)") }
    #expect(error?.code == 8)
    #expect(try database.open(.readWrite).scalar("SELECT count(*) FROM t") == .integer(1))
  }

  @Test func aFolderAndAnotherKindOfFileAreErrors() throws {
    let database = try TemporaryDatabase()
    #expect(sqliteError { _ = try Connection(path: database.folder) }?.code == 14)
    try Data("this is no database, only a text that is long enough".utf8).write(to: URL(fileURLWithPath: database.path))
    #expect(sqliteError { try database.open().execute("SELECT * FROM sqlite_schema") }?.code == 26)
  }

  @Test func aLockedDatabaseIsBusy() throws {
    let database = try TemporaryDatabase()
    let one = try database.open()
    try one.execute("CREATE TABLE t(v)")
    let other = try database.open()
    try one.execute("BEGIN IMMEDIATE")
    let error = sqliteError { try other.transaction { try other.run("INSERT INTO t VALUES (1)") } }
    #expect(error?.isBusy == true)
    #expect(error?.isConstraint == false)
    #expect(!other.isInTransaction)
    one.rollBack()
    try other.transaction { try other.run("INSERT INTO t VALUES (1)") }
  }

  @Test func aCommitThatIsBusyLeavesNoTransaction() throws {
    let database = try TemporaryDatabase()
    let writer = try database.open()
    try writer.execute("PRAGMA journal_mode = DELETE; CREATE TABLE t(v); INSERT INTO t VALUES (1)")
    let reader = try database.open()
    let select = try reader.prepare("SELECT v FROM t")
    #expect(try select.step())
    #expect(sqliteError { try writer.transaction { try writer.run("INSERT INTO t VALUES (2)") } }?.isBusy == true)
    #expect(!writer.isInTransaction)
    select.reset()
    #expect(try writer.scalar("SELECT count(*) FROM t") == .integer(1))
  }

  @Test func theBusyTimeoutWaitsForTheLock() async throws {
    let database = try TemporaryDatabase()
    try database.open().execute("CREATE TABLE t(v)")
    let path = database.path
    let (locked, signalLocked) = AsyncStream<Void>.makeStream()
    let writing = Thread.detached {
      let one = try Connection(path: path)
      try one.transaction {
        try one.run("INSERT INTO t VALUES (1)")
        signalLocked.finish()
        // Held for as long as the other one needs to meet the lock at least once.
        for _ in 0..<20 {
          _ = try one.scalar(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000) SELECT count(*) FROM n")
        }
      }
    }
    for await _ in locked {}
    let other = try database.open(.readWrite, busyTimeout: 60_000)
    try other.transaction { try other.run("INSERT INTO t VALUES (2)") }
    try writing.wait()
    #expect(try other.rows("SELECT v FROM t") == [[.integer(1)], [.integer(2)]])
  }

  @Test func dataVersionChangesWithForeignCommitsOnly() throws {
    let database = try TemporaryDatabase()
    let one = try database.open()
    try one.execute("CREATE TABLE t(v)")
    let other = try database.open()
    let version = try one.dataVersion()
    try one.run("INSERT INTO t VALUES (1)")
    #expect(try one.dataVersion() == version)
    try other.run("INSERT INTO t VALUES (2)")
    #expect(try one.dataVersion() != version)
  }

  @Test func changesAreCounted() throws {
    let connection = try memory(
      """
      CREATE TABLE t(v); CREATE TABLE log(v);
      CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.v); END;
      """)
    let before = connection.totalChanges
    try connection.run("INSERT INTO t VALUES (1), (2), (3)")
    #expect(connection.changes == 3)
    #expect(connection.totalChanges - before == 6)
    #expect(connection.lastInsertRowID == 3)
  }

  @Test func deferredForeignKeyViolationsAreSeenBeforeTheCommit() throws {
    let connection = try memory(
      """
      PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY);
      CREATE TABLE c(p REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)
      """)
    #expect(!connection.hasDeferredForeignKeyViolations)
    try connection.transaction {
      try connection.run("INSERT INTO c VALUES (7)")
      #expect(connection.hasDeferredForeignKeyViolations)
      try connection.run("INSERT INTO p VALUES (7)")
      #expect(!connection.hasDeferredForeignKeyViolations)
    }
    let error = sqliteError { try connection.transaction { try connection.run("INSERT INTO c VALUES (8)") } }
    #expect(error?.extendedCode == 787)
    #expect(!connection.isInTransaction)
    #expect(!connection.hasDeferredForeignKeyViolations)
    #expect(try connection.scalar("SELECT count(*) FROM c") == .integer(1))
  }

  @Test func anotherThreadInterrupts() throws {
    let connection = try memory("CREATE TABLE t(v)")
    let handle = connection.interruptHandle
    let isDone = Flag()
    let interrupting = Thread.detached {
      while !isDone.value { handle.interrupt() }
    }
    let error = sqliteError {
      try connection.transaction {
        try connection.run(
          "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
      }
    }
    isDone.set()
    try interrupting.wait()
    #expect(error?.code == 9)
    #expect(!connection.isInTransaction)
    #expect(try connection.scalar("SELECT count(*) FROM t") == .integer(0))
  }

  @Test func anInterruptAfterTheEndDoesNothing() throws {
    var connection: Connection? = try memory()
    let handle = try #require(connection?.interruptHandle)
    handle.interrupt()
    #expect(try connection?.scalar("SELECT 1") == .integer(1))
    connection = nil
    handle.interrupt()
  }
}
