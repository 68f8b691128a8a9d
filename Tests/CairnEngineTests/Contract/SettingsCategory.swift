import CairnEngine
import CairnRecords
import CairnSQLite

/// A third category, written against the public contract alone: settings of an app, a text per key, last edit wins.
///
/// Keys with a slash belong to the key before it and are sent when that is confirmed (engine C8). Everything is filed
/// under the identity that it belongs to.
final class SettingsCategory: RecordCategory {
  static let type = "Setting"

  let name: String
  let zone: ZoneID
  let file: SettingsFile
  let delivery: CategoryDelivery
  let bootstrap: BootstrapDemand
  let wantsSavedRecords = true
  var fetchesBeforeSending = false
  var asksToAdopt = false
  var adoptionChoice = AdoptionChoice.adopt
  /// The identity that calls are about; empty: none.
  private(set) var scope = ""
  private(set) var calls: [String] = []
  private(set) var requests: [BatchRequest] = []
  var onApply: (() throws -> Void)?
  var onStage: (() throws -> Void)?

  var sql: Connection { file.connection }

  init(
    _ file: SettingsFile, name: String = "settings", zone: ZoneID = ZoneID(name: "cairn"),
    delivery: CategoryDelivery = .sealedSet, bootstrap: BootstrapDemand = .own
  ) {
    self.file = file
    self.name = name
    self.zone = zone
    self.delivery = delivery
    self.bootstrap = bootstrap
  }

  var zones: [ZoneID]? { [zone] }
  func clearCalls() { calls = [] }
  func note(_ call: String) { calls.append(call) }
  func note(_ request: BatchRequest) { requests.append(request) }

  func claims(type: String?, name: String, in zone: ZoneID) -> Bool {
    zone == self.zone && (type.map { $0 == Self.type } ?? name.hasPrefix("setting-"))
  }

  // MARK: What the app does

  /// Change and outbox row in one transaction (engine C1).
  func set(_ key: String, _ value: String?, at clock: Int64) throws {
    try file.transaction {
      if let value {
        try sql.run(
          "INSERT OR REPLACE INTO setting VALUES(?, ?, ?, ?)", .text(scope), .text(key), .text(value), .integer(clock))
      } else {
        try sql.run("DELETE FROM setting WHERE scope = ? AND key = ?", .text(scope), .text(key))
      }
      try queue(key, value == nil ? "delete" : "save")
    }
  }

  /// A new revision; ends a wait for the user.
  func queue(_ key: String, _ kind: String) throws {
    try sql.run(
      """
      INSERT INTO outbox(scope, key, kind, revision) VALUES(?1, ?2, ?3, 1)
      ON CONFLICT DO UPDATE SET kind = ?3, revision = revision + 1, reason = NULL, retryAt = NULL, needsUser = 0
      """, .text(scope), .text(key), .text(kind))
  }

  var isOn: Bool {
    get throws { try sql.scalar("SELECT value FROM choice WHERE name = 'off'") == nil }
  }

  func setEnabled(_ isOn: Bool) throws {
    try sql.execute(isOn ? "DELETE FROM choice WHERE name = 'off'" : "INSERT OR REPLACE INTO choice VALUES('off', '1')")
  }

  // MARK: What a test looks at

  func values(of scope: String? = nil) throws -> [String: String] {
    var out: [String: String] = [:]
    let rows = try sql.rows("SELECT key, value FROM setting WHERE scope = ?", .text(scope ?? self.scope))
    for row in rows { out[row[0].string] = row[1].string }
    return out
  }

  func pending(of scope: String? = nil) throws -> [String] {
    try sql.rows("SELECT key FROM outbox WHERE scope = ? ORDER BY key", .text(scope ?? self.scope)).map { $0[0].string }
  }

  func parked() throws -> [String: String] {
    var out: [String: String] = [:]
    for row in try sql.rows("SELECT key, reason FROM parked WHERE scope = ?", .text(scope)) {
      out[row[0].string] = row[1].string
    }
    return out
  }

  func stagedCount(isSealed: Bool) throws -> Int {
    try file.count("SELECT count(*) FROM staged WHERE scope = '\(scope)' AND isSealed = \(isSealed ? 1 : 0)")
  }

  // MARK: Identity, switching

  func begin(as user: String?) throws {
    scope = user ?? ""
    note("begin \(scope)")
  }

  func accountChanged(_ change: AccountChange) throws { note("account \(change)") }
  func isEnabled() throws -> Bool { try isOn }

  /// An edit that something newer has overtaken while the category was off is not sent.
  func revalidateOutbox(in zone: ZoneID, now: Int64) throws {
    note("revalidate")
    try sql.run(
      """
      DELETE FROM outbox WHERE scope = ?1 AND kind = 'save'
      AND NOT EXISTS (SELECT 1 FROM setting s WHERE s.scope = ?1 AND s.key = outbox.key)
      """, .text(scope))
  }

  func bootstrapCompleted(in zone: ZoneID, now: Int64) throws { note("bootstrapped") }

  func adoption(by user: String) throws -> AdoptionChoice {
    note("adoption by \(user)")
    return adoptionChoice
  }

  /// Moved, not copied: nobody gets them twice. What the identity has already stays.
  func adoptLocalChanges(by user: String, now: Int64) throws {
    for row in try sql.rows("SELECT key FROM setting WHERE scope = ''") {
      guard try values()[row[0].string] == nil else { continue }
      try sql.run("UPDATE setting SET scope = ? WHERE scope = '' AND key = ?", .text(user), row[0])
      try queue(row[0].string, "save")
      try sql.run("DELETE FROM outbox WHERE scope = '' AND key = ?", row[0])
    }
  }
}
