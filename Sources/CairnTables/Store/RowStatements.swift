import CairnSQLite

/// The statements that read and write rows of one table, made once per plan.
final class RowStatements {
  let selectRow: PreparedStatement
  let exists: PreparedStatement
  let delete: PreparedStatement
  /// Pending records of the table by key, each with its row unless it waits for something (``PendingSaves``): pending,
  /// table and limit are the first parameters. Of use where the key is one column.
  let firstPending: PreparedStatement
  /// The same after the key that is the fourth parameter.
  let nextPending: PreparedStatement
  /// `k1 = ?1 AND k2 = ?2 …`
  let keyCondition: String
  private let connection: Connection
  private let wholeInsert: PreparedStatement
  private let table: String
  private let columns: [String]
  private let keyCount: Int
  /// The last statement of each kind, with the columns that it writes: a set of versions mostly writes the same ones.
  private var lastUpdate: (columns: [Int], statement: Statement)?
  private var lastInsert: (columns: [Int], statement: Statement)?

  /// ` OR ABORT` where the schema has conflict clauses: a fetched row must not remove, skip or half-write others.
  private let onConflict: String

  /// - Parameter hasConflictClauses: whether the table's declaration says ON CONFLICT somewhere.
  init(_ plan: TablePlan, _ connection: Connection, hasConflictClauses: Bool = false) {
    self.connection = connection
    onConflict = hasConflictClauses ? " OR ABORT" : ""
    table = SQLText.quoted(plan.name)
    columns = plan.columns.map { SQLText.quoted($0.name) }
    keyCount = plan.keyColumns.count
    keyCondition = plan.keyColumns.enumerated().map { "\(SQLText.quoted(plan.columns[$1].name)) = ?\($0 + 1)" }
      .joined(separator: " AND ")
    let list = columns.joined(separator: ", ")
    func prepared(_ sql: String) -> PreparedStatement { PreparedStatement(connection, sql) }
    selectRow = prepared("SELECT \(list) FROM main.\(table) WHERE \(keyCondition)")
    exists = prepared("SELECT 1 FROM main.\(table) WHERE \(keyCondition)")
    delete = prepared("DELETE FROM main.\(table) WHERE \(keyCondition)")
    // Every key is as great; without a bound SQLite 3.40 sorts all that is pending.
    firstPending = prepared(Self.pending(plan, table, columns, after: "AND r.key >= -9e999"))
    nextPending = prepared(Self.pending(plan, table, columns, after: "AND r.key > ?4"))
    wholeInsert = prepared(Self.insertion(onConflict, table, columns))
  }

  private static func pending(
    _ plan: TablePlan, _ table: String, _ columns: [String], after condition: String
  ) -> String {
    let record = RecordStore.columns.split(separator: ",").map { "r.\($0.drop { $0 == " " })" }
    let row = columns.map { "t.\($0)" }
    return """
      SELECT \((record + row).joined(separator: ", "))
      FROM cairn_record AS r INDEXED BY cairn_record_pending LEFT JOIN main.\(table) AS t
        ON t.\(columns[plan.keyColumns[0]]) = +r.key AND (r.rest IS NULL OR instr(r.rest, '"reason"') = 0)
      WHERE r.pending > 0 AND r.pending = ?1 AND r.tbl = ?2 \(condition) ORDER BY r.key LIMIT ?3
      """
  }

  private static func insertion(_ onConflict: String, _ table: String, _ columns: [String]) -> String {
    let values = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    return "INSERT\(onConflict) INTO main.\(table)(\(columns.joined(separator: ", "))) VALUES (\(values))"
  }

  /// Sets the given columns; parameters: the key, then the values in the order of `changed`.
  func update(_ changed: [Int]) throws(SQLiteError) -> Statement {
    if let lastUpdate, lastUpdate.columns == changed { return lastUpdate.statement }
    let sets = changed.enumerated().map { "\(columns[$1]) = ?\(keyCount + 1 + $0)" }
    let statement = try connection.cached(
      "UPDATE\(onConflict) main.\(table) SET \(sets.joined(separator: ", ")) WHERE \(keyCondition)")
    lastUpdate = (changed, statement)
    return statement
  }

  /// Inserts only the given columns; the others get their defaults.
  func insert(_ given: [Int]) throws(SQLiteError) -> Statement {
    if given.count == columns.count { return try wholeInsert.get() }
    if let lastInsert, lastInsert.columns == given { return lastInsert.statement }
    let statement = try connection.cached(Self.insertion(onConflict, table, given.map { columns[$0] }))
    lastInsert = (given, statement)
    return statement
  }
}
