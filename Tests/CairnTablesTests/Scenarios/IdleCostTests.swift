import CSQLite
import Cairn
import CairnEngine
import CairnRecords
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

  @Test("3.3 a batch of 50 takes as many steps with 3,000 pending records as with 100, the first and the next ones")
  func costsNothingPerPendingRecord() throws {
    let world = try World()
    let a = try world.devices(["A"])[0]
    var steps: [[Int]] = []
    for count in [100, 2_900] {
      try a.sql(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
        INSERT INTO lists SELECT 'l' || i || '/' || \(count), 'list', NULL FROM n
        """)
      steps.append(try batchSteps(a))
    }
    for (few, many) in zip(steps[0], steps[1]) { #expect(many < few + 1_000, "\(steps)") }
  }

  /// Of the first two batches of 50, none of which is answered with anything but success.
  private func batchSteps(_ device: Device) throws -> [Int] {
    device.restart()
    let database = try device.open().database
    try database.category.gatherLocalChanges(now: device.time.wallClock)
    let request = BatchRequest(
      limits: CloudLimits(entriesPerRequest: 50), now: device.time.wallClock, isManual: true, deletesOnly: false)
    return try (0..<2).map { _ in
      _ = steps(database)
      let batch = try #require(try database.category.nextBatch(in: database.zone, request))
      #expect(batch.entries.count == 50)
      let taken = steps(database)
      let saved = batch.entries.indices.map { EntryResult.saved(ChangeTag("t\($0)")) }
      try database.category.settle(batch, saved, now: device.time.wallClock)
      return taken
    }
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
