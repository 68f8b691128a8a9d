import CairnRecords
import CairnSQLite

/// Finds the edits that were made while capture was off, by comparing the rows with the server's records (tables T29).
///
/// A table is marked when the gap is found; the next sync then fetches the zone as a whole, and each record is compared
/// before it is merged. The mark goes when such a fetch has come to its end.
struct GapComparison {
  private static let prefix = "compare/"

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  func begin(_ plan: TablePlan, at time: FieldClock) throws {
    file.gaps[plan.number] = time
    try file.settings.set(Self.prefix + String(plan.number), String(time))
  }

  /// The marks of a file that is being opened.
  func load() throws {
    for (key, text) in try file.settings.all(prefix: Self.prefix) {
      if let table = Int(key.dropFirst(Self.prefix.count)), let time = FieldClock(text) { file.gaps[table] = time }
    }
  }

  /// Every record has been compared.
  func end() throws {
    try file.transaction {
      for table in file.gaps.keys { try file.settings.set(Self.prefix + String(table), nil) }
    }
    file.gaps = [:]
  }

  /// A value that differs under the clock held here is an edit at the time when the gap was found.
  ///
  /// - Returns: whether the version must be applied though its tag is known: the row lacks a value of it.
  func mustApply(_ version: FetchedVersion) throws -> Bool {
    let plan = version.plan
    guard let time = file.gaps[plan.number],
      let local = try file.names.record(named: version.name, plan), local.isAlive,
      !local.flags.contains(.parked), local.life == .none, let row = try file.row(plan, local.key)
    else { return false }
    if let kept = local.kept, plan.columns.contains(where: { kept.names.contains($0.wireName) }) { return true }
    let cells = try file.cells(of: row, plan)
    var changed = local
    var edited: [String] = []
    for column in plan.columns.indices where plan.isField(column) {
      guard let clock = local.clocks.clock(of: column), clock == version.clocks.clock(of: column),
        cells[column] != version.cells[column],
        local.pending != .save || !local.dirty.contains(plan.columns[column].wireName)
      else { continue }
      changed.clocks.columns[column] = max(time, clock.next)
      edited.append(plan.columns[column].wireName)
    }
    if edited.isEmpty { return false }
    if changed.pending != .save { changed.dirty = .none }
    changed.pending = .save
    for name in edited { changed.dirty.insert(name) }
    changed.raiseRevision()
    try file.records.update(local, to: changed)
    return false
  }
}

/// Keeps count of records whose rows were removed while capture was off: the file's state is `schema` while there are
/// any (tables T30).
struct MissingRows {
  private static let prefix = "missing/"

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// Counts a table's, reading all of it.
  @discardableResult
  func count(_ plan: TablePlan) throws -> Int {
    let count = try Doctor(file: file).missingRows(plan).count
    try store(plan, count)
    return count
  }

  private func store(_ plan: TablePlan, _ count: Int) throws {
    let stored = count == 0 ? nil : String(count)
    let key = Self.prefix + String(plan.number)
    if try file.settings.get(key) != stored { try file.settings.set(key, stored) }
  }

  /// Counts again in tables that had some.
  func countAgain() throws {
    let marks = try file.settings.all(prefix: Self.prefix)
    if marks.isEmpty { return }
    try file.transaction {
      for plan in file.catalog.plans where marks[Self.prefix + String(plan.number)] != nil { try count(plan) }
    }
  }

  /// Takes over what an examination has counted (tables T31).
  func note(_ findings: [Finding]) throws {
    for plan in file.catalog.plans {
      let found = findings.first { $0.kind == .missingRows && $0.table == plan.name }
      try store(plan, found?.count ?? 0)
    }
  }

  /// How many there were when last counted, by table name.
  func known() throws -> [String: Int] {
    let marks = try file.settings.all(prefix: Self.prefix)
    if marks.isEmpty { return [:] }
    var counts: [String: Int] = [:]
    for plan in file.catalog.plans {
      if let count = marks[Self.prefix + String(plan.number)].flatMap({ Int($0) }) { counts[plan.name] = count }
    }
    return counts
  }
}
