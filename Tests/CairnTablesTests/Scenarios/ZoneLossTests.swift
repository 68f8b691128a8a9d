import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation
import Testing

@Suite("Sign-out, lost zones, expired tokens (tables L8–L12, 8.12)")
struct ZoneLossTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      base: """
        INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue');
        INSERT INTO items VALUES ('i1', 'l1', 'milk', 0, 1); INSERT INTO notes VALUES (1, 'n', 'b');
        INSERT INTO employees VALUES (1, 'boss', 1), (2, 'worker', 1);
        """)
  }

  private func database(_ device: Device) throws -> SyncedDatabase {
    try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness)
  }

  private func deleteZone() throws {
    _ = try world.server.cloud(user: world.user).deleteZones([world.zone])
  }

  /// The answer as `cairn decide` gives it, in a process of its own.
  private func answer(_ device: Device, _ answer: ZoneLossAnswer) throws {
    device.restart()
    try database(device).leaveAnswer(answer.rawValue)
  }

  private var rows: [String] { ["l1|one|red", "l2|two|blue"] }

  @Test("TS171 L8 signed out: capture goes on, and everything goes when the token is good again")
  func signedOut() throws {
    a.cloud.fail(.authenticationFailed, times: 1_000)
    let report = try a.sync()
    #expect(report.state == "signedOut")
    try a.sql("INSERT INTO lists VALUES ('l3', 'three', NULL)", at: 10)
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'; DELETE FROM lists WHERE id = 'l2'", at: 10)
    #expect(try a.sync().state == "signedOut")
    a.restart()
    #expect(try a.sync().state == "signedOut")
    #expect(try a.status().pending == 3 && database(a).lastCondition().name == "signedOut")
    #expect(try a.picture("SELECT id FROM lists") == ["l1", "l3"])
    #expect(try world.serverRecords()["lists:l3"] == nil)
    a.cloud.heal()
    #expect(try a.sync().state == "ready")
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM lists") == ["l1|eins", "l3|three"])
  }

  @Test("TS175 an encrypted reset: rows stay, and every record is sent again under its own name and clocks")
  func encryptedReset() throws {
    let before = try Picture.of(a)
    let clocks = try world.clocks("lists:l1")
    try a.sql("DELETE FROM lists WHERE id = 'l2'", at: 10)
    try a.sync()
    _ = a.sentSinceLastAsked()
    let category = try a.open().database.category
    #expect(category.policy(for: .encryptedDataReset) == .recreateAndReupload)
    try category.zoneLost(world.zone, .encryptedDataReset, now: world.clock.wallClock)
    #expect(try a.picture("SELECT id FROM lists") == ["l1"])
    #expect(try a.status().pending == 5)
    try a.sync()
    let sent = a.sentSinceLastAsked()
    #expect(sent.count == 5 && sent.allSatisfy { $0.hasPrefix("save ") })
    try world.expectConverged()
    #expect(try world.clocks("lists:l1") == clocks)
    #expect(try Picture.of(a)["notes"] == before["notes"])
  }

  @Test("TS172 rows before init, no server for a while, then create: uploaded")
  func lateServer() throws {
    let c = try world.device("C", schema: "CREATE TABLE own(id TEXT PRIMARY KEY, v); INSERT INTO own VALUES ('1', 'x')")
    c.cloud.isOffline = true
    #expect(throws: CloudError.self) { try c.prepare(.merge) }
    #expect(try c.texts("SELECT name FROM sqlite_master WHERE name LIKE 'cairn%'").isEmpty)
    c.cloud.heal()
    try c.prepare(.merge)
    c.cloud.isOffline = true
    try c.sql("INSERT INTO own VALUES ('2', 'y')")
    #expect(try c.sync().state == "offline")
    c.cloud.heal()
    try c.sync()
    #expect(try Set(world.serverRecords().keys).isSuperset(of: ["own:1", "own:2"]))
  }

  @Test("TS173 L10 another user's token: rows stay, nothing is sent or applied; back again, all goes on")
  func anotherUser() throws {
    let other = FaultInjector(try world.server.cloud(user: "berta"))
    try a.sql("UPDATE lists SET title = 'mine' WHERE id = 'l1'", at: 10)
    a.restart()
    let stranger = try DatabaseSync(path: a.path, time: a.time, randomness: a.randomness) { _ in other }
    let report = try stranger.sync()
    #expect(report.result.failure == .anotherUser(try other.currentUser()))
    #expect(report.state == "paused")
    #expect(other.sentOperations.isEmpty)
    #expect(try a.picture("SELECT id FROM lists") == ["l1", "l2"])
    #expect(throws: TablesError.self) {
      try Preparation(
        Preparation.Options(path: a.path, mode: nil, place: world.place), cloud: other, time: a.time,
        randomness: a.randomness
      ).run()
    }
    withExtendedLifetime(stranger) {}
  }

  @Test("TS173 L10 going back resumes what was pending")
  func backAgain() throws {
    try a.sql("UPDATE lists SET title = 'mine' WHERE id = 'l1'", at: 10)
    a.restart()
    do {
      let other = try world.server.cloud(user: "berta")
      _ = try DatabaseSync(path: a.path, time: a.time, randomness: a.randomness) { _ in other }.sync()
    }
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM lists WHERE id = 'l1'") == ["mine"])
  }

  @Test(
    "TS174 L11 zone deleted, keepLocal: rows stay, nothing is sent until init names a mode", arguments: [false, true])
  func keepLocal(recreatedElsewhere: Bool) throws {
    try deleteZone()
    let report = try a.sync()
    #expect(report.state == "decision" && report.result.questions.count == 1)
    #expect(try a.picture("SELECT * FROM lists") == rows)
    a.restart()
    #expect(try a.sync().state == "decision")
    #expect(try database(a).lastCondition().question?.contains("recreateAndReupload") == true)
    try answer(a, .keepLocal)
    #expect(try a.sync().state == "paused")
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 10)
    #expect(try a.sync().state == "paused")
    #expect(a.sentSinceLastAsked().isEmpty)
    if recreatedElsewhere {
      try b.sync()
      try answer(b, .recreateAndReupload)
      try b.sync()
      #expect(try a.sync().state == "paused")
      #expect(throws: TablesError.self) { try a.prepare(.create) }
    }
    a.restart()
    try a.prepare(recreatedElsewhere ? .merge : .create)
    #expect(try a.sync().state == "ready")
    if !recreatedElsewhere {
      try b.sync()
      try answer(b, .recreateAndReupload)
    }
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM lists") == ["l1|eins", "l2|two"])
  }

  @Test("TS174 L11 zone deleted, recreateAndReupload on one device, then on the other")
  func recreate() throws {
    let names = try Set(world.serverRecords().keys)
    try b.sql("UPDATE lists SET color = 'B' WHERE id = 'l2'", at: 5)
    try deleteZone()
    try a.sync()
    try answer(a, .recreateAndReupload)
    #expect(try a.sync().state == "ready")
    #expect(try Set(world.serverRecords().keys) == names)
    #expect(try b.sync().state == "decision")
    #expect(try b.sync().state == "decision")
    try answer(b, .recreateAndReupload)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|one|red", "l2|two|B"])
    #expect(try Set(world.serverRecords().keys) == names)
  }

  @Test("TS174 L11 zone deleted, recreateAndReupload: a row that a unique value keeps out is sent too, and comes back")
  func recreateWithParkedRow() throws {
    try a.sql("INSERT INTO slots VALUES ('s1', 1, 'first')", at: 10)
    try b.sql("INSERT INTO slots VALUES ('s2', 1, 'second')", at: 20)
    try world.expectConverged(parked: 1)
    let names = try Set(world.serverRecords().keys)
    try deleteZone()
    for device in [b, a] {
      #expect(try device.sync().state == "decision")
      try answer(device, .recreateAndReupload)
      try device.sync()
    }
    try world.expectConverged(parked: 1)
    #expect(try Set(world.serverRecords().keys) == names)
    try a.sql("UPDATE slots SET pos = 2 WHERE id = 's1'", at: 30)
    try world.expectConverged()
    #expect(try a.picture("SELECT id, pos, label FROM slots") == ["s1|2|first", "s2|1|second"])
  }

  @Test("TS174 L11 G6 zone deleted, recreateAndReupload: what waits for a parent goes to the new zone too")
  func recreateWithWaitingChild() throws {
    try b.sql("INSERT INTO items VALUES ('i2', 'l2', 'bread', 0, 2)", at: 30)
    try b.sync(.sendOnly)
    try a.sql("UPDATE lists SET id = 'l9' WHERE id = 'l2'", at: 20)
    try a.sync(.sendOnly)
    try a.sync()
    #expect(try a.parked().map(\.record) == ["items:i2"])
    try deleteZone()
    // The other device is gone for good, with its rows.
    #expect(try a.sync().state == "decision")
    try answer(a, .recreateAndReupload)
    try a.sync()
    #expect(try world.serverRecords()["items:i2"] != nil)
    #expect(try a.status().pending == 0)
    try a.sql("INSERT INTO lists VALUES ('l2', 'two', 'blue')", at: 40)
    try a.sync()
    #expect(try a.picture("SELECT id, list_id, title FROM items") == ["i1|l1|milk", "i2|l2|bread"])
    #expect(try a.parked().isEmpty)
  }

  @Test("TS174 L11 zone deleted, deleteLocal: a backup, then empty, then what the zone holds if it is there again")
  func deleteLocal() throws {
    try deleteZone()
    try a.sync()
    try answer(a, .deleteLocal)
    try a.sync()
    #expect(try a.rows("SELECT * FROM lists").isEmpty && a.rows("SELECT * FROM employees").isEmpty)
    #expect(a.sentSinceLastAsked().isEmpty)
    let backups = try FileManager.default.contentsOfDirectory(atPath: world.folder.path).filter {
      $0.hasPrefix("A.db.backup")
    }
    #expect(backups.count == 1)
    let backup = try Connection(path: world.folder.appendingPathComponent(try #require(backups.first)).path)
    #expect(try backup.scalar("SELECT count(*) FROM lists") == .integer(2))
    try b.sync()
    try answer(b, .recreateAndReupload)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == rows)
  }

  @Test("TS174 L11 the answer survives a crash before the sync that acts on it, and a sync that fails")
  func answerSurvives() throws {
    try deleteZone()
    try a.sync()
    try answer(a, .recreateAndReupload)
    a.cloud.isOffline = true
    #expect(try a.sync().state == "offline")
    a.restart()
    a.cloud.heal()
    try a.sync()
    #expect(try world.serverRecords()["lists:l1"] != nil)
    try b.sync()
    try answer(b, .recreateAndReupload)
    try world.expectConverged()
  }

  @Test("TS183 the zone vanishes between two requests of one sync: one decision, no endless retry")
  func vanishing() throws {
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 10)
    let cloud = try world.server.cloud(user: world.user)
    let zone = world.zone
    a.cloud.setBefore { call in
      if case .modify = call { _ = try? cloud.deleteZones([zone]) }
    }
    let report = try a.sync()
    a.cloud.setBefore(nil)
    #expect(report.state == "decision" && report.result.questions.count == 1)
    #expect(a.cloud.log.count < 20)
    a.cloud.clearLog()
    #expect(try a.sync().result.questions.count == 1)
    #expect(a.cloud.log.count < 5)
    #expect(try a.status().pending == 1)
    #expect(try a.picture("SELECT id, title FROM lists") == ["l1|eins", "l2|two"])
  }

  @Test("L12 a server restored from a backup: nothing is swept, a decision")
  func restoredServer() throws {
    let backup = try world.server.backup()
    try a.sql("INSERT INTO lists VALUES ('l3', 'three', NULL)", at: 10)
    try world.settle()
    try world.server.restore(backup)
    let report = try b.sync()
    #expect(report.state == "decision")
    #expect(try b.picture("SELECT id FROM lists") == ["l1", "l2", "l3"])
    try a.sync()
    try answer(a, .recreateAndReupload)
    try answer(b, .recreateAndReupload)
    try world.expectConverged()
    #expect(try b.picture("SELECT id FROM lists") == ["l1", "l2", "l3"])
  }

  @Test("TS193 lastSync moves only with a good sync, and status counts what is not folded")
  func lastSync() throws {
    let first = try #require(a.status().lastSync)
    world.clock.advance(seconds: 60)
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'")
    #expect(try a.status().pending == 1)
    a.cloud.isOffline = true
    #expect(try a.sync().state == "offline")
    #expect(try a.status().pending == 1 && a.status().lastSync == first)
    a.cloud.heal()
    #expect(try a.sync().quiet)
    #expect(try a.status().pending == 0)
    #expect(try #require(a.status().lastSync) >= first + 60_000)
  }
}
