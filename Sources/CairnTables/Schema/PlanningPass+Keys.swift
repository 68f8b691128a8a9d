import CairnSQLite

/// Foreign keys, local values and what keys are named by (tables 1.2).
extension PlanningPass {
  // MARK: Mapped keys

  func computeIsMapped(_ t: Int) -> Bool {
    if let match = match(t) { return match.remembered.keyKind == .mapped }
    let key = tables[t].primaryKey
    guard tables[t].kind == .table, key.count == 1, !hasNaturalKeyOption(t) else { return false }
    return tables[t].columns[key[0]].affinity == .integer && !isForeignKey(t, key[0])
  }

  /// Whether a column takes its value from elsewhere; a key that refers to itself does not.
  private func isForeignKey(_ t: Int, _ column: Int) -> Bool {
    tables[t].foreignKeys.contains { key in
      guard let place = key.columns.firstIndex(of: column), place < key.parentColumns.count else { return false }
      let isItself =
        SQLName.equal(key.parentTable, tables[t].name)
        && SQLName.equal(key.parentColumns[place], tables[t].columns[column].name)
      return !isItself
    }
  }

  /// The mapped table that a column's value comes from, through any number of foreign keys.
  func localEnd(_ t: Int, _ column: Int) -> Int? {
    var seen: Set<[Int]> = []
    return localEnd(t, column, &seen)
  }

  private func localEnd(_ t: Int, _ column: Int, _ seen: inout Set<[Int]>) -> Int? {
    if isMapped[t] && tables[t].primaryKey == [column] { return t }
    guard seen.insert([t, column]).inserted else { return nil }
    for key in tables[t].foreignKeys {
      guard let place = key.columns.firstIndex(of: column), place < key.parentColumns.count,
        let parent = index(key.parentTable), let next = tables[parent].column(key.parentColumns[place])
      else { continue }
      if let end = localEnd(parent, next, &seen) { return end }
    }
    return nil
  }

  // MARK: Foreign keys

  mutating func checkForeignKeys(_ t: Int) {
    let table = tables[t]
    for key in table.foreignKeys where !isValid(key) {
      let columns = key.columns.map { table.columns[$0].name }
      let parent =
        key.parentColumns.isEmpty
        ? key.parentTable : "\(key.parentTable)(\(key.parentColumns.joined(separator: ", ")))"
      refuse(
        t, .parentInvalid, column: columns.first,
        "\(table.name).\(columns.joined(separator: ", ")) refers to \(parent), which does not exist or is not unique",
        "repair the foreign key")
    }
    for (i, column) in table.columns.enumerated() where column.generated == .no {
      guard let end = localEnd(t, i), !isSelected[end] else { continue }
      let parent = tables[end].name
      refuse(
        t, .parentNotSynced, column: column.name,
        "\(table.name).\(column.name) refers to \(parent), which is not synced and whose integers differ between devices",
        "sync \(parent), exclude \(table.name), or use --natural-key \(parent)")
    }
  }

  /// SQLite's own rule: the parent's columns are its primary key or have a unique index with their own collations.
  private func isValid(_ key: SchemaForeignKey) -> Bool {
    guard let p = index(key.parentTable), tables[p].kind == .table || tables[p].kind == .shadow else { return false }
    let parent = tables[p]
    let columns = key.parentColumns.compactMap { parent.column($0) }
    guard !columns.isEmpty, columns.count == key.parentColumns.count, columns.count == key.columns.count else {
      return false
    }
    if Set(columns) == Set(parent.primaryKey) && columns.count == parent.primaryKey.count { return true }
    return parent.indexes.contains { index in
      guard index.isUnique, index.predicate == nil, index.terms.count == columns.count else { return false }
      var covered: Set<Int> = []
      for term in index.terms {
        guard case .column(let column) = term.key,
          SQLName.equal(term.collation, parent.columns[column].collation)
        else { return false }
        covered.insert(column)
      }
      return covered == Set(columns)
    }
  }

  // MARK: Key parts

  func computeKeyParts(_ t: Int) -> [TablePlan.KeyPart] {
    guard !isMapped[t] else { return [.value] }
    return tables[t].primaryKey.map { column in
      let end = localEnd(t, column)
      // --natural-key names the row by its own value, unless that is an integer of this device only.
      if hasNaturalKeyOption(t) && end == nil { return .value }
      if let parent = keyParent(t, column) ?? end, let number = numbers[parent] { return .reference(table: number) }
      return .value
    }
  }

  /// The synced table whose only key column `column` refers to.
  private func keyParent(_ t: Int, _ column: Int) -> Int? {
    for key in tables[t].foreignKeys where key.columns == [column] {
      guard let parent = index(key.parentTable), isSelected[parent], tables[parent].primaryKey.count == 1,
        let target = tables[parent].column(key.parentColumns.first ?? ""), tables[parent].primaryKey == [target],
        !(parent == t && target == column)
      else { continue }
      return parent
    }
    return nil
  }

  /// The tables that name the rows of `t`.
  private func namers(_ t: Int) -> [Int] {
    keyParts[t].compactMap { part in
      guard case .reference(let number) = part else { return nil }
      return numbers.firstIndex(of: number)
    }
  }

  mutating func checkKeyCycles() {
    var reported: Set<Int> = []
    for t in tables.indices where isSelected[t] && !reported.contains(t) {
      let cycle = keyCycle(from: t)
      guard !cycle.isEmpty else { continue }
      reported.formUnion(cycle)
      let names = cycle.map { tables[$0].name }.sorted()
      let list = names.dropLast().joined(separator: ", ") + (names.count > 1 ? " and " : "") + (names.last ?? "")
      for (place, member) in cycle.sorted().enumerated() {
        // One line for the cycle; the other members fall with it.
        guard place == 0 else {
          newlyRefused.insert(member)
          continue
        }
        refuse(
          member, .keyCycle, "the primary keys of \(list) refer to each other and name no row",
          "use --natural-key \(names[0])")
      }
    }
  }

  /// The tables of a cycle through `t`; empty if there is none.
  private func keyCycle(from t: Int) -> [Int] {
    var path: [Int] = []
    var visited: Set<Int> = []
    func walk(_ at: Int) -> Bool {
      for next in namers(at) {
        if next == t { return true }
        guard visited.insert(next).inserted else { continue }
        path.append(next)
        if walk(next) { return true }
        path.removeLast()
      }
      return false
    }
    return walk(t) ? [t] + path : []
  }
}
