import CairnRecords
import CairnSQLite

/// What a fetched deletion of a parent means for the rows that refer to it (tables M12).
struct Family {
  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  private struct Child {
    var record: RecordRow
    var plan: TablePlan
    var foreignKey: ForeignKeyPlan
    var row: [Value]
  }

  private func children(of row: [Value], _ plan: TablePlan, except own: RecordRow) throws -> [Child] {
    var result: [Child] = []
    for (number, foreignKey) in file.catalog.foreignKeys(to: plan.number) {
      guard let child = file.catalog.plan(number) else { continue }
      for key in try file.keys(of: child, referringTo: row, foreignKey) {
        guard let record = try file.records.find(number, key: key), record.isAlive,
          !(number == own.table && key == own.key), let childRow = try file.row(child, key)
        else { continue }
        result.append(Child(record: record, plan: child, foreignKey: foreignKey, row: childRow))
      }
    }
    return result
  }

  /// The life clock with which the parent must stay because of a child; nil when it may go.
  ///
  /// With an unknown time of the delete, unsent children count as later than it and confirmed ones as earlier.
  func lifeToKeep(
    _ record: RecordRow, _ plan: TablePlan, _ row: [Value], deletedAt clock: FieldClock, isTimeKnown: Bool
  ) throws -> FieldClock? {
    var life: FieldClock?
    var visited: Set<RecordPlace> = [RecordPlace(record)]
    var stack = try children(of: row, plan, except: record)
    while let child = stack.popLast() {
      let touch = child.record.clocks.touch
      let isLater = isTimeKnown ? touch >= clock : child.record.pending == .save
      switch child.foreignKey.onDelete {
      case .setNull, .setDefault:
        continue
      case .restrict, .noAction:
        life = max(life ?? 0, touch, clock + 1)
      case .cascade:
        if isLater {
          life = max(life ?? 0, touch)
        } else if visited.insert(RecordPlace(child.record)).inserted {
          // A grandchild that survives keeps its parents.
          stack += try children(of: child.row, child.plan, except: child.record)
        }
      }
    }
    return life
  }

  private struct RecordPlace: Hashable {
    var table: Int
    var key: Value

    init(_ record: RecordRow) {
      table = record.table
      key = record.key
    }
  }

  /// Removes or detaches everything that refers to a row which is about to go; all of it is sent like a user's own
  /// deletes and edits (tables M15).
  func removeChildren(of record: RecordRow, _ plan: TablePlan, _ row: [Value], at clock: FieldClock) throws {
    for child in try children(of: row, plan, except: record) {
      // An earlier sibling may have taken it along.
      guard let current = try file.records.find(child.plan.number, key: child.record.key), current.isAlive else {
        continue
      }
      switch child.foreignKey.onDelete {
      case .cascade: try removeChild(child, current, at: clock)
      case .setNull, .setDefault: try detach(child, current, at: clock)
      case .restrict, .noAction: continue
      }
    }
  }

  private func removeChild(_ child: Child, _ record: RecordRow, at clock: FieldClock) throws {
    try removeChildren(of: record, child.plan, child.row, at: clock)
    if case .other(_, let detail)? = try applier.writer.delete(child.plan, record.key) {
      throw TablesError.damagedMetadata("a row of \(child.plan.name) could not follow its parent: \(detail)")
    }
    try file.records.remove(record)
    if let dead = try file.dead(record, child.plan, at: max(clock, record.clocks.touch + 1)) {
      _ = try file.records.insert(dead)
    }
    applier.noteRemoved()
  }

  private func detach(_ child: Child, _ record: RecordRow, at clock: FieldClock) throws {
    let columns = child.foreignKey.columns
    let refusal =
      child.foreignKey.onDelete == .setNull
      ? try applier.writer.update(child.plan, record.key, columns, columns.map { _ in .null })
      : try applier.writer.setDefaults(child.plan, record.key, columns)
    if case .other(_, let detail)? = refusal {
      throw TablesError.damagedMetadata("a row of \(child.plan.name) could not be detached from its parent: \(detail)")
    }
    var edited = record
    if edited.pending != .save { edited.dirty = .none }
    edited.pending = .save
    for column in columns where child.plan.isField(column) {
      edited.clocks.columns[column] = max(clock, edited.clocks.columns[column] + 1)
      edited.dirty.insert(child.plan.columns[column].wireName)
    }
    edited.raiseRevision()
    try file.records.update(record, to: edited)
  }
}
