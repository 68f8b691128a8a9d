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
    let plain = plainColumns(t)
    let key = table.primaryKey
    let columns = plain.enumerated().map { i, column in
      self.column(t, column, names[i], isKey: key.contains(column))
    }
    let hasUserTriggers = table.triggers.contains { !$0.isCairn }
    return TablePlan(
      number: numbers[t] ?? 0, name: table.name, wireName: wireName, keyKind: isMapped[t] ? .mapped : .natural,
      columns: columns, generatedColumns: table.columns.filter { $0.generated != .no }.map(\.name),
      keyColumns: key.compactMap { plain.firstIndex(of: $0) }, isWithoutRowID: table.isWithoutRowID,
      isStrict: table.isStrict, rowIDAlias: table.rowIDAlias.flatMap { plain.firstIndex(of: $0) },
      uniqueIndexes: uniqueIndexes(table, plain), foreignKeys: table.foreignKeys.compactMap { foreignKey(t, $0) },
      rank: 0, isCyclic: false, writesElsewhere: hasUserTriggers || isUpdatedThrough(t),
      deletesWriteElsewhere: hasUserTriggers || isDeletedThrough(t), keyParts: keyParts[t],
      isAutoincrement: table.isAutoincrement)
  }

  /// The columns of a plan, as indices into the table's.
  private func plainColumns(_ t: Int) -> [Int] {
    tables[t].columns.indices.filter { tables[t].columns[$0].generated == .no }
  }

  private func column(_ t: Int, _ index: Int, _ names: RememberedColumn, isKey: Bool) -> ColumnPlan {
    let column = tables[t].columns[index]
    let end = localEnd(t, index)
    let collation = KeyCollation(column.collation)
    return ColumnPlan(
      name: column.name, wireName: names.wireName, fieldType: names.fieldType, affinity: column.affinity,
      collation: collation?.rawValue ?? column.collation, isNotNull: column.isNotNull,
      defaultSQL: column.defaultSQL.map(Self.expression),
      isKey: isKey, localTarget: isKey && end == t ? nil : end.flatMap { numbers[$0] })
  }

  /// The text of a DEFAULT as an expression that means the same elsewhere: there a word or a quoted name is a text.
  private static func expression(_ text: String) -> String {
    let tokens = SQLTokenizer.tokens(text)
    guard tokens.count == 1, tokens[0].kind == .word || tokens[0].kind == .quotedName else { return text }
    let constants = ["null", "true", "false", "current_time", "current_date", "current_timestamp"]
    if tokens[0].kind == .word && constants.contains(tokens[0].text) { return text }
    return SQLName.literal(tokens[0].kind == .word ? text : tokens[0].text)
  }

  // MARK: Keys and indexes

  /// The plan of a foreign key between synced tables. Keys to or from generated columns need none: their values are
  /// computed on each device.
  private func foreignKey(_ t: Int, _ key: SchemaForeignKey) -> ForeignKeyPlan? {
    guard let p = index(key.parentTable), isSelected[p], match(p)?.suspension == nil, let number = numbers[p] else {
      return nil
    }
    let plain = plainColumns(t)
    let parentPlain = plainColumns(p)
    let columns = key.columns.compactMap { plain.firstIndex(of: $0) }
    let parentColumns = key.parentColumns.compactMap { tables[p].column($0) }.compactMap {
      parentPlain.firstIndex(of: $0)
    }
    guard columns.count == key.columns.count, parentColumns.count == columns.count else { return nil }
    return ForeignKeyPlan(
      columns: columns, parent: number, parentColumns: parentColumns, onDelete: key.onDelete, onUpdate: key.onUpdate,
      isDeferred: key.isDeferred)
  }

  private func uniqueIndexes(_ table: SchemaTable, _ plain: [Int]) -> [UniqueIndexPlan] {
    table.indexes.filter { $0.isUnique && $0.origin != .primaryKey }.map { index in
      let terms = index.terms.map { term -> UniqueIndexPlan.Term in
        switch term.key {
        case .column(let column):
          plain.firstIndex(of: column).map { .column($0, collation: term.collation) }
            ?? .expression(SQLName.quoted(table.columns[column].name), collation: term.collation)
        case .expression(let text): .expression(text, collation: term.collation)
        case .rowID: .expression("rowid", collation: term.collation)
        }
      }
      return UniqueIndexPlan(name: index.name, terms: terms, predicate: index.predicate)
    }
  }

  // MARK: Effects elsewhere

  private func keysReferring(to t: Int) -> [SchemaForeignKey] {
    tables.indices.flatMap { child in
      tables[child].foreignKeys.filter { SQLName.equal($0.parentTable, tables[t].name) }
    }
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
      Set(plans[i].foreignKeys.compactMap { places[$0.parent] }.filter { $0 != i })
    }
    let ranks = TableRanks(names: plans.map(\.wireName), parents: parents)
    for i in plans.indices {
      plans[i].rank = ranks.ranks[i]
      plans[i].isCyclic = ranks.isInCycle[i] || plans[i].foreignKeys.contains { $0.parent == plans[i].number }
    }
  }

  // MARK: Memory

  private func rememberedTable(_ t: Int, wireName: String, _ columns: [RememberedColumn]) -> RememberedTable {
    let table = tables[t]
    let plain = plainColumns(t)
    let kind: TablePlan.KeyKind = isMapped[t] ? .mapped : .natural
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
