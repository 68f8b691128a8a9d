import CairnRecords

/// How shares and their participants are shown (web-services section 12).
extension CloudServer {
  /// What the answer of a root or of a share says beside its fields. Nil for a root whose share is not the caller's
  /// business.
  func sharing(
    of row: StoredRecord, in id: ZoneID, of zone: StoredZone, _ caller: Caller, _ reader: any StorageReader
  ) throws -> RecordSharing? {
    if row.type == RecordSharing.shareType {
      guard let share = try reader.shares(.record(zone: zone.key, name: row.name)).first else { return nil }
      return try describe(share, caller.storageOwner, for: caller.key, reader)
    }
    guard let share = try reader.shares(.root(zone: zone.key, name: row.name)).first else { return nil }
    if let view = zone.view, view.part(inShareOf: row.name) == nil { return nil }
    var sharing = RecordSharing()
    sharing.share = share.name.map { RecordID(name: $0, zone: id) }
    sharing.shortGUID = share.guid
    return sharing
  }

  /// A share as `viewer` may see it: owner and administrators see everybody with the address of the invitation, others
  /// see who has been invited by name; who comes with the short GUID alone sees only the owner and their own entry.
  func describe(
    _ share: StoredShare, _ owner: Int64, for viewer: Int64, _ reader: any StorageReader
  ) throws -> RecordSharing {
    let stored = try reader.participants(of: share.key)
    let own = stored.first { $0.user == viewer }
    let isManager = viewer == owner || own?.kind == .administrator
    var sharing = RecordSharing()
    sharing.shortGUID = share.guid
    sharing.root = RecordSharing.Root(name: share.root)
    sharing.publicPermission = share.publicPermission
    let ownerAnswer = ShareParticipant(
      try identity(of: owner, isKnown: true, reader), kind: .owner, permission: .readWrite, status: .accepted)
    sharing.owner = ownerAnswer
    var participants = [ownerAnswer]
    for one in stored {
      let isViewer = one.user == viewer
      let seesOthers = own.map { $0.kind != .publicUser } ?? false
      guard isManager || isViewer || seesOthers && one.kind != .publicUser else { continue }
      participants.append(
        try answer(StoredParticipation(share: share, participant: one), showsLookup: isManager || isViewer, reader))
    }
    sharing.participants = participants
    sharing.currentUserParticipant =
      try viewer == owner
      ? ownerAnswer
      : own.map { try answer(StoredParticipation(share: share, participant: $0), showsLookup: true, reader) }
    return sharing
  }

  func answer(
    _ part: StoredParticipation, showsLookup: Bool, _ reader: any StorageReader
  ) throws -> ShareParticipant {
    let one = part.participant
    var identity = UserIdentity()
    if let user = one.user { identity = try self.identity(of: user, isKnown: one.hasAccepted, reader) }
    if showsLookup { identity.lookup = one.lookup }
    return ShareParticipant(
      identity, kind: one.kind, permission: part.permission, status: one.hasAccepted ? .accepted : .invited)
  }

  /// - Parameter isKnown: whether the user has agreed to be seen here; else only those are who can be discovered.
  func identity(of user: Int64, isKnown: Bool, _ reader: any StorageReader) throws -> UserIdentity {
    let profile = try reader.profile(of: user)
    guard isKnown || profile.isDiscoverable, let caller = try reader.user(key: user) else { return UserIdentity() }
    return UserIdentity(
      userRecordName: caller.recordName, givenName: profile.givenName, familyName: profile.familyName)
  }
}
