/// How things stood when the last sync ended, as far as a reading command can tell (tables section 7).
public struct SyncCondition: Hashable, Sendable {
  /// `decision`, `signedOut`, `schema`, `paused`, `offline` or `ready`.
  public var name: String
  /// What Cairn asks, and the answers.
  public var question: String?
}

extension SyncedDatabase {
  /// How things stood when the last sync ended.
  public func lastCondition() throws -> SyncCondition {
    let name = try file.settings.get(.condition) ?? "ready"
    if name == "decision" {
      return SyncCondition(
        name: name,
        question:
          "the zone \(zone.name) was deleted on the server, or the server was restored from a backup: answer with cairn decide DB keepLocal, deleteLocal or recreateAndReupload"
      )
    }
    if name == "signedOut" { return SyncCondition(name: name) }
    let missing = try MissingRows(file).known()
    if missing.isEmpty && file.catalog.suspended.isEmpty {
      return SyncCondition(name: name == "schema" ? "ready" : name)
    }
    let counts = missing.sorted { $0.key < $1.key }.map { "\($0.value) of \($0.key)" }.joined(separator: ", ")
    return SyncCondition(
      name: "schema",
      question: missing.isEmpty
        ? nil
        : "rows were removed while capture was off (\(counts)): bring them back with cairn doctor --repair, or delete them everywhere with cairn decide DB deleteMissing"
    )
  }

  /// Keeps how a sync ended, for commands that read.
  public func noteCondition(_ name: String) throws {
    guard try file.settings.get(.condition) ?? "ready" != name else { return }
    try file.transaction { try file.settings.set(.condition, name == "ready" ? nil : name) }
  }

  /// Leaves the user's answer for the engine, which may be another process.
  public func leaveAnswer(_ answer: String) throws {
    try file.transaction { try file.settings.set(.answer, answer) }
  }

  /// The answer that was left.
  public func answer() throws -> String? { try file.settings.get(.answer) }

  /// The answer has been acted on.
  public func dropAnswer() throws { try file.transaction { try file.settings.set(.answer, nil) } }

  /// Whether another program has changed the schema, or renewed capture, since this database was opened: then it must be
  /// opened again.
  public func schemaHasChanged() throws -> Bool {
    try file.schemaVersion() != file.openedSchemaVersion || file.isOutdated()
  }
}
