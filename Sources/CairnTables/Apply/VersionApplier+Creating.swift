import CairnRecords
import CairnSQLite

/// Rows for records that have none here: new ones, revived ones, and those that were put aside.
extension VersionApplier {
  // MARK: Dead and parked records

  /// A live record meets a delete made here (tables M5).
  func meetDead(_ local: RecordRow, _ deletedAt: FieldClock) throws -> Result {
    if revives(touch: version.clocks.touch, overDeleteAt: deletedAt) {
      if local.pending == .delete {
        try file.outcomes.addLoss(
          "the delete", at: deletedAt, against: "the edit", of: version.clocks.touch, table: plan.name,
          record: version.name)
      }
      let result = try create(over: local)
      // It lives, only not in its table: the delete must not be sent.
      if case .parked = result, try file.names.record(named: version.name, plan) == local {
        try file.records.remove(local)
      }
      return result
    }
    var dead = local
    dead.tag = version.tag
    dead.pending = .delete
    dead.raiseRevision()
    try file.records.update(local, to: dead)
    return .unchanged
  }

  /// A record whose row was put aside: a fetched version is joined with what is parked, and the row comes back if
  /// nothing is in its way now (tables M5, M11).
  func joinParked(_ local: RecordRow) throws -> Result {
    applier.progress.cleared[version.name] = nil
    guard !version.isRetry, let parked = try file.inbox.find(version.name)?.record,
      case .success(let own) = FetchedVersion.decode(parked, file.codec(plan))
    else { return try create(over: local) }
    let joined = MergedContent(local: local, own, with: version)
    var state = joined.record
    state.flags.insert(.parked)
    try file.records.update(local, to: state)
    try logLosses(joined.merge)
    let merged = joined.version(file)
    let result = try VersionApplier(applier, merged).create(over: state)
    guard case .parked(let reason, let detail, let waitsFor, _) = result else { return result }
    return .parked(reason, detail, waitsFor: waitsFor, record: merged.record)
  }

  // MARK: Creating

  func create(over local: RecordRow?) throws -> Result {
    let key: Value
    switch try rowKey() {
    case .success(let found): key = found
    case .failure(let problem):
      guard let parent = problem.missingParent else { return .parked(.undecodable, problem.detail, waitsFor: nil) }
      return try meetMissing(try missingKeyParent(parent), parent, local)
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
        switch try ParentCheck(applier).value(of: version.cells[column], version) {
        case .value(let value):
          columns.append(column)
          row[column] = value
        case .missing(let parent):
          return try meetMissing(try ParentCheck(applier).missing(parent, column, version), parent, local)
        }
      }
    }
    if !plan.foreignKeys.isEmpty,
      let missing = try ParentCheck(applier).missingParent(of: row, version.cells, version, changed: columns)
    {
      return try meetMissing(missing, missing.name, local)
    }
    if let refused = try insert(key, columns, row) {
      return .parked(refused.reason, refused.detail, waitsFor: refused.waitsFor)
    }
    try store(key, over: local)
    applier.noteArrived(version.name, row, plan)
    return .applied
  }

  private func insert(_ key: Value, _ columns: [Int], _ row: [Value]) throws -> WriteRefused? {
    if try plan.keyKind == .natural && file.rowExists(plan, key) {
      // A row that has no record: capture was off when it was written.
      var writes = RowWrites(row)
      for column in columns { writes.set(column, row[column]) }
      return try write(key, writes, life: version.clocks.life)
    }
    let values = columns.map { row[$0] }
    let refused = try UniqueResolver(applier).writing(version, life: version.clocks.life, key: key, row: row) {
      try applier.writer.insert(plan, key, columns, values)
    }
    if refused == nil { try applier.writer.restore(plan, key, columns, values) }
    return refused
  }

  private func store(_ key: Value, over local: RecordRow?) throws {
    var record: RecordRow
    if let local, local.flags.contains(.parked) {
      // Edits from before it was put aside are in the version; they may still have to be sent.
      record = local
      record.flags.remove(.parked)
      record.clocks = version.clocks
    } else {
      record = RecordRow(table: plan.number, key: key, clocks: version.clocks)
      record.tag = version.tag
      record.revision = (local?.revision ?? 0) + (local == nil ? 0 : 1)
    }
    record.key = key
    record.kept = version.kept
    record.name = .null
    if plan.keyKind == .mapped, let uuid = RecordNameCodec.uuid(version.name, table: plan.wireName) {
      record.name = .blob(uuid)
    }
    let wish = version.wish ?? record.wish
    record.wish = wish.map(Value.integer) == key ? nil : wish
    assertDetached(&record)
    if let local { try file.records.remove(local) }
    if plan.keyKind == .natural { record.name = try file.names.storedName(version.name, for: key, plan) }
    guard try file.records.insert(record) else {
      throw TablesError.damagedMetadata("two records have one key in \(plan.name)")
    }
  }

  // MARK: Keys

  private struct KeyProblem: Error {
    var detail: String
    var missingParent: String?
  }

  private func rowKey() throws -> Swift.Result<Value, KeyProblem> {
    if plan.keyKind == .mapped {
      guard let integer = try applier.integer(for: version) else {
        return .failure(KeyProblem(detail: "its name is no UUID"))
      }
      return .success(.integer(integer))
    }
    switch try file.names.resolve(version.name, plan) {
    case .key(let key): return .success(key)
    case .missingParent(let parent):
      // The parent comes with this set and has its integer already.
      if let key = try keyFromFields() { return .success(key) }
      return .failure(KeyProblem(detail: "\(parent) is not here", missingParent: parent))
    case .inFields:
      guard let key = try keyFromFields() else {
        let parents = try ParentCheck(applier).parentNames(of: version)
        let missing = try parents.first { try file.names.record(named: $0) == nil }
        return .failure(KeyProblem(detail: "its key is not in its fields", missingParent: missing))
      }
      return .success(key)
    case .newMapped, .undecodable:
      return .failure(KeyProblem(detail: "its name does not fit the key of \(plan.name)"))
    }
  }

  private func keyFromFields() throws -> Value? {
    var parts: [Value] = []
    for column in plan.keyColumns {
      guard version.clocks.clock(of: column) != nil,
        case .value(let value) = try ParentCheck(applier).value(of: version.cells[column], version)
      else { return nil }
      parts.append(value)
    }
    return RowKey.canonical(parts, plan)
  }
}

extension RecordNames {
  /// The live record of a name whose row is in its table.
  func record(named name: String) throws -> RecordRow? {
    guard let plan = plan(ofName: name), let record = try record(named: name, plan) else { return nil }
    return record.isAlive && !record.flags.contains(.parked) ? record : nil
  }
}
