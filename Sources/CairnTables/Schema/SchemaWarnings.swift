import CairnSQLite

/// What users should know about their schema before it is synced (tables 1.1).
public enum SchemaWarnings {
  /// The clause that keeps a user trigger from running for changes of other devices.
  public static let whenClause = "WHEN (SELECT applying FROM cairn_state) = 0"

  static func warnings(_ schema: DatabaseSchema, _ plans: [TablePlan]) -> [SchemaWarning] {
    let synced = Set(plans.map { SQLName.folded($0.name) })
    var result: [SchemaWarning] = []
    for table in schema.tables where table.kind == .table {
      if synced.contains(SQLName.folded(table.name)) {
        result += table.triggers.filter { !$0.isCairn }.compactMap { triggerWarning($0, table, synced) }
      } else {
        result += table.foreignKeys.compactMap { cascadeWarning($0, table, synced) }
      }
    }
    return result
  }

  private static func triggerWarning(
    _ trigger: SchemaTrigger, _ table: SchemaTable, _ synced: Set<String>
  ) -> SchemaWarning? {
    let text = TriggerText(trigger.sql)
    let targets = text.writes.intersection(synced).sorted()
    guard !targets.isEmpty, !text.readsApplying else { return nil }
    let clause = text.hasWhen ? "add to its WHEN clause: AND" + whenClause.dropFirst(4) : "add: \(whenClause)"
    return SchemaWarning(
      code: .triggerWritesSynced, table: table.name, column: nil,
      message: """
        the trigger \(trigger.name) of \(table.name) writes \(targets.joined(separator: ", ")) for changes of other \
        devices too, which have done so themselves: \(clause)
        """)
  }

  private static func cascadeWarning(
    _ key: SchemaForeignKey, _ table: SchemaTable, _ synced: Set<String>
  ) -> SchemaWarning? {
    guard key.onDelete == .cascade, synced.contains(SQLName.folded(key.parentTable)) else { return nil }
    let column = key.columns.first.map { table.columns[$0].name }
    return SchemaWarning(
      code: .excludedTableCascades, table: table.name, column: column,
      message: """
        \(table.name) is not synced, but a row of \(key.parentTable) that is deleted on another device takes its rows \
        with it, as a delete here does (ON DELETE CASCADE)
        """)
  }

  /// Counts rows whose foreign keys point nowhere. Reads every row of every planned table with foreign keys.
  public static func foreignKeyViolations(
    _ schema: DatabaseSchema, _ plans: [TablePlan], in connection: Connection
  ) throws(SQLiteError) -> [SchemaWarning] {
    var result: [SchemaWarning] = []
    for plan in plans {
      guard let table = schema.table(plan.name), !table.foreignKeys.isEmpty else { continue }
      let violations = try connection.prepare(
        """
        SELECT fkid, count(*) FROM pragma_foreign_key_check(\(SQLName.literal(plan.name)), 'main')
        GROUP BY fkid ORDER BY fkid DESC
        """)
      while try violations.step() {
        // SQLite numbers the keys from the last one declared.
        let place = table.foreignKeys.count - 1 - Int(violations.integer(0))
        guard table.foreignKeys.indices.contains(place) else { continue }
        let key = table.foreignKeys[place]
        let columns = key.columns.map { table.columns[$0].name }
        let count = violations.integer(1)
        result.append(
          SchemaWarning(
            code: .foreignKeyViolations, table: plan.name, column: columns.first,
            message: """
              \(count) \(count == 1 ? "row" : "rows") of \(plan.name) refer by \(columns.joined(separator: ", ")) to rows \
              of \(key.parentTable) that are not there: they are synced, but wait on devices where the foreign key is \
              enforced
              """))
      }
    }
    return result
  }
}
