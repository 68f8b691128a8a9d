import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

@Suite("Random edits, orders and faults against an independent model (tables M1–M6, TS198)")
struct RandomizedMergeTests {
  @Test("TS80 TS198 G2 G4 G5 devices, server and model agree", arguments: 1...20)
  func agree(_ seed: Int) throws {
    var run = try RandomizedRun(seed: UInt64(seed))
    try run.go(steps: 45)
    try run.check()
  }
}

/// One run of a seed.
private struct RandomizedRun {
  static let tables: [(name: String, key: String, columns: [String])] = [
    ("lists", "id", ["id", "title", "color"]), ("slots", "id", ["id", "label"]), ("tags", "name", ["name"]),
    ("notes", "id", ["title", "body"]),
  ]

  let seed: UInt64
  let world: World
  let devices: [Device]
  let random: SeededRandomness
  var model = EditModel()
  var trace: [String] = []
  var time: Int64 = 10

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededRandomness(seed: seed)
    world = try World(entriesPerRequest: [2, 3, 200][random.below(3)])
    devices = try world.devices(Array(["A", "B", "C"].prefix(2 + random.below(2))), schema: Schema.lists)
  }

  mutating func go(steps: Int) throws {
    for _ in 0..<steps {
      let device = devices[random.below(devices.count)]
      switch random.below(10) {
      case 0..<6: try edit(device)
      case 6..<9: try sync(device)
      default:
        device.restart()
        trace.append("\(device.name) restarts")
      }
    }
  }

  // MARK: Steps

  private mutating func edit(_ device: Device) throws {
    let table = Self.tables[random.below(Self.tables.count)]
    if random.chance(percent: 60) { time += Int64(random.below(3)) }
    let at = time - Int64(random.below(4) * random.below(4))
    let statement = try statement(device, table.name)
    trace.append("\(device.name) @\(at): \(statement)")
    try device.fold()
    let before = try device.known(table.name, table.key, table.columns)
    if random.chance(percent: 30) {
      try device.sql("PRAGMA recursive_triggers = \(random.chance(percent: 50) ? "ON" : "OFF")")
    }
    try device.sql(statement, at: at)
    try device.fold()
    let after = try device.known(table.name, table.key, table.columns)
    for record in Set(before.keys).union(after.keys) {
      let (old, new) = (before[record] ?? .absent, after[record] ?? .absent)
      model.note(record, on: device.name, before: old, after: new)
      checkClocks(record, old, new, at: World.start + at * 1_000)
    }
  }

  /// F3: time moves on, and only where something was edited.
  private func checkClocks(_ record: String, _ old: EditModel.Known, _ new: EditModel.Known, at time: Int64) {
    guard old.isAlive, new.isAlive, old.life == new.life else { return }
    for (field, clock) in new.clocks where old.clocks[field] != clock {
      let before = old.clocks[field] ?? -1
      #expect(clock == max(time, before + 1), "\(record) \(field) \(place)")
    }
  }

  private func statement(_ device: Device, _ table: String) throws -> String {
    let key = ["a", "b", "c"][random.below(3)]
    let value =
      random.chance(percent: 15) ? "NULL" : random.chance(percent: 20) ? "\(random.below(3))" : "'v\(random.below(6))'"
    let other = random.chance(percent: 50) ? "NULL" : "'w\(random.below(6))'"
    switch table {
    case "lists":
      let row = "('\(key)', \(value), \(other))"
      switch random.below(9) {
      case 0, 1: return "INSERT OR IGNORE INTO lists VALUES \(row)"
      case 2: return "UPDATE lists SET title = \(value) WHERE id = '\(key)'"
      case 3: return "UPDATE lists SET color = \(value) WHERE id = '\(key)'"
      case 4: return "UPDATE lists SET title = \(value), color = \(other) WHERE id = '\(key)'"
      case 5: return "DELETE FROM lists WHERE id = '\(key)'"
      case 6: return "REPLACE INTO lists VALUES \(row)"
      case 7: return "BEGIN; DELETE FROM lists WHERE id = '\(key)'; INSERT INTO lists VALUES \(row); COMMIT"
      default:
        return "INSERT INTO lists VALUES \(row) ON CONFLICT(id) DO UPDATE SET color = excluded.color"
      }
    case "slots":
      switch random.below(4) {
      case 0: return "INSERT OR IGNORE INTO slots VALUES ('\(key)', NULL, \(value))"
      case 1: return "UPDATE slots SET label = \(value) WHERE id = '\(key)'"
      case 2: return "DELETE FROM slots WHERE id = '\(key)'"
      default: return "REPLACE INTO slots VALUES ('\(key)', NULL, \(value))"
      }
    case "tags":
      let name = random.chance(percent: 50) ? key : key.uppercased()
      switch random.below(4) {
      case 0: return "INSERT OR IGNORE INTO tags VALUES ('\(name)')"
      case 1: return "DELETE FROM tags WHERE name = '\(name)'"
      case 2: return "REPLACE INTO tags VALUES ('\(name)')"
      default: return "UPDATE tags SET name = '\(name)' WHERE name = '\(key)'"
      }
    default:
      let ids = try device.rows("SELECT id FROM notes ORDER BY id").map { Device.text($0[0]) }
      let id = ids.isEmpty ? "1" : ids[random.below(ids.count)]
      switch random.below(5) {
      case 0 where ids.count < 4: return "INSERT INTO notes(title, body) VALUES (\(value), \(other))"
      case 1: return "DELETE FROM notes WHERE id = \(id)"
      case 2: return "REPLACE INTO notes VALUES (\(id), \(value), \(other))"
      case 3:
        return "BEGIN; DELETE FROM notes WHERE id = \(id); INSERT INTO notes VALUES (\(id), \(value), \(other)); COMMIT"
      default: return "UPDATE notes SET title = \(value) WHERE id = \(id)"
      }
    }
  }

  private mutating func sync(_ device: Device) throws {
    let scope: SyncRequest.Scope = [.all, .all, .sendOnly, .fetchOnly][random.below(4)]
    var faults: [FaultInjector.Fault?] = []
    if random.chance(percent: 50) {
      for _ in 0..<random.below(5) { faults.append(nil) }
      faults.append([.lostRequest, .lostAnswer, .lostAnswer, .throttled(retryAfter: 1)][random.below(4)])
    }
    trace.append("\(device.name) syncs \(scope), \(faults.map { $0.map { "\($0)" } ?? "-" })")
    device.cloud.script(faults)
    try device.sync(scope)
    device.cloud.heal()
    world.clock.advance(seconds: 20)
  }

  // MARK: The end

  var place: String { "seed \(seed)\n" + trace.joined(separator: "\n") }

  func check() throws {
    for device in devices { device.cloud.heal() }
    world.clock.advance(seconds: 7_200)
    try world.expectQuiet()
    for device in devices {
      var known: [String: EditModel.Known] = [:]
      for table in Self.tables { known.merge(try device.known(table.name, table.key, table.columns)) { $1 } }
      for record in model.records { check(record, known[record] ?? .absent, device) }
    }
    let alive = try devices[0].scalar("SELECT count(*) FROM \(RecordView.sql) WHERE deleted IS NULL")?.integerForTests
    #expect(try world.serverRecords().count == alive.map(Int.init), "\(place)")
  }

  private func check(_ record: String, _ known: EditModel.Known, _ device: Device) {
    switch model.expectation(record) {
    case .dead: #expect(!known.isAlive, "\(record) lives on \(device.name), \(place)")
    case .alive(let fields):
      #expect(known.isAlive, "\(record) is gone on \(device.name), \(place)")
      guard known.isAlive else { return }
      for (field, allowed) in fields {
        let value = known.values[field] ?? .null
        #expect(allowed.contains(value), "\(record).\(field) is \(value), not \(allowed), on \(device.name), \(place)")
      }
    }
  }
}
