/// Makes the steps of a run from a seed. Nothing that happens in the run influences them.
struct StepGenerator {
  private var chance: Chance
  private var statements: StatementGenerator
  private let devices: Int
  private let schema: SimulatedSchema
  private let features: Simulation.Features
  /// What this run is about: what loses data by its nature is not mixed, so that the judges can be strict.
  private let theme: Theme

  enum Theme: Hashable { case plain, copies, lostZone, expiredTokens, addedColumns }

  static func scenario(_ options: Simulation.Options) -> Scenario {
    var chance = Chance(seed: options.seed)
    let schema = SchemaGenerator.make(Chance(seed: chance.next()), features: options.features)
    var generator = StepGenerator(&chance, schema, options)
    var joinEmpty: Set<Int> = []
    for device in 1..<max(2, options.devices) where chance.happens(40) { joinEmpty.insert(device) }
    let entries = chance.pick([2, 5, 200])
    let steps = (0..<options.steps).map { _ in generator.step() }
    return Scenario(
      seed: options.seed, devices: options.devices, schema: schema, joinEmpty: joinEmpty, entriesPerRequest: entries,
      steps: steps)
  }

  private init(_ chance: inout Chance, _ schema: SimulatedSchema, _ options: Simulation.Options) {
    self.chance = Chance(seed: chance.next())
    statements = StatementGenerator(Chance(seed: chance.next()), schema: schema)
    devices = options.devices
    self.schema = schema
    features = options.features
    var themes: [Theme] = [.plain, .plain]
    if options.features.contains(.faults) { themes += [.expiredTokens] }
    if options.features.contains(.upheavals) { themes += [.copies, .lostZone, .addedColumns] }
    theme = chance.pick(themes)
  }

  private mutating func step() -> Step {
    let device = chance.below(devices)
    switch chance.below(100) {
    case ..<50: return .program(device: device, program())
    case ..<82: return .sync(device: device, sync())
    case ..<90: return .pass(chance.pick([0, 1, 7, 900, 5_000, 70_000]))
    default: return features.contains(.faults) ? rareStep(device) : .pass(1)
    }
  }

  private mutating func rareStep(_ device: Int) -> Step {
    let other = (device + 1 + chance.below(max(1, devices - 1))) % devices
    switch (chance.below(10), theme) {
    case (0, _), (1, _): return .restart(device: device)
    case (2, _): return .skew(device: device, chance.pick([0, 400, -400, 3_600_000, -3_600_000, 20_000]))
    case (3, _): return .restartServer
    case (4, _): return .signIn(device: device, chance.happens(50))
    case (_, .copies): return other == device ? .restart(device: device) : .copy(from: device, to: other)
    case (5, .lostZone), (6, .lostZone): return .backUpServer
    case (7, .lostZone): return features.contains(.serverRestores) ? .restoreServer : .deleteZone
    case (8, .lostZone): return .deleteZone
    case (_, .addedColumns): return .addColumn(device: device, table: chance.below(schema.tables.count))
    default: return .pass(chance.pick([3, 3_000, 600_000]))
    }
  }

  private mutating func program() -> Program {
    var program = Program(statements: [])
    for _ in 0..<chance.pick([1, 1, 1, 2, 4]) { program.statements += statements.statements() }
    program.isTransaction = program.statements.count > 1 && chance.happens(70)
    program.isRolledBack = program.isTransaction && chance.happens(12)
    program.recursiveTriggers = features.contains(.recursiveTriggers) && chance.happens(30)
    program.pace = chance.pick([0, 1, 1, 250])
    return program
  }

  private mutating func sync() -> SyncPlan {
    var plan = SyncPlan()
    plan.scope = chance.pick(weighted: [(8, .all), (1, .fetchOnly), (1, .sendOnly)])
    guard features.contains(.faults) else { return plan }
    if chance.happens(15) { plan.during[chance.below(6)] = program() }
    guard chance.happens(35) else { return plan }
    var faults: [NetworkFault] = [.lostRequest, .lostAnswer, .lostAnswer, .duplicated, .throttled, .busy, .quota]
    if theme == .expiredTokens { faults += [.expiredToken, .expiredToken, .expiredToken] }
    switch chance.below(10) {
    case ..<5:
      for _ in 0..<1 + chance.below(3) { plan.faults[chance.below(6)] = chance.pick(faults) }
    case ..<8: plan.crashAtCommit = chance.below(8)
    default:
      let first = chance.below(6)
      plan.failingCommits = first..<first + 1 + chance.below(5)
    }
    return plan
  }
}
