import CairnEngine
import CairnRecords
import CairnSQLite
import Foundation

/// Prepares a database file for sync: checks the schema, installs capture, and decides what becomes of rows that are
/// there already (tables 1.1, L1–L6).
///
/// Nothing is written to the file before the schema is accepted and the server has answered; a run that was cut off is
/// finished by the next.
public struct Preparation {
  /// What becomes of rows that are there: uploaded, replaced after a backup, or matched (tables L2).
  public enum Mode: String, Hashable, Sendable, CaseIterable { case create, join, merge }

  /// What the user asks for.
  public struct Options: Hashable, Sendable {
    public var path: String
    public var selection: SelectionOptions
    public var mode: Mode?
    /// ``SyncPlace/user`` is filled in from the server.
    public var place: SyncPlace
    /// Tables whose rows with equal integers are the same rows, or different ones, in a merge (tables L5).
    public var matchIntegers: [String] = []
    public var newIntegers: [String] = []

    public init(path: String, selection: SelectionOptions = SelectionOptions(), mode: Mode? = nil, place: SyncPlace) {
      self.path = path
      self.selection = selection
      self.mode = mode
      self.place = place
    }
  }

  /// What was done.
  public struct Outcome: Hashable, Sendable {
    /// Nil when the file had been prepared before.
    public var mode: Mode?
    public var user: String
    public var tables: [String]
    public var skipped: [String]
    public var warnings: [String]
    /// Path of the copy made before rows were removed.
    public var backup: String?
    /// The user whom the file belonged to, and whose state it keeps (tables L10).
    public var setAside: String?
    /// Rows that were there.
    public var rows: Int
  }

  public let options: Options
  let cloud: any CloudDatabase
  let time: any TimeSource
  let randomness: any Randomness
  var zone: ZoneID { ZoneID(name: options.place.zone) }

  public init(_ options: Options, cloud: any CloudDatabase, time: any TimeSource, randomness: any Randomness) {
    self.options = options
    self.cloud = cloud
    self.time = time
    self.randomness = randomness
  }

  /// - Throws: ``TablesError`` for what is wrong with the file or the mode, `CloudError` for the server's answers.
  public func run() throws -> Outcome {
    do {
      return try prepare()
    } catch let error as SQLiteError {
      throw DatabaseOpener.explain(error, options.path)
    }
  }

  private func prepare() throws -> Outcome {
    let exists = FileManager.default.fileExists(atPath: options.path)
    if !exists && options.mode != .join { throw TablesError.missingFile(options.path) }
    if exists, try isPrepared() {
      let user = try cloud.currentUser()
      return try changeIdentity(to: user) ?? again(user)
    }
    do {
      return try prepareAnew(exists: exists)
    } catch {
      if !exists { removeEmptyFile() }
      throw error
    }
  }

  /// - Parameters:
  ///   - known: the caller's user, if that has been asked already.
  ///   - owner: the user whom the file belongs to until then.
  func prepareAnew(exists: Bool, user known: String? = nil, leaving owner: String? = nil) throws -> Outcome {
    // Looked at before the server is asked: a schema that can't be synced needs no server.
    if exists {
      _ = try checkedPlan(
        DatabaseOpener.open(options.path, mode: .readWrite), published: [], joining: options.mode == .join,
        isPrepared: owner != nil)
    }
    let user = try known ?? cloud.currentUser()
    for result in try cloud.createZones([zone]) { _ = try result.get() }
    let published = try fetchPublished()
    let connection = try DatabaseOpener.open(options.path, mode: exists ? .readWrite : .create)
    let mode = try ModeChoice(self, connection, published).choose()
    return try install(connection, mode, user, published, leaving: owner)
  }

  /// Whether the file is prepared for the caller, and no earlier run was cut off: then an engine may work on it while
  /// this runs.
  public func isFinished() throws -> Bool {
    guard FileManager.default.fileExists(atPath: options.path) else { return false }
    do {
      let connection = try DatabaseOpener.open(options.path, mode: .readWrite)
      guard try MetadataSchema.isInstalled(in: connection) else { return false }
      let settings = FileSettings(connection)
      return try settings.get(.takeUp) == nil && settings.get(.user) == cloud.currentUser()
    } catch let error as SQLiteError {
      throw DatabaseOpener.explain(error, options.path)
    }
  }

  private func isPrepared() throws -> Bool {
    let connection = try DatabaseOpener.open(options.path, mode: .readWrite)
    guard try MetadataSchema.isInstalled(in: connection) else { return false }
    try MetadataSchema.checkVersion(of: connection)
    return true
  }

  /// A file that was made for a `join` that came to nothing.
  private func removeEmptyFile() {
    let attributes = try? FileManager.default.attributesOfItem(atPath: options.path)
    // Left where it is when it can't be told to be empty, or can't be removed: it is in nobody's way.
    if attributes?[.size] as? Int == 0 { try? FileManager.default.removeItem(atPath: options.path) }
  }

  // MARK: Planning

  /// The plan of the file's tables. Throws every reason against it.
  private func checkedPlan(
    _ connection: Connection, published: [PublishedTable], joining: Bool, isPrepared: Bool
  ) throws -> PlanningResult {
    let schema = try DatabaseSchema.read(from: connection)
    var selection = options.selection
    if isPrepared { selection.ownTables = try FiledIdentities.ownTables(in: connection) }
    let plan = SchemaPlanner.plan(schema, options: selection, remembered: [], published: published)
    // A table that is named and not here may still come from the zone.
    if !plan.usageErrors.isEmpty && !joining { throw TablesError.usage(plan.usageErrors) }
    if !plan.problems.isEmpty { throw TablesError.schema(plan.problems) }
    return plan
  }

  /// The schemas that other devices published in the zone.
  func fetchPublished() throws -> [Record] {
    var records: [String: Record] = [:]
    var token: ChangeToken?
    while true {
      let page = try cloud.zoneChanges(in: zone, since: token, types: [PublishedTable.recordType])
      for record in page.records { records[record.id.name] = record }
      for deletion in page.deletions { records[deletion.id.name] = nil }
      if !page.moreComing { break }
      token = page.token
    }
    return records.keys.sorted().compactMap { records[$0] }
  }

  private func readable(_ records: [Record]) throws -> [PublishedTable] {
    let all = try records.map { try PublishedTable(recordName: $0.id.name, fields: $0.fields) }
    if options.selection.tables.isEmpty {
      return all.filter { table in !options.selection.exclude.contains { SQLName.equal($0, table.name) } }
    }
    return all.filter { table in options.selection.tables.contains { SQLName.equal($0, table.name) } }
  }

  // MARK: Installing

  private func install(
    _ connection: Connection, _ mode: Mode, _ user: String, _ published: [Record], leaving owner: String?
  ) throws -> Outcome {
    let tables = try readable(published)
    let now = time.wallClock
    var plan = PlanningResult(
      plans: [], skipped: [], problems: [], usageErrors: [], warnings: [], remembered: [], suspended: [])
    try connection.transaction {
      if owner != nil { try IdentityChange(connection, time: time, randomness: randomness).leave() }
      if mode == .join { try SchemaCreator.create(tables, in: connection) }
      plan = try checkedPlan(connection, published: tables, joining: false, isPrepared: owner != nil)
      try MetadataSchema.install(in: connection)
      let settings = FileSettings(connection)
      try store(settings, user)
      for record in published { try PublishedTables(settings).take(record) }
      try CaptureInstaller(connection: connection).install(plan.plans, plan.remembered)
      try settings.set(.takeUp, "\(mode.rawValue) \(now)")
    }
    let broken = try SchemaWarnings.foreignKeyViolations(
      DatabaseSchema.read(from: connection), plan.plans, in: connection)
    var outcome = Outcome(
      mode: mode, user: user, tables: plan.plans.map(\.name).sorted(), skipped: plan.skipped,
      warnings: (plan.warnings + broken).map(\.message), setAside: owner, rows: 0)
    let file = try SchemaUpkeep.open(connection, time: time, randomness: randomness)
    try finish(file, &outcome)
    return outcome
  }

  private func store(_ settings: FileSettings, _ user: String) throws {
    try settings.set(.server, options.place.server)
    try settings.set(.container, options.place.container)
    try settings.set(.environment, options.place.environment)
    try settings.set(.zone, options.place.zone)
    try settings.set(.user, user)
    try Selection(options: options.selection).store(settings)
  }

  /// Takes existing rows up as the mode says, and publishes the schema. Runs again after a cut, from where that came:
  /// the setting `takeUp` goes from the mode to `publish` in the transaction that ends with the rows.
  func finish(_ file: FileContext, _ outcome: inout Outcome) throws {
    guard let words = try file.settings.get(.takeUp)?.split(separator: " "), words.count == 2,
      let clock = FieldClock(words[1])
    else { return }
    func done() throws { try file.settings.set(.takeUp, "publish \(clock)") }
    if let mode = Mode(rawValue: String(words[0])) {
      outcome.mode = mode
      switch mode {
      case .create:
        for plan in file.catalog.plans { try RowTakeUp(file: file, clock: clock).run(plan) }
        try file.transaction { try done() }
      case .join:
        outcome.backup = try TableEmptying(file).backUpAndEmpty(now: time.wallClock, done: done)
      case .merge:
        try RowMatching(file, cloud: cloud, options: options, clock: clock).run(done: done)
      }
    }
    try SchemaPublisher(cloud: cloud, file: file).publish(clock: clock)
    try file.transaction { try file.settings.set(.takeUp, nil) }
    outcome.rows = try file.catalog.plans.reduce(0) { try $0 + Int(file.liveRows($1)) }
  }
}
