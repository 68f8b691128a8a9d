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
    let settings = FileSettings(connection)
    let zone = ZoneID(name: try settings.get(.zone) ?? SyncPlace.defaultZone)
    let installer = CaptureInstaller(connection: connection)
    let before = try installer.remembered()
    let schema = try DatabaseSchema.read(from: connection)
    let options = try Selection.read(settings)
    let published = try PublishedTables(settings).tables(in: zone)
    let plan = SchemaPlanner.plan(schema, options: options.options, remembered: before, published: published)
    let file = FileContext(
      connection: connection,
      catalog: TableCatalog(plans: plan.plans, remembered: plan.remembered, suspended: plan.suspended),
      zone: zone, clock: time, randomness: randomness)
    let stale = TableMatch.reconcile(before, schema).filter { !$0.isCurrent }
    let new = plan.remembered.filter { table in !before.contains { $0.number == table.number } }
    guard !stale.isEmpty || !new.isEmpty || plan.remembered != before else { return file }
    try renew(file, plan, stale, new)
    return file
  }

  private static func renew(
    _ file: FileContext, _ plan: PlanningResult, _ stale: [TableMatch], _ new: [RememberedTable]
  ) throws {
    // What the old triggers logged is read with their own column lists, before or after this.
    let numbers = Set(stale.map(\.remembered.number)).union(new.map(\.number))
    try file.transaction {
      let installer = CaptureInstaller(connection: file.connection)
      try installer.install(plan.plans.filter { numbers.contains($0.number) }, plan.remembered)
    }
    try Folder.fold(file)
    for match in stale {
      guard let table = file.catalog.plan(match.remembered.number) else {
        try file.outcomes.add(
          .schema, table: match.remembered.name, "the table is gone or its key has changed: suspended")
        continue
      }
      try SchemaChange(file, table, match).takeUp()
    }
    for table in new {
      guard let plan = file.catalog.plan(table.number) else { continue }
      try RowTakeUp(file: file, clock: file.clock.wallClock).run(plan)
      try file.outcomes.add(.schema, table: plan.name, "the table is synced from now on")
    }
  }
}

/// Which tables the user chose, as stored.
struct Selection {
  var options: SelectionOptions

  static func read(_ settings: FileSettings) throws -> Selection {
    var options = SelectionOptions()
    options.ownTables = MetadataSchema.tableNames.sorted()
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
