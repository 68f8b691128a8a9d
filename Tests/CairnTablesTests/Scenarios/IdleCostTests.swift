import CSQLite
import Cairn
import CairnEngine
import Testing

@testable import CairnTables

@Suite("What a file with many records costs while nothing happens (design section 9)")
struct IdleCostTests {
  @Test("status and a sync with nothing to do scan neither records nor rows")
  func scansNothing() throws {
    let world = try World(entriesPerRequest: 1_000)
    let a = try world.devices(["A"])[0]
    try a.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      INSERT INTO lists SELECT 'l' || i, 'list', NULL FROM n
      """)
    try a.sync()
    try a.sync()
    let database = try a.open().database
    _ = scanned(database)
    let report = try database.status()
    #expect(report.tables.contains { $0.name == "lists" && $0.rows == 3_000 })
    #expect(try a.sync().quiet)
    // Settings, tables and zones are read whole; there are a few of each.
    #expect(scanned(database) < 300)
  }

  /// Rows that the connection's statements have stepped over in full scans since the last call.
  private func scanned(_ database: SyncedDatabase) -> Int {
    var steps = 0
    var statement = sqlite3_next_stmt(database.file.connection.handle, nil)
    while let next = statement {
      steps += Int(sqlite3_stmt_status(next, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1))
      statement = sqlite3_next_stmt(database.file.connection.handle, next)
    }
    return steps
  }
}
