import CairnEngine
import CairnRecords
import CairnSQLite
import CairnServerCore
import CairnTables
import CairnTesting
import Foundation
import Testing

/// The world of a scenario: one server core, one manual clock, and the devices of one user.
final class World {
  /// The world's start, ms since 1970. `@30` in the scenarios of tables.md section 8 is 30 s later.
  static let start: Int64 = 1_700_000_000_000

  let scenarioFolder: ScenarioFolder
  var folder: URL { scenarioFolder.url }
  let clock = ManualClock(wallClock: World.start)
  let server: InMemoryServer
  /// What becomes of the pages that devices fetch, and what was stored.
  let alterations = AlteredCloud.Alterations()
  let user = "anna"
  var entriesPerRequest: Int
  let place = SyncPlace(
    server: "http://world", container: "iCloud.cairn", environment: "production", zone: "cairn", user: "")
  var zone: ZoneID { ZoneID(name: place.zone) }
  private(set) var devices: [Device] = []

  init(entriesPerRequest: Int = 200, settings: ServerSettings = ServerSettings()) throws {
    self.entriesPerRequest = entriesPerRequest
    scenarioFolder = try ScenarioFolder()
    server = try InMemoryServer(clock: clock, settings: settings)
  }

  /// A device with the schema of the scenarios (tables section 8), not prepared yet.
  func device(
    _ name: String, schema: String = Schema.scenarios, skew: Int64 = 0, foreignKeys: Bool = true,
    journal: String = "WAL"
  ) throws -> Device {
    let device = try Device(name, self, schema: schema, skew: skew, foreignKeys: foreignKeys, journal: journal)
    devices.append(device)
    return device
  }

  /// Devices that are prepared and equal: the first creates, with `base` rows at @1; the others join.
  func devices(
    _ names: [String], schema: String = Schema.scenarios, base: String = "", naturalKeys: [String] = []
  ) throws -> [Device] {
    let all = try names.map { try device($0, schema: schema) }
    for (i, device) in all.enumerated() {
      try device.prepare(i == 0 ? .create : .join, naturalKeys: naturalKeys)
      if i == 0 && !base.isEmpty { try device.sql(base, at: 1) }
      try device.sync()
    }
    for device in all { _ = device.sentSinceLastAsked() }
    return all
  }

  /// A world with two devices that are prepared and equal (``devices(_:schema:base:naturalKeys:)``).
  static func pair(schema: String = Schema.scenarios, base: String) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, devices[0], devices[1])
  }

  /// Syncs every device, in order, until a whole round did nothing.
  func settle(rounds: Int = 12, sourceLocation: SourceLocation = #_sourceLocation) throws {
    for _ in 0..<rounds {
      var isQuiet = true
      for device in devices {
        let report = try device.sync()
        if let failure = report.result.failure {
          Issue.record("\(device.name): \(failure)", sourceLocation: sourceLocation)
        }
        if report.counts != TablesCounts() { isQuiet = false }
      }
      if isQuiet { return }
      clock.advance(seconds: 1)
    }
    Issue.record("not quiet after \(rounds) rounds", sourceLocation: sourceLocation)
  }

  /// The state that every scenario must end in: quiet, nothing pending, nothing parked, equal rows, sound files.
  func expectConverged(parked: Int = 0, sourceLocation: SourceLocation = #_sourceLocation) throws {
    try settle(sourceLocation: sourceLocation)
    var first: [String: [String]]?
    for device in devices {
      let status = try device.status()
      #expect(
        status.pending == 0, "\(device.name) has pending changes: \(status.reasons)", sourceLocation: sourceLocation)
      let parkedRecords = try device.parked()
      #expect(parkedRecords.count == parked, "\(device.name): \(parkedRecords)", sourceLocation: sourceLocation)
      #expect(try device.scalar("PRAGMA integrity_check") == .text("ok"), sourceLocation: sourceLocation)
      #expect(try device.rows("PRAGMA foreign_key_check").isEmpty, sourceLocation: sourceLocation)
      let picture = try Picture.of(device)
      if let first {
        #expect(picture == first, "\(device.name) differs from \(devices[0].name)", sourceLocation: sourceLocation)
      } else {
        first = picture
      }
    }
  }

  /// Live records on the server, by name; of the world's user unless another is named.
  func serverRecords(of user: String? = nil) throws -> [String: Record] {
    let cloud = try server.cloud(user: user ?? self.user, limits: CloudLimits(entriesPerRequest: 2_000))
    var records: [String: Record] = [:]
    var token: ChangeToken?
    while true {
      let page = try cloud.zoneChanges(in: zone, since: token)
      for record in page.records { records[record.id.name] = record }
      if !page.moreComing { break }
      token = page.token
    }
    return records.filter { !$0.key.hasPrefix("cairn_table:") }
  }
}
