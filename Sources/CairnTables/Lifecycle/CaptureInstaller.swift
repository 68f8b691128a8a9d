import CairnSQLite

/// Puts capture into a file and takes it out. The caller holds a transaction.
struct CaptureInstaller {
  let connection: Connection

  /// Installs or renews the triggers of tables, and stores what is remembered of all of them.
  func install(_ plans: [TablePlan], _ remembered: [RememberedTable]) throws {
    for table in remembered { try store(table) }
    try widenLog(plans)
    for plan in plans {
      guard let memory = remembered.first(where: { $0.number == plan.number }) else { continue }
      try removeTriggers(table: plan.number)
      for statement in CaptureTriggers(plan, generation: memory.generation).statements {
        try connection.execute(statement)
      }
    }
  }

  private func store(_ table: RememberedTable) throws {
    try connection.run(
      """
      INSERT INTO cairn_table(number, name, memory) VALUES (?1, ?2, ?3)
      ON CONFLICT(number) DO UPDATE SET name = ?2, memory = ?3
      """, .integer(Int64(table.number)), .text(table.name), .text(table.json))
  }

  /// The log must hold the longest entry of any table.
  private func widenLog(_ plans: [TablePlan]) throws {
    let needed = plans.map { LogLayout(keyCount: $0.keyColumns.count, columnCount: $0.columns.count).width }.max() ?? 0
    let present = try connection.rows("SELECT name FROM pragma_table_info('cairn_log')").count - 3
    if present >= needed { return }
    for number in (present + 1)...needed { try connection.execute("ALTER TABLE cairn_log ADD COLUMN v\(number)") }
  }

  func removeTriggers(table: Int) throws {
    for row in try connection.rows("SELECT name FROM main.sqlite_master WHERE type = 'trigger'") {
      guard let name = row[0].text, CaptureTriggerName.tableNumber(name) == table else { continue }
      try connection.execute("DROP TRIGGER main.\(SQLText.quoted(name))")
    }
  }

  /// Takes Cairn out of the file: triggers, then tables, but for those of `kept`. The user's tables are not touched
  /// (tables L7).
  func uninstall(except kept: Set<String> = []) throws {
    let own = try Set(FiledIdentities.ownTables(in: connection)).subtracting(kept)
    for (type, kind) in [("trigger", "TRIGGER"), ("table", "TABLE")] {
      let names = try connection.rows(
        "SELECT name FROM main.sqlite_master WHERE type = ? AND name LIKE 'cairn\\_%' ESCAPE '\\' ORDER BY name",
        .text(type)
      ).compactMap(\.[0].text)
      for name in names
      where type == "table" ? own.contains(name) : CaptureTriggerName.tableNumber(name) != nil {
        try connection.execute("DROP \(kind) main.\(SQLText.quoted(name))")
      }
    }
  }

  /// What is remembered of all tables.
  ///
  /// - Parameter table: where it stands.
  func remembered(in table: String = "cairn_table") throws -> [RememberedTable] {
    try connection.rows("SELECT memory FROM \(table) ORDER BY number").map { row in
      do {
        return try RememberedTable(json: row[0].text ?? "")
      } catch {
        throw TablesError.damagedMetadata("cairn_table can't be read (\(error))")
      }
    }
  }
}
