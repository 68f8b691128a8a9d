import CairnSQLite

/// The SQL texts that read and write rows of one table. Texts are made once per plan, so that the statement cache finds
/// them again.
final class RowStatements {
  let selectRow: String
  let exists: String
  let delete: String
  let insert: String
  /// `k1 = ?1 AND k2 = ?2 …`
  let keyCondition: String
  private let table: String
  private let columns: [String]
  private let keyCount: Int

  /// ` OR ABORT` where the schema has conflict clauses: a fetched row must not remove, skip or half-write others.
  private let onConflict: String

  /// - Parameter hasConflictClauses: whether the table's declaration says ON CONFLICT somewhere.
  init(_ plan: TablePlan, hasConflictClauses: Bool = false) {
    onConflict = hasConflictClauses ? " OR ABORT" : ""
    table = SQLText.quoted(plan.name)
    columns = plan.columns.map { SQLText.quoted($0.name) }
    keyCount = plan.keyColumns.count
    keyCondition = plan.keyColumns.enumerated().map { "\(SQLText.quoted(plan.columns[$1].name)) = ?\($0 + 1)" }
      .joined(separator: " AND ")
    let list = columns.joined(separator: ", ")
    selectRow = "SELECT \(list) FROM main.\(table) WHERE \(keyCondition)"
    exists = "SELECT 1 FROM main.\(table) WHERE \(keyCondition)"
    delete = "DELETE FROM main.\(table) WHERE \(keyCondition)"
    insert =
      "INSERT\(onConflict) INTO main.\(table)(\(list)) VALUES (\(columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))"
  }

  /// Sets the given columns; parameters: the key, then the values in the order of `changed`.
  func update(_ changed: [Int]) -> String {
    let sets = changed.enumerated().map { "\(columns[$1]) = ?\(keyCount + 1 + $0)" }
    return "UPDATE\(onConflict) main.\(table) SET \(sets.joined(separator: ", ")) WHERE \(keyCondition)"
  }

  /// Inserts only the given columns; the others get their defaults.
  func insert(_ given: [Int]) -> String {
    if given.count == columns.count { return insert }
    let list = given.map { columns[$0] }.joined(separator: ", ")
    let values = given.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    return "INSERT\(onConflict) INTO main.\(table)(\(list)) VALUES (\(values))"
  }
}
