import CairnEngine
import CairnRecords
import CairnSQLite

/// Keeps capture in step with the user's schema: what changed while no engine ran is found at the next open
/// (tables T26–T30).
enum SchemaUpkeep {
  /// The file's context, with capture renewed where the schema has changed.
  static func open(
    _ connection: Connection, time: any TimeSource, randomness: any Randomness
  ) throws -> FileContext {
    var tries = 0
    while true {
      do {
        return try openOnce(connection, time, randomness)
      } catch TablesError.outdated(let path) {
        // Another program was quicker. It does not go on for ever.
        tries += 1
        if tries == 10 { throw TablesError.outdated(path) }
        connection.clearCache()
      }
    }
  }

  private static func openOnce(
    _ connection: Connection, _ time: any TimeSource, _ randomness: any Randomness
  ) throws -> FileContext {
    let settings = FileSettings(connection)
    // Before all that it tells of is read: a renewal meanwhile is noticed.
    let renewal = try settings.get(.schemaVersion)
    let zone = ZoneID(name: try settings.get(.zone) ?? SyncPlace.defaultZone)
    let before = try CaptureInstaller(connection: connection).remembered()
    let schema = try DatabaseSchema.read(from: connection)
    let options = try Selection.read(settings)
    let published = try PublishedTables(settings).tables(in: zone)
    let plan = SchemaPlanner.plan(schema, options: options.options, remembered: before, published: published)
    let file = FileContext(
      connection: connection,
      catalog: TableCatalog(plans: plan.plans, remembered: plan.remembered, suspended: plan.suspended),
      zone: zone, clock: time, randomness: randomness)
    file.setRenewal(renewal)
    if connection.isReadOnly {
      try GapComparison(file).load()
      return file
    }
    if try plan.remembered != before || settings.get(.schemaVersion) != String(file.schemaVersion()) {
      let matches = TableMatch.reconcile(before, schema)
      try file.transaction { try SchemaRenewal(file, plan, schema, matches).run() }
    }
    try GapComparison(file).load()
    try finish(file)
    return file
  }

  /// Does what renewals have left to do; each in short transactions.
  private static func finish(_ file: FileContext) throws {
    for task in try UpkeepTask.all(file.settings) {
      // A table that is suspended meanwhile waits for its schema.
      guard let plan = file.catalog.plan(task.table) else { continue }
      try SchemaChange(file, plan, task).takeUp()
    }
  }
}

/// Renews capture in one transaction, and notes what is left to do for the rows.
struct SchemaRenewal {
  private let file: FileContext
  private let plan: PlanningResult
  private let schema: DatabaseSchema
  private let matches: [TableMatch]

  init(_ file: FileContext, _ plan: PlanningResult, _ schema: DatabaseSchema, _ matches: [TableMatch]) {
    self.file = file
    self.plan = plan
    self.schema = schema
    self.matches = matches
  }

  func run() throws {
    var stale: [TablePlan] = []
    let open = Dictionary(
      try UpkeepTask.all(file.settings).map { ($0.table, $0) }, uniquingKeysWith: { first, _ in first })
    for table in plan.plans {
      let task = try task(table)
      try SchemaNotice(file).note(table, schema, isNew: task?.kind == .new, at: file.clock.wallClock)
      guard let task else {
        if !hasCurrentTriggers(table) { stale.append(table) }
        continue
      }
      stale.append(table)
      try task.joined(with: open[table.number]).store(file.settings)
    }
    try CaptureInstaller(connection: file.connection).install(stale, plan.remembered)
    try noteSuspended()
    // A constraint that kept records out may have gone with the change (tables M11).
    try file.connection.run("UPDATE cairn_inbox SET retry = 0 WHERE stage = 2 AND reason <> 'missingParent'")
    let renewal = try String(file.schemaVersion())
    try file.settings.set(.schemaVersion, renewal)
    file.setRenewal(renewal)
  }

  /// What the change of a table leaves to do; nil where its rows and records are as before.
  private func task(_ table: TablePlan) throws -> UpkeepTask? {
    let time = file.clock.wallClock
    guard let match = matches.first(where: { $0.remembered.number == table.number }) else {
      return UpkeepTask(table: table.number, kind: .new, time: time, columns: [])
    }
    let last = match.remembered.generations.last?.columns ?? []
    let added = table.columns.indices.filter { column in
      guard match.columns.indices.contains(column), let known = match.columns[column] else { return true }
      return !last.contains(known)
    }
    let columns = Set(added.map { table.columns[$0].wireName })
    if try match.isGap || lacksTriggers(table) || wasSuspended(table) {
      return UpkeepTask(table: table.number, kind: .gap, time: time, columns: columns)
    }
    if columns.isEmpty && match.isCurrent { return nil }
    return UpkeepTask(table: table.number, kind: .columns, time: time, columns: columns)
  }

  // MARK: Triggers

  private func expected(_ table: TablePlan) -> [String] {
    CaptureTriggers(table, generation: file.catalog.currentGeneration(table.number)).statements
  }

  private func present(_ table: TablePlan) -> [SchemaTrigger] {
    (schema.table(table.name)?.triggers ?? []).filter { CaptureTriggerName.tableNumber($0.name) == table.number }
  }

  private func hasCurrentTriggers(_ table: TablePlan) -> Bool {
    Set(expected(table)) == Set(present(table).map(\.sql))
  }

  /// Whether a trigger is gone that every table has.
  private func lacksTriggers(_ table: TablePlan) -> Bool {
    let names = Set(present(table).map { SQLName.folded($0.name) })
    return !CaptureTriggers.always.allSatisfy { names.contains(CaptureTriggerName.make(table: table.number, $0)) }
  }

  // MARK: Suspended tables

  private func wasSuspended(_ table: TablePlan) throws -> Bool {
    try file.connection.scalar(
      "SELECT 1 FROM cairn_table WHERE number = ? AND suspended IS NOT NULL", .integer(Int64(table.number))) != nil
  }

  private func noteSuspended() throws {
    for table in plan.plans {
      try file.connection.run(
        "UPDATE cairn_table SET suspended = NULL WHERE number = ? AND suspended IS NOT NULL",
        .integer(Int64(table.number)))
    }
    for table in plan.suspended {
      try file.connection.run(
        "UPDATE cairn_table SET suspended = ?2 WHERE number = ?1 AND suspended IS NOT ?2",
        .integer(Int64(table.number)), .text(table.reason.rawValue))
      guard file.connection.changes > 0 else { continue }
      try file.outcomes.add(.schema, table: table.name, "the table is gone or its key has changed: suspended")
    }
  }
}

/// Which tables the user chose, as stored.
struct Selection {
  var options: SelectionOptions

  static func read(_ settings: FileSettings) throws -> Selection {
    var options = SelectionOptions()
    options.ownTables = try FiledIdentities.ownTables(in: settings.connection)
    for (key, _) in try settings.all(prefix: "select/").sorted(by: { $0.key < $1.key }) {
      let name = String(key.dropFirst("select/table/".count))
      switch key.split(separator: "/")[1] {
      case "table": options.tables.append(name)
      case "exclu": options.exclude.append(name)
      case "natur": options.naturalKeys.append(name)
      default: break
      }
    }
    return Selection(options: options)
  }

  func store(_ settings: FileSettings) throws {
    for name in options.tables { try settings.set("select/table/" + name, "1") }
    for name in options.exclude { try settings.set("select/exclu/" + name, "1") }
    for name in options.naturalKeys { try settings.set("select/natur/" + name, "1") }
  }
}
