import CairnRecords
import CairnSQLite

/// Plans out of what was decided about each table.
extension PlanningPass {
  func result() -> PlanningResult {
    let chosen = tables.indices.filter { isSelected[$0] && match($0)?.suspension == nil }
    let names = TableNames(pass: self, chosen: chosen)
    var plans: [TablePlan] = []
    var remembered = matches.map(\.remembered)
    for t in chosen {
      let columns = names.columns(t)
      plans.append(plan(t, wireName: names.tables[t] ?? "", columns))
      let updated = rememberedTable(t, wireName: names.tables[t] ?? "", columns)
      if let place = remembered.firstIndex(where: { $0.number == updated.number }) {
        remembered[place] = updated
      } else {
        remembered.append(updated)
      }
    }
    rank(&plans)
    plans.sort { $0.number < $1.number }
    remembered.sort { $0.number < $1.number }
    return PlanningResult(
      plans: plans, skipped: skipped, problems: problems, usageErrors: usageErrors,
      warnings: SchemaWarnings.warnings(schema, plans), remembered: remembered,
      suspended: matches.compactMap(\.suspension))
  }

  private func plan(_ t: Int, wireName: String, _ names: [RememberedColumn]) -> TablePlan {
    let table = tables[t]
    let plain = table.columns.indices.filter { table.columns[$0].generated == .no }
    func place(_ column: Int) -> Int? { plain.firstIndex(of: column) }
    let key = table.primaryKey
    let kind: TablePlan.KeyKind = isMapped[t] ? .mapped : key.count == 1 ? .natural : .composite
    let columns = plain.enumerated().map { i, column in
      self.column(t, column, names[i], isKey: key.contains(column))
    }
    let keyColumns = key.compactMap(place)
    let foreignKeys = table.foreignKeys.map { foreignKey(t, $0, place) }
    let hasUserTriggers = table.triggers.contains { !$0.isCairn }
    return TablePlan(
      number: numbers[t] ?? 0, name: table.name, wireName: wireName, keyKind: kind, columns: columns,
      generatedColumns: table.columns.filter { $0.generated != .no }.map(\.name), keyColumns: keyColumns,
      keyParts: keyParts[t],
      fieldColumns: columns.indices.filter { kind != .mapped || !keyColumns.contains($0) },
      isWithoutRowID: table.isWithoutRowID, isStrict: table.isStrict, isAutoincrement: table.isAutoincrement,
      rowIDAlias: table.rowIDAlias.flatMap(place), uniqueIndexes: uniqueIndexes(table, place),
      foreignKeys: foreignKeys, rank: 0, isInCycle: false,
      isSelfReferencing: foreignKeys.contains { $0.isSelfReference },
      writesElsewhere: hasUserTriggers || isUpdatedThrough(t),
      deletesWriteElsewhere: hasUserTriggers || isDeletedThrough(t))
  }

  private func column(_ t: Int, _ index: Int, _ names: RememberedColumn, isKey: Bool) -> ColumnPlan {
    let column = tables[t].columns[index]
    return ColumnPlan(
      name: column.name, wireName: names.wireName, fieldType: names.fieldType, affinity: column.affinity,
      collation: KeyCollation(column.collation), isNotNull: column.isNotNull, defaultSQL: column.defaultSQL,
      isKey: isKey, localTarget: localEnd(t, index).flatMap { numbers[$0] },
      needsTypeofComparison: column.affinity == .blob)
  }

  // MARK: Keys and indexes

  private func foreignKey(_ t: Int, _ key: SchemaForeignKey, _ place: (Int) -> Int?) -> ForeignKeyPlan {
    let children = key.columns.compactMap(place)
    let p = index(key.parentTable)
    let synced = p.flatMap { isSelected[$0] && match($0)?.suspension == nil ? $0 : nil }
    var parentIndices: [Int] = []
    var refersToKey = false
    if let p {
      let parent = tables[p]
      let plain = parent.columns.indices.filter { parent.columns[$0].generated == .no }
      let parentColumns = key.parentColumns.compactMap { parent.column($0) }
      refersToKey = parentColumns == parent.primaryKey
      if synced != nil { parentIndices = parentColumns.compactMap { plain.firstIndex(of: $0) } }
    }
    return ForeignKeyPlan(
      columns: children.count == key.columns.count ? children : [],
      parent: synced.flatMap { numbers[$0] }.map { .synced($0) } ?? .unsynced(key.parentTable),
      parentColumns: key.parentColumns,
      parentColumnIndices: parentIndices.count == key.parentColumns.count ? parentIndices : [],
      refersToKey: refersToKey, onDelete: key.onDelete, onUpdate: key.onUpdate, isDeferred: key.isDeferred,
      isTranslated: key.columns.contains { localEnd(t, $0) != nil }, isSelfReference: p == t)
  }

  private func uniqueIndexes(_ table: SchemaTable, _ place: (Int) -> Int?) -> [UniqueIndexPlan] {
    table.indexes.filter { $0.isUnique && $0.origin != .primaryKey }.map { index in
      let terms = index.terms.map { term -> UniqueIndexPlan.Term in
        let key: UniqueIndexPlan.Term.Key =
          switch term.key {
          case .column(let column):
            place(column).map { .column($0) } ?? .generated(table.columns[column].name)
          case .expression(let text): .expression(text)
          case .rowID: .expression("rowid")
          }
        return UniqueIndexPlan.Term(key: key, collation: term.collation)
      }
      return UniqueIndexPlan(name: index.name, terms: terms, predicate: index.predicate)
    }
  }

  // MARK: Effects elsewhere

  private func keysReferring(to t: Int) -> [SchemaForeignKey] {
    tables.flatMap(\.foreignKeys).filter { SQLName.equal($0.parentTable, tables[t].name) }
  }

  private func isDeletedThrough(_ t: Int) -> Bool { keysReferring(to: t).contains { $0.onDelete.writes } }

  /// A row's own key changes in bytes only where its collation takes other bytes for equal.
  private func isUpdatedThrough(_ t: Int) -> Bool {
    let table = tables[t]
    return keysReferring(to: t).contains { key in
      guard key.onUpdate.writes else { return false }
      let columns = key.parentColumns.compactMap { table.column($0) }
      return columns.contains { column in
        !table.primaryKey.contains(column) || !SQLName.equal(table.columns[column].collation, "BINARY")
      }
    }
  }

  private func rank(_ plans: inout [TablePlan]) {
    let places = Dictionary(plans.indices.map { (plans[$0].number, $0) }, uniquingKeysWith: { first, _ in first })
    let parents = plans.indices.map { i in
      Set(plans[i].foreignKeys.compactMap { $0.parentNumber.flatMap { places[$0] } }.filter { $0 != i })
    }
    let ranks = TableRanks(names: plans.map(\.wireName), parents: parents)
    for i in plans.indices {
      plans[i].rank = ranks.ranks[i]
      plans[i].isInCycle = ranks.isInCycle[i]
    }
  }

  // MARK: Memory

  private func rememberedTable(_ t: Int, wireName: String, _ columns: [RememberedColumn]) -> RememberedTable {
    let table = tables[t]
    let plain = table.columns.indices.filter { table.columns[$0].generated == .no }
    let kind: TablePlan.KeyKind = isMapped[t] ? .mapped : table.primaryKey.count == 1 ? .natural : .composite
    let match = match(t)
    var result =
      match?.remembered
      ?? RememberedTable(
        number: numbers[t] ?? 0, name: table.name, wireName: wireName, keyKind: kind, columns: [], generations: [])
    result.name = table.name
    var present: [Int] = []
    for (i, column) in columns.enumerated() {
      if let known = match?.columns[i] {
        result.columns[known].name = column.name
        present.append(known)
      } else {
        present.append(result.columns.count)
        result.columns.append(column)
      }
    }
    let generation = RememberedTable.Generation(
      columns: present,
      keyColumns: table.primaryKey.compactMap { plain.firstIndex(of: $0) }.map { present[$0] })
    if result.generations.last != generation { result.generations.append(generation) }
    return result
  }
}
