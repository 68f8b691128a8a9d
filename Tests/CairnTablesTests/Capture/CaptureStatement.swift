import CairnEngine
import CairnTesting

/// One statement of a random program.
struct CaptureStatement: CustomStringConvertible {
  struct Move {
    var table: String
    var old: Int64
    var new: Int64
  }

  var sql: String
  var moves: [Move] = []
  var description: String { sql }
}

/// Statements that share a transaction, and perhaps a millisecond.
struct CaptureUnit: CustomStringConvertible {
  var statements: [CaptureStatement]
  var isTransaction = false
  var rollsBack = false
  /// All statements at one time, or one second each.
  var sharesTime = false
  /// What Cairn does afterwards.
  var then = Then.nothing

  enum Then { case nothing, fold, sync }

  var description: String {
    var lines = statements.map(\.sql)
    if isTransaction { lines = ["BEGIN"] + lines + [rollsBack ? "ROLLBACK" : "COMMIT"] }
    let notes = (sharesTime ? " -- one ms" : "") + (then == .nothing ? "" : " -- then \(then)")
    return lines.joined(separator: "; ") + notes
  }
}

/// Makes random programs over the schema of ``CaptureModel``.
struct CaptureProgram {
  private let randomness: SeededRandomness

  init(seed: UInt64) { randomness = SeededRandomness(seed: seed) }

  private func below(_ bound: Int) -> Int { Int(randomness.next() % UInt64(bound)) }
  private func pick<T>(_ values: [T]) -> T { values[below(values.count)] }

  func units(_ count: Int) -> [CaptureUnit] {
    (0..<count).map { _ in
      var unit = CaptureUnit(statements: (0..<(1 + below(5))).map { _ in statement() })
      unit.isTransaction = below(2) == 0
      unit.sharesTime = below(2) == 0
      if unit.isTransaction {
        unit.rollsBack = below(6) == 0
        if below(4) == 0 { addSavepoint(&unit) }
      }
      unit.then = pick([.nothing, .nothing, .fold, .sync])
      return unit
    }
  }

  private func addSavepoint(_ unit: inout CaptureUnit) {
    let place = below(unit.statements.count)
    unit.statements.insert(CaptureStatement(sql: "SAVEPOINT s"), at: place)
    let end = place + 1 + below(unit.statements.count - place)
    unit.statements.insert(CaptureStatement(sql: pick(["ROLLBACK TO s", "RELEASE s"])), at: end)
  }

  // MARK: Statements

  private var conflict: String {
    pick(["", "", "", " OR REPLACE", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ABORT", " OR ROLLBACK"])
  }
  private var word: String { pick(["'a'", "'b'", "'c'", "'d'"]) }
  private var cased: String { pick(["'x'", "'X'", "'y'", "'Y'"]) }
  private var value: String {
    pick(["1", "1.0", "2", "'1'", "NULL", "'a'", "'A'", "x'61'", "0.5", "'a' || char(0)", "CAST(x'ff' AS TEXT)"])
  }
  private var small: Int { 1 + below(4) }
  private var parent: String { pick(["NULL", "(SELECT id FROM r ORDER BY id LIMIT 1)", "(SELECT max(id) FROM r)"]) }
  private var note: String { pick(["(SELECT min(id) FROM m)", "(SELECT max(id) FROM m)"]) }

  private func statement() -> CaptureStatement {
    switch below(7) {
    case 0: naturalRow()
    case 1: generatedRow()
    case 2: withoutRowID()
    case 3: mapped("m", "name")
    case 4: mappedChild()
    case 5: CaptureStatement(sql: naturalChild())
    default: CaptureStatement(sql: link())
    }
  }

  private func naturalRow() -> CaptureStatement {
    let sql =
      switch below(10) {
      case 0, 1: "INSERT\(conflict) INTO r(id, pos, a, ok) VALUES (\(word), \(small), \(value), \(below(2)))"
      case 2: "REPLACE INTO r(id, pos, a, ok) VALUES (\(word), NULL, \(value), 0), (\(word), NULL, \(word), 0)"
      case 3:
        "INSERT INTO r(id, pos, a, ok) VALUES (\(word), \(small), \(value), 1) ON CONFLICT DO UPDATE SET a = \(value)"
      case 4: "INSERT INTO r(id, pos) VALUES (\(word), \(small)) ON CONFLICT DO NOTHING"
      case 5: "UPDATE\(conflict) r SET a = \(value), ok = \(below(2)) WHERE id <= \(word)"
      case 6: "UPDATE\(conflict) r SET pos = \(small) WHERE id = \(word)"
      case 7: "UPDATE\(conflict) r SET id = \(word) WHERE id = \(word)"
      case 8: "DELETE FROM r WHERE id = \(word)"
      default: pick(["DELETE FROM r", "UPDATE r SET a = a", "UPDATE\(conflict) r SET pos = pos + 1"])
      }
    return CaptureStatement(sql: sql)
  }

  private func generatedRow() -> CaptureStatement {
    let sql =
      switch below(5) {
      case 0, 1: "INSERT\(conflict) INTO rg(id, x, y) VALUES (\(word), \(below(12)), \(value))"
      case 2: "UPDATE\(conflict) rg SET x = \(below(12)), y = \(pick(["13", value])) WHERE id = \(word)"
      case 3: "UPDATE\(conflict) rg SET id = \(word), x = x WHERE id = \(word)"
      default: "DELETE FROM rg WHERE id >= \(word)"
      }
    return CaptureStatement(sql: sql)
  }

  private func withoutRowID() -> CaptureStatement {
    let sql =
      switch below(7) {
      case 0, 1: "INSERT\(conflict) INTO w VALUES (\(cased), \(small), \(value), \(value))"
      case 2:
        "INSERT INTO w VALUES (\(cased), \(small), \(small), 1) ON CONFLICT (a, b) DO UPDATE SET v = \(value), a = excluded.a"
      case 3: "UPDATE\(conflict) w SET v = \(value), u = \(value) WHERE a = \(cased) AND b = \(small)"
      case 4: "UPDATE\(conflict) w SET a = \(cased) WHERE b = \(small) AND a = \(cased)"
      case 5: "UPDATE\(conflict) w SET b = \(small) WHERE b = \(small) AND a = \(cased)"
      default: "DELETE FROM w WHERE b = \(small)"
      }
    return CaptureStatement(sql: sql)
  }

  private func mapped(_ table: String, _ column: String) -> CaptureStatement {
    let (old, new) = (Int64(small), Int64(small))
    switch below(9) {
    case 0:
      return CaptureStatement(
        sql: "INSERT\(conflict) INTO \(table)(id, \(column), v) VALUES (\(old), \(value), \(value))")
    case 1: return CaptureStatement(sql: "INSERT\(conflict) INTO \(table)(\(column), v) VALUES (\(value), \(value))")
    case 2: return CaptureStatement(sql: "REPLACE INTO \(table)(id, \(column), v) VALUES (\(old), \(value), \(value))")
    case 3:
      return CaptureStatement(
        sql: "UPDATE\(conflict) \(table) SET \(column) = \(value), v = \(value) WHERE id = \(old)")
    case 4, 5:
      // A note that takes the place of another may delete a link and make it again, all in one statement.
      let clause = conflict
      let safe = table == "m" && clause == " OR REPLACE" ? "" : clause
      return CaptureStatement(
        sql: "UPDATE\(safe) \(table) SET \(pick(["id", "rowid", "_rowid_"])) = \(new) WHERE id = \(old)",
        moves: [CaptureStatement.Move(table: table, old: old, new: new)])
    case 6:
      return CaptureStatement(
        sql: "UPDATE \(table) SET id = id + 10, v = \(value) WHERE id BETWEEN 1 AND 4",
        moves: (1...4).map { CaptureStatement.Move(table: table, old: $0, new: $0 + 10) })
    case 7: return CaptureStatement(sql: "DELETE FROM \(table) WHERE id > 4")
    default: return CaptureStatement(sql: "DELETE FROM \(table) WHERE id = \(old)")
    }
  }

  private func mappedChild() -> CaptureStatement {
    switch below(5) {
    case 0, 1: CaptureStatement(sql: "INSERT\(conflict) INTO c(m_id, v) SELECT \(note), \(value)")
    case 2: CaptureStatement(sql: "UPDATE c SET m_id = \(note), v = \(value) WHERE id % 2 = \(below(2))")
    case 3: CaptureStatement(sql: "REPLACE INTO c(id, m_id, v) SELECT \(small), \(note), \(value)")
    default: CaptureStatement(sql: "DELETE FROM c WHERE id = \(small)")
    }
  }

  private func naturalChild() -> String {
    switch below(4) {
    case 0: "INSERT\(conflict) INTO k VALUES (\(word), \(parent), \(value))"
    case 1: "UPDATE\(conflict) k SET id = \(word), r_id = \(parent) WHERE id = \(word)"
    case 2: "UPDATE k SET v = \(value)"
    default: "DELETE FROM k WHERE id = \(word)"
    }
  }

  private func link() -> String {
    switch below(4) {
    case 0, 1: "INSERT\(conflict) INTO l SELECT m.id, r.id, \(value) FROM m, r LIMIT \(small)"
    case 2: "UPDATE\(conflict) l SET v = \(value), r_id = (SELECT max(id) FROM r) WHERE rowid = \(small)"
    default: "DELETE FROM l WHERE m_id = \(small)"
    }
  }
}
