import CairnEngine
import CairnRecords
import CairnSQLite

extension SettingsCategory {
  func recoverInFlight() throws { try sql.run("UPDATE outbox SET inFlight = 0 WHERE scope = ?", .text(scope)) }
  func gatherLocalChanges(now: Int64) throws {}
  func zonesWithChanges() throws -> [ZoneID] { try pending().isEmpty ? [] : [zone] }

  static func recordName(_ key: String) -> String { "setting-" + key }
  static func key(_ name: String) -> String { String(name.dropFirst("setting-".count)) }

  func tag(_ key: String) throws -> ChangeTag? {
    try sql.scalar("SELECT tag FROM confirmed WHERE scope = ? AND key = ?", .text(scope), .text(key))?
      .optionalString.map { ChangeTag($0) }
  }

  /// The key that must be confirmed before this one is sent: recomputed from what is stored, every time (engine C8).
  private func gate(_ key: String) throws -> String? {
    guard let slash = key.lastIndex(of: "/") else { return nil }
    let parent = String(key[..<slash])
    // A parent that is gone holds nobody.
    guard try values()[parent] != nil else { return nil }
    return try tag(parent) == nil ? parent : nil
  }

  private func mayGo(_ row: [Value], _ request: BatchRequest) throws -> Bool {
    let key = row[0].string
    if request.excluded[Self.recordName(key)] != nil { return false }
    if request.deletesOnly && row[1].string == "save" { return false }
    if row[1].string == "save", try gate(key) != nil { return false }
    // What may have been missed decides whether a first insert is right (accounts A57).
    if row[1].string == "save", try !request.isCurrent && tag(key) == nil { return false }
    if row[3].number == 1 { return request.isManual }
    return request.isManual || (row[4].number ?? 0) <= request.now
  }

  func nextBatch(in zone: ZoneID, _ request: BatchRequest) throws -> OutgoingBatch? {
    note(request)
    var entries: [OutgoingEntry] = []
    try file.transaction {
      let rows = try sql.rows(
        "SELECT key, kind, revision, needsUser, retryAt FROM outbox WHERE scope = ? ORDER BY key", .text(scope))
      for row in rows where try mayGo(row, request) && entries.count < request.limits.entriesPerRequest {
        let key = row[0].string
        guard let operation = try operation(key, row[1].string, request) else { continue }
        try sql.run("UPDATE outbox SET inFlight = 1 WHERE scope = ? AND key = ?", .text(scope), row[0])
        entries.append(OutgoingEntry(operation: operation, revision: row[2].number ?? 0))
      }
    }
    return entries.isEmpty ? nil : OutgoingBatch(zone: zone, entries: entries)
  }

  private func operation(_ key: String, _ kind: String, _ request: BatchRequest) throws -> RecordOperation? {
    let tag = try tag(key)
    var record = Record(id: RecordID(name: Self.recordName(key), zone: zone), type: Self.type, changeTag: tag)
    if kind == "delete" { return RecordOperation(tag == nil ? .forceDelete : .delete, record, deleteTime: request.now) }
    let row = try sql.rows("SELECT value, clock FROM setting WHERE scope = ? AND key = ?", .text(scope), .text(key))
      .first
    guard let row else { return nil }
    record.fields = ["value": .string(row[0].string), "clock": .int64(row[1].number ?? 0)]
    return RecordOperation(tag == nil ? .create : .update, record)
  }

  func settle(_ batch: OutgoingBatch, _ results: [EntryResult], now: Int64) throws {
    let scoped = Value.text(scope)
    // Saved records go through the same join as fetched ones (engine C7).
    for record in batch.returned { try join(record, now: now) }
    for (sent, result) in zip(batch.entries, results) {
      let key = Self.key(sent.operation.record.id.name)
      try sql.run(
        "UPDATE outbox SET inFlight = 0, reason = NULL, retryAt = NULL WHERE scope = ? AND key = ?", scoped, .text(key))
      switch result {
      case .saved(let tag):
        try confirm(key, tag)
        try clear(key, sent.revision)
      case .deleted:
        try sql.run("DELETE FROM confirmed WHERE scope = ? AND key = ?", scoped, .text(key))
        try clear(key, sent.revision)
      case .conflict(let record): try join(record, now: now)
      case .unknownItem: try sql.run("DELETE FROM confirmed WHERE scope = ? AND key = ?", scoped, .text(key))
      case .postponed(let reason, let retryAt): try wait(key, reason, retryAt, needsUser: false)
      case .handedOver(let reason, _): try wait(key, reason, nil, needsUser: true)
      }
    }
  }

  func confirm(_ key: String, _ tag: ChangeTag) throws {
    try sql.run(
      "INSERT OR REPLACE INTO confirmed(scope, key, tag) VALUES(?, ?, ?)", .text(scope), .text(key), .text(tag.rawValue)
    )
  }

  /// Only the revision that was sent is confirmed (engine C1).
  private func clear(_ key: String, _ revision: Int64) throws {
    try sql.run(
      "DELETE FROM outbox WHERE scope = ? AND key = ? AND revision = ?", .text(scope), .text(key), .integer(revision))
  }

  private func wait(_ key: String, _ reason: PendingReason, _ retryAt: Int64?, needsUser: Bool) throws {
    try sql.run(
      "UPDATE outbox SET reason = ?, retryAt = ?, needsUser = ? WHERE scope = ? AND key = ?",
      reason == .unsent ? .null : .text(reason.rawValue), Value(retryAt), .integer(needsUser ? 1 : 0), .text(scope),
      .text(key))
  }

  func reason(_ key: String) throws -> String? {
    try sql.scalar("SELECT reason FROM outbox WHERE scope = ? AND key = ?", .text(scope), .text(key))?.optionalString
  }

  func hasSendableChanges(in zone: ZoneID, now: Int64) throws -> Bool {
    let rows = try sql.rows(
      "SELECT key, kind FROM outbox WHERE scope = ? AND needsUser = 0 AND coalesce(retryAt, 0) <= ?", .text(scope),
      .integer(now))
    return try rows.contains { try $0[1].string == "delete" || gate($0[0].string) == nil }
  }

  func nextAttempt(in zone: ZoneID) throws -> Int64? {
    try sql.scalar("SELECT min(retryAt) FROM outbox WHERE scope = ?", .text(scope))?.number
  }
}
