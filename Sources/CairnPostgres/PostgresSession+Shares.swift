import CairnRecords
import CairnServerCore

/// Shares, who takes part, their feeds, and what others may learn of users.
///
/// What belongs to a share belongs to the database of its zone: a writer reads it with that database's lock.
extension PostgresSession {
  // MARK: Users

  func profile(of user: Int64) throws -> UserProfile {
    let rows = try query("SELECT \(Self.profileColumns) FROM users WHERE key = $1", [.int(user)])
    return rows.isEmpty ? UserProfile() : profile(rows, 0, from: 0)
  }

  static let profileColumns = "email, given_name, family_name, discoverable"

  func profile(_ rows: PostgresRows, _ row: Int, from first: Int) -> UserProfile {
    UserProfile(
      email: rows.optionalText(row, first), givenName: rows.optionalText(row, first + 1),
      familyName: rows.optionalText(row, first + 2), isDiscoverable: rows.integer(row, first + 3) != 0)
  }

  /// Two users who get the same address at the same time: the second is run again, and finds the first.
  func setProfile(of user: Int64, _ profile: UserProfile) throws {
    try change(
      "UPDATE users SET email = $2, given_name = $3, family_name = $4, discoverable = $5 WHERE key = $1",
      [
        .int(user), .optionalName(profile.email), .optionalName(profile.givenName), .optionalName(profile.familyName),
        .int(profile.isDiscoverable ? 1 : 0),
      ])
  }

  // MARK: Places

  func place(ofZone zone: Int64) throws -> StoredZonePlace? {
    let key = Self.database(ofZone: zone)
    guard try isThere(key) else { return nil }
    let rows = try query(
      """
      SELECT z.name, d.incarnation, d.user_key, d.container, d.environment, d.kind
      FROM zones z JOIN database_names d ON d.key = z.database WHERE z.database = $1 AND z.key = $2 AND z.deleted = 0
      """, [.int(key), .int(zone)])
    guard !rows.isEmpty, let scope = DatabaseScope(stored: rows.text(0, 3), rows.text(0, 4), rows.text(0, 5)),
      let stored = try self.zone(key, named: rows.text(0, 0))
    else { return nil }
    return StoredZonePlace(
      zone: stored, database: StoredDatabase(key: key, incarnation: rows.integer(0, 1)), user: rows.integer(0, 2),
      scope: scope)
  }

  /// A writer has the lock of the database then.
  private func isThere(_ database: Int64) throws -> Bool {
    guard isWriter else { return true }
    do { try opened(database) } catch is DatabaseIsGone { return false }
    return true
  }

  func sharedZones(of user: Int64) throws -> [Int64] {
    let rows = try query(
      """
      SELECT DISTINCT z.key FROM database_names d JOIN zones z ON z.database = d.key JOIN shares s ON s.zone = z.key
      WHERE d.user_key = $1 AND z.deleted = 0 ORDER BY z.key
      """, [.int(user)])
    return (0..<rows.count).map { rows.integer($0, 0) }
  }

  // MARK: Shares

  func shares(_ which: ShareSelection) throws -> [StoredShare] {
    switch which {
    case .key(let key): try wanderingShares("WHERE s.key = $1", [.int(key)])
    case .guid(let guid): try wanderingShares("WHERE s.guid = $1", [.name(guid)])
    case .inZone(let zone): try shares(zone, "WHERE s.zone = $1", [.int(zone)])
    case .root(let zone, let name): try shares(zone, "WHERE s.zone = $1 AND s.root = $2", [.int(zone), .name(name)])
    case .record(let zone, let name): try shares(zone, "WHERE s.zone = $1 AND s.name = $2", [.int(zone), .name(name)])
    }
  }

  private static let shareColumns = "s.key, s.zone, s.root, s.name, s.guid, s.permission, s.position, s.pruned"

  private func shares(_ condition: String, _ values: [PostgresValue]) throws -> [StoredShare] {
    let rows = try query("SELECT \(Self.shareColumns) FROM shares s \(condition) ORDER BY s.key", values)
    return (0..<rows.count).map { share(rows, $0) }
  }

  private func shares(_ zone: Int64, _ condition: String, _ values: [PostgresValue]) throws -> [StoredShare] {
    guard try isThere(Self.database(ofZone: zone)) else { return [] }
    return try shares(condition, values)
  }

  /// A share whose place is not known before: a writer looks again when it has the lock.
  private func wanderingShares(_ condition: String, _ values: [PostgresValue]) throws -> [StoredShare] {
    let found = try shares(condition, values)
    guard isWriter, let zone = found.first?.zone, work.databases[Self.database(ofZone: zone)] == nil else {
      return found
    }
    return try shares(zone, condition, values)
  }

  private func share(_ rows: PostgresRows, _ row: Int) -> StoredShare {
    let share = StoredShare(
      key: rows.integer(row, 0), zone: rows.integer(row, 1), root: rows.text(row, 2), name: rows.optionalText(row, 3),
      guid: rows.text(row, 4), publicPermission: SharePermission(rawValue: rows.text(row, 5)) ?? .none,
      position: rows.integer(row, 6), pruned: rows.integer(row, 7))
    work.shareZones[share.key] = share.zone
    return share
  }

  func putShare(_ share: StoredShare) throws -> Int64 {
    try opened(Self.database(ofZone: share.zone))
    guard share.key == 0 else {
      try changeLater(
        "UPDATE shares SET name = $2, guid = $3, permission = $4, position = $5, pruned = $6 WHERE key = $1",
        [
          .int(share.key), .optionalName(share.name), .name(share.guid), .text(share.publicPermission.rawValue),
          .int(share.position), .int(share.pruned),
        ])
      return share.key
    }
    let key = try newKey()
    try changeLater(
      """
      INSERT INTO shares (key, zone, root, name, guid, permission, position, pruned)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      """,
      [
        .int(key), .int(share.zone), .name(share.root), .optionalName(share.name), .name(share.guid),
        .text(share.publicPermission.rawValue), .int(share.position), .int(share.pruned),
      ])
    work.shareZones[key] = share.zone
    if let place = work.zoneNames[share.zone] { work.zones[place]??.hasShares = true }
    return key
  }

  func removeShare(_ share: Int64) throws {
    if let zone = try zone(ofShare: share) {
      try changeLater(
        "DELETE FROM share_entries WHERE database = $1 AND share = $2",
        [.int(Self.database(ofZone: zone)), .int(share)])
    }
    try changeLater("DELETE FROM share_participants WHERE share = $1", [.int(share)])
    try changeLater("DELETE FROM shares WHERE key = $1", [.int(share)])
    work.shareZones[share] = nil
  }

  private func zone(ofShare share: Int64) throws -> Int64? {
    try work.shareZones[share] ?? shares(.key(share)).first?.zone
  }

  // MARK: Participants

  private static let participantColumns = "p.user_key, p.lookup_kind, p.lookup, p.type, p.permission, p.accepted"

  func participants(of share: Int64) throws -> [StoredParticipant] {
    let rows = try query(
      "SELECT \(Self.participantColumns) FROM share_participants p WHERE p.share = $1 ORDER BY p.number", [.int(share)])
    return (0..<rows.count).map { participant(rows, $0, from: 0) }
  }

  /// Of many databases, whose locks a writer does not take: what it finds there is true of those that it has locked.
  func participations(of user: Int64) throws -> [StoredParticipation] {
    let rows = try query(
      """
      SELECT \(Self.shareColumns), \(Self.participantColumns)
      FROM share_participants p JOIN shares s ON s.key = p.share WHERE p.user_key = $1 ORDER BY s.key
      """, [.int(user)])
    return (0..<rows.count).map {
      StoredParticipation(share: share(rows, $0), participant: participant(rows, $0, from: 8))
    }
  }

  private func participant(_ rows: PostgresRows, _ row: Int, from first: Int) -> StoredParticipant {
    StoredParticipant(
      user: rows.optionalInteger(row, first),
      lookup: UserLookup(kind: rows.text(row, first + 1), rows.text(row, first + 2)),
      kind: ShareParticipant.Kind(rawValue: rows.text(row, first + 3)) ?? .user,
      permission: SharePermission(rawValue: rows.text(row, first + 4)) ?? .none,
      hasAccepted: rows.integer(row, first + 5) != 0)
  }

  func setParticipants(of share: Int64, _ participants: [StoredParticipant]) throws {
    try changeLater("DELETE FROM share_participants WHERE share = $1", [.int(share)])
    guard !participants.isEmpty else { return }
    try changeLater(
      """
      INSERT INTO share_participants (share, number, user_key, lookup_kind, lookup, type, permission, accepted)
      SELECT $1::bigint, p.number, p.user_key, p.lookup_kind, p.lookup, p.type, p.permission, p.accepted
      FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::bigint[])
      AS p (number, user_key, lookup_kind, lookup, type, permission, accepted)
      """,
      [
        .int(share), .ints(participants.indices.map { Int64($0) }), .ints(participants.map(\.user)),
        .texts(participants.map { $0.lookup?.stored.kind ?? "" }),
        .names(participants.map { $0.lookup?.stored.text ?? "" }), .texts(participants.map(\.kind.rawValue)),
        .texts(participants.map(\.permission.rawValue)), .ints(participants.map { $0.hasAccepted ? 1 : 0 }),
      ])
  }

  // MARK: Feeds

  private static let entryColumns = "SELECT share, position, name, type, left_at FROM share_entries"

  func shareEntries(_ zone: Int64, named name: String) throws -> [StoredShareEntry] {
    let database = Self.database(ofZone: zone)
    guard try isThere(database) else { return [] }
    return entries(
      try query(
        "\(Self.entryColumns) WHERE database = $1 AND zone = $2 AND name = $3 ORDER BY share",
        [.int(database), .int(zone), .name(name)]))
  }

  func shareEntries(of share: Int64, after position: Int64, limit: Int) throws -> [StoredShareEntry] {
    guard let zone = try zone(ofShare: share) else { return [] }
    return entries(
      try query(
        "\(Self.entryColumns) WHERE database = $1 AND share = $2 AND position > $3 ORDER BY position LIMIT $4",
        [.int(Self.database(ofZone: zone)), .int(share), .int(position), .int(Int64(limit))]))
  }

  private func entries(_ rows: PostgresRows) -> [StoredShareEntry] {
    (0..<rows.count).map {
      StoredShareEntry(
        share: rows.integer($0, 0), position: rows.integer($0, 1), name: rows.text($0, 2), type: rows.text($0, 3),
        left: rows.optionalInteger($0, 4))
    }
  }

  func putShareEntry(_ entry: StoredShareEntry, in zone: Int64) throws {
    try changeLater(
      """
      INSERT INTO share_entries (database, share, position, zone, name, type, left_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (database, zone, name, share) DO UPDATE SET position = excluded.position, type = excluded.type,
        left_at = excluded.left_at
      """,
      [
        .int(Self.database(ofZone: zone)), .int(entry.share), .int(entry.position), .int(zone), .name(entry.name),
        .name(entry.type), .optional(entry.left),
      ])
  }

  // MARK: Removal

  /// Of one database at a time, whose lock it takes, as for tombstones.
  func pruneShareEntries(before time: Int64, limit: Int) throws -> Bool {
    let rows = try query(
      "SELECT database, share, position FROM share_entries WHERE left_at < $1 ORDER BY left_at LIMIT $2",
      [.int(time), .int(Int64(limit))])
    guard !rows.isEmpty else { return false }
    let database = rows.integer(0, 0)
    // Shares end before their owner is removed, so the database is there, or its entries are gone by now.
    guard try isThere(database) else { return true }
    let own = (0..<rows.count).filter { rows.integer($0, 0) == database }
    for (share, places) in Dictionary(grouping: own, by: { rows.integer($0, 1) }).sorted(by: { $0.key < $1.key }) {
      directWrites += 1
      let removed = try query(
        """
        DELETE FROM share_entries WHERE database = $1 AND share = $2 AND position = ANY($3) AND left_at < $4
        RETURNING position
        """,
        [.int(database), .int(share), .ints(places.map { rows.integer($0, 2) }), .int(time)])
      let newest = (0..<removed.count).map { removed.integer($0, 0) }.max() ?? 0
      try changeLater(
        "UPDATE shares SET pruned = $2 WHERE key = $1 AND pruned < $2", [.int(share), .int(newest)])
    }
    return rows.count == limit || own.count < rows.count
  }

  /// Before a user goes whose databases are locked: all shares ended in this transaction, unless one has come since.
  func checkHasNoShares(_ user: Int64) throws {
    let left = try query(
      """
      SELECT 1 FROM share_participants p JOIN shares s ON s.key = p.share JOIN zones z ON z.key = s.zone
      WHERE p.user_key = $1 AND z.deleted = 0
      UNION ALL
      SELECT 1 FROM database_names d JOIN zones z ON z.database = d.key JOIN shares s ON s.zone = z.key
      WHERE d.user_key = $1 AND z.deleted = 0 LIMIT 1
      """, [.int(user)])
    guard left.isEmpty else { throw PostgresError.conflict }
  }
}
