import CairnSQLite

/// Writes the triggers that capture one table (tables section 2).
struct CaptureTriggers {
  let plan: TablePlan
  let generation: Int
  private let layout: LogLayout
  private let table: String

  init(_ plan: TablePlan, generation: Int) {
    self.plan = plan
    self.generation = generation
    layout = LogLayout(keyCount: plan.keyColumns.count, columnCount: plan.columns.count)
    table = SQLText.quoted(plan.name)
  }

  /// What the triggers are called that every table has; the one for unique indexes comes and goes with them.
  static let always = ["insert", "delete", "update", "rekey", "before", "rebefore"]

  /// The CREATE TRIGGER statements.
  var statements: [String] {
    var result = [
      trigger("insert", "AFTER INSERT", when: nil, [append(.insert, key("NEW") + ["total_changes()"])]),
      trigger("delete", "AFTER DELETE", when: nil, [append(.delete, key("OLD") + ["total_changes()"])]),
      trigger(
        "update", "AFTER UPDATE", when: "\(sameKeyBytes) AND (\(anyChange("OLD")))",
        [append(.update, key("NEW") + masks("OLD"))]),
      trigger(
        "rekey", "AFTER UPDATE OF \(keyNames)", when: "NOT (\(sameKeyBytes))",
        [append(.rekey, key("NEW") + masks("OLD") + key("OLD"))]),
      trigger(
        "before", "BEFORE INSERT", when: nil,
        (plan.writesElsewhere ? [begin] : []) + [candidate(except: nil)] + dangers(except: "NEW")),
      trigger(
        "rebefore", "BEFORE UPDATE OF \(keyNames)", when: "NOT (\(sameKey("OLD", "NEW")))",
        [begin, candidate(except: "OLD")] + announcement),
    ]
    if !plan.uniqueIndexes.isEmpty {
      result.append(
        trigger("unique", "BEFORE UPDATE\(uniqueColumnList)", when: nil, dangers(except: "OLD")))
    }
    return result
  }

  private func trigger(_ what: String, _ event: String, when condition: String?, _ body: [String]) -> String {
    """
    CREATE TRIGGER "\(CaptureTriggerName.make(table: plan.number, what))" \(event) ON \(table)\
    \(condition.map { " WHEN \($0)" } ?? "") BEGIN \(body.joined(separator: "; ")); END
    """
  }

  // MARK: Entries

  /// Parts a delete from what comes after it. OR IGNORE, DELETE and INSERT of one key in one millisecond leave the same
  /// entries as one REPLACE under recursive_triggers, but for this one (tables T14, T20). Where no user trigger counts
  /// changes of its own, `total_changes()` tells them apart for less.
  private var begin: String {
    "INSERT INTO cairn_log(event, time) SELECT \(event(.begin)), julianday('now') "
      + "WHERE (SELECT event & 7 FROM cairn_log ORDER BY id DESC LIMIT 1) BETWEEN 1 AND 3"
  }

  /// Says that a mapped integer is about to change: what ON UPDATE CASCADE writes lies between this entry and the
  /// `rekey` (tables F5).
  private var announcement: [String] {
    plan.keyKind == .mapped ? [append(.announcement, key("NEW") + key("OLD"))] : []
  }

  private func event(_ operation: LogLayout.Operation) -> Int {
    LogLayout.event(table: plan.number, generation: generation, operation)
  }

  private func append(_ operation: LogLayout.Operation, _ values: [String]) -> String {
    "INSERT INTO cairn_log(event, time\(valueColumns(values.count))) VALUES "
      + "(\(event(operation)), julianday('now'), \(values.joined(separator: ", ")))"
  }

  private func append(_ operation: LogLayout.Operation, _ values: [String], from row: String, where condition: String)
    -> String
  {
    "INSERT INTO cairn_log(event, time\(valueColumns(values.count))) SELECT "
      + "\(event(operation)), julianday('now'), \(values.joined(separator: ", ")) "
      + "FROM \(table) AS \(row) WHERE \(condition)"
  }

  private func valueColumns(_ count: Int) -> String { (1...count).map { ", v\($0)" }.joined() }

  /// The row under the key that NEW takes, with the mask of what NEW would change in it: believed only if the
  /// announced insert or update follows (tables T14, T16).
  private func candidate(except own: String?) -> String {
    append(
      .candidate, key("x") + masks("x"), from: "x",
      where: sameKey("x", "NEW") + (own.map { " AND NOT (\(sameKey("x", $0)))" } ?? ""))
  }

  /// Rows that another unique index puts in the way of NEW (tables T15).
  private func dangers(except own: String) -> [String] {
    plan.uniqueIndexes.map { index in
      var conditions = index.terms.map { term in
        switch term {
        case .column(let column, let collation):
          "x.\(name(column)) = NEW.\(name(column)) COLLATE \(SQLText.quoted(collation))"
        case .expression(let text, let collation):
          "(\(text)) = (SELECT (\(text)) FROM (\(newAsRow))) COLLATE \(SQLText.quoted(collation))"
        }
      }
      if let predicate = index.predicate {
        conditions.append("(\(predicate))")
        conditions.append("(SELECT (\(predicate)) FROM (\(newAsRow)))")
      }
      conditions.append("NOT (\(sameKey("x", own)))")
      return append(.danger, key("x"), from: "x", where: conditions.joined(separator: " AND "))
    }
  }

  /// NEW's columns under their own names, so that the text of an index expression can be evaluated over them.
  private var newAsRow: String {
    let names = plan.columns.indices.map(name) + plan.generatedColumns.map(SQLText.quoted)
    return "SELECT " + names.map { "NEW.\($0) AS \($0)" }.joined(separator: ", ")
  }

  // MARK: Keys

  private func name(_ column: Int) -> String { SQLText.quoted(plan.columns[column].name) }

  private func key(_ row: String) -> [String] { plan.keyColumns.map { "\(row).\(name($0))" } }

  /// The names an UPDATE may use for the key.
  private var keyNames: String { (plan.keyColumns.map(name) + rowIDNames).joined(separator: ", ") }

  private var rowIDNames: [String] { plan.rowIDAlias == nil ? [] : ["rowid", "oid", "_rowid_"] }

  /// Limits a trigger to updates of columns that unique indexes read; none where an index reads an expression.
  private var uniqueColumnList: String {
    var columns: Set<Int> = []
    for index in plan.uniqueIndexes {
      if index.predicate != nil { return "" }
      for term in index.terms {
        guard case .column(let column, _) = term else { return "" }
        columns.insert(column)
      }
    }
    return " OF " + (columns.sorted().map(name) + rowIDNames).joined(separator: ", ")
  }

  /// Whether two rows have one key, as SQLite compares it.
  private func sameKey(_ a: String, _ b: String) -> String {
    plan.keyColumns.map { "\(a).\(name($0)) = \(b).\(name($0))" }.joined(separator: " AND ")
  }

  private var sameKeyBytes: String {
    plan.keyColumns.map { "NOT \(changed($0, "OLD"))" }.joined(separator: " AND ")
  }

  // MARK: Changes

  /// Whether a column's storage class or bytes differ between `row` and NEW (tables T5).
  private func changed(_ column: Int, _ row: String) -> String {
    let plan = plan.columns[column]
    let (old, new) = ("\(row).\(name(column))", "NEW.\(name(column))")
    let bytes = plan.collation == "BINARY" ? "\(old) IS NOT \(new)" : "\(old) IS NOT \(new) COLLATE BINARY"
    return plan.keepsStorageClass ? "(\(bytes) OR typeof(\(old)) <> typeof(\(new)))" : "(\(bytes))"
  }

  private func anyChange(_ row: String) -> String {
    SQLText.balanced(plan.columns.indices.map { changed($0, row) }, " OR ")
  }

  /// One integer per 63 columns.
  private func masks(_ row: String) -> [String] {
    let indices = Array(plan.columns.indices)
    return stride(from: 0, to: max(indices.count, 1), by: LogLayout.columnsPerMask).map { first in
      let part = indices[first..<min(first + LogLayout.columnsPerMask, indices.count)]
      return SQLText.balanced(part.map { "(\(changed($0, row)) << \($0 - first))" }, " | ")
    }
  }
}

/// Pieces of SQL text.
enum SQLText {
  static func quoted(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }

  /// Joins terms as a balanced tree, so that many columns stay far from SQLite's limit of expression depth (tables T6).
  static func balanced(_ terms: [String], _ separator: String) -> String {
    if terms.count <= 4 { return terms.joined(separator: separator) }
    let middle = terms.count / 2
    return
      "(\(balanced(Array(terms[..<middle]), separator)))\(separator)(\(balanced(Array(terms[middle...]), separator)))"
  }
}
