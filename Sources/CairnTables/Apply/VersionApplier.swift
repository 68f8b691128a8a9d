import CairnRecords
import CairnSQLite

/// Applies one fetched version: merges it into a live row, brings a dead one back, or makes a new one.
struct VersionApplier {
  enum Result {
    /// Nothing of it was new here.
    case unchanged
    case applied
    case parked(ParkedReason, String, waitsFor: String?)
  }

  private let applier: Applier
  private let version: FetchedVersion
  private var file: FileContext { applier.file }
  private var plan: TablePlan { version.plan }

  init(_ applier: Applier, _ version: FetchedVersion) {
    self.applier = applier
    self.version = version
  }

  func apply() throws -> Result {
    guard let local = try file.names.record(named: version.name, plan) ?? namesake() else {
      return try create(over: nil)
    }
    if let deletedAt = local.deletedAt { return try meetDead(local, deletedAt) }
    if local.flags.contains(.parked) { return try returnFromParking(local) }
    guard var row = try file.row(plan, local.key) else { return try create(over: local) }
    let cleared = applier.cleared.removeValue(forKey: version.name) ?? [:]
    for (column, value) in cleared { row[column] = value }
    let result = try merge(into: local, row, rewriting: cleared.keys.sorted())
    if case .parked = result, !cleared.isEmpty { try putBack(local, cleared) }
    return result
  }

  /// The record here whose key has the version's hashed name. It was made here, so the name had not been worked out; it
  /// is kept from now on.
  private func namesake() throws -> RecordRow? {
    guard RecordNameCodec.isHashed(version.name, plan),
      let key = try keyFromFields(), let record = try file.records.find(plan.number, key: key),
      try file.names.name(of: record, plan) == version.name
    else { return nil }
    var named = record
    named.name = .text(version.name)
    try file.records.update(record, to: named)
    return named
  }

  // MARK: Merging

  /// Puts values back that were cleared for a version which then could not be applied.
  private func putBack(_ local: RecordRow, _ cleared: [Int: Value]) throws {
    let columns = cleared.keys.sorted()
    let refusal = try applier.writer.update(plan, local.key, columns, columns.map { cleared[$0] ?? .null })
    guard refusal != nil, let record = try file.names.record(named: version.name, plan) else { return }
    if let problem = try Eviction(applier).putAside(record, plan, .unique, "its unique values are taken") {
      throw TablesError.damagedMetadata("\(version.name) lost its unique values: \(problem)")
    }
  }

  /// - Parameter rewriting: columns whose values in the table are not those of `row` and must be written again.
  private func merge(into local: RecordRow, _ row: [Value], rewriting: [Int] = []) throws -> Result {
    let cells = try file.cells(of: row, plan)
    var merge = RecordMerge(local: local, cells: cells, fetched: version)
    var values: [Value] = []
    var columns: [Int] = []
    var defaults: [Int] = []
    for (column, change) in merge.changes {
      switch change {
      case .setDefault: defaults.append(column)
      case .set(let cell):
        switch try ParentCheck(applier).value(of: cell, column, version) {
        case .value(let value):
          columns.append(column)
          values.append(value)
        case .missing(let parent): return try keepBase(local, .missingParent, "\(parent) is not here", waitsFor: parent)
        }
      }
    }
    for column in rewriting where !columns.contains(column) {
      columns.append(column)
      values.append(row[column])
    }
    var after = row
    for (i, column) in columns.enumerated() { after[column] = values[i] }
    if let missing = try ParentCheck(applier).missingParent(of: after, version, changed: columns) {
      if let set = try detach(missing, &merge, local) { return set }
      return try keepBase(local, .missingParent, "\(missing.name) is not here", waitsFor: missing.name)
    }
    if let refused = try write(local.key, columns, values, defaults, row: after) {
      return try keepBase(local, refused.0, refused.1, waitsFor: nil)
    }
    try moveKey(&merge, local, after)
    try file.records.update(local, to: merge.record)
    try logLosses(merge)
    if merge.broughtNews || !merge.changes.isEmpty { return .applied }
    return .unchanged
  }

  private func write(
    _ key: Value, _ columns: [Int], _ values: [Value], _ defaults: [Int], row: [Value]
  ) throws -> (ParkedReason, String)? {
    if !columns.isEmpty {
      let refusal = try UniqueResolver(applier).writing(version, key: key, row: row) {
        try applier.writer.update(plan, key, columns, values)
      }
      if let refusal { return refusal }
      if plan.writesElsewhere { try restoreMergedValues(key, columns, values) }
    }
    if !defaults.isEmpty, case .other(let reason, let detail)? = try applier.writer.setDefaults(plan, key, defaults) {
      return (reason, detail)
    }
    return nil
  }

  /// In the row being applied the merged values stand, whatever a user trigger made of them (tables M17).
  private func restoreMergedValues(_ key: Value, _ columns: [Int], _ values: [Value]) throws {
    guard let row = try file.row(plan, key) else { return }
    let differing = columns.indices.filter { row[columns[$0]] != values[$0] && !plan.columns[columns[$0]].isKey }
    if differing.isEmpty { return }
    try file.setTriggers(false)
    let statement = try file.connection.cached(file.statements(plan).update(differing.map { columns[$0] }))
    try file.bindKey(key, plan, to: statement)
    for (i, at) in differing.enumerated() {
      try statement.bind(Int32(plan.keyColumns.count + 1 + i), values[at])
    }
    try statement.run()
  }

  /// A key column may change its spelling, never the record (tables T18).
  private func moveKey(_ merge: inout RecordMerge, _ local: RecordRow, _ row: [Value]) throws {
    guard plan.keyKind == .natural, let key = RowKey.canonical(plan.keyColumns.map { row[$0] }, plan) else { return }
    merge.move(to: key)
  }

  /// The row keeps its values; what is edited here is sent on the parked version as base (tables M9).
  private func keepBase(
    _ local: RecordRow, _ reason: ParkedReason, _ detail: String, waitsFor: String?
  ) throws -> Result {
    var base = local
    base.tag = version.tag
    try file.records.update(local, to: base)
    return .parked(reason, detail, waitsFor: waitsFor)
  }

  /// A reference to a deleted parent under SET NULL or SET DEFAULT is cleared, and that is sent (tables M13). Returns
  /// nil where the foreign key says otherwise.
  private func detach(
    _ missing: ParentCheck.Missing, _ merge: inout RecordMerge, _ local: RecordRow
  ) throws -> Result? {
    guard let deletedAt = missing.deletedAt, missing.foreignKey.onDelete == .setNull else { return nil }
    try VersionApplier(applier, version.detached(missing.foreignKey.columns, at: deletedAt)).finishDetached()
    return .applied
  }

  private func finishDetached() throws {
    guard let local = try file.names.record(named: version.name, plan) else {
      _ = try create(over: nil)
      return try assertDetached()
    }
    if local.isAlive, let row = try file.row(plan, local.key) { _ = try merge(into: local, row) }
    try assertDetached()
  }

  private func assertDetached() throws {
    guard let record = try file.names.record(named: version.name, plan), record.isAlive else { return }
    var changed = record
    if changed.pending != .save { changed.dirty = .none }
    changed.pending = .save
    for column in version.detachedColumns { changed.dirty.insert(plan.columns[column].wireName) }
    changed.raiseRevision()
    try file.records.update(record, to: changed)
  }

  private func logLosses(_ merge: RecordMerge) throws {
    for loss in merge.losses {
      try file.outcomes.add(
        .merged, table: plan.name, record: version.name,
        "\(loss.field): the edit made here at \(loss.localClock) lost against the one of \(loss.remoteClock)")
    }
  }

  // MARK: Dead and new rows

  /// A live record meets a delete made here (tables M5).
  private func meetDead(_ local: RecordRow, _ deletedAt: FieldClock) throws -> Result {
    if revives(touch: version.clocks.touch, overDeleteAt: deletedAt) { return try create(over: local) }
    var dead = local
    dead.tag = version.tag
    dead.pending = .delete
    dead.raiseRevision()
    try file.records.update(local, to: dead)
    return .unchanged
  }

  private func create(over local: RecordRow?) throws -> Result {
    let key: Value
    switch try rowKey() {
    case .success(let found): key = found
    case .failure(let problem): return .parked(problem.reason, problem.detail, waitsFor: problem.waitsFor)
    }
    if let other = try file.records.find(plan.number, key: key), other.isAlive, other != local {
      return .parked(.undecodable, "its key is the key of another record", waitsFor: nil)
    }
    var row = plan.columns.map { _ in Value.null }
    var columns: [Int] = []
    let parts = RowKey.parts(of: key, plan)
    for column in plan.columns.indices {
      if let place = plan.keyColumns.firstIndex(of: column) {
        columns.append(column)
        row[column] = parts[place]
        // The field has the spelling; the key may be canonical.
        if case .value(let spelled) = version.cells[column], version.clocks.clock(of: column) != nil, !spelled.isNull {
          row[column] = spelled
        }
      } else if version.clocks.clock(of: column) != nil {
        switch try ParentCheck(applier).value(of: version.cells[column], column, version) {
        case .value(let value):
          columns.append(column)
          row[column] = value
        case .missing(let parent):
          return try parkOrDetach(column, parent)
        }
      }
    }
    if let missing = try ParentCheck(applier).missingParent(of: row, version, changed: columns) {
      return try parkOrDie(missing, local)
    }
    if let refused = try insert(key, columns, row) { return .parked(refused.0, refused.1, waitsFor: nil) }
    try store(key, over: local)
    return .applied
  }

  private func insert(_ key: Value, _ columns: [Int], _ row: [Value]) throws -> (ParkedReason, String)? {
    let values = columns.map { row[$0] }
    if try plan.keyKind == .natural && file.rowExists(plan, key) {
      // A row that has no record: capture was off when it was written.
      return try write(key, columns, values, [], row: row)
    }
    let refusal = try UniqueResolver(applier).writing(version, key: key, row: row) {
      try applier.writer.insert(plan, key, columns, values)
    }
    if refusal == nil && plan.writesElsewhere { try restoreMergedValues(key, columns, values) }
    return refusal
  }

  private func store(_ key: Value, over local: RecordRow?) throws {
    var record = RecordRow(table: plan.number, key: key, clocks: version.clocks)
    if plan.keyKind == .mapped, let uuid = RecordNameCodec.uuid(version.name, table: plan.wireName) {
      record.name = .blob(uuid)
    } else if RecordNameCodec.decode(version.name, plan) == .hashed {
      record.name = .text(version.name)
    }
    record.tag = version.tag
    record.kept = version.kept
    if let wish = version.wish, key != .integer(wish) { record.wish = wish }
    record.revision = (local?.revision ?? 0) + (local == nil ? 0 : 1)
    if let local { try file.records.remove(local) }
    guard try file.records.insert(record) else {
      throw TablesError.damagedMetadata("two records have one key in \(plan.name)")
    }
  }

  private struct KeyProblem: Error {
    var reason: ParkedReason
    var detail: String
    var waitsFor: String?
  }

  private func rowKey() throws -> Swift.Result<Value, KeyProblem> {
    if plan.keyKind == .mapped {
      guard let integer = try applier.integer(for: version) else {
        return .failure(KeyProblem(reason: .undecodable, detail: "its name is no UUID", waitsFor: nil))
      }
      return .success(.integer(integer))
    }
    switch try file.names.resolve(version.name, plan) {
    case .key(let key): return .success(key)
    case .missingParent(let parent):
      // The parent comes with this set and has its integer already.
      if let key = try keyFromFields() { return .success(key) }
      return .failure(KeyProblem(reason: .missingParent, detail: "\(parent) is not here", waitsFor: parent))
    case .inFields:
      guard let key = try keyFromFields() else {
        return .failure(KeyProblem(reason: .undecodable, detail: "its key is not in its fields", waitsFor: nil))
      }
      return .success(key)
    case .newMapped, .undecodable:
      return .failure(
        KeyProblem(reason: .undecodable, detail: "its name does not fit the key of \(plan.name)", waitsFor: nil))
    }
  }

  private func keyFromFields() throws -> Value? {
    var parts: [Value] = []
    for column in plan.keyColumns {
      guard version.clocks.clock(of: column) != nil,
        case .value(let value) = try ParentCheck(applier).value(of: version.cells[column], column, version)
      else { return nil }
      parts.append(value)
    }
    return RowKey.canonical(parts, plan)
  }

  private func parkOrDetach(_ column: Int, _ parent: String) throws -> Result {
    guard let missing = try ParentCheck(applier).dead(parent, column, version) else {
      return .parked(.missingParent, "\(parent) is not here", waitsFor: parent)
    }
    return try parkOrDie(missing, nil)
  }

  /// A child whose parent was deleted here is judged as if the parent's delete met the child (tables M13).
  private func parkOrDie(_ missing: ParentCheck.Missing, _ local: RecordRow?) throws -> Result {
    if let deletedAt = missing.deletedAt {
      switch missing.foreignKey.onDelete {
      case .cascade where version.clocks.touch < deletedAt:
        try storeDead(at: deletedAt, over: local)
        return .unchanged
      case .setNull:
        try VersionApplier(applier, version.detached(missing.foreignKey.columns, at: deletedAt)).finishDetached()
        return .applied
      default: break
      }
    }
    return .parked(.missingParent, "\(missing.name) is not here", waitsFor: missing.name)
  }

  /// The child died with its parent: its delete is sent.
  private func storeDead(at clock: FieldClock, over local: RecordRow?) throws {
    var dead = RecordRow(
      table: plan.number, key: .text(version.name), name: .text(version.name),
      clocks: FieldClocks(life: 0, columns: []))
    if plan.keyKind == .mapped, let uuid = RecordNameCodec.uuid(version.name, table: plan.wireName) {
      dead.key = .blob(uuid)
      dead.name = .blob(uuid)
    } else if !plan.isNamedByParent, case .key(let key) = try file.names.resolve(version.name, plan) {
      dead.key = key
      dead.name = .null
    }
    dead.deletedAt = clock
    dead.life = .deleted
    dead.pending = .delete
    dead.tag = version.tag
    dead.revision = (local?.revision ?? 0) + 1
    if let local { try file.records.remove(local) }
    _ = try file.records.insert(dead)
  }

  /// A record whose row was put aside comes back if nothing is in its way now.
  private func returnFromParking(_ local: RecordRow) throws -> Result {
    let result = try create(over: local)
    guard case .applied = result, local.pending == .save,
      let back = try file.names.record(named: version.name, plan)
    else { return result }
    // What was edited here before it was put aside is in the parked version already; it is still to be sent.
    var pending = back
    pending.pending = .save
    pending.dirty = local.dirty
    pending.revision = local.revision + 1
    pending.flags = local.flags.subtracting(.parked)
    pending.tag = local.tag
    try file.records.update(back, to: pending)
    return .applied
  }
}
