import CairnEngine
import CairnRecords
import CairnSQLite
import CairnServerCore
import CairnTesting
import Testing

@Suite("Values that travel as assets (tables 1.5, M16)")
struct AssetScenarioTests {
  private static let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, name TEXT, photo BLOB, story TEXT)"
  private static let picture = "SELECT id, name, typeof(photo), length(photo), typeof(story), length(story) FROM t"

  private func uploads(_ device: Device) -> Int {
    device.cloud.log.reduce(0) { count, request in
      if case .uploadAssets(_, let targets) = request.call { count + targets.count } else { count }
    }
  }

  private func downloads(_ device: Device) -> Int {
    device.cloud.log.filter { if case .downloadAsset = $0.call { true } else { false } }.count
  }

  private func expectEqual(_ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let query = "SELECT * FROM t ORDER BY 1"
    let first = try devices[0].rows(query)
    for device in devices.dropFirst() {
      #expect(try device.rows(query) == first, "\(device.name) differs", sourceLocation: sourceLocation)
    }
  }

  @Test("TS45: 5 MB BLOB and text arrive; an edit of another column uploads and downloads nothing; E20")
  func large() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql(
      "INSERT INTO t VALUES ('k', 'one', randomblob(5000000), printf('%.*c', 4999999, 'x') || 'ü')", at: 10)
    try world.settle()
    try expectEqual(devices)
    #expect(uploads(devices[0]) == 2)
    #expect(downloads(devices[1]) == 2)
    #expect(world.server.assets.count == 2)
    for device in devices { device.cloud.clearLog() }
    try devices[1].sql("UPDATE t SET name = 'two'", at: 20)
    try world.settle()
    #expect(try devices[0].scalar("SELECT name FROM t") == .text("two"))
    try expectEqual(devices)
    for device in devices { #expect(uploads(device) + downloads(device) == 0) }
    // Shorter than an asset: the field again, and the server gets its room back.
    try devices[0].sql("UPDATE t SET photo = x'01', story = NULL", at: 30)
    try world.settle()
    try expectEqual(devices)
    world.clock.advance(seconds: 8_000)
    try world.server.core.removeUnusedAssets()
    #expect(world.server.assets.count == 0)
    for device in devices {
      #expect(try device.scalar("SELECT count(*) FROM cairn_asset") == .integer(0))
    }
  }

  @Test("M16 a value of the same length is not taken for the asset: its bytes decide")
  func sameLength() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql("INSERT INTO t VALUES ('k', 'one', randomblob(200000), NULL)", at: 10)
    try world.settle()
    for device in devices { device.cloud.clearLog() }
    try devices[1].sql("UPDATE t SET photo = randomblob(200000)", at: 20)
    try world.settle()
    try expectEqual(devices)
    #expect(downloads(devices[0]) == 1 && downloads(devices[1]) == 0)
  }

  @Test("TS46: 40 columns of 60 KB in one row; values move in and out of assets")
  func wide() throws {
    let world = try World()
    let names = (0..<40).map { "c\($0)" }
    let devices = try world.devices(
      ["A", "B"],
      schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, \(names.map { $0 + " TEXT" }.joined(separator: ", ")))")
    let values = names.indices.map { "printf('%.*c', \(60_000 + $0 * 10), '\($0 % 10)')" }.joined(separator: ", ")
    try devices[0].sql("INSERT INTO t VALUES ('k', \(values))", at: 10)
    try world.settle()
    try expectEqual(devices)
    #expect(world.server.assets.count > 20)
    // The other device makes room: some assets become fields again though nobody edited them.
    let short = names.dropFirst(8).map { "\($0) = 's'" }.joined(separator: ", ")
    try devices[1].sql("UPDATE t SET \(short)", at: 20)
    try world.settle()
    try expectEqual(devices)
    try devices[0].sql(
      "UPDATE t SET \(names[20...].map { "\($0) = printf('%.*c', 50000, 'y')" }.joined(separator: ", "))", at: 30)
    try world.settle()
    let late = try world.device("C", schema: "")
    try late.prepare(.join)
    try world.expectConverged()
    try expectEqual(world.devices)
  }

  @Test("TS52, M16: an asset that can't be had: old value kept, parked assetMissing, edits wait; then applied")
  func missing() throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: Self.schema, base: "INSERT INTO t VALUES ('k', 'one', x'01', 'old'), ('l', 'l', NULL, NULL)")
    try devices[0].sql("UPDATE t SET photo = randomblob(100000), story = 'new' WHERE id = 'k'", at: 10)
    try devices[0].sql("UPDATE t SET name = 'other' WHERE id = 'l'", at: 10)
    try devices[0].sync()
    devices[1].cloud.fail(.error(CloudError(.notFound, "gone")), times: .max) {
      if case .downloadAsset = $0 { true } else { false }
    }
    try devices[1].sync()
    #expect(try devices[1].picture(Self.picture) == ["k|one|blob|1|text|3", "l|other|null|∅|null|∅"])
    #expect(try devices[1].parked().map(\.reason) == [.assetMissing])
    // An edit of the row is not lost, and takes nothing back.
    try devices[1].sql("UPDATE t SET name = 'mine' WHERE id = 'k'", at: 20)
    try devices[1].sync()
    try devices[0].sync()
    #expect(try devices[0].scalar("SELECT story FROM t WHERE id = 'k'") == .text("new"))
    devices[1].cloud.heal()
    world.clock.advance(seconds: 1_000)
    try world.settle()
    #expect(try devices[1].picture(Self.picture) == ["k|mine|blob|100000|text|3", "l|other|null|∅|null|∅"])
    try world.expectConverged()
    try expectEqual(devices)
  }

  @Test("M16: other bytes than the record says are not taken")
  func damaged() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql("INSERT INTO t VALUES ('k', 'one', randomblob(100000), NULL)", at: 10)
    try devices[0].sync()
    let record = try #require(try world.serverRecords()["t:k"])
    guard case .string(let tags)? = record.fields["cairn_values"] else {
      Issue.record("no tags")
      return
    }
    try world.foreignReplace("t:k") { fields in
      let at = tags.firstRange(of: "ab:")
      let hash = at.map { tags[$0.upperBound...].prefix(64) } ?? ""
      fields["cairn_values"] = .string(tags.replacing(hash, with: String(repeating: "0", count: 64)))
    }
    try devices[1].sync()
    #expect(try devices[1].parked().map(\.reason) == [.assetMissing])
    #expect(try devices[1].scalar("SELECT count(*) FROM t") == .integer(0))
  }

  @Test("TS123: a cover replaced by delete and insert; the same bytes are not uploaded again")
  func replaced() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql("INSERT INTO t VALUES ('k', 'one', zeroblob(200000), NULL)", at: 10)
    try world.settle()
    for device in devices { device.cloud.clearLog() }
    try devices[0].sql("DELETE FROM t; INSERT INTO t VALUES ('k', 'two', zeroblob(200000), 'story')", at: 20)
    try world.settle()
    #expect(uploads(devices[0]) == 0)
    #expect(downloads(devices[1]) == 0)
    try expectEqual(devices)
    #expect(try devices[1].picture(Self.picture) == ["k|two|blob|200000|text|5"])
    try world.expectConverged()
  }

  @Test("TS140: a cover with an asset that is fetched before its list")
  func coverBeforeList() throws {
    let world = try World(entriesPerRequest: 1)
    let a = try world.device("A", schema: Schema.lists)
    try a.prepare(.create)
    try a.sql("INSERT INTO lists VALUES ('l', 'x', NULL); INSERT INTO covers VALUES ('l', randomblob(150000))", at: 10)
    try world.settle()
    // The list moves behind its cover in the feed.
    try a.sql("UPDATE lists SET title = 'y'", at: 20)
    try world.settle()
    let b = try world.device("B", schema: Schema.lists)
    try b.prepare(.join)
    try world.expectConverged()
    #expect(try b.rows("SELECT * FROM covers") == a.rows("SELECT * FROM covers"))
  }

  @Test("TS163: ADD COLUMN for a field with assets: downloaded for all rows")
  func addedColumn() throws {
    let world = try World()
    let a = try world.device("A", schema: Self.schema)
    let b = try world.device("B", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, name TEXT)")
    try a.prepare(.create)
    try a.sync()
    try b.prepare(.join)
    try a.sql(
      "INSERT INTO t VALUES ('j', 'one', randomblob(100000), NULL), ('k', 'two', randomblob(100000), NULL)", at: 10)
    try a.sync()
    try b.sync()
    try b.sql("UPDATE t SET name = 'three' WHERE id = 'k'", at: 15)
    try b.sync()
    #expect(downloads(b) == 0)
    b.restart()
    try b.sql("ALTER TABLE t ADD COLUMN photo BLOB; ALTER TABLE t ADD COLUMN story TEXT", at: 20)
    try world.expectConverged()
    try expectEqual(world.devices)
  }

  @Test("L5, M16: rows with local integers are paired by their content, assets included")
  func merge() throws {
    let world = try World()
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, photo BLOB)"
    let rows = "INSERT INTO t VALUES (1, 'a', zeroblob(100000)), (2, 'b', zeroblob(100001))"
    let a = try world.device("A", schema: schema)
    try a.sql(rows)
    try a.prepare(.create)
    try a.sync()
    let b = try world.device("B", schema: schema)
    try b.sql(rows)
    try b.prepare(.merge)
    try world.expectConverged()
    #expect(try a.picture("SELECT id, name, length(photo) FROM t") == ["1|a|100000", "2|b|100001"])
    try b.sql("UPDATE t SET photo = zeroblob(90000) WHERE id = 2", at: 100)
    try world.expectConverged()
    #expect(try a.picture("SELECT id, length(photo) FROM t") == ["1|100000", "2|90000"])
  }

  // MARK: Sending

  @Test("engine section 7: a request that is repeated uploads nothing again; an expired receipt is replaced once")
  func receipts() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql("INSERT INTO t VALUES ('k', 'one', randomblob(100000), NULL)", at: 10)
    devices[0].failModify(.lostRequest)
    try devices[0].sync()
    world.clock.advance(seconds: 60)
    try world.settle()
    #expect(uploads(devices[0]) == 1)
    try expectEqual(devices)
    devices[0].cloud.clearLog()
    try devices[0].sql("UPDATE t SET photo = randomblob(90000)", at: 80)
    devices[0].failModify(.lostRequest)
    try devices[0].sync()
    world.clock.advance(seconds: 8_000)
    try world.settle()
    #expect(uploads(devices[0]) == 2)
    devices[0].cloud.clearLog()
    // The answer is lost: the server has it, and the asset is not sent a second time.
    try devices[0].sql("UPDATE t SET photo = randomblob(80000)", at: 9_000)
    devices[0].failModify(.lostAnswer)
    try devices[0].sync()
    world.clock.advance(seconds: 60)
    try world.settle()
    #expect(uploads(devices[0]) == 1)
    try world.expectConverged()
    try expectEqual(devices)
  }

  @Test("E21: a row that changes while its asset is uploaded is sent as it is in the end, never mixed")
  func changedMeanwhile() throws {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql("INSERT INTO t VALUES ('k', 'one', zeroblob(100000), NULL)", at: 10)
    nonisolated(unsafe) let device = devices[0]
    device.cloud.setBefore { call in
      guard case .uploadAssets = call else { return }
      device.cloud.setBefore(nil)
      do { try device.sql("UPDATE t SET photo = zeroblob(70000), name = 'two'", at: 11) } catch { Issue.record(error) }
    }
    try world.expectConverged()
    try expectEqual(devices)
    #expect(try devices[1].picture(Self.picture) == ["k|two|blob|70000|null|∅"])
  }

  @Test("section 7: an asset over the server's limit waits as tooLarge; the other rows go")
  func tooLarge() throws {
    var settings = ServerSettings()
    settings.bytesPerAsset = 100_000
    let world = try World(settings: settings)
    let devices = try world.devices(["A", "B"], schema: Self.schema)
    try devices[0].sql(
      "INSERT INTO t VALUES ('k', 'one', zeroblob(100001), NULL), ('l', 'two', zeroblob(99999), NULL)", at: 10)
    try world.settle()
    #expect(try devices[1].picture(Self.picture) == ["l|two|blob|99999|null|∅"])
    #expect(try devices[0].status().reasons.map { "\($0.reason)" } == ["tooLarge"])
    try devices[0].sql("UPDATE t SET photo = zeroblob(90000) WHERE id = 'k'", at: 20)
    try world.expectConverged()
    try expectEqual(devices)
  }

  @Test(
    "E20, M16: lost requests and answers, edits on both sides, small and large by turns",
    arguments: [1, 2, 3, 4] as [UInt64])
  func random(seed: UInt64) throws {
    let world = try World(entriesPerRequest: 3)
    let random = SeededRandomness(seed: seed)
    let devices = try world.devices(
      ["A", "B"], schema: Self.schema,
      base: "INSERT INTO t VALUES ('r0', 'a', NULL, NULL), ('r1', 'b', zeroblob(70000), 'x')")
    for device in devices {
      device.cloud.setRates(FaultInjector.Rates(lostRequest: 10, lostAnswer: 15, throttled: 2, temporary: 3))
    }
    for step in 0..<40 {
      let device = devices[random.below(2)]
      let row = "r\(random.below(4))"
      let size = [3, 66_000, 66_001, 150_000][random.below(4)]
      let at = Int64(20 + step)
      switch random.below(6) {
      case 0: try device.sql("UPDATE t SET photo = zeroblob(\(size)) WHERE id = '\(row)'", at: at)
      case 1: try device.sql("UPDATE t SET story = printf('%.*c', \(size), '\(step % 10)') WHERE id = '\(row)'", at: at)
      case 2: try device.sql("UPDATE t SET name = 'n\(step)', story = NULL WHERE id = '\(row)'", at: at)
      case 3: try device.sql("INSERT OR REPLACE INTO t VALUES ('\(row)', 'i\(step)', zeroblob(\(size)), NULL)", at: at)
      case 4: try device.sql("DELETE FROM t WHERE id = '\(row)'", at: at)
      default: break
      }
      if random.chance(percent: 60) { try device.sync() }
      if random.chance(percent: 20) { device.restart() }
      world.clock.advance(seconds: Int64(random.below(40)))
    }
    for device in devices { device.cloud.heal() }
    world.clock.advance(seconds: 4_000)
    try world.settle(rounds: 30)
    world.clock.advance(seconds: 4_000)
    try world.expectConverged()
    try expectEqual(devices)
    let late = try world.device("C", schema: "")
    try late.prepare(.join)
    try world.expectConverged()
    try expectEqual(world.devices)
  }
}
