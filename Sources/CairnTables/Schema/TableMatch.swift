import CairnSQLite

/// A remembered table found again in the present schema, perhaps under other names (tables T26–T30, V5).
public struct TableMatch: Hashable, Sendable {
  public var remembered: RememberedTable
  /// The table as it is now; nil when it was dropped.
  public var table: SchemaTable?
  /// For each column of the table that is not generated, the remembered column, or nil for a new one; indices into
  /// ``RememberedTable/columns``.
  public var columns: [Int?]
  /// Some of its capture triggers are gone: changes were missed (tables T29).
  public var isGap: Bool
  /// The columns of the primary key are others than before (tables T30).
  public var isKeyChanged: Bool

  /// Whether the capture triggers see exactly the present columns, in order.
  public var isCurrent: Bool {
    !isGap && table != nil && remembered.generations.last?.columns.map(Optional.some) == columns
  }

  public var suspension: SuspendedTable? {
    guard let table else {
      return SuspendedTable(number: remembered.number, name: remembered.name, reason: .dropped)
    }
    guard isKeyChanged else { return nil }
    return SuspendedTable(number: remembered.number, name: table.name, reason: .primaryKeyChanged)
  }

  /// Finds each remembered table in `schema`.
  ///
  /// Capture triggers follow a table and its columns through renames, so they are believed first; without them names
  /// decide.
  public static func reconcile(_ remembered: [RememberedTable], _ schema: DatabaseSchema) -> [TableMatch] {
    var byNumber: [Int: SchemaTable] = [:]
    for table in schema.tables where table.kind == .table {
      for trigger in table.triggers {
        if let number = CaptureTriggerName.tableNumber(trigger.name) { byNumber[number] = table }
      }
    }
    let claimed = Set(byNumber.values.map { SQLName.folded($0.name) })
    return remembered.map { old in
      // Another remembered table may have taken the name of this one.
      let named = claimed.contains(SQLName.folded(old.name)) ? nil : schema.table(old.name)
      guard let table = byNumber[old.number] ?? named, table.kind == .table else {
        return TableMatch(remembered: old, table: nil, columns: [], isGap: true, isKeyChanged: false)
      }
      return match(old, table)
    }
  }

  private static func match(_ old: RememberedTable, _ table: SchemaTable) -> TableMatch {
    let plain = table.columns.filter { $0.generated == .no }
    let triggers = table.triggers.filter { CaptureTriggerName.tableNumber($0.name) == old.number }
    let seen = triggers.reduce(into: Set<String>()) { $0.formUnion(TriggerText($1.sql).rowColumns) }
    let last = old.generations.last?.columns ?? []
    let followed = plain.indices.filter { seen.contains(SQLName.folded(plain[$0].name)) }
    var columns = [Int?](repeating: nil, count: plain.count)
    if !triggers.isEmpty && followed.count == last.count {
      for (place, column) in followed.enumerated() { columns[column] = last[place] }
    }
    matchNames(old, plain, isFollowed: !triggers.isEmpty && followed.count == last.count, &columns)
    let key = table.primaryKey.map { index -> Int? in
      plain.firstIndex { $0.name == table.columns[index].name }.flatMap { columns[$0] }
    }
    var isKeyChanged = key != (old.generations.last?.keyColumns ?? []).map(Optional.some)
    if old.keyKind == .mapped, let only = table.primaryKey.first, table.columns[only].affinity != .integer {
      isKeyChanged = true
    }
    return TableMatch(
      remembered: old, table: table, columns: columns, isGap: triggers.isEmpty, isKeyChanged: isKeyChanged)
  }

  /// Finds columns by name: all of them without triggers, else those that were dropped once and are back.
  private static func matchNames(
    _ old: RememberedTable, _ plain: [SchemaColumn], isFollowed: Bool, _ columns: inout [Int?]
  ) {
    let last = Set(old.generations.last?.columns ?? [])
    for (i, column) in plain.enumerated() where columns[i] == nil {
      let candidates = old.columns.indices.filter { candidate in
        SQLName.equal(old.columns[candidate].name, column.name) && !columns.contains(candidate)
          && !(isFollowed && last.contains(candidate))
      }
      columns[i] = candidates.first { last.contains($0) } ?? candidates.last
    }
  }
}
