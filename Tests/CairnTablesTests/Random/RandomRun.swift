import CairnSQLite
import CairnTables
import Foundation

/// A schema and what three devices do, made from a seed; runs it and says what is wrong at the end.
struct RandomRun {
  enum Step: CustomStringConvertible {
    case sql(Int, String)
    case sync(Int)
    case wait(Int)

    var description: String {
      switch self {
      case .sql(let device, let text): "\(RandomRun.names[device]): \(text)"
      case .sync(let device): "\(RandomRun.names[device]): sync"
      case .wait(let ms): "wait \(ms)"
      }
    }
  }

  static let names = ["A", "B", "C"]
  let schema: RandomSchema
  let steps: [Step]

  init(seed: UInt64, steps count: Int) {
    var random = SeededNumbers(seed)
    schema = RandomSchema(&random)
    var steps: [Step] = []
    for _ in 0..<count {
      let device = random.below(3)
      switch random.below(10) {
      case 0, 1: steps.append(.sync(device))
      default: steps.append(.sql(device, Self.statement(schema, &random)))
      }
      // Sometimes two things happen in one millisecond.
      if random.below(5) > 0 { steps.append(.wait(random.below(3_000) + 1)) }
    }
    self.steps = steps
  }

  // MARK: Statements

  private static func statement(_ schema: RandomSchema, _ random: inout SeededNumbers) -> String {
    let table = schema.tables[random.below(schema.tables.count)]
    let pick = random.below(7)
    let one =
      "WHERE (\(table.key.joined(separator: ", "))) IN (SELECT \(table.key.joined(separator: ", ")) FROM \(table.name) ORDER BY \(table.key.joined(separator: ", ")) LIMIT 1 OFFSET \(pick))"
    switch random.below(12) {
    case 0, 1, 2, 3, 4: return insert(table, schema, "INSERT", &random)
    case 5: return insert(table, schema, "INSERT OR REPLACE", &random)
    case 6, 7: return "DELETE FROM \(table.name) \(one)"
    case 8 where !table.references.isEmpty:
      let reference = table.references[random.below(table.references.count)]
      return
        "UPDATE \(table.name) SET \(reference.column) = \(value(of: reference.table, reference.target, schema, &random)) \(one)"
    default:
      let column = table.plain[random.below(table.plain.count)]
      return "UPDATE \(table.name) SET \(column) = \(plain(column, &random)) \(one)"
    }
  }

  private static func insert(
    _ table: RandomSchema.Table, _ schema: RandomSchema, _ verb: String, _ random: inout SeededNumbers
  ) -> String {
    var columns: [String] = []
    var values: [String] = []
    if table.isMapped {
      if random.below(3) == 0 {
        columns.append("id")
        values.append("\(random.below(6) + 1)")
      }
    } else {
      for column in table.key {
        columns.append(column)
        if let parent = table.keyParents.first(where: { $0.column == column }) {
          values.append(value(of: parent.table, "id", schema, &random))
        } else {
          let text = ["a", "b", "c", "d", "e", "f"][random.below(6)]
          values.append("'\(random.below(5) == 0 ? text.uppercased() : text)'")
        }
      }
    }
    for column in table.plain {
      columns.append(column)
      values.append(plain(column, &random))
    }
    for reference in table.references where random.below(3) > 0 {
      columns.append(reference.column)
      values.append(value(of: reference.table, reference.target, schema, &random))
    }
    return "\(verb) INTO \(table.name)(\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))"
  }

  private static func plain(_ column: String, _ random: inout SeededNumbers) -> String {
    switch column {
    case "u": random.below(5) == 0 ? "NULL" : "'u\(random.below(5))'"
    case "c": "\(random.below(7))"
    default: random.below(6) == 0 ? "NULL" : "\(random.below(100))"
    }
  }

  /// A value that a row of the table has, or NULL if there is none.
  private static func value(
    of table: Int, _ column: String, _ schema: RandomSchema, _ random: inout SeededNumbers
  ) -> String {
    "(SELECT \(column) FROM t\(table) ORDER BY \(column) LIMIT 1 OFFSET \(random.below(4)))"
  }

  // MARK: Running

  /// Returns a sentence for what is wrong, nil if all is well.
  func failure(of steps: [Step], entriesPerRequest: Int) -> String? {
    do {
      return try run(steps, entriesPerRequest)
    } catch {
      return "\(error)"
    }
  }

  private func run(_ steps: [Step], _ entriesPerRequest: Int) throws -> String? {
    let world = try World(entriesPerRequest: entriesPerRequest)
    let devices = try world.devices(Self.names, schema: schema.sql)
    for step in steps {
      switch step {
      case .wait(let ms): world.clock.advance(milliseconds: Int64(ms))
      case .sync(let i): if let failure = try sync(devices[i]) { return failure }
      case .sql(let i, let text):
        // Statements that break a rule of the schema fail, as they do in any program.
        do { try devices[i].sql(text, at: seconds(world)) } catch let error as SQLiteError where error.isConstraint {}
      }
    }
    for _ in 0..<40 {
      var isQuiet = true
      for device in devices {
        let report = try device.sync()
        if let failure = report.result.failure { return "\(device.name): sync failed: \(failure)" }
        if report.counts != TablesCounts() { isQuiet = false }
      }
      if isQuiet { return try judge(devices) }
      world.clock.advance(seconds: 1)
    }
    return "never quiet"
  }

  private func seconds(_ world: World) -> Int64? { (world.clock.wallClock - World.start) / 1_000 }

  private func sync(_ device: Device) throws -> String? {
    let report = try device.sync()
    return report.result.failure.map { "\(device.name): sync failed: \($0)" }
  }

  private func judge(_ devices: [Device]) throws -> String? {
    var pictures: [[String: [String]]] = []
    var parked: [[String]] = []
    for device in devices {
      let status = try device.status()
      if status.pending != 0 { return "\(device.name): pending \(try Self.pending(device))" }
      if try device.scalar("PRAGMA integrity_check") != .text("ok") { return "\(device.name): integrity" }
      if try !device.rows("PRAGMA foreign_key_check").isEmpty { return "\(device.name): foreign_key_check" }
      pictures.append(try Picture.of(device))
      let records = try device.parked()
      if let odd = records.first(where: { $0.reason != .unique && $0.reason != .missingParent }) {
        return "\(device.name): parked \(odd)"
      }
      if let orphan = records.first(where: { $0.reason == .missingParent }),
        !records.contains(where: { $0.reason == .unique })
      {
        return "\(device.name): parked without unique: \(orphan)"
      }
      parked.append(records.map { "\($0.record)" }.sorted())
    }
    for i in 1..<devices.count {
      if pictures[i] != pictures[0] {
        return "\(devices[i].name) differs from A: \(Self.difference(pictures[0], pictures[i]))"
      }
      if parked[i] != parked[0] { return "\(devices[i].name) parks \(parked[i]), A parks \(parked[0])" }
    }
    return nil
  }

  private static func pending(_ device: Device) throws -> [String] {
    try device.picture(
      """
      SELECT tbl, key, name, pending, flags, revision, tag, deleted, dirty, reason FROM \(RecordView.sql) WHERE pending > 0
      """)
  }

  private static func difference(_ a: [String: [String]], _ b: [String: [String]]) -> String {
    a.keys.sorted().flatMap { table in
      let (x, y) = (Set(a[table] ?? []), Set(b[table] ?? []))
      return x.subtracting(y).sorted().map { "A only: \($0)" } + y.subtracting(x).sorted().map { "other only: \($0)" }
    }.joined(separator: "; ")
  }

  // MARK: Shortening

  /// Leaves out steps as long as something still goes wrong.
  func shortened(_ steps: [Step], entriesPerRequest: Int, tries: Int) -> [Step] {
    var steps = steps
    var left = tries
    var size = max(steps.count / 2, 1)
    while left > 0 {
      var start = 0
      var removed = false
      while start < steps.count, left > 0 {
        var fewer = steps
        fewer.removeSubrange(start..<min(start + size, steps.count))
        left -= 1
        if failure(of: fewer, entriesPerRequest: entriesPerRequest) != nil {
          steps = fewer
          removed = true
        } else {
          start += size
        }
      }
      if size == 1 && !removed { break }
      size = max(size / 2, 1)
    }
    return steps
  }
}
