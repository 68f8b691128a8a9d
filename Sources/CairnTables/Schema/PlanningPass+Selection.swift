import CairnSQLite

/// Which tables are meant, and what each of them alone is refused for (tables 1.1).
extension PlanningPass {
  mutating func select() {
    checkNames()
    skipped = schema.internalTables
    for t in tables.indices where !refused.contains(t) {
      let table = tables[t]
      let isNamed = options.tables.contains { SQLName.equal($0, table.name) }
      if isOwn(table) {
        if isNamed {
          refuse(t, .reservedName, "\(table.name) is Cairn's own", "sync the tables that you made")
        } else {
          skipped.append(table.name)
        }
        continue
      }
      if options.exclude.contains(where: { SQLName.equal($0, table.name) }) { continue }
      guard options.tables.isEmpty || isNamed else { continue }
      select(t, isNamed: isNamed)
    }
  }

  private func isOwn(_ table: SchemaTable) -> Bool {
    options.ownTables.contains { SQLName.equal($0, table.name) }
  }

  private mutating func checkNames() {
    let usable = tables.filter { $0.kind == .table && !isOwn($0) }.map(\.name).joined(separator: ", ")
    var reported: Set<String> = []
    for name in options.tables + options.exclude + options.naturalKeys
    where index(name) == nil && reported.insert(SQLName.folded(name)).inserted {
      usageErrors.append(
        SchemaProblem(
          .noSuchTable, table: name, reason: "there is no table \(name)",
          remedy: usable.isEmpty ? "the database has no tables" : "the tables are \(usable)"))
    }
  }

  private mutating func select(_ t: Int, isNamed: Bool) {
    let table = tables[t]
    let name = table.name
    switch table.kind {
    case .view, .shadow:
      guard isNamed else {
        skipped.append(name)
        return
      }
      let isView = table.kind == .view
      refuse(
        t, isView ? .view : .shadowTable, "\(name) is a \(isView ? "view" : "shadow table")",
        "sync the tables behind it")
    case .virtual:
      refuse(
        t, .virtualTable, "\(name) is a virtual table and cannot be captured by triggers",
        "use --exclude \(name) and sync the table it indexes")
    case .table:
      if SQLName.folded(name).hasPrefix("cairn_") {
        refuse(t, .reservedName, "\(name) was not made by Cairn but has its prefix", "rename it")
      } else {
        isSelected[t] = true
        checkTable(t)
      }
    }
  }

  private mutating func checkTable(_ t: Int) {
    let table = tables[t]
    if table.primaryKey.isEmpty {
      refuse(
        t, .noPrimaryKey, "\(table.name) has no primary key, so its rows have no identity on other devices",
        "declare one, or use --exclude \(table.name)")
    }
    if let missing = table.missingExtension {
      let place = missing.column.map { "\(table.name).\($0)" } ?? table.name
      refuse(
        t, .needsExtension, column: missing.column,
        "\(place) uses the \(missing.kind.rawValue) \(missing.name), which SQLite does not have built in",
        "register it in your program and use the library, or exclude \(table.name)")
    }
    if options.ownTables.isEmpty {
      for trigger in table.triggers where trigger.isCairn {
        refuse(t, .reservedName, "\(trigger.name) was not made by Cairn but has its prefix", "rename it")
      }
    }
    checkLengths(t)
  }

  private mutating func checkLengths(_ t: Int) {
    let table = tables[t]
    let limit = computeIsMapped(t) ? WireName.maximumMappedTableLength : WireName.maximumTableLength
    if WireName.table(table.name).utf8.count > limit, match(t) == nil {
      refuse(
        t, .nameTooLong, "the wire name of table \(table.name) is over \(limit) bytes",
        "shorten it, or exclude the table")
    }
    for column in table.columns where column.generated == .no {
      if WireName.column(column.name).utf8.count > WireName.maximumLength {
        refuse(
          t, .nameTooLong, column: column.name,
          "the wire name of column \(column.name) is over \(WireName.maximumLength) bytes",
          "shorten it, or exclude the table")
      }
    }
  }
}
