import CairnRecords
import CairnSQLite

/// Finds the parents that a fetched version refers to: in the rows, in the set being applied, or not here (tables M8).
struct ParentCheck {
  /// A parent that has no row here.
  struct Missing {
    /// The parent's record name, or the ``WaitKey`` of the values that it must have.
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
  func value(of cell: MergeCell, _ version: FetchedVersion) throws -> Translation {
    switch cell {
    case .value(let value): return .value(value)
    case .reference(let name):
      if let integer = try file.names.integer(of: name) { return .value(integer) }
      if name == version.name, let own = try applier.integer(for: version) { return .value(.integer(own)) }
      if applier.isWaiting(name) != nil, let integer = applier.assigned.integer(of: name) {
        return .value(.integer(integer))
      }
      return .missing(name)
    }
  }

  /// The first parent, among the foreign keys that `changed` columns belong to, that has no row and does not come with
  /// the set.
  func missingParent(
    of row: [Value], _ cells: [MergeCell], _ version: FetchedVersion, changed: [Int]
  ) throws -> Missing? {
    let plan = version.plan
    for foreignKey in plan.foreignKeys where foreignKey.columns.contains(where: changed.contains) {
      let values = foreignKey.columns.map { row[$0] }
      if values.contains(.null) { continue }
      guard let parent = file.catalog.plan(foreignKey.parent) else { continue }
      if try file.rowExists(parent, foreignKey.parentColumns, values) { continue }
      if parent.number == plan.number, refersToItself(foreignKey, row, plan) { continue }
      let name = try nameOfParent(foreignKey, parent, cells) ?? WaitKey(parent, foreignKey, values).text
      if applier.isWaiting(name) != nil {
        applier.promise(name, to: version)
        continue
      }
      return Missing(name: name, foreignKey: foreignKey, deletedAt: try deletedAt(name))
    }
    return nil
  }

  private func refersToItself(_ foreignKey: ForeignKeyPlan, _ row: [Value], _ plan: TablePlan) -> Bool {
    zip(foreignKey.columns, foreignKey.parentColumns).allSatisfy { child, parent in
      let (a, b) = (row[child], row[parent])
      return a == b
        || RowKey.canonical(a, plan.columns[parent].collation) == RowKey.canonical(b, plan.columns[parent].collation)
    }
  }

  /// What is known of a reference that has no row here. The record at the end of the chain may be here while the row
  /// between is not.
  func missing(_ name: String, _ column: Int, _ version: FetchedVersion) throws -> Missing? {
    guard let foreignKey = version.plan.foreignKeys.first(where: { $0.columns.contains(column) }) else { return nil }
    return Missing(name: name, foreignKey: foreignKey, deletedAt: try deletedAt(name))
  }

  private func deletedAt(_ name: String) throws -> FieldClock? {
    guard let plan = file.names.plan(ofName: name) else { return nil }
    return try file.names.record(named: name, plan)?.deletedAt
  }

  // MARK: Names of parents

  /// Names of the records that a version's foreign keys stand for, with the wait keys of those that name no key.
  func parentNames(of version: FetchedVersion) throws -> [String] {
    var names: [String] = []
    for foreignKey in version.plan.foreignKeys {
      guard let parent = file.catalog.plan(foreignKey.parent) else { continue }
      let isSet = foreignKey.columns.allSatisfy {
        version.clocks.clock(of: $0) != nil || version.plan.columns[$0].isKey
      }
      guard isSet, !foreignKey.columns.contains(where: { version.cells[$0] == .null }) else { continue }
      if let name = try nameOfParent(foreignKey, parent, version.cells) {
        names.append(name)
      } else if let values = try values(foreignKey, version) {
        names.append(WaitKey(parent, foreignKey, values).text)
      }
    }
    return names
  }

  private func values(_ foreignKey: ForeignKeyPlan, _ version: FetchedVersion) throws -> [Value]? {
    var values: [Value] = []
    for column in foreignKey.columns {
      guard case .value(let value) = try value(of: version.cells[column], version) else { return nil }
      values.append(value)
    }
    return values
  }

  /// The name of the parent's record; nil for a foreign key to columns that are not the parent's key.
  func nameOfParent(_ foreignKey: ForeignKeyPlan, _ parent: TablePlan, _ cells: [MergeCell]) throws -> String? {
    guard foreignKey.parentColumns.count == parent.keyColumns.count else { return nil }
    var key: [MergeCell] = []
    for column in parent.keyColumns {
      guard let place = foreignKey.parentColumns.firstIndex(of: column) else { return nil }
      key.append(cells[foreignKey.columns[place]])
    }
    return try name(parent, key)
  }

  /// The record name of the row with a key; references stand for mapped rows at the end of a chain.
  private func name(_ plan: TablePlan, _ key: [MergeCell]) throws -> String? {
    if plan.keyKind == .mapped {
      switch key[0] {
      case .reference(let name): return name
      case .value(let value): return try file.names.name(ofKey: value, plan)
      }
    }
    var parts: [KeyPartValue] = []
    var collations: [String] = []
    for (i, cell) in key.enumerated() {
      collations.append(plan.columns[plan.keyColumns[i]].collation)
      switch plan.keyParts[i] {
      case .value:
        guard case .value(let value) = cell else { return nil }
        parts.append(.value(AffinityRules.stored(value, in: plan.columns[plan.keyColumns[i]].affinity)))
      case .reference(let table):
        guard let target = file.catalog.plan(table), let parent = try name(target, [cell]) else { return nil }
        parts.append(.reference(parent))
      }
    }
    return RecordNameCodec.natural(table: plan.wireName, parts: parts, collations: collations)
  }
}

/// Names a row by the values that a foreign key asks of it, where the foreign key does not name the parent's key. Local
/// to one file: it stands in `cairn_inbox.waits` beside record names, and no record name looks like it.
struct WaitKey {
  var text: String

  init(_ parent: TablePlan, _ foreignKey: ForeignKeyPlan, _ values: [Value]) {
    let sorted = zip(foreignKey.parentColumns, values).sorted { $0.0 < $1.0 }
    self.init(parent, sorted.map(\.0), sorted.map(\.1))
  }

  /// - Parameter columns: ascending.
  init(_ parent: TablePlan, _ columns: [Int], _ values: [Value]) {
    let stored = zip(columns, values).map { column, value in
      RowKey.canonical(
        AffinityRules.stored(value, in: parent.columns[column].affinity), parent.columns[column].collation)
    }
    let names = columns.map { parent.columns[$0].wireName }.joined(separator: ",")
    text = "\(parent.wireName):=\(names)=\(Hex.lower(RowKey.packed(stored)))"
  }

  /// The keys that a row of `parent` answers to.
  static func all(of row: [Value], _ parent: TablePlan, _ catalog: TableCatalog) -> [WaitKey] {
    var seen: Set<[Int]> = []
    var keys: [WaitKey] = []
    for (_, foreignKey) in catalog.foreignKeys(to: parent.number) {
      let columns = foreignKey.parentColumns.sorted()
      if columns == parent.keyColumns.sorted() || !seen.insert(columns).inserted { continue }
      let values = columns.map { row[$0] }
      if !values.contains(.null) { keys.append(WaitKey(parent, columns, values)) }
    }
    return keys
  }

  /// Whether a row that answers to a wait key is here; nil for what is no wait key.
  static func isHere(_ text: String, _ file: FileContext) throws -> Bool? {
    let parts = text.split(separator: "=", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].hasSuffix(":"),
      let plan = file.catalog.plan(wireName: String(parts[0].dropLast())),
      let packed = Hex.bytes(parts[2].utf8)
    else { return nil }
    let columns = parts[1].split(separator: ",").compactMap { plan.column(wireName: String($0)) }
    let values = RowKey.unpacked(packed)
    guard columns.count == values.count else { return nil }
    return try file.rowExists(plan, columns, values)
  }
}

extension FileContext {
  /// Whether a row has these values in these columns.
  func rowExists(_ plan: TablePlan, _ columns: [Int], _ values: [Value]) throws -> Bool {
    if columns == plan.keyColumns, let key = RowKey.canonical(values, plan) { return try rowExists(plan, key) }
    let conditions = columns.enumerated().map { "\(SQLText.quoted(plan.columns[$1].name)) = ?\($0 + 1)" }
    let statement = try connection.cached(
      "SELECT 1 FROM main.\(SQLText.quoted(plan.name)) WHERE \(conditions.joined(separator: " AND ")) LIMIT 1")
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step()
  }
}
