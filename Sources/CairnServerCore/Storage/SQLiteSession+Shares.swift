import CairnRecords
import CairnSQLite

/// Shares, who takes part, their feeds, and what others may learn of users.
extension SQLiteSession {
  // MARK: Users

  func profile(of user: Int64) throws -> UserProfile {
    let statement = try connection.cached(
      "SELECT email, given_name, family_name, discoverable FROM user WHERE key = ?")
    defer { statement.reset() }
    try statement.bind(1, user)
    guard try statement.step() else { return UserProfile() }
    return UserProfile(
      email: statement.optionalText(0), givenName: statement.optionalText(1), familyName: statement.optionalText(2),
      isDiscoverable: statement.integer(3) != 0)
  }

  func setProfile(of user: Int64, _ profile: UserProfile) throws {
    try connection.run(
      "UPDATE user SET email = ?, given_name = ?, family_name = ?, discoverable = ? WHERE key = ?",
      profile.email.map { .text($0) } ?? .null, profile.givenName.map { .text($0) } ?? .null,
      profile.familyName.map { .text($0) } ?? .null, .integer(profile.isDiscoverable ? 1 : 0), .integer(user))
  }

  // MARK: Shares

  func place(ofZone zone: Int64) throws -> StoredZonePlace? {
    let rows = try connection.rows(
      """
      SELECT zone.name, database.key, database.incarnation, database.user, container, environment, kind
      FROM zone JOIN database ON database.key = zone.database WHERE zone.key = ? AND deleted = 0
      """, .integer(zone))
    guard let row = rows.first, let scope = DatabaseScope(stored: row[4].asText, row[5].asText, row[6].asText),
      let stored = try self.zone(row[1].asInteger, named: row[0].asText)
    else { return nil }
    return StoredZonePlace(
      zone: stored, database: StoredDatabase(key: row[1].asInteger, incarnation: row[2].asInteger),
      user: row[3].asInteger, scope: scope)
  }

  func sharedZones(of user: Int64) throws -> [Int64] {
    try connection.rows(
      """
      SELECT DISTINCT zone.key FROM zone JOIN database ON database.key = zone.database JOIN share ON share.zone = zone.key
      WHERE database.user = ? AND deleted = 0 ORDER BY zone.key
      """, .integer(user)
    ).map { $0[0].asInteger }
  }

  func shares(_ which: ShareSelection) throws -> [StoredShare] {
    switch which {
    case .key(let key): try shares("WHERE key = ?", .integer(key))
    case .guid(let guid): try shares("WHERE guid = ?", .text(guid))
    case .inZone(let zone): try shares("WHERE zone = ?", .integer(zone))
    case .root(let zone, let name): try shares("WHERE zone = ? AND root = ?", .integer(zone), .text(name))
    case .record(let zone, let name): try shares("WHERE zone = ? AND name = ?", .integer(zone), .text(name))
    }
  }

  private static let shareColumns = "key, zone, root, name, guid, share.permission, position, pruned"

  private func shares(_ condition: String, _ values: Value...) throws -> [StoredShare] {
    let statement = try connection.cached("SELECT \(Self.shareColumns) FROM share \(condition) ORDER BY key")
    defer { statement.reset() }
    for (i, value) in values.enumerated() { try statement.bind(Int32(i + 1), value) }
    var found: [StoredShare] = []
    while try statement.step() { found.append(share(statement)) }
    return found
  }

  private func share(_ row: Statement) -> StoredShare {
    StoredShare(
      key: row.integer(0), zone: row.integer(1), root: row.text(2), name: row.optionalText(3), guid: row.text(4),
      publicPermission: SharePermission(rawValue: row.text(5)) ?? .none, position: row.integer(6),
      pruned: row.integer(7))
  }

  func putShare(_ share: StoredShare) throws -> Int64 {
    let name: Value = share.name.map { .text($0) } ?? .null
    if share.key == 0 {
      try connection.run(
        """
        INSERT INTO share (zone, root, name, guid, permission, position, pruned) VALUES (?, ?, ?, ?, ?, ?, ?)
        """, .integer(share.zone), .text(share.root), name, .text(share.guid),
        .text(share.publicPermission.rawValue), .integer(share.position), .integer(share.pruned))
      return connection.lastInsertRowID
    }
    try connection.run(
      "UPDATE share SET name = ?, guid = ?, permission = ?, position = ?, pruned = ? WHERE key = ?", name,
      .text(share.guid), .text(share.publicPermission.rawValue), .integer(share.position), .integer(share.pruned),
      .integer(share.key))
    return share.key
  }

  func removeShare(_ share: Int64) throws {
    for table in ["share_participant", "share_entry"] {
      try connection.run("DELETE FROM \(table) WHERE share = ?", .integer(share))
    }
    try connection.run("DELETE FROM share WHERE key = ?", .integer(share))
  }

  // MARK: Participants

  private static let participantColumns = "user, lookup_kind, lookup, type, share_participant.permission, accepted"

  func participants(of share: Int64) throws -> [StoredParticipant] {
    let statement = try connection.cached(
      "SELECT \(Self.participantColumns) FROM share_participant WHERE share = ? ORDER BY number")
    defer { statement.reset() }
    try statement.bind(1, share)
    var found: [StoredParticipant] = []
    while try statement.step() { found.append(participant(statement, from: 0)) }
    return found
  }

  func participations(of user: Int64) throws -> [StoredParticipation] {
    let statement = try connection.cached(
      """
      SELECT \(Self.shareColumns), \(Self.participantColumns) FROM share_participant JOIN share ON share.key = share
      WHERE user = ? ORDER BY key
      """)
    defer { statement.reset() }
    try statement.bind(1, user)
    var found: [StoredParticipation] = []
    while try statement.step() {
      found.append(StoredParticipation(share: share(statement), participant: participant(statement, from: 8)))
    }
    return found
  }

  private func participant(_ row: Statement, from first: Int32) -> StoredParticipant {
    StoredParticipant(
      user: row.optionalInteger(first), lookup: UserLookup(kind: row.text(first + 1), row.text(first + 2)),
      kind: .init(rawValue: row.text(first + 3)) ?? .user,
      permission: SharePermission(rawValue: row.text(first + 4)) ?? .none, hasAccepted: row.integer(first + 5) != 0)
  }

  func setParticipants(of share: Int64, _ participants: [StoredParticipant]) throws {
    try connection.run("DELETE FROM share_participant WHERE share = ?", .integer(share))
    for (i, one) in participants.enumerated() {
      try connection.run(
        """
        INSERT INTO share_participant (share, number, user, lookup_kind, lookup, type, permission, accepted)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """, .integer(share), .integer(Int64(i)), one.user.map { .integer($0) } ?? .null,
        .text(one.lookup?.stored.kind ?? ""), .text(one.lookup?.stored.text ?? ""), .text(one.kind.rawValue),
        .text(one.permission.rawValue), .integer(one.hasAccepted ? 1 : 0))
    }
  }

  // MARK: Feeds

  private static let entryColumns = "SELECT share, position, name, type, left_at FROM share_entry"

  func shareEntries(_ zone: Int64, named name: String) throws -> [StoredShareEntry] {
    let statement = try connection.cached("\(Self.entryColumns) WHERE zone = ? AND name = ? ORDER BY share")
    defer { statement.reset() }
    try statement.bind(1, zone)
    try statement.bind(2, name)
    return try entries(statement)
  }

  func shareEntries(of share: Int64, after position: Int64, limit: Int) throws -> [StoredShareEntry] {
    let statement = try connection.cached(
      "\(Self.entryColumns) WHERE share = ? AND position > ? ORDER BY position LIMIT ?")
    defer { statement.reset() }
    try statement.bind(1, share)
    try statement.bind(2, position)
    try statement.bind(3, Int64(limit))
    return try entries(statement)
  }

  private func entries(_ statement: Statement) throws -> [StoredShareEntry] {
    var found: [StoredShareEntry] = []
    while try statement.step() {
      found.append(
        StoredShareEntry(
          share: statement.integer(0), position: statement.integer(1), name: statement.text(2),
          type: statement.text(3), left: statement.optionalInteger(4)))
    }
    return found
  }

  func putShareEntry(_ entry: StoredShareEntry, in zone: Int64) throws {
    try connection.run(
      """
      INSERT INTO share_entry (share, position, zone, name, type, left_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT (zone, name, share) DO UPDATE SET position = ?2, type = ?5, left_at = ?6
      """, .integer(entry.share), .integer(entry.position), .integer(zone), .text(entry.name), .text(entry.type),
      entry.left.map { .integer($0) } ?? .null)
  }

  /// As for tombstones: entries of records that left before `time`.
  func pruneShareEntries(before time: Int64, limit: Int) throws -> Bool {
    let rows = try connection.rows(
      "SELECT share, position FROM share_entry WHERE left_at < ? ORDER BY left_at LIMIT ?", .integer(time),
      .integer(Int64(limit)))
    for row in rows {
      try connection.run("DELETE FROM share_entry WHERE share = ? AND position = ?", row[0], row[1])
      try connection.run("UPDATE share SET pruned = max(pruned, ?) WHERE key = ?", row[1], row[0])
    }
    return rows.count == limit
  }
}

extension UserLookup {
  /// How storage tells the kinds apart.
  public var stored: (kind: String, text: String) {
    switch self {
    case .emailAddress(let text): ("email", text)
    case .phoneNumber(let text): ("phone", text)
    case .userRecordName(let text): ("user", text)
    }
  }

  /// Nil where a participant has no look-up.
  public init?(kind: String, _ text: String) {
    switch kind {
    case "email": self = .emailAddress(text)
    case "phone": self = .phoneNumber(text)
    case "user": self = .userRecordName(text)
    default: return nil
    }
  }
}
