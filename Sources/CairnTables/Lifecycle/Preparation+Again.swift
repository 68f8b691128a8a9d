import CairnEngine
import CairnRecords
import CairnSQLite

/// `init` on a file that is prepared already.
extension Preparation {
  /// The same options again: nothing changes but the sign-in; tables named in addition are taken up, a run that was cut
  /// off is finished, and a mode is looked at only where one is waited for (tables 1.1, L8, L11).
  func again(_ user: String) throws -> Outcome {
    let connection = try DatabaseOpener.open(options.path, mode: .readWrite)
    let settings = FileSettings(connection)
    try checkPlace(settings)
    try checkBegunMode(settings)
    let plan = try checkSelection(connection, settings)
    try connection.transaction { try Selection(options: additions(settings)).store(settings) }
    let file = try SchemaUpkeep.open(connection, time: time, randomness: randomness)
    var outcome = Outcome(
      mode: nil, user: user, tables: file.catalog.plans.map(\.name).sorted(), skipped: plan.skipped,
      warnings: plan.warnings.map(\.message) + plan.problems.map(\.description), rows: 0)
    try finish(file, &outcome)
    try takeMode(file, &outcome)
    try SchemaPublisher(cloud: cloud, file: file).publish(clock: time.wallClock)
    return outcome
  }

  /// A run that was cut off is finished as it was begun: another mode would do something else with the rows.
  private func checkBegunMode(_ settings: FileSettings) throws {
    guard let mode = options.mode, let word = try settings.get(.takeUp)?.split(separator: " ").first,
      let begun = Mode(rawValue: String(word)), begun != mode
    else { return }
    throw TablesError.mode(
      "an interrupted cairn init --mode \(begun.rawValue) has to be finished first: run it with --mode \(begun.rawValue), or run cairn deinit \(options.path) to begin anew"
    )
  }

  private func checkPlace(_ settings: FileSettings) throws {
    if try !isPlace(of: settings) {
      let place = try (settings.get(.server) ?? "", settings.get(.container) ?? "", settings.get(.zone) ?? "")
      throw TablesError.mode(
        "\(options.path) syncs with zone \(place.2) of \(place.1) on \(place.0): run cairn deinit \(options.path) first to sync it elsewhere"
      )
    }
  }

  /// What the options would have synced. Names that are no tables, named tables that can't be synced, and tables that
  /// are synced and should not be any more are refused before anything is written.
  private func checkSelection(_ connection: Connection, _ settings: FileSettings) throws -> PlanningResult {
    let schema = try DatabaseSchema.read(from: connection)
    let remembered = try CaptureInstaller(connection: connection).remembered()
    var selection = try Selection.read(settings).options
    let more = try additions(settings)
    selection.tables += more.tables
    selection.exclude += more.exclude
    selection.naturalKeys += more.naturalKeys
    let plan = SchemaPlanner.plan(
      schema, options: selection, remembered: remembered, published: try PublishedTables(settings).tables(in: zone))
    let named = options.selection.tables + options.selection.exclude + options.selection.naturalKeys
    func isNamed(_ table: String, in names: [String]) -> Bool { names.contains { SQLName.equal($0, table) } }
    let usage = plan.usageErrors.filter { isNamed($0.table, in: named) }
    if !usage.isEmpty { throw TablesError.usage(usage) }
    let refused = plan.problems.filter { isNamed($0.table, in: options.selection.tables) }
    if !refused.isEmpty { throw TablesError.schema(refused) }
    if let synced = remembered.first(where: { isNamed($0.name, in: options.selection.exclude) }) {
      throw TablesError.mode(
        "\(synced.name) is synced already and can't be left out any more: run cairn deinit \(options.path), then cairn init with --exclude \(synced.name)"
      )
    }
    return plan
  }

  /// What the options add to what is stored. A file of which every table is synced stays so, whatever `--table` names.
  private func additions(_ settings: FileSettings) throws -> SelectionOptions {
    var more = options.selection
    if try Selection.read(settings).options.tables.isEmpty { more.tables = [] }
    return more
  }

  // MARK: A mode that is waited for

  /// After `keepLocal` a mode takes sync up again (tables L11).
  private func takeMode(_ file: FileContext, _ outcome: inout Outcome) throws {
    guard let mode = options.mode, outcome.mode == nil else { return }
    let registry = try SyncSession.registry(in: FileEngineStore(file), expectedUser: outcome.user)
    guard registry.standing(of: TablesCategory.engineName, in: zone) == .keptLocal else { return }
    for result in try cloud.createZones([zone]) { _ = try result.get() }
    _ = try ModeChoice(self, file.connection, fetchPublished()).choose()
    let answer: ZoneLossAnswer = mode == .join ? .deleteLocal : .recreateAndReupload
    try file.transaction { try file.settings.set(.answer, answer.rawValue) }
    outcome.mode = mode
  }
}
