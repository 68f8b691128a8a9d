import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables

/// The second phase of a run: every fault ends, and within a bounded number of syncs all devices must be equal, quiet
/// and sound.
struct Convergence {
  private let world: SimulatedWorld
  /// Rounds in which every device syncs once, an hour apart.
  private static let rounds = 20

  init(_ world: SimulatedWorld) { self.world = world }

  func judge() throws {
    try heal()
    try settle()
    try checkQuiet()
    try checkDevices()
    try checkServer()
    try checkModel()
  }

  private func violation(_ kind: String, _ detail: String) -> Simulation.Violation {
    Simulation.Violation(kind: kind, detail: detail)
  }

  private func heal() throws {
    for device in world.devices {
      device.cloud.isTokenRefused = false
      device.clock.setSkew(0)
    }
    try world.levelSchemas()
  }

  private func settle() throws {
    var last = ""
    for round in 0..<Self.rounds {
      world.clock.advance(milliseconds: 3_600_000)
      var isQuiet = true
      last = ""
      for device in world.devices {
        world.log.add("round \(round), \(device.name)")
        guard let report = try world.sync(device, SyncPlan()) else { continue }
        if report.state == "decision" {
          try device.open().decide(.recreateAndReupload)
          world.coverage.note(.decided)
          isQuiet = false
        }
        if let failure = report.result.failure {
          last += "\(device.name): \(SyncReport.describe(failure)); "
          isQuiet = false
        }
        if !device.cloud.sent.isEmpty || report.counts != TablesCounts() { isQuiet = false }
      }
      if isQuiet { return }
    }
    throw violation("not quiet", "after \(Self.rounds) rounds without faults. \(last)")
  }

  /// Nothing is sent or changed when there is nothing to do.
  private func checkQuiet() throws {
    for device in world.devices {
      let report = try world.sync(device, SyncPlan())
      if let report, report.counts != TablesCounts() || !device.cloud.sent.isEmpty {
        throw violation("not quiet", "\(device.name) works without need: \(report.counts)")
      }
    }
  }

  // MARK: Devices

  private func checkDevices() throws {
    var first: (picture: [String: [String]], parked: [String])?
    for device in world.devices {
      let status = try device.database.status()
      noteEvents(try device.database.events(limit: 10_000))
      if status.pending > 0 { throw violation("pending", "\(device.name): \(status.reasons)") }
      if try device.rows("PRAGMA integrity_check") != [[.text("ok")]] {
        throw violation("integrity", "\(device.name): \(try device.rows("PRAGMA integrity_check"))")
      }
      let orphans = try device.rows("PRAGMA foreign_key_check")
      if !orphans.isEmpty { throw violation("foreign key", "\(device.name): \(orphans)") }
      let parked = try parked(device)
      let picture = try device.database.picture()
      guard let expected = first else {
        first = (picture, parked)
        continue
      }
      if picture != expected.picture {
        throw violation("diverged", difference(expected.picture, picture, device))
      }
      if parked != expected.parked {
        throw violation("parked differs", "A: \(expected.parked), \(device.name): \(parked)")
      }
    }
  }

  private func noteEvents(_ events: [LoggedEvent]) {
    for event in events {
      switch event.kind {
      case "merged": world.coverage.note(.mergeLoss)
      case "parked": world.coverage.note(.parked)
      default: continue
      }
    }
  }

  /// Parked records of a device; only UNIQUE constraints, and what depends on rows that these keep away, explain any.
  /// And a parent whose last row went with a file that a copy replaced: no device is left to re-assert it (tables M13).
  private func parked(_ device: SimulatedDevice) throws -> [String] {
    let parked = try device.database.parked()
    world.coverage.note(.parkedUnique, parked.filter { $0.reason == .unique }.count)
    world.coverage.note(.parkedMissingParent, parked.filter { $0.reason == .missingParent }.count)
    for record in parked {
      let isExplained =
        record.reason == .unique
        || (record.reason == .missingParent
          && (parked.contains { $0.reason == .unique } || world.coverage.count(.copied) > 0))
      if !isExplained {
        throw violation(
          "parked",
          "\(device.name): \(record.record) is parked without need: \(record.reason.rawValue): \(record.detail)")
      }
    }
    return parked.map { "\($0.record) \($0.reason.rawValue)" }.sorted()
  }

  private func difference(
    _ expected: [String: [String]], _ found: [String: [String]], _ device: SimulatedDevice
  ) -> String {
    for table in Set(expected.keys).union(found.keys).sorted() {
      let (a, b) = (Set(expected[table] ?? []), Set(found[table] ?? []))
      if a == b { continue }
      return "A has \(a.subtracting(b).sorted()), \(device.name) has \(b.subtracting(a).sorted())"
    }
    return "the same rows in another order"
  }

  // MARK: Server and model

  private func checkServer() throws {
    guard let device = world.devices.first else { return }
    let onServer = try world.server.cloud(user: SimulatedWorld.user).allRecords(in: world.zone).map(\.id.name)
      .filter { !$0.hasPrefix("cairn_table:") }
    let here = try device.database.picture().values.flatMap { $0 }.map { String($0.prefix { $0 != "{" }) }
    let parked = try device.database.parked().map(\.record)
    let (server, known) = (Set(onServer), Set(here + parked))
    if server != known {
      throw violation(
        "server differs",
        "only on the server: \(server.subtracting(known).sorted()), only on devices: \(known.subtracting(server).sorted())"
      )
    }
  }

  private func checkModel() throws {
    guard let device = world.devices.first else { return }
    for (table, rows) in try world.modelledRows(device) {
      if let mistake = world.model.mistake(table: table, in: rows) {
        throw violation("model", "\(world.scenario.schema.tables[table].name): \(mistake)")
      }
    }
    if let loss = try world.presence.loss(on: device, parked: Set(device.database.parked().map(\.record))) {
      throw violation("lost", loss)
    }
  }
}
