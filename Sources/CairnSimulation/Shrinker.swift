/// Takes out of a scenario what its violation does not need, by running it again and again.
struct Shrinker {
  private var best: Scenario
  private var report: Simulation.Report
  private let kind: String
  private var tries: Int

  /// Nil when the scenario has no violation.
  init?(_ scenario: Scenario, tries: Int) throws {
    let report = try Simulation.run(scenario)
    guard let violation = report.violation else { return nil }
    best = scenario
    self.report = report
    kind = violation.kind
    self.tries = tries
  }

  mutating func shrink() throws -> Simulation.Report {
    var before = -1
    while weight(best) != before && tries > 0 {
      before = weight(best)
      try dropSteps()
      try dropDevices()
      try simplifySteps()
    }
    return report
  }

  private func weight(_ scenario: Scenario) -> Int {
    scenario.devices * 10 + scenario.schema.tables.count
      + scenario.steps.reduce(0) { sum, step in
        switch step {
        case .program(_, let program): sum + 10 + program.statements.count * 3
        case .sync(_, let plan): sum + 10 + (plan.isPlain ? 0 : 5)
        default: sum + 10
        }
      }
  }

  /// Keeps a smaller scenario if it fails alike.
  private mutating func accept(_ scenario: Scenario) throws -> Bool {
    guard tries > 0, scenario != best else { return false }
    tries -= 1
    let report = try Simulation.run(scenario)
    guard report.violation?.kind == kind else { return false }
    best = scenario
    self.report = report
    return true
  }

  private mutating func dropSteps() throws {
    var size = max(1, best.steps.count / 2)
    while true {
      var start = 0
      while start < best.steps.count {
        var next = best
        next.steps.removeSubrange(start..<min(start + size, next.steps.count))
        if try !accept(next) { start += size }
      }
      if size == 1 { return }
      size /= 2
    }
  }

  /// The last device goes where its steps can go with it.
  private mutating func dropDevices() throws {
    while best.devices > 1 {
      var next = best
      next.devices -= 1
      next.joinEmpty.remove(next.devices)
      next.steps.removeAll { $0.devices.contains(next.devices) }
      if try !accept(next) { return }
    }
  }

  private mutating func simplifySteps() throws {
    for index in best.steps.indices {
      for simpler in simplifications(best.steps[index]) {
        var next = best
        next.steps[index] = simpler
        _ = try accept(next)
      }
    }
    var next = best
    next.joinEmpty = []
    _ = try accept(next)
    next = best
    next.entriesPerRequest = 200
    _ = try accept(next)
    for index in best.schema.tables.indices.reversed() where !isUsed(index) {
      next = best
      next.schema.tables.remove(at: index)
      guard index == best.schema.tables.count - 1 else { continue }
      _ = try accept(next)
    }
  }

  private func isUsed(_ table: Int) -> Bool {
    best.steps.contains { step in
      switch step {
      case .program(_, let program): program.statements.contains { $0.table == table }
      case .sync(_, let plan): plan.during.values.contains { $0.statements.contains { $0.table == table } }
      case .addColumn(_, let added): added == table
      default: false
      }
    }
  }

  private func simplifications(_ step: Step) -> [Step] {
    switch step {
    case .program(let device, let program):
      return simplifications(program).map { .program(device: device, $0) }
    case .sync(let device, let plan) where !plan.isPlain || plan.scope != .all:
      var plans = [SyncPlan()]
      var without = plan
      without.during = [:]
      plans.append(without)
      without = plan
      without.faults = [:]
      plans.append(without)
      for number in plan.faults.keys.sorted() where plan.faults.count > 1 {
        without = plan
        without.faults[number] = nil
        plans.append(without)
      }
      for (number, program) in plan.during.sorted(by: { $0.key < $1.key }) {
        for simpler in simplifications(program) {
          without = plan
          without.during[number] = simpler
          plans.append(without)
        }
      }
      return plans.map { .sync(device: device, $0) }
    default: return []
    }
  }

  private func simplifications(_ program: Program) -> [Program] {
    var result: [Program] = []
    for index in program.statements.indices where program.statements.count > 1 {
      var next = program
      next.statements.remove(at: index)
      result.append(next)
    }
    var plain = program
    (plain.isTransaction, plain.isRolledBack) = (false, false)
    result.append(plain)
    plain = program
    plain.recursiveTriggers = false
    result.append(plain)
    plain = program
    plain.pace = 1
    result.append(plain)
    return result.filter { $0 != program }
  }
}
