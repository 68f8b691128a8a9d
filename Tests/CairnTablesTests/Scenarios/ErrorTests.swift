import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

@Suite("Errors (tables 8.13)")
struct ErrorTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red'), ('gone', 1, 1)")
  }

  private func refuse(_ error: CloudError, where matches: @escaping @Sendable (RecordOperation) -> Bool) {
    world.alterations.refuse { matches($0) ? error : nil }
  }

  @Test(
    "TS184 quota: the delete is done, the rest is pending with its reason and paused; later all are saved",
    arguments: [true, false])
  func quota(restarts: Bool) throws {
    refuse(CloudError(.quotaExceeded, "full")) { !$0.kind.isDelete }
    try a.sql("INSERT INTO lists VALUES ('n', 1, 1); INSERT INTO items VALUES ('i', 'n', 1, 1, 1)", at: 10)
    try a.sql("DELETE FROM lists WHERE id = 'gone'", at: 11)
    let report = try a.sync()
    #expect(report.counts.deleted == 1 && report.counts.saved == 0 && report.state == "paused")
    #expect(try a.status().pending == 2)
    #expect(try a.state("n") == "New, quota")
    if restarts { a.restart() }
    world.alterations.refuse(nil)
    try a.sync()
    #expect(try a.status().pending == 0)
    try world.expectQuiet()
    #expect(try b.picture("SELECT id FROM items") == ["i"])
  }

  @Test("TS185 U6 the list is refused: its item stays pending, others go; the item is saved after the list")
  func dependants() throws {
    world.alterations.refuse { operation in
      switch operation.record.id.name {
      case "lists:n": CloudError(.quotaExceeded, "full")
      case "items:i": CloudError(.validatingReferenceError, "lists:n is not here")
      default: nil
      }
    }
    try a.sql("INSERT INTO lists VALUES ('n', 1, 1), ('m', 1, 1); INSERT INTO items VALUES ('i', 'n', 1, 1, 1)", at: 10)
    let report = try a.sync()
    #expect(report.counts.saved == 1)
    #expect(try a.status().pending == 2)
    #expect(try world.serverRecords()["items:i"] == nil)
    world.alterations.refuse(nil)
    try a.sql("UPDATE lists SET title = 2 WHERE id = 'n'", at: 20)
    try a.sync()
    try world.expectQuiet()
    #expect(try world.serverRecords()["items:i"] != nil)
  }

  @Test(
    "TS186 TS191 ACCESS_DENIED: the row, or the delete, is kept with its reason and tried again on request",
    arguments: [true, false])
  func denied(isDelete: Bool) throws {
    refuse(CloudError(.accessDenied, "read only")) { $0.record.id.name == "lists:r" }
    try a.sql(isDelete ? "DELETE FROM lists WHERE id = 'r'" : "UPDATE lists SET title = 'A' WHERE id = 'r'", at: 10)
    let report = try a.sync()
    #expect(report.state == "paused")
    #expect(try a.state("r") == (isDelete ? "Deleted, permission" : "Edited, permission"))
    a.restart()
    #expect(try a.state("r") == (isDelete ? "Deleted, permission" : "Edited, permission"))
    #expect(try a.rows("SELECT * FROM lists WHERE id = 'r'").count == (isDelete ? 0 : 1))
    world.alterations.refuse(nil)
    try world.expectQuiet()
    #expect(try b.picture("SELECT title FROM lists WHERE id = 'r'") == (isDelete ? [] : ["A"]))
  }

  @Test("TS187 THROTTLED, retryAfter 30: a manual sync at 10 makes no request; then it is sent")
  func throttled() throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'r'", at: 10)
    a.failModify(.throttled(retryAfter: 30))
    try a.sync()
    a.cloud.clearLog()
    world.clock.advance(seconds: 10)
    try a.sync()
    #expect(a.cloud.log.isEmpty)
    world.clock.advance(seconds: 25)
    try a.sync()
    #expect(a.operations("lists:r").count == 1)
    try world.expectQuiet()
  }

  @Test("TS188 INTERNAL_ERROR six times: visible, hourly, never counted as saved")
  func internalErrors() throws {
    refuse(CloudError(.internalError, "oops")) { $0.record.id.name == "lists:r" }
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'r'; UPDATE lists SET title = 'A' WHERE id = 'gone'", at: 10)
    var saved = 0
    for _ in 0..<6 {
      saved += try a.sync().counts.saved
      world.clock.advance(seconds: 1_000)
    }
    #expect(saved == 1)
    #expect(try a.state("r").hasPrefix("Edited, internal"))
    world.alterations.refuse(nil)
    world.clock.advance(seconds: 7_200)
    try world.expectQuiet()
    #expect(try b.picture("SELECT title FROM lists WHERE id = 'r'") == ["A"])
  }

  @Test("TS189 one record BAD_REQUEST among 10: 9 saved, 1 rejected with the text; an edit is tried again")
  func rejected() throws {
    refuse(CloudError(.badRequest, "field x is wrong")) { $0.record.id.name == "lists:n5" }
    try a.sql("INSERT INTO lists VALUES " + (0..<10).map { "('n\($0)', 1, 1)" }.joined(separator: ", "), at: 10)
    let report = try a.sync()
    #expect(report.counts.saved == 9)
    #expect(try a.state("n5") == "New, rejected")
    let events = try a.open().database.events(limit: 20)
    #expect(events.contains { $0.record == "lists:n5" && $0.detail.contains("field x is wrong") })
    world.alterations.refuse(nil)
    try a.sql("UPDATE lists SET title = 2 WHERE id = 'n5'", at: 20)
    try a.fold()
    #expect(try a.state("n5") == "New")
    try a.sync()
    try world.expectQuiet()
  }

  @Test("TS190 an hour of mixed transient errors: everything sent, nothing dropped", arguments: 1...5)
  func mixed(_ seed: Int) throws {
    let random = SeededRandomness(seed: UInt64(seed))
    a.cloud.setRates(FaultInjector.Rates(lostRequest: 15, lostAnswer: 15, throttled: 10, temporary: 10))
    for i in 0..<40 {
      try a.sql(
        "INSERT INTO lists VALUES ('n\(i)', \(i), NULL); UPDATE lists SET color = \(i) WHERE id = 'r'", at: Int64(i))
      if random.chance(percent: 50) { try a.sync() }
      world.clock.advance(seconds: 90)
    }
    a.cloud.heal()
    world.clock.advance(seconds: 3_600)
    try world.expectQuiet()
    #expect(try b.scalar("SELECT count(*) FROM lists WHERE id GLOB 'n*'") == .integer(40))
  }

  @Test(
    "TS193 status after an edit not folded yet, after a failed and a good sync: pending 1, 1, 0; lastSync moves with the good one"
  )
  func status() throws {
    let before = try a.status().lastSync
    world.clock.advance(seconds: 100)
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'r'", at: 10)
    #expect(try a.status().pending == 1)
    a.cloud.isOffline = true
    try a.sync()
    #expect(try a.status().pending == 1)
    #expect(try a.status().lastSync == before)
    a.cloud.heal()
    world.clock.advance(seconds: 100)
    try a.sync()
    #expect(try a.status().pending == 0)
    #expect(try a.status().lastSync == world.clock.wallClock)
  }
}
