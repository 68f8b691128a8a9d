import CairnRecords
import CairnSQLite

/// Gives local integers to fetched records of mapped tables (tables 1.2): the creator's own if it is free here, else
/// one above the largest.
struct KeyAssignment {
  private unowned let file: FileContext
  private var byName: [String: Int64] = [:]
  private var taken: [Int: Set<Int64>] = [:]
  private var greatest: [Int: Int64] = [:]

  init(_ file: FileContext) { self.file = file }

  /// The integer promised to a record whose row is not there yet.
  func integer(of name: String) -> Int64? { byName[name] }

  mutating func assign(_ version: FetchedVersion) throws {
    let plan = version.plan
    if byName[version.name] != nil { return }
    let known = try file.names.record(named: version.name, plan)
    let isPutAside = known?.flags.contains(.parked) == true
    if known?.isAlive == true && !isPutAside { return }
    // The version that was here when the row was deleted: it comes to nothing.
    if let known, !known.isAlive, known.tag == version.tag { return }
    // A row that was put aside gets its integer back where that is free (tables M10).
    let wish = isPutAside ? known?.wish ?? version.wish : version.wish
    if let wish, taken[plan.number]?.contains(wish) != true, try !file.rowExists(plan, .integer(wish)) {
      return take(wish, version.name, plan)
    }
    take(try unused(plan), version.name, plan)
  }

  /// One above the largest integer; where the largest is the greatest there is, the highest gap below it.
  private func unused(_ plan: TablePlan) throws -> Int64 {
    let top = try max(greatest[plan.number] ?? 0, largest(plan))
    if top < .max { return top + 1 }
    let column = SQLText.quoted(plan.columns[plan.keyColumns[0]].name)
    let statement = try file.connection.cached(
      """
      SELECT \(column) FROM main.\(SQLText.quoted(plan.name)) WHERE typeof(\(column)) = 'integer' ORDER BY \(column) DESC
      """)
    defer { statement.reset() }
    var gap = Int64.max
    while try statement.step() {
      let integer = statement.integer(0)
      while gap > integer, taken[plan.number]?.contains(gap) == true { gap -= 1 }
      if gap > integer { break }
      gap = integer - 1
    }
    while taken[plan.number]?.contains(gap) == true { gap -= 1 }
    return gap
  }

  private mutating func take(_ integer: Int64, _ name: String, _ plan: TablePlan) {
    byName[name] = integer
    taken[plan.number, default: []].insert(integer)
    greatest[plan.number] = max(greatest[plan.number] ?? 0, integer)
  }

  private func largest(_ plan: TablePlan) throws -> Int64 {
    let column = SQLText.quoted(plan.columns[plan.keyColumns[0]].name)
    let table = SQLText.quoted(plan.name)
    var largest = try file.connection.scalar("SELECT max(\(column)) FROM main.\(table)")?.integer ?? 0
    if plan.isAutoincrement {
      let used = try file.connection.scalar("SELECT seq FROM main.sqlite_sequence WHERE name = ?", .text(plan.name))
      largest = max(largest, used?.integer ?? 0)
    }
    return largest
  }
}
