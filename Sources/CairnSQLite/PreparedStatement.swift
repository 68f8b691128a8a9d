/// A statement that its owner runs again and again: compiled at the first use, without a look into the connection's
/// cache.
public final class PreparedStatement {
  private unowned let connection: Connection
  private let sql: String
  private var statement: Statement?

  public init(_ connection: Connection, _ sql: String) {
    self.connection = connection
    self.sql = sql
  }

  public func get() throws(SQLiteError) -> Statement {
    if let statement {
      statement.reset()
      return statement
    }
    let compiled = try connection.prepare(sql)
    statement = compiled
    return compiled
  }
}
