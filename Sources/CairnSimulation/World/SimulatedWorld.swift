import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnServerCore
import CairnTables
import CairnTesting
import Foundation

/// The world of one run: the server core in memory, one clock, and devices with files of their own.
final class SimulatedWorld {
  static let start: Int64 = 1_700_000_000_000
  static let user = "anna"
  static let place = SyncPlace(
    server: "http://simulation", container: "iCloud.cairn", environment: "production", zone: "cairn", user: "")

  let scenario: Scenario
  let clock = ManualClock(wallClock: SimulatedWorld.start)
  let server: InMemoryServer
  let zone = ZoneID(name: SimulatedWorld.place.zone)
  private(set) var devices: [SimulatedDevice] = []
  var log = EventLog()
  var model = FieldModel()
  var coverage = Coverage()
  var presence: RowPresence
  private let folder: URL
  private var backup: InMemoryServer.Backup?
  private var columnsAdded: [Int: Set<Int>] = [:]

  init(_ scenario: Scenario) throws {
    self.scenario = scenario
    presence = RowPresence(scenario.schema)
    folder = try SimulatedWorld.makeFolder()
    var chance = Chance(seed: scenario.seed ^ 0x5eed)
    server = try InMemoryServer(clock: clock, randomness: SeededRandomness(seed: chance.next()))
    let limits = CloudLimits(entriesPerRequest: scenario.entriesPerRequest)
    for number in 0..<scenario.devices {
      let cloud = SimulatedCloud(try server.cloud(user: SimulatedWorld.user, limits: limits))
      devices.append(
        try SimulatedDevice(
          number, folder: folder, clock: DeviceClock(clock), cloud: cloud, seed: chance.next()))
    }
  }

  deinit {
    for device in devices { device.restart() }
    // What can't be removed lies in the folder for temporary files.
    try? FileManager.default.removeItem(at: folder)
  }

  /// In memory where the machine has a folder for that.
  private static func makeFolder() throws -> URL {
    var base = FileManager.default.temporaryDirectory
    if FileManager.default.isWritableFile(atPath: "/dev/shm") { base = URL(fileURLWithPath: "/dev/shm") }
    let folder = base.appendingPathComponent("cairn-simulation-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }

  var totalCoverage: Coverage {
    var total = coverage
    for device in devices {
      total.add(device.coverage)
      total.add(device.cloud.coverage)
    }
    total.note(.voidDelete, model.voidDeletes)
    total.note(.reinserted, model.reinserts)
    return total
  }

  // MARK: The run

  /// Runs both phases; returns what was violated first.
  func run() -> Simulation.Violation? {
    do {
      log.add("seed \(scenario.seed), \(scenario.devices) devices")
      for table in scenario.schema.tables.flatMap(\.statements) { log.add(table) }
      try setUp()
      for (number, step) in scenario.steps.enumerated() {
        log.add("\(number) @\(clock.wallClock - SimulatedWorld.start) \(step)")
        try perform(step)
      }
      log.add("healed")
      try Convergence(self).judge()
      return nil
    } catch let violation as Simulation.Violation {
      log.add("VIOLATION \(violation)")
      return violation
    } catch {
      let violation = Simulation.Violation(kind: "error", detail: "\(error)")
      log.add("VIOLATION \(violation)")
      return violation
    }
  }

  private func setUp() throws {
    for device in devices {
      if device.number == 0 || !scenario.joinEmpty.contains(device.number) { try device.create(scenario.schema) }
      try device.prepare(device.number == 0 ? .create : .join, SimulatedWorld.place)
      // A first fetch has no token and hears of no deletes: the model could not tell what becomes of rows made before
      // it.
      try sync(device, SyncPlan())
    }
  }

  private func perform(_ step: Step) throws {
    switch step {
    case .program(let device, let program): try run(program, on: devices[device])
    case .sync(let device, let plan): try sync(devices[device], plan)
    case .pass(let time): clock.advance(milliseconds: time)
    case .skew(let device, let skew):
      coverage.note(.clockJumped)
      devices[device].clock.setSkew(skew)
    case .restart(let device):
      coverage.note(.restarted)
      devices[device].restart()
    case .addColumn(let device, let table): try addColumn(devices[device], table)
    case .copy(let from, let to): try copy(devices[from], to: devices[to])
    case .signIn(let device, let isIn): devices[device].cloud.isTokenRefused = !isIn
    case .restartServer:
      coverage.note(.serverRestarted)
      try server.restart()
    case .backUpServer: backup = try server.backup()
    case .restoreServer:
      guard let backup else { return log.add("  there is no backup") }
      guard !devices.contains(where: \.hasOpenSaves) else { return log.add("  not now: a sync only sent") }
      coverage.note(.serverRestored)
      model.doubtDeletes("the server was restored")
      try server.restore(backup)
    case .deleteZone:
      coverage.note(.zoneDeleted)
      model.doubtDeletes("the zone was deleted")
      for result in try server.cloud(user: SimulatedWorld.user).deleteZones([zone]) { log.add("  \(result)") }
    }
  }

  private func addColumn(_ device: SimulatedDevice, _ table: Int) throws {
    guard columnsAdded[device.number]?.contains(table) != true else { return }
    // As an upgraded app does it: its engine is not running.
    device.restart()
    guard try device.addColumn(scenario.schema.tables[table].name) else { return log.add("  refused") }
    columnsAdded[device.number, default: []].insert(table)
    coverage.note(.columnAdded)
  }

  /// Every device gets the columns that some have.
  func levelSchemas() throws {
    let all = columnsAdded.values.reduce(into: Set<Int>()) { $0.formUnion($1) }
    for device in devices { for table in all.sorted() { try addColumn(device, table) } }
  }

  private func copy(_ from: SimulatedDevice, to: SimulatedDevice) throws {
    // A device with changes that nobody else has would take them to its grave.
    guard try to.database.status().pending == 0 else { return log.add("  not while changes are pending") }
    // Rows with INTEGER keys get their names before the copy (tables L15).
    _ = try from.database.status()
    try to.replaceFile(by: from)
    model.replaceDevice(to.number, by: from.number)
    columnsAdded[to.number] = columnsAdded[from.number]
    coverage.note(.copied)
  }

  // MARK: Sync

  @discardableResult
  func sync(_ device: SimulatedDevice, _ plan: SyncPlan) throws -> SyncReport? {
    model.willSync(device.number)
    if plan.faults.values.contains(.expiredToken) { model.doubtDeletes("a snapshot does not know times of deletes") }
    var failure: (any Error)?
    let report = try device.sync(plan) { [unowned self] request in
      guard let program = plan.during[request], failure == nil else { return }
      log.add("  during request \(request)")
      coverage.note(.programDuringRequest)
      do { try run(program, on: device) } catch { failure = error }
    }
    if let failure { throw failure }
    model.didSync(device.number, confirmed: report?.quiet == true)
    if let report, report.result.failure == nil, plan.scope != .sendOnly {
      device.hasOpenSaves = false
    } else if !device.cloud.sent.isEmpty {
      device.hasOpenSaves = true
    }
    if let report { note(report, device) } else { log.add("  the process ended") }
    try checkRows(device)
    return report
  }

  private func note(_ report: SyncReport, _ device: SimulatedDevice) {
    let counts = report.counts
    var line = "  \(report.state): saved \(counts.saved), deleted \(counts.deleted), fetched \(counts.fetched), "
    line += "removed \(counts.removed), conflicts \(counts.conflicts), parked \(report.parked)"
    line += ", pending \(report.pending), \(device.cloud.requests) requests"
    if let failure = report.result.failure { line += ", \(SyncReport.describe(failure))" }
    log.add(line)
    for operation in device.cloud.sent { log.add("    \(operation.kind.rawValue) \(operation.record.id.name)") }
    coverage.note(.conflict, counts.conflicts)
    coverage.note(.removedByFetch, counts.removed)
  }

  /// Values that nobody wrote are found where they appear.
  private func checkRows(_ device: SimulatedDevice) throws {
    for (table, rows) in try modelledRows(device) {
      if let problem = model.unknownValue(table: table, in: rows) {
        throw Simulation.Violation(
          kind: "unknown value", detail: "\(device.name), \(scenario.schema.tables[table].name): \(problem)")
      }
    }
  }
}
