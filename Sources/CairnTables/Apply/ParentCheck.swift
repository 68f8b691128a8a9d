import CairnRecords
import CairnSQLite

/// Finds the parents that a fetched version refers to: in the rows, in the set being applied, or not here (tables M8).
struct ParentCheck {
  /// A parent that has no row here.
  struct Missing {
    var name: String
    var foreignKey: ForeignKeyPlan
    /// When the parent was deleted here, if that is why it is missing (tables M13).
    var deletedAt: FieldClock?
  }

  enum Translation {
    case value(Value)
    /// Name of the record that is not here.
    case missing(String)
  }

  private let applier: Applier
  private var file: FileContext { applier.file }

  init(_ applier: Applier) { self.applier = applier }

  /// The value that a column takes for a fetched cell; a reference becomes the local integer.
  func value(of cell: MergeCell, _ column: Int, _ version: FetchedVersion) throws -> Translation {
    switch cell {
    case .value(let value): return .value(value)
    case .reference(let name):
      if let integer = try file.names.integer(of: name) { return .value(integer) }
      if name == version.name || applier.isWaiting(name) != nil, let integer = applier.assigned.integer(of: name) {
        return .value(.integer(integer))
      }
      return .missing(name)
    }
  }

  /// The first parent, among the foreign keys that `changed` columns belong to, that has no row and does not come with
  /// the set.
  func missingParent(of row: [Value], _ version: FetchedVersion, changed: [Int]) throws -> Missing? {
    let plan = version.plan
    for foreignKey in plan.foreignKeys where foreignKey.columns.contains(where: changed.contains) {
      let values = foreignKey.columns.map { row[$0] }
      if values.contains(.null) { continue }
      guard let parent = file.catalog.plan(foreignKey.parent) else { continue }
      if try rowExists(parent, foreignKey.parentColumns, values) { continue }
      if parent.number == plan.number && foreignKey.parentColumns.map({ row[$0] }) == values { continue }
      guard let name = try parentName(parent, foreignKey, values, version) else {
        return Missing(name: "a row of \(parent.name)", foreignKey: foreignKey)
      }
      if name == version.name || applier.isWaiting(name) != nil { continue }
      return Missing(name: name, foreignKey: foreignKey, deletedAt: try deletedAt(name, parent))
    }
    return nil
  }

  /// The dead parent behind a reference that has no row; nil if it is not known as dead.
  func dead(_ name: String, _ column: Int, _ version: FetchedVersion) throws -> Missing? {
    guard let parent = file.names.plan(ofName: name), let deletedAt = try deletedAt(name, parent),
      let foreignKey = version.plan.foreignKeys.first(where: { $0.columns.contains(column) })
    else { return nil }
    return Missing(name: name, foreignKey: foreignKey, deletedAt: deletedAt)
  }

  /// Versions of the set that must be applied before this one.
  func parentsInSet(of version: FetchedVersion) throws -> [FetchedVersion] {
    var parents: [FetchedVersion] = []
    for foreignKey in version.plan.foreignKeys {
      guard let parent = file.catalog.plan(foreignKey.parent) else { continue }
      if let name = try nameInSet(of: foreignKey, parent, version), name != version.name,
        let waiting = applier.isWaiting(name)
      {
        parents.append(waiting)
      }
    }
    return parents
  }

  // MARK: Names of parents

  private func nameInSet(
    of foreignKey: ForeignKeyPlan, _ parent: TablePlan, _ version: FetchedVersion
  ) throws -> String? {
    if foreignKey.columns.count == 1, case .reference(let name) = version.cells[foreignKey.columns[0]] { return name }
    guard foreignKey.parentColumns == parent.keyColumns else { return nil }
    var values: [Value] = []
    for column in foreignKey.columns {
      switch try value(of: version.cells[column], column, version) {
      case .value(let value): values.append(value)
      case .missing: return nil
      }
    }
    return try RowKey.canonical(values, parent).flatMap { try file.names.name(ofKey: $0, parent) }
  }

  private func parentName(
    _ parent: TablePlan, _ foreignKey: ForeignKeyPlan, _ values: [Value], _ version: FetchedVersion
  ) throws -> String? {
    if let name = try nameInSet(of: foreignKey, parent, version) { return name }
    guard foreignKey.parentColumns == parent.keyColumns else { return nil }
    return try RowKey.canonical(values, parent).flatMap { try file.names.name(ofKey: $0, parent) }
  }

  private func deletedAt(_ name: String, _ parent: TablePlan) throws -> FieldClock? {
    try file.names.record(named: name, parent)?.deletedAt
  }

  private func rowExists(_ plan: TablePlan, _ columns: [Int], _ values: [Value]) throws -> Bool {
    if columns == plan.keyColumns {
      return try file.rowExists(plan, columns.count == 1 ? values[0] : packed(values, plan))
    }
    let conditions = columns.enumerated().map { "\(SQLText.quoted(plan.columns[$1].name)) = ?\($0 + 1)" }
    let statement = try file.connection.cached(
      "SELECT 1 FROM main.\(SQLText.quoted(plan.name)) WHERE \(conditions.joined(separator: " AND ")) LIMIT 1")
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step()
  }

  private func packed(_ values: [Value], _ plan: TablePlan) -> Value { RowKey.canonical(values, plan) ?? .null }
}
