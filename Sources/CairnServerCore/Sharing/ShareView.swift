import CairnRecords

/// What a participant sees of a zone of another user's: the records of the shares that were accepted (web-services
/// section 12).
///
/// The participant's shared database has a zone row for it, named ``rowName(owner:zone:)``, with positions and an
/// incarnation of its own. The row is what changes/database tells of. Positions inside the zone are the owner's.
/// Another set of accepted shares is another incarnation: what is to be seen then may be older than any token, so
/// tokens end.
struct ShareView: Hashable, Sendable {
  var owner: Caller.Owner
  /// The owner's database, which gives out positions.
  var database: Int64
  var rowName: String
  /// The accepted shares, the participant's own part in each.
  var parts: [StoredParticipation]

  /// How a shared database names the zone of an owner. Record names of users hold no slash.
  static func rowName(owner: String, zone: String) -> String { owner + "/" + zone }

  static func zoneID(ofRow name: String) -> ZoneID {
    let parts = name.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return ZoneID(name: name) }
    return ZoneID(name: String(parts[1]), owner: String(parts[0]))
  }

  /// What the participant may do with a record; nil for one that is not to be seen.
  func permission(of name: String, _ zone: Int64, _ reader: any ShareStorageReader) throws -> SharePermission? {
    var found: SharePermission?
    for entry in try reader.shareEntries(zone, named: name) where entry.left == nil {
      guard let part = parts.first(where: { $0.share.key == entry.share }) else { continue }
      if part.permission == .readWrite { return .readWrite }
      found = part.permission
    }
    return found
  }

  /// The part in a share, by the name of its record.
  func part(inShareNamed name: String) -> StoredParticipation? { parts.first { $0.share.name == name } }

  /// The part in the share of a root.
  func part(inShareOf root: String) -> StoredParticipation? { parts.first { $0.share.root == root } }
}

extension StoredZone {
  /// What tells the zones of a database apart, in storage.
  var rowName: String { view?.rowName ?? name }

  /// As answers name it.
  func id(for caller: Caller) -> ZoneID { ZoneID(name: name, owner: view?.owner.recordName ?? caller.zoneOwner) }

  /// Whether a record is there for who looks.
  func shows(_ name: String, _ reader: any ShareStorageReader) throws -> Bool {
    guard let view else { return true }
    return try view.permission(of: name, key, reader) != nil
  }
}

extension CloudServer {
  /// A zone of the shared database as the caller sees it; nil where nothing is shared any more.
  func sharedZone(_ row: StoredZone, _ caller: Caller, _ reader: any StorageReader) throws -> StoredZone? {
    let id = ShareView.zoneID(ofRow: row.name)
    guard !row.isDeleted, let (zone, owner, database) = try ownersZone(id, caller, reader) else { return nil }
    return try sharedZone(row, zone, of: owner, database, caller, reader)
  }

  /// The live zone of another user's private database that an ID names, whether the caller sees something of it or not.
  func ownersZone(
    _ id: ZoneID, _ caller: Caller, _ reader: any StorageReader
  ) throws -> (StoredZone, Caller, StoredDatabase)? {
    guard let scope = caller.ownersScope, let owner = try reader.user(recordName: id.owner),
      let database = try reader.database(owner.key, scope),
      let zone = try reader.zone(database.key, named: id.name), !zone.isDeleted
    else { return nil }
    return (zone, owner, database)
  }

  func sharedZone(
    _ row: StoredZone, _ zone: StoredZone, of owner: Caller, _ database: StoredDatabase, _ caller: Caller,
    _ reader: any StorageReader
  ) throws -> StoredZone? {
    guard !row.isDeleted else { return nil }
    var zone = zone
    let parts = try reader.participations(of: caller.key).filter { $0.share.zone == zone.key && $0.shows }
    guard !parts.isEmpty else { return nil }
    zone.incarnation = row.incarnation
    zone.position = parts.map(\.share.position).max() ?? 0
    zone.pruned = parts.map(\.share.pruned).max() ?? 0
    zone.epochs = try epochs(database, reader)
    zone.view = ShareView(
      owner: Caller.Owner(key: owner.key, recordName: owner.recordName), database: database.key, rowName: row.name,
      parts: parts)
    return zone
  }

  /// A row of a database's feed and the zone that the caller sees there; nil for one that is gone.
  func shown(
    _ row: StoredZone, _ caller: Caller, _ reader: any StorageReader
  ) throws -> StoredZone? {
    if caller.isInShared { return try sharedZone(row, caller, reader) }
    return row.isDeleted ? nil : row
  }
}
