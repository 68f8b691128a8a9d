import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import Testing

@Suite("What waits, and what a sync without work does (tables 7; engine 6)")
struct QuietSyncTests {
  let world: World
  let a: Device

  init() throws {
    world = try World(entriesPerRequest: 50)
    a = try world.devices(["A"], base: "INSERT INTO lists VALUES ('r', 'old', 'red')")[0]
  }

  private func poll() throws -> SyncReport { try a.open().sync(SyncRequest(isManual: false)) }

  @Test("own changes do not come back, and are no foreign commit")
  func noEchoes() throws {
    for i in 0..<120 { try a.sql("INSERT INTO lists VALUES ('n\(i)', 'x', NULL)") }
    let first = try a.sync()
    #expect(first.counts.saved == 120)
    #expect(try a.open().database.dataVersion() == a.open().versionAtSync)
    a.restart()
    let second = try a.sync()
    #expect(second.result.received == 0 && second.quiet)
    #expect(try world.serverRecords().count == 121)
  }

  @Test("a poll that finds nothing writes once a minute; a sync that was asked for always")
  func pollsDoNotWrite() throws {
    try a.sync()
    let program = try a.connection()
    let before = try program.dataVersion()
    for _ in 0..<50 {
      world.clock.advance(seconds: 1)
      #expect(try poll().quiet)
    }
    #expect(try program.dataVersion() == before)
    world.clock.advance(seconds: 11)
    _ = try poll()
    let noted = try program.dataVersion()
    #expect(noted != before)
    #expect(try a.status().lastSync == world.clock.wallClock)
    world.clock.advance(seconds: 1)
    try a.sync()
    #expect(try program.dataVersion() != noted)
  }

  @Test("a failure that polls meet again and again is logged once a minute")
  func failuresAreLoggedOnce() throws {
    let errors = { [a] in try a.scalar("SELECT count(*) FROM cairn_outcome WHERE kind = 'error'") }
    a.cloud.isOffline = true
    for _ in 0..<30 {
      world.clock.advance(seconds: 1)
      #expect(try poll().result.failure != nil)
    }
    #expect(try errors() == .integer(1))
    world.clock.advance(seconds: 900)
    _ = try poll()
    #expect(try errors() == .integer(2))
  }

  private func batch(now: Int64, manual: Bool = false, excluded: [String: PendingReason] = [:]) throws -> [String] {
    let request = BatchRequest(
      limits: CloudLimits(), now: now, isManual: manual, deletesOnly: false, excluded: excluded)
    let batch = try a.open().database.category.nextBatch(in: world.zone, request)
    return batch?.entries.map(\.operation.record.id.name) ?? []
  }

  @Test("records that had their turn are left out of the batch, saves and deletes")
  func excluded() throws {
    try a.sql("INSERT INTO lists VALUES ('s', 'new', NULL); DELETE FROM lists WHERE id = 'r'")
    #expect(try batch(now: 1) == ["lists:s", "lists:r"])
    #expect(try batch(now: 1, manual: true, excluded: ["lists:s": .internal]) == ["lists:r"])
    #expect(try batch(now: 1, excluded: ["lists:r": .internal, "lists:s": .unsent]) == [])
  }

  @Test("a change that waits for a time waits, whatever its reason; an offline one can be sent")
  func waiting() throws {
    try a.sql("INSERT INTO lists VALUES ('s', 'new', NULL)")
    #expect(try batch(now: 1) == ["lists:s"])
    let category = try a.open().database.category
    for reason in ["NULL", "'offline'"] {
      try a.sql("UPDATE cairn_record SET rest = json_object('reason', \(reason), 'retry', 500) WHERE pending > 0")
      #expect(try batch(now: 499) == [])
      #expect(try !category.hasSendableChanges(in: world.zone, now: 499))
      #expect(try batch(now: 499, manual: true) == ["lists:s"])
      #expect(try batch(now: 500) == ["lists:s"])
      #expect(try category.hasSendableChanges(in: world.zone, now: 500))
      try a.sql("UPDATE cairn_record SET rest = json_remove(rest, '$.retry') WHERE pending > 0")
      #expect(try batch(now: 1) == ["lists:s"])
      #expect(try category.hasSendableChanges(in: world.zone, now: 1))
    }
  }
}
