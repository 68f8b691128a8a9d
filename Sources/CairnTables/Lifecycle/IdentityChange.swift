import CairnEngine
import CairnRecords
import CairnSQLite

/// Makes a file that belongs to one user belong to another, and back (tables L10).
///
/// Everything that is the present user's is filed in the file itself, rows included. For a user who is new to the file
/// the rows stay, and the mode says what becomes of them. For a user whose state is filed it comes back as it was.
struct IdentityChange {
  private let connection: Connection
  private let time: any TimeSource
  private let randomness: any Randomness

  init(_ connection: Connection, time: any TimeSource, randomness: any Randomness) {
    self.connection = connection
    self.time = time
    self.randomness = randomness
  }

  /// Files the present user's state and takes Cairn out of the file, but for what is filed. Callers hold a transaction.
  func leave() throws {
    try fileAway(SchemaUpkeep.open(connection, time: time, randomness: randomness))
    let copies = try Set(FiledIdentities.ownTables(in: connection)).subtracting(MetadataSchema.tableNames)
    try CaptureInstaller(connection: connection).uninstall(except: copies.union([FiledIdentities.tableName]))
    connection.clearCache()
  }

  /// Files the present user's state and brings a filed one back.
  func bringBack(_ entry: FiledIdentities.Entry) throws {
    // One context: it remembers what a trigger of the user rolled back when it was tried.
    let file = try SchemaUpkeep.open(connection, time: time, randomness: randomness)
    try file.transaction {
      try fileAway(file)
      let filed = FiledIdentities(connection)
      let memory = try filed.remembered(entry)
      // Tables that were not synced meanwhile have kept their rows, with what was done to them: they are compared.
      let plans = file.catalog.plans.filter { plan in memory.contains { SQLName.equal($0.name, plan.name) } }
      try checkTables(entry, memory)
      try WholeTables(file).empty(plans)
      try fill(plans, entry, memory, file)
      for table in file.catalog.remembered {
        try CaptureInstaller(connection: connection).removeTriggers(table: table.number)
      }
      try filed.bringBack(entry)
      try connection.execute("DELETE FROM cairn_log")
      connection.clearCache()
      file.records.prefixes.forget()
      try reinstall(plans.map(\.name))
    }
    connection.clearCache()
  }

  private func fileAway(_ file: FileContext) throws {
    if try file.settings.get(.takeUp) != nil {
      throw TablesError.mode(
        "an interrupted cairn init of another user has to be finished first: run it again with that user's token")
    }
    try Folder.fold(file)
    try FiledIdentities(connection).file(try file.settings.get(.user) ?? "", file.catalog.plans, at: time.wallClock)
  }

  /// Rows whose table or column has gone would be lost.
  private func checkTables(_ entry: FiledIdentities.Entry, _ memory: [RememberedTable]) throws {
    let schema = try DatabaseSchema.read(from: connection)
    let filed = FiledIdentities(connection)
    for table in memory {
      let rows = try filed.rows(entry, table: table.number)
      let present = schema.table(table.name)
      for column in rows.columns where present?.column(column) == nil {
        guard try filed.isUsed(column, of: rows.table) else { continue }
        let missing = present == nil ? table.name : "\(table.name).\(column)"
        throw TablesError.mode(
          "\(missing) is gone or renamed, and this user's rows that are kept in the file need it: bring it back under that name, then run cairn init again"
        )
      }
    }
  }

  private func fill(
    _ plans: [TablePlan], _ entry: FiledIdentities.Entry, _ memory: [RememberedTable], _ file: FileContext
  ) throws {
    let filed = FiledIdentities(connection)
    let sources = try plans.compactMap { plan -> WholeTables.Source? in
      guard let table = memory.first(where: { SQLName.equal($0.name, plan.name) }) else { return nil }
      let rows = try filed.rows(entry, table: table.number)
      // One that has gone held nothing.
      let columns = rows.columns.filter { name in plan.columns.contains { SQLName.equal($0.name, name) } }
      return WholeTables.Source(plan: plan, table: rows.table, columns: columns)
    }
    do {
      try WholeTables(file).fill(from: sources)
    } catch let error as SQLiteError where error.isConstraint {
      throw TablesError.mode(
        "this user's rows that are kept in the file do not fit its tables any more (\(error.message)): take back what was changed in the schema, then run cairn init again"
      )
    }
  }

  /// Capture for the tables that hold their user's rows again, if they are as they were. What else there is, is found
  /// when the file is opened next.
  private func reinstall(_ tables: [String]) throws {
    let settings = FileSettings(connection)
    try settings.set(.schemaVersion, nil)
    let memory = try CaptureInstaller(connection: connection).remembered()
    let zone = ZoneID(name: try settings.get(.zone) ?? SyncPlace.defaultZone)
    let plan = SchemaPlanner.plan(
      try DatabaseSchema.read(from: connection), options: try Selection.read(settings).options, remembered: memory,
      published: try PublishedTables(settings).tables(in: zone))
    let unchanged = plan.plans.filter { table in
      tables.contains { SQLName.equal($0, table.name) }
        && plan.remembered.first { $0.number == table.number } == memory.first { $0.number == table.number }
    }
    try CaptureInstaller(connection: connection).install(unchanged, memory)
  }
}
