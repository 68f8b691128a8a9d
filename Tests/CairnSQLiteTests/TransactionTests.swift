import CairnSQLite
import Testing

@Suite struct TransactionTests {
  private struct Refusal: Error {}

  private func values(_ connection: Connection) throws -> [Value] {
    try connection.rows("SELECT v FROM t ORDER BY v").map { $0[0] }
  }

  private func insert(_ value: Int64, _ connection: Connection) throws {
    try connection.run("INSERT INTO t VALUES (?)", .integer(value))
  }

  @Test(arguments: [Connection.TransactionKind.deferred, .immediate])
  func aTransactionCommitsItsResult(kind: Connection.TransactionKind) throws {
    let connection = try memory("CREATE TABLE t(v)")
    let result = try connection.transaction(kind) {
      #expect(connection.isInTransaction)
      try insert(1, connection)
      return "result"
    }
    #expect(result == "result")
    #expect(!connection.isInTransaction)
    #expect(try values(connection) == [.integer(1)])
  }

  @Test func anErrorRollsBackAndIsThrownOn() throws {
    let connection = try memory("CREATE TABLE t(v)")
    #expect(throws: Refusal.self) {
      try connection.transaction {
        try insert(1, connection)
        throw Refusal()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try values(connection).isEmpty)
  }

  @Test func aTransactionInsideAnotherIsASavepoint() throws {
    let connection = try memory("CREATE TABLE t(v)")
    try connection.transaction {
      try insert(1, connection)
      #expect(throws: Refusal.self) {
        try connection.transaction {
          try insert(2, connection)
          throw Refusal()
        }
      }
      try connection.transaction { try insert(3, connection) }
      #expect(connection.isInTransaction)
    }
    #expect(try values(connection) == [.integer(1), .integer(3)])
  }

  @Test func savepointsNestAndUndoOnlyTheirOwn() throws {
    let connection = try memory("CREATE TABLE t(v)")
    try connection.savepoint {
      try insert(1, connection)
      #expect(throws: Refusal.self) {
        try connection.savepoint {
          try insert(2, connection)
          try connection.savepoint { try insert(3, connection) }
          throw Refusal()
        }
      }
      try connection.savepoint { try insert(4, connection) }
    }
    #expect(!connection.isInTransaction)
    #expect(try values(connection) == [.integer(1), .integer(4)])
  }

  @Test func aConstraintInASavepointLeavesTheRest() throws {
    let connection = try memory("CREATE TABLE t(v UNIQUE)")
    try connection.transaction {
      try insert(1, connection)
      let error = sqliteError {
        try connection.savepoint {
          try insert(2, connection)
          try insert(1, connection)
        }
      }
      #expect(error?.isConstraint == true)
      try insert(3, connection)
    }
    #expect(try values(connection) == [.integer(1), .integer(3)])
  }

  @Test func raiseRollbackInASavepointEndsTheWholeTransaction() throws {
    let connection = try memory(
      """
      CREATE TABLE t(v);
      CREATE TRIGGER no BEFORE INSERT ON t WHEN new.v = 13 BEGIN SELECT RAISE(ROLLBACK, 'unlucky'); END;
      """)
    let error = sqliteError {
      try connection.transaction {
        try insert(1, connection)
        try connection.savepoint { try insert(13, connection) }
      }
    }
    #expect(error?.message == "unlucky")
    #expect(error?.extendedCode == 1811)
    #expect(!connection.isInTransaction)
    #expect(try values(connection).isEmpty)
    try connection.transaction { try insert(2, connection) }
    #expect(try values(connection) == [.integer(2)])
  }

  @Test func goingOnAfterARolledBackTransactionIsAnError() throws {
    let connection = try memory(
      """
      CREATE TABLE t(v);
      CREATE TRIGGER no BEFORE INSERT ON t WHEN new.v = 13 BEGIN SELECT RAISE(ROLLBACK, 'unlucky'); END;
      """)
    let error = sqliteError {
      try connection.transaction {
        try insert(1, connection)
        do { try insert(13, connection) } catch { #expect(!connection.isInTransaction) }
      }
    }
    #expect(error?.message == "cannot commit - no transaction is active")
    #expect(!connection.isInTransaction)
  }

  @Test func aSavepointWhoseBodyEndsTheTransactionKeepsItsError() throws {
    let connection = try memory("CREATE TABLE t(v)")
    #expect(throws: Refusal.self) {
      try connection.savepoint {
        connection.rollBack()
        try connection.execute("BEGIN")
        try insert(1, connection)
        throw Refusal()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try values(connection).isEmpty)
  }

  @Test func insertOrRollbackEndsTheTransaction() throws {
    let connection = try memory("CREATE TABLE t(v UNIQUE); INSERT INTO t VALUES (1)")
    let error = sqliteError {
      try connection.transaction {
        try insert(2, connection)
        try connection.run("INSERT OR ROLLBACK INTO t VALUES (1)")
      }
    }
    #expect(error?.isConstraint == true)
    #expect(!connection.isInTransaction)
    #expect(try values(connection) == [.integer(1)])
  }

  @Test func rollingBackWithoutATransactionDoesNothing() throws {
    let connection = try memory("CREATE TABLE t(v)")
    connection.rollBack()
    try connection.execute("BEGIN; INSERT INTO t VALUES (1)")
    connection.rollBack()
    connection.rollBack()
    #expect(try values(connection).isEmpty)
  }

  @Test func closingRollsBack() throws {
    let database = try TemporaryDatabase()
    try database.open().execute("CREATE TABLE t(v)")
    do {
      let connection = try database.open()
      try connection.execute("BEGIN")
      try insert(1, connection)
    }
    #expect(try values(database.open()).isEmpty)
  }

  @Test func anImmediateTransactionTakesTheLockAtOnce() throws {
    let database = try TemporaryDatabase()
    let one = try database.open()
    try one.execute("CREATE TABLE t(v)")
    let other = try database.open()
    try one.transaction(.deferred) {
      try other.transaction(.immediate) {}
    }
    try one.transaction(.immediate) {
      #expect(sqliteError { try other.transaction(.immediate) {} }?.isBusy == true)
    }
  }
}
