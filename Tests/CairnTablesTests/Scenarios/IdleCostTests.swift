import CSQLite
import Cairn
import CairnEngine
import Testing

@testable import CairnTables

@Suite("What a file with many records costs while nothing happens (design section 9)")
struct IdleCostTests {
  @Test("TS200 status and a sync with nothing to do take as many steps with 3,000 records as with 100")
  func costsNothingPerRecord() throws {
    let world = try World(entriesPerRequest: 1_000)
    let a = try world.devices(["A"])[0]
    try insert(1...100, a)
    let few = try idleSteps(a, rows: 100)
    try insert(101...3_000, a)
    #expect(try idleSteps(a, rows: 3_000) < few + 1_000)
  }

  private func insert(_ numbers: ClosedRange<Int>, _ device: Device) throws {
    try device.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT \(numbers.lowerBound) UNION ALL SELECT i + 1 FROM n WHERE i < \(numbers.upperBound))
      INSERT INTO lists SELECT 'l' || i, 'list', NULL FROM n
      """)
    try device.sync()
    try device.sync()
    try device.sync()
  }

  private func idleSteps(_ device: Device, rows: Int) throws -> Int {
    let database = try device.open().database
    _ = steps(database)
    let report = try database.status()
    #expect(report.tables.contains { $0.name == "lists" && $0.rows == rows })
    #expect(try device.sync().quiet)
    return steps(database)
  }

  /// Steps of SQLite's machine that the connection's statements have taken since the last call.
  private func steps(_ database: SyncedDatabase) -> Int {
    var steps = 0
    var statement = sqlite3_next_stmt(database.file.connection.handle, nil)
    while let next = statement {
      steps += Int(sqlite3_stmt_status(next, SQLITE_STMTSTATUS_VM_STEP, 1))
      statement = sqlite3_next_stmt(database.file.connection.handle, next)
    }
    return steps
  }
}
