import CairnRecords
import CairnSQLite

/// The order inside a set, circles of references, and what follows from a change for parked records.
extension Applier {
  private struct BrokenPromises: Error {
    var parents: Set<String>
  }

  /// Applies versions, parents first.
  ///
  /// Rows that refer to each other in a circle are written one after the other under deferred foreign keys (tables M8),
  /// in the hope that the parent comes. If one of them then can't be applied, everything is undone and done again
  /// without that hope: the others are parked too.
  func applySaves(_ versions: [FetchedVersion]) throws {
    if versions.isEmpty { return }
    guard versions.contains(where: { $0.plan.isCyclic }) else { return try applyInOrder(versions) }
    unavailable = []
    while true {
      let mark = progress.copy()
      promises = []
      do {
        try file.savepoint {
          try applyInOrder(versions)
          let broken = Set(try promises.filter { try !isHere($0.parent) }.map(\.parent))
          if !broken.isEmpty { throw BrokenPromises(parents: broken) }
        }
        unavailable = []
        return
      } catch let broken as BrokenPromises {
        progress = mark.copy()
        unavailable.formUnion(broken.parents)
      }
    }
  }

  private func isHere(_ name: String) throws -> Bool {
    if let found = try WaitKey.isHere(name, file) { return found }
    guard let plan = file.names.plan(ofName: name), let record = try file.names.record(named: name, plan) else {
      return false
    }
    return try record.isAlive && !record.flags.contains(.parked) && file.rowExists(plan, record.key)
  }

  private func applyInOrder(_ versions: [FetchedVersion]) throws {
    let ordered = versions.sorted {
      if $0.plan.number != $1.plan.number { return ($0.plan.rank, $0.plan.number) < ($1.plan.rank, $1.plan.number) }
      let (a, b) = ($0.clocks.life, $1.clocks.life)
      return a != b ? a < b : $0.name < $1.name
    }
    for version in ordered { try enter(version) }
    for version in ordered {
      if progress.waiting.isNext(version) && !version.plan.isCyclic {
        progress.waiting.remove(version.name)
        try applyOne(version)
      } else if progress.waiting.find(version.name) != nil {
        try applyWithParents(version)
      }
    }
  }

  /// Makes a version known as one that is about to be applied.
  private func enter(_ version: FetchedVersion) throws {
    progress.waiting.add(version)
    if version.plan.keyKind == .mapped { try progress.assigned.assign(version) }
    guard version.plan.isCyclic, hasWaitKeys(version.plan) else { return }
    let row = try version.plan.columns.indices.map { column -> Value in
      guard version.clocks.clock(of: column) != nil,
        case .value(let value) = try ParentCheck(self).value(of: version.cells[column], version)
      else { return .null }
      return value
    }
    for key in WaitKey.all(of: row, version.plan, file.catalog) { progress.providers[key.text] = version.name }
  }

  private func hasWaitKeys(_ plan: TablePlan) -> Bool {
    file.catalog.foreignKeys(to: plan.number).contains {
      $0.foreignKey.parentColumns.sorted() != plan.keyColumns.sorted()
    }
  }

  /// Applies a version after those versions of the set that it refers to.
  private func applyWithParents(_ version: FetchedVersion) throws {
    var stack = [version]
    var entered: Set<String> = []
    while let next = stack.last {
      if progress.waiting.find(next.name) == nil {
        stack.removeLast()
        continue
      }
      // Tables on no circle are applied in the order of their ranks: their parents were before them.
      if next.plan.isCyclic, entered.insert(next.name).inserted {
        let parents = try ParentCheck(self).parentNames(of: next).compactMap(parentInSet).filter {
          !entered.contains($0.name)
        }
        if !parents.isEmpty {
          stack += parents
          continue
        }
      }
      stack.removeLast()
      progress.waiting.remove(next.name)
      try applyOne(next)
    }
  }

  /// A parent that comes with the set, with a later part of it, or that is parked only because it waits for others: two
  /// rows of a circle that came apart could wait for each other for ever.
  private func parentInSet(_ name: String) throws -> FetchedVersion? {
    if let version = isWaiting(name) { return version }
    guard !unavailable.contains(name), progress.pulled.insert(name).inserted else { return nil }
    if let sealed = try file.inbox.find(name, stage: .sealed), let record = sealed.record {
      try file.inbox.removeSealed(name)
      guard let version = try accept(record) else { return nil }
      try enter(version)
      return version
    }
    guard let entry = try parkedProvider(name), entry.parking?.reason == .missingParent,
      progress.retries[entry.name, default: 0] < Self.retryLimit, let version = try parkedVersion(entry)
    else { return nil }
    progress.retries[entry.name, default: 0] += 1
    try enter(version)
    return version
  }

  /// Whether a parked record is kept out by a unique value, its own or that of one that it depends on.
  func isKeptOut(_ name: String) throws -> Bool {
    guard try file.inbox.has(.parked) else { return false }
    var next = name
    for _ in 0..<50 {
      guard let parking = try parkedProvider(next)?.parking else { return false }
      if parking.reason == .unique { return true }
      guard parking.reason == .missingParent, let parent = parking.waitsFor else { return false }
      next = parent
    }
    return false
  }

  /// The parked record with this name, or the one whose row will answer to a wait key.
  private func parkedProvider(_ name: String) throws -> Inbox.Entry? {
    guard name.contains(":="), let plan = file.names.plan(ofName: name) else { return try file.inbox.find(name) }
    for entry in try file.inbox.parked(table: plan.number) {
      guard let version = try parkedVersion(entry) else { continue }
      if WaitKey.all(of: version.cells.map(\.plainValue), plan, file.catalog).contains(where: { $0.text == name }) {
        return entry
      }
    }
    return nil
  }

  // MARK: What others wait for

  /// Tries of one parked record within one apply: a bound for rows that keep each other out.
  private static let retryLimit = 6

  /// Tries parked records whose obstacle has gone, until none is left that can be applied, and makes sure that no
  /// foreign key is left open.
  func finish() throws {
    try retryWoken()
    guard file.connection.hasDeferredForeignKeyViolations else { return }
    try OrphanEviction(self).run()
    try retryWoken()
    if file.connection.hasDeferredForeignKeyViolations { try OrphanEviction(self).run() }
    if file.connection.hasDeferredForeignKeyViolations {
      throw TablesError.damagedMetadata("a fetched set left foreign keys unsatisfied")
    }
  }

  private func retryWoken() throws {
    while !progress.woken.isEmpty {
      let names = progress.woken
      progress.woken = []
      guard try file.inbox.has(.parked) else { return }
      var freed: [String: FetchedVersion] = [:]
      for name in names {
        for entry in try file.inbox.waiting(for: name) where freed[entry.name] == nil {
          guard progress.retries[entry.name, default: 0] < Self.retryLimit, try !file.waitsForItself(entry),
            let version = try parkedVersion(entry)
          else { continue }
          progress.retries[entry.name, default: 0] += 1
          freed[entry.name] = version
        }
      }
      progress.pulled = []
      try applySaves(Array(freed.values))
    }
  }
}

extension FileContext {
  /// Whether the record that keeps a parked one out waits, in any number of steps, for just that one: a row whose
  /// parent has its unique values. Then neither comes in (tables M10, M11).
  func waitsForItself(_ entry: Inbox.Entry) throws -> Bool {
    guard entry.parking?.reason == .unique else { return false }
    var next = entry.parking?.waitsFor
    for _ in 0..<50 {
      guard let name = next, let waiting = try inbox.find(name) else { return false }
      if waiting.name == entry.name { return true }
      next = waiting.parking?.waitsFor
    }
    return false
  }
}

/// Puts aside the rows whose parents are not there at the end of an apply, whatever the reason: nothing may keep a set
/// from being committed.
struct OrphanEviction {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  func run() throws {
    for plan in file.catalog.plans {
      for foreignKey in plan.foreignKeys {
        guard let parent = file.catalog.plan(foreignKey.parent) else { continue }
        for key in try orphans(plan, foreignKey, parent) { try evict(key, plan, foreignKey, parent) }
      }
    }
  }

  private func evict(_ key: Value, _ plan: TablePlan, _ foreignKey: ForeignKeyPlan, _ parent: TablePlan) throws {
    guard let record = try file.records.find(plan.number, key: key), record.isAlive,
      let row = try file.row(plan, key)
    else { return }
    let cells = try file.cells(of: row, plan).all
    let name =
      try ParentCheck(applier).nameOfParent(foreignKey, parent, cells)
      ?? WaitKey(parent, foreignKey, foreignKey.columns.map { row[$0] }).text
    _ = try Eviction(applier).putAside(record, plan, .missingParent, "\(name) is not here", waitsFor: name)
  }

  private func orphans(_ plan: TablePlan, _ foreignKey: ForeignKeyPlan, _ parent: TablePlan) throws -> [Value] {
    let columns = foreignKey.columns.map { "c.\(SQLText.quoted(plan.columns[$0].name))" }
    let pairs = zip(columns, foreignKey.parentColumns).map {
      "p.\(SQLText.quoted(parent.columns[$1].name)) = \($0)"
    }
    let key = plan.keyColumns.map { "c.\(SQLText.quoted(plan.columns[$0].name))" }
    let statement = try file.connection.prepare(
      """
      SELECT \(key.joined(separator: ", ")) FROM main.\(SQLText.quoted(plan.name)) AS c
      WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")) AND NOT EXISTS (
        SELECT 1 FROM main.\(SQLText.quoted(parent.name)) AS p WHERE \(pairs.joined(separator: " AND ")))
      """)
    var keys: [Value] = []
    while try statement.step() {
      if let key = RowKey.canonical(key.indices.map { statement.value(Int32($0)) }, plan) { keys.append(key) }
    }
    return keys
  }
}
