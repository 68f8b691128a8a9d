import CairnEngine
import CairnSQLite
import Testing

@testable import CairnTables

/// Random programs write to a file with capture; after each fold the records must be what a model says that compares
/// the tables before and after each statement.
@Suite("T10–T24, F2–F7 Random programs are captured (tables 2, 3.1)")
struct CaptureJudgeTests {
  struct Settings: CustomStringConvertible {
    var recursiveTriggers: Bool
    var foreignKeys: Bool
    var journal: String
    var description: String { "recursive_triggers=\(recursiveTriggers) foreign_keys=\(foreignKeys) \(journal)" }
  }

  @Test(
    "T14–T24 what programs do to rows is what records show",
    arguments: [
      Settings(recursiveTriggers: false, foreignKeys: true, journal: "WAL"),
      Settings(recursiveTriggers: true, foreignKeys: true, journal: "DELETE"),
      Settings(recursiveTriggers: false, foreignKeys: false, journal: "WAL"),
      Settings(recursiveTriggers: true, foreignKeys: false, journal: "WAL"),
    ])
  func judge(_ settings: Settings) throws {
    for seed in UInt64(1)...9 {
      var units = CaptureProgram(seed: seed).units(30)
      // Without foreign keys nothing follows a changed integer, and two rows may name one record.
      if !settings.foreignKeys { for i in units.indices { units[i].statements.removeAll { !$0.moves.isEmpty } } }
      let faults = try CaptureRun(settings).run(units)
      if faults.isEmpty { continue }
      let (short, shortFaults) = try shorten(units, settings)
      let trace = short.map(\.description).joined(separator: "\n")
      Issue.record("seed \(seed), \(settings):\n\(shortFaults.joined(separator: "\n"))\nafter\n\(trace)")
      return
    }
  }

  /// Leaves out what is not needed for a fault.
  private func shorten(_ units: [CaptureUnit], _ settings: Settings) throws -> ([CaptureUnit], [String]) {
    var units = units
    var faults = try CaptureRun(settings).run(units)
    var place = units.count - 1
    while place >= 0 {
      var fewer = units
      fewer.remove(at: place)
      try take(&units, &faults, fewer, settings)
      place -= 1
    }
    for place in units.indices {
      for statement in units[place].statements.indices.reversed() {
        var fewer = units
        fewer[place].statements.remove(at: statement)
        try take(&units, &faults, fewer, settings)
      }
    }
    return (units, faults)
  }

  private func take(
    _ units: inout [CaptureUnit], _ faults: inout [String], _ fewer: [CaptureUnit], _ settings: Settings
  ) throws {
    let found = try CaptureRun(settings).run(fewer)
    if found.isEmpty { return }
    units = fewer
    faults = found
  }
}

/// One run of a program against a fresh file.
private final class CaptureRun {
  private let settings: CaptureJudgeTests.Settings
  private let world: World
  private let device: Device
  private let program: Connection
  private var model = CaptureModel()
  private var seconds: Int64 = 10
  /// Record names by the model's names of mapped rows.
  private var uuids: [String: String] = [:]

  init(_ settings: CaptureJudgeTests.Settings) throws {
    self.settings = settings
    world = try World()
    device = try world.device("A", schema: CaptureModel.schema, journal: settings.journal)
    try device.prepare(.create)
    program = try device.connection()
    try program.execute(
      """
      PRAGMA synchronous = OFF;
      PRAGMA foreign_keys = \(settings.foreignKeys); PRAGMA recursive_triggers = \(settings.recursiveTriggers)
      """)
  }

  /// Runs to the end or to the first check that fails, and returns what it found.
  func run(_ units: [CaptureUnit]) throws -> [String] {
    for unit in units {
      try run(unit)
      switch unit.then {
      case .nothing: continue
      case .fold: try device.open().database.foldForTests()
      case .sync: try device.sync()
      }
      let faults = try compare()
      if !faults.isEmpty { return faults }
      if unit.then == .sync { try confirm() }
    }
    try device.open().database.foldForTests()
    return try compare()
  }

  private func run(_ unit: CaptureUnit) throws {
    let start = model
    var saved = model
    if unit.isTransaction { try program.execute("BEGIN") }
    seconds += 1
    for statement in unit.statements {
      if !unit.sharesTime { seconds += 1 }
      let wasInTransaction = program.isInTransaction
      try run(statement)
      if wasInTransaction && !program.isInTransaction {
        // OR ROLLBACK: programs give up here.
        model = start
        break
      }
      switch statement.sql {
      case "SAVEPOINT s": saved = model
      case "ROLLBACK TO s" where program.isInTransaction: model = saved
      default: break
      }
      model.step(try CaptureModel.read(program), at: World.start + seconds * 1_000, moves: statement.moves)
    }
    guard program.isInTransaction else { return }
    if unit.rollsBack {
      try program.execute("ROLLBACK")
      model = start
    } else {
      do {
        try program.execute("COMMIT")
      } catch {
        program.rollBack()
        model = start
      }
    }
    model.step(try CaptureModel.read(program), at: World.start + seconds * 1_000, moves: [])
  }

  private func run(_ statement: CaptureStatement) throws {
    let before = try program.scalar("SELECT coalesce(max(id), 0) FROM cairn_log")?.integer ?? 0
    do {
      try program.execute(statement.sql)
    } catch {
      // A constraint, a type that does not fit, or a savepoint that is not there: programs live with these.
      guard error.isConstraint || error.code == 20 || error.code == 1 else { throw error }
    }
    let time = 2_440_587.5 + Double(World.start + seconds * 1_000) / 86_400_000
    try program.execute("UPDATE cairn_log SET time = \(time) WHERE id > \(before)")
  }

  // MARK: Comparing

  private func compare() throws -> [String] {
    let file = try device.open().database.file
    var faults: [String] = []
    var seen: Set<String> = []
    for plan in file.catalog.plans {
      guard let table = CaptureModel.tables.first(where: { $0.name == plan.name }) else { continue }
      for record in try file.records.all(table: plan.number, after: nil, limit: 10_000) {
        let recordName = try file.names.name(of: record, plan) ?? "?"
        guard let name = try modelName(record, recordName, plan, table, file) else {
          faults.append("\(plan.name): a record \(recordName) that the model does not know")
          continue
        }
        seen.insert(name)
        faults += faultsOf(record, name, plan)
      }
      let live = try file.liveRows(plan)
      let rows = model.records.filter { $0.value.isAlive && $0.key.hasPrefix(plan.name + ":") }.count
      if live != Int64(rows) { faults.append("\(plan.name): \(live) live records are counted, there are \(rows)") }
    }
    for (name, record) in model.records where !seen.contains(name) && (record.isAlive || record.isKnown) {
      faults.append("\(name): no record")
    }
    return faults.sorted()
  }

  private func modelName(
    _ record: RecordRow, _ recordName: String, _ plan: TablePlan, _ table: CaptureModel.Table, _ file: FileContext
  ) throws -> String? {
    guard record.isAlive else {
      return plan.keyKind == .mapped || plan.isNamedByParent
        ? uuids.first { $0.value == recordName }?.key : CaptureRun.naturalName(record.key, plan)
    }
    var row: [String: Value] = [:]
    for (column, part) in zip(plan.keyColumns, RowKey.parts(of: record.key, plan)) {
      row[plan.columns[column].name] = part
    }
    let name = model.name(table, row)
    if plan.keyKind == .mapped || plan.isNamedByParent {
      if let known = uuids[name], known != recordName { return nil }
      if uuids.contains(where: { $0.value == recordName && $0.key != name }) { return nil }
      uuids[name] = recordName
    }
    return name
  }

  private static func naturalName(_ key: Value, _ plan: TablePlan) -> String {
    "\(plan.name):\(RowKey.parts(of: key, plan).map(Device.text).joined(separator: ","))"
  }

  private func faultsOf(_ record: RecordRow, _ name: String, _ plan: TablePlan) -> [String] {
    guard let expected = model.records[name] else { return ["\(name): should be forgotten"] }
    guard expected.isAlive == record.isAlive else { return ["\(name): alive \(record.isAlive)"] }
    if !record.isAlive {
      return Self.agree(record.deletedAt ?? -1, expected.deletedAt)
        ? [] : ["\(name): deleted at \(record.deletedAt ?? -1), not \(expected.deletedAt)"]
    }
    var faults: [String] = []
    if !Self.agree(record.clocks.life, expected.life) {
      faults.append("\(name): life \(record.clocks.life), not \(expected.life)")
    }
    for (i, column) in plan.columns.enumerated() where plan.isField(i) {
      let clock = expected.clocks[column.name] ?? 0
      if !Self.agree(record.clocks.columns[i], clock) {
        faults.append("\(name).\(column.name): clock \(record.clocks.columns[i]), not \(clock)")
      }
    }
    return faults
  }

  /// A statement may change a row several times; each takes a millisecond.
  private static func agree(_ clock: Int64, _ expected: Int64) -> Bool { (0...5).contains(clock - expected) }

  /// Notes what the server knows now.
  private func confirm() throws {
    let file = try device.open().database.file
    var known: Set<String> = []
    for plan in file.catalog.plans {
      guard let table = CaptureModel.tables.first(where: { $0.name == plan.name }) else { continue }
      for record in try file.records.all(table: plan.number, after: nil, limit: 10_000)
      where record.tag != nil || record.flags.contains(.attempted) || !record.isAlive {
        let recordName = try file.names.name(of: record, plan) ?? "?"
        if let name = try modelName(record, recordName, plan, table, file) { known.insert(name) }
      }
    }
    model.confirm { known.contains($0) }
  }
}

extension SyncedDatabase {
  func foldForTests() throws { try Folder.fold(file) }
}
