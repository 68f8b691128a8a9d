import CairnSQLite

/// Programs, and what the judges learn from them.
extension SimulatedWorld {
  func run(_ program: Program, on device: SimulatedDevice) throws {
    try device.setRecursiveTriggers(program.recursiveTriggers)
    let before = (model, presence)
    if program.isTransaction { try device.beginTransaction() }
    var time = device.clock.wallClock
    for statement in program.statements {
      try run(statement, on: device, at: time)
      time += program.pace
    }
    if program.isTransaction {
      try device.endTransaction(rollBack: program.isRolledBack)
      if program.isRolledBack {
        coverage.note(.rolledBack)
        (model, presence) = before
      }
    }
  }

  private func run(_ statement: Program.Statement, on device: SimulatedDevice, at time: Int64) throws {
    let table = scenario.schema.tables[statement.table]
    let before = table.isModelled ? try rows(of: statement.table, on: device) : [:]
    let presentBefore = try presence.names(on: device)
    if let refusal = try device.execute(statement.sql, at: time) {
      coverage.note(.statementRefused)
      if refusal.isBusy {
        throw Simulation.Violation(kind: "locked", detail: "\(device.name): the engine keeps the file locked")
      }
      log.add("  refused: \(statement.sql): \(refusal.message)")
      return
    }
    try presence.note(from: presentBefore, on: device)
    guard table.isModelled else { return }
    let after = try rows(of: statement.table, on: device)
    if before.count == after.count && before.keys != after.keys { coverage.note(.keyChanged) }
    model.note(table: statement.table, from: before, to: after, device: device.number, at: time)
  }

  /// The rows of every modelled table.
  func modelledRows(_ device: SimulatedDevice) throws -> [(Int, [String: [Value]])] {
    try scenario.schema.tables.indices.filter { scenario.schema.tables[$0].isModelled }.map {
      ($0, try rows(of: $0, on: device))
    }
  }

  /// A table's fields, by the name of the row's key.
  private func rows(of index: Int, on device: SimulatedDevice) throws -> [String: [Value]] {
    let table = scenario.schema.tables[index]
    let key = table.key == .mappedBorn ? ["born"] : table.keyColumns
    let columns = (key + table.fields.map(\.name)).joined(separator: ", ")
    var rows: [String: [Value]] = [:]
    for row in try device.rows("SELECT \(columns) FROM \(table.name)") {
      let name = row[..<key.count].map { RowPresence.text($0) }.joined(separator: ",")
      rows[table.key == .noCase ? name.lowercased() : name] = Array(row[key.count...])
    }
    return rows
  }
}
