import CairnEngine
import CairnRecords
import CairnSQLite

extension SettingsCategory {
  func apply(_ page: ZonePage, now: Int64) throws {
    note("apply \(page.records.count) \(page.deletions.count)")
    try onApply?()
    for record in page.records { try join(record, now: now) }
    for deletion in page.deletions { try remove(Self.key(deletion.id.name)) }
  }

  func stage(_ page: ZonePage, now: Int64) throws {
    note("stage \(page.records.count) \(page.deletions.count)")
    try onStage?()
    for record in page.records {
      try sql.run(
        "INSERT INTO staged(scope, key, tag, value, clock) VALUES(?, ?, ?, ?, ?)", .text(scope),
        .text(Self.key(record.id.name)), Value(record.changeTag?.rawValue), Value(record.value), Value(record.clock))
    }
    for deletion in page.deletions {
      try sql.run("INSERT INTO staged(scope, key) VALUES(?, ?)", .text(scope), .text(Self.key(deletion.id.name)))
    }
  }

  func seal(_ zone: ZoneID) throws {
    note("seal")
    try sql.run("UPDATE staged SET isSealed = 1 WHERE scope = ?", .text(scope))
  }

  func hasUnsealedRecords(in zone: ZoneID) throws -> Bool { try stagedCount(isSealed: false) > 0 }

  /// The whole set at once, saves first as the join wants no order, then out of the staging, in one transaction
  /// (engine C5).
  func applySealed(in zone: ZoneID, now: Int64) throws -> Bool {
    try file.transaction {
      let rows = try sql.rows(
        "SELECT key, tag, value, clock FROM staged WHERE scope = ? AND isSealed = 1 ORDER BY id", .text(scope))
      guard !rows.isEmpty else { return }
      note("applySealed \(rows.count)")
      try onApply?()
      for row in rows {
        if row[1].optionalString == nil {
          try remove(row[0].string)
        } else {
          try join(record(row[0].string, row[1], row[2], row[3]), now: now)
        }
      }
      try sql.run("DELETE FROM staged WHERE scope = ? AND isSealed = 1", .text(scope))
    }
    return false
  }

  private func record(_ key: String, _ tag: Value, _ value: Value, _ clock: Value) -> Record {
    var record = Record(id: RecordID(name: Self.recordName(key), zone: zone), type: Self.type)
    record.changeTag = tag.optionalString.map { ChangeTag($0) }
    record.fields = ["value": value.optionalString.map { .string($0) }, "clock": clock.number.map { .int64($0) }]
    return record
  }

  /// Pages, staged sets, conflicts and saved records come through here: later clock wins, then greater value.
  func join(_ record: Record, now: Int64) throws {
    let key = Self.key(record.id.name)
    guard let tag = record.changeTag, try self.tag(key) != tag else { return }
    try confirm(key, tag)
    guard let value = record.value, let clock = record.clock else {
      try park(key, record, "undecodable", now)
      return
    }
    let local = try sql.rows("SELECT clock, value FROM setting WHERE scope = ? AND key = ?", .text(scope), .text(key))
      .first
    if let local, (local[0].number ?? 0, local[1].string) > (clock, value) {
      try queue(key, "save")
      return
    }
    do {
      try sql.savepoint {
        try sql.run(
          "INSERT OR REPLACE INTO setting VALUES(?, ?, ?, ?)", .text(scope), .text(key), .text(value), .integer(clock))
      }
    } catch let error as SQLiteError where error.isConstraint {
      try park(key, record, error.message, now)
      return
    }
    try sql.run("DELETE FROM parked WHERE scope = ? AND key = ?", .text(scope), .text(key))
    try sql.run("DELETE FROM outbox WHERE scope = ? AND key = ?", .text(scope), .text(key))
  }

  private func remove(_ key: String) throws {
    try sql.run("DELETE FROM confirmed WHERE scope = ? AND key = ?", .text(scope), .text(key))
    // An unsent edit wins over a delete of unknown time (DESIGN, life).
    if try pending().contains(key) { return }
    try sql.run("DELETE FROM setting WHERE scope = ? AND key = ?", .text(scope), .text(key))
    try sql.run("DELETE FROM parked WHERE scope = ? AND key = ?", .text(scope), .text(key))
  }

  // MARK: Parking (engine C6)

  private func park(_ key: String, _ record: Record, _ reason: String, _ now: Int64) throws {
    let tries = try sql.scalar("SELECT tries FROM parked WHERE scope = ? AND key = ?", .text(scope), .text(key))?.number
    let wait = Int64(2_000) << min(tries ?? 0, 8)
    try sql.run(
      "INSERT OR REPLACE INTO parked VALUES(?, ?, ?, ?, ?, ?, ?, ?)", .text(scope), .text(key),
      Value(record.changeTag?.rawValue), Value(record.value), Value(record.clock), .text(reason),
      .integer((tries ?? 0) + 1), .integer(now + wait))
  }

  func retryParked(in zone: ZoneID, all: Bool, now: Int64) throws {
    try file.transaction {
      let due = all ? Int64.max : now
      let rows = try sql.rows(
        "SELECT key, tag, value, clock FROM parked WHERE scope = ? AND retryAt <= ? ORDER BY key", .text(scope),
        .integer(due))
      for row in rows {
        note("retry \(row[0].string)")
        try sql.run("DELETE FROM confirmed WHERE scope = ? AND key = ?", .text(scope), row[0])
        try join(record(row[0].string, row[1], row[2], row[3]), now: now)
      }
    }
  }

  // MARK: Snapshots and zones

  func beginSnapshot(of zone: ZoneID) throws {
    note("snapshot")
    try sql.run("UPDATE confirmed SET isSeen = 0 WHERE scope = ?", .text(scope))
  }

  func unseen(in zone: ZoneID, after cursor: String?, limit: Int) throws -> [RecordID] {
    let rows = try sql.rows(
      """
      SELECT key FROM confirmed c WHERE scope = ?1 AND isSeen = 0 AND key > ?2
      AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.scope = ?1 AND o.key = c.key)
      AND NOT EXISTS (SELECT 1 FROM staged s WHERE s.scope = ?1 AND s.key = c.key) ORDER BY key LIMIT ?3
      """, .text(scope), .text(cursor.map { Self.key($0) } ?? ""), .integer(Int64(limit)))
    return rows.map { RecordID(name: Self.recordName($0[0].string), zone: zone) }
  }

  func zoneLost(_ zone: ZoneID, _ loss: ZoneLoss, now: Int64) throws {
    note("lost \(loss.rawValue)")
    try sql.run("DELETE FROM confirmed WHERE scope = ?", .text(scope))
    try sql.run("DELETE FROM staged WHERE scope = ?", .text(scope))
  }

  func policy(for loss: ZoneLoss) -> ZoneLossPolicy { .recreateAndReupload }

  func answerZoneLoss(_ zone: ZoneID, _ answer: ZoneLossAnswer, now: Int64) throws {
    note("answer \(answer.rawValue)")
    guard answer == .recreateAndReupload else { return }
    for key in try values().keys.sorted() { try queue(key, "save") }
  }
}

extension Record {
  fileprivate var value: String? { if case .string(let text)? = fields["value"] { text } else { nil } }
  fileprivate var clock: Int64? { if case .int64(let clock)? = fields["clock"] { clock } else { nil } }
}
