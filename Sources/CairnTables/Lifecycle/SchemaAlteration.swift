import CairnEngine
import CairnRecords
import CairnSQLite

/// Changes a schema that SQLite refuses to change while triggers name the column (tables T28).
///
/// Each statement is tried with capture in place first, so that renames are followed; where SQLite refuses, capture is
/// taken out, the statement run, and capture put back. What became of the tables is looked at when all statements have
/// run, so that a table may be rebuilt (create, copy, drop, rename). Foreign keys do nothing meanwhile: dropping a
/// table that is being rebuilt must not remove its children. All of it is one transaction: rows written by other
/// programs meanwhile wait.
struct SchemaAlteration {
  private let connection: Connection
  private let time: any TimeSource
  private let randomness: any Randomness

  init(_ connection: Connection, time: any TimeSource, randomness: any Randomness) {
    self.connection = connection
    self.time = time
    self.randomness = randomness
  }

  func run(_ sql: String) throws {
    try connection.transaction {
      try Folder.fold(SchemaUpkeep.open(connection, time: time, randomness: randomness))
      try connection.withoutForeignKeys {
        for statement in SQLStatements.split(sql) { try run(statement: statement) }
      }
      connection.clearCache()
      try refuseProblems(SchemaUpkeep.open(connection, time: time, randomness: randomness))
    }
  }

  private func run(statement: String) throws {
    connection.clearCache()
    do {
      try connection.savepoint { try connection.execute(statement) }
    } catch is SQLiteError {
      // Renames so far must be known before triggers go, which are what tells of them.
      let file = try SchemaUpkeep.open(connection, time: time, randomness: randomness)
      try Folder.fold(file)
      let lost = try columnsLost(by: statement, file)
      for (plan, columns) in lost { try KeptColumns(file, plan).keep(columns) }
      let installer = CaptureInstaller(connection: connection)
      for plan in file.catalog.plans { try installer.removeTriggers(table: plan.number) }
      connection.clearCache()
      try connection.execute(statement)
      // Names have not changed: columns are found again by them, and every table gets its triggers back.
      try reinstall(file)
    }
  }

  /// Which columns of synced tables a statement would drop, found out by running it and taking it back.
  private func columnsLost(by statement: String, _ file: FileContext) throws -> [(TablePlan, [Int])] {
    struct TakenBack: Error {}
    var lost: [(TablePlan, [Int])] = []
    do {
      try connection.savepoint {
        let installer = CaptureInstaller(connection: connection)
        for plan in file.catalog.plans { try installer.removeTriggers(table: plan.number) }
        connection.clearCache()
        try connection.execute(statement)
        let schema = try DatabaseSchema.read(from: connection)
        for plan in file.catalog.plans {
          guard let table = schema.table(plan.name) else { continue }
          let gone = plan.columns.indices.filter { table.column(plan.columns[$0].name) == nil }
          if !gone.isEmpty { lost.append((plan, gone)) }
        }
        throw TakenBack()
      }
    } catch is TakenBack {}
    connection.clearCache()
    return lost
  }

  private func reinstall(_ file: FileContext) throws {
    let schema = try DatabaseSchema.read(from: connection)
    let options = try Selection.read(file.settings).options
    let remembered = try CaptureInstaller(connection: connection).remembered()
    let plan = SchemaPlanner.plan(schema, options: options, remembered: remembered)
    try CaptureInstaller(connection: connection).install(plan.plans, plan.remembered)
  }

  private func refuseProblems(_ file: FileContext) throws {
    let schema = try DatabaseSchema.read(from: connection)
    let options = try Selection.read(file.settings).options
    let plan = SchemaPlanner.plan(schema, options: options, remembered: file.catalog.remembered)
    let own = Set(file.catalog.remembered.map(\.name))
    let problems = plan.problems.filter { own.contains($0.table) }
    if !problems.isEmpty { throw TablesError.schema(problems) }
  }
}

extension SyncedDatabase {
  /// Runs ALTER and other schema statements with capture out of the way (tables T28). Open the file again afterwards.
  ///
  /// - Throws: what SQLite says of the statements, or ``TablesError/schema(_:)`` when a synced table could not be
  ///   synced afterwards; then nothing was changed.
  public func alter(_ sql: String) throws {
    try SchemaAlteration(file.connection, time: file.clock, randomness: file.randomness).run(sql)
  }
}
