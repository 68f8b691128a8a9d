import CairnRecords

/// What a save of a share asks for, after it was judged.
struct ShareChange {
  /// Nil for a new share.
  var present: StoredShare?
  var root: RecordSharing.Root
  var publicPermission: SharePermission
  var participants: [StoredParticipant]
}

extension ZoneModification.Step {
  var wantsShortGUID: Bool {
    !kind.isDelete && share == nil && incoming.operation.record.sharing?.createsShortGUID == true
  }
}

extension StoredReference {
  /// That of a share to its root: whoever deletes the root deletes the share.
  var isOfShare: Bool { kind == .deleteSelf && field == StoredReference.shareField }

  /// Not a name that a client can send as a field of a share.
  static let shareField = "cloudkit.share/forRecord"
}

/// Shares among the operations of a request (web-services section 12).
extension ZoneModification {
  // MARK: Judging

  func judgeShare(_ step: Step, _ reader: any StorageReader) throws {
    let isShare = step.type == RecordSharing.shareType
    guard isShare || step.wantsShortGUID else { return }
    let wish = step.incoming.operation.record.sharing ?? RecordSharing()
    guard !caller.isInPublic, zone.name != CloudServer.defaultZoneName else {
      throw CloudError(.badRequest, "Records are shared from custom zones of private databases only")
    }
    guard isShare else {
      guard zone.view == nil else { throw CloudError(.accessDenied, "Only the owner makes short GUIDs") }
      return
    }
    guard step.parent == nil else { throw CloudError(.badRequest, "A share has no parent") }
    let present =
      try step.live == nil ? nil : reader.shares(.record(zone: zone.key, name: step.name)).first
    guard let root = present.map({ RecordSharing.Root(name: $0.root, changeTag: wish.root?.changeTag) }) ?? wish.root,
      !root.name.isEmpty
    else { throw CloudError(.badRequest, "A share needs forRecord with the name of its root") }
    if let given = wish.root, given.name != root.name {
      throw CloudError(.badRequest, "Share '\(step.name)' is of record '\(root.name)', which cannot change")
    }
    let permission = wish.publicPermission ?? present?.publicPermission ?? .none
    guard permission != .unknown else {
      throw CloudError(.badRequest, "publicPermission is NONE, READ_ONLY or READ_WRITE")
    }
    let before = try present.map { try reader.participants(of: $0.key) } ?? []
    var participants = try wish.participants.map { try resolve($0, before, reader) } ?? before
    // Without a public permission nobody stays who came by it.
    if permission == .none { participants.removeAll { $0.kind == .publicUser } }
    step.share = ShareChange(
      present: present, root: root, publicPermission: permission, participants: participants)
    step.references.append(
      StoredReference(
        source: step.name, field: StoredReference.shareField, target: root.name, kind: .deleteSelf))
  }

  private func resolve(
    _ wanted: [ShareParticipant], _ before: [StoredParticipant], _ reader: any StorageReader
  ) throws -> [StoredParticipant] {
    var found: [StoredParticipant] = []
    for one in wanted where one.kind != .owner && one.status != .removed {
      guard one.kind != .unknown, one.permission == .readOnly || one.permission == .readWrite else {
        throw CloudError(.badRequest, "A participant is a USER with the permission READ_ONLY or READ_WRITE")
      }
      let (user, lookup) = try who(one.identity, reader)
      if user == caller.storageOwner { continue }
      let known = before.first { $0.user != nil && $0.user == user || $0.lookup != nil && $0.lookup == lookup }
      let isTwice = found.contains { $0.user != nil && $0.user == user || $0.user == nil && $0.lookup == lookup }
      guard !isTwice else { throw CloudError(.badRequest, "A participant occurs more than once") }
      if known == nil, case .emailAddress(let address)? = lookup, !UserDirectory.isAddress(address) {
        throw CloudError(.badRequest, "'\(address)' is no e-mail address")
      }
      var kind = one.kind
      // Nobody is invited as one who was not.
      if kind == .publicUser, known?.kind != .publicUser { kind = .user }
      found.append(
        StoredParticipant(
          user: user ?? known?.user, lookup: lookup ?? known?.lookup, kind: kind, permission: one.permission,
          hasAccepted: known?.hasAccepted ?? false))
    }
    guard found.count <= server.settings.participantsPerShare else {
      throw CloudError(.badRequest, "A share may have \(server.settings.participantsPerShare) participants")
    }
    return found
  }

  /// The user whom an identity names, where there is one already.
  private func who(_ identity: UserIdentity, _ reader: any StorageReader) throws -> (Int64?, UserLookup?) {
    if let name = identity.userRecordName {
      guard let user = try reader.user(recordName: name) else { throw unknownUser(name) }
      return (user.key, identity.lookup?.normalized)
    }
    switch identity.lookup?.normalized {
    case .userRecordName(let name)?:
      guard let user = try reader.user(recordName: name) else { throw unknownUser(name) }
      return (user.key, .userRecordName(name))
    case .emailAddress(let address)?: return (try reader.user(email: address)?.key, .emailAddress(address))
    case .phoneNumber(let number)?: return (nil, .phoneNumber(number))
    case nil: throw CloudError(.badRequest, "A participant needs a userIdentity with lookupInfo or userRecordName")
    }
  }

  private func unknownUser(_ name: String) -> CloudError { CloudError(.badRequest, "There is no user '\(name)'") }

  /// Whether the root of a share lives after the request, under the tag that the share names, and has no other share.
  func judgeRoot(
    _ i: Int, _ positions: [String: Int], _ gone: Set<String>, _ reader: any StorageReader
  ) throws -> CloudError? {
    guard let change = steps[i].share, change.present == nil else { return nil }
    let root = change.root
    let missing = CloudError(.badRequest, "The root '\(root.name)' of share '\(steps[i].name)' does not exist")
    if gone.contains(root.name) { return missing }
    if let position = positions[root.name], steps[position].isSave {
      guard steps[position].type != RecordSharing.shareType else { return missing }
    } else {
      guard let row = try reader.record(zone.key, named: root.name), row.isLive,
        row.type != RecordSharing.shareType
      else { return missing }
      if let tag = root.changeTag, tag != zone.epochs.tag(row.position) {
        return CloudError(.conflict, "client oplock error updating record")
      }
    }
    let isTwice = steps.indices.contains {
      $0 < i && steps[$0].isSave && steps[$0].share?.present == nil && steps[$0].share?.root.name == root.name
    }
    let other = try reader.shares(.root(zone: zone.key, name: root.name)).first?.name
    guard !isTwice, other == nil || other.flatMap({ positions[$0] }).map({ steps[$0].isDelete }) == true else {
      return CloudError(.badRequest, "Record '\(root.name)' has a share already")
    }
    return nil
  }

  // MARK: Storing

  /// After the records: who sees what of them from now on.
  mutating func storeShares(_ writer: any StorageWriter) throws {
    let isNews = steps.contains { $0.isSave && ($0.share != nil || $0.wantsShortGUID) }
    guard zone.hasShares || isNews, let place = try writer.place(ofZone: zone.key),
      let owner = try writer.user(key: place.user)
    else { return }
    let server = server
    var keeper = ShareKeeper(writer, place, owner: owner, now: now) { server.newIncarnation() }
    var changed = try endShares(&keeper, writer)
    var roots: [String] = []
    for step in steps where step.isSave {
      if let change = step.share {
        try store(change, step, &keeper, writer)
        guard change.present == nil else { continue }
        roots.append(change.root.name)
        if let row = try mark(change.root.name, isShared: true, &keeper, writer) { changed.append(row) }
      } else if step.wantsShortGUID, try writer.shares(.root(zone: zone.key, name: step.name)).isEmpty {
        try writer.putShare(
          StoredShare(
            zone: zone.key, root: step.name, name: nil, guid: server.newShortGUID(), publicPermission: .none))
      }
    }
    for case let share? in steps.filter({ $0.failure == nil }).map(\.leaves) {
      if let row = try keeper.leave(share, caller.key) { changed.append(row) }
    }
    changed += steps.compactMap { $0.isSave ? $0.after : nil }
    try keeper.recordsChanged(changed, roots: roots)
    hasRenewed = keeper.lastRowPosition != nil
    sharedNews = try keeper.finish()
  }

  /// Ends the shares whose record or root is gone. Returns the rows that took the place of all that is gone, and the
  /// roots that were stored again.
  private func endShares(_ keeper: inout ShareKeeper, _ writer: any StorageWriter) throws -> [StoredRecord] {
    var changed: [StoredRecord] = []
    for row in steps.compactMap({ $0.isDelete ? $0.live : nil }) + cascade {
      if let tombstone = try writer.record(zone.key, named: row.name) { changed.append(tombstone) }
      guard row.isShared else { continue }
      let isShare = row.type == RecordSharing.shareType
      let which: ShareSelection =
        isShare ? .record(zone: zone.key, name: row.name) : .root(zone: zone.key, name: row.name)
      guard let share = try writer.shares(which).first else { continue }
      try keeper.end(share)
      if isShare, let root = try mark(share.root, isShared: false, &keeper, writer) { changed.append(root) }
    }
    return changed
  }

  private func store(
    _ change: ShareChange, _ step: Step, _ keeper: inout ShareKeeper, _ writer: any StorageWriter
  ) throws {
    var share =
      try change.present ?? writer.shares(.root(zone: zone.key, name: change.root.name)).first
      ?? StoredShare(
        zone: zone.key, root: change.root.name, name: nil, guid: server.newShortGUID(), publicPermission: .none)
    share.name = step.name
    share.publicPermission = change.publicPermission
    share.key = try writer.putShare(share)
    try keeper.setParticipants(change.participants, of: share)
  }

  /// Notes in a root's row whether it has a share. Returns the row where that took another position.
  private func mark(
    _ root: String, isShared: Bool, _ keeper: inout ShareKeeper, _ writer: any StorageWriter
  ) throws -> StoredRecord? {
    guard let step = steps.first(where: { $0.name == root && $0.isSave }), var after = step.after else {
      return try keeper.renew(root, isShared: isShared)
    }
    guard after.isShared != isShared else { return nil }
    after.isShared = isShared
    try writer.put(after, in: zone.key, replacing: after.position)
    step.after = after
    return nil
  }
}

extension ShareKeeper {
  /// Takes a user out of a share. Returns the row of the share's record, which tells of it.
  mutating func leave(_ share: StoredShare, _ user: Int64) throws -> StoredRecord? {
    let all = try writer.participants(of: share.key)
    try setParticipants(all.filter { $0.user != user }, of: share)
    guard let name = share.name else { return nil }
    return try renew(name, isShared: true, by: user)
  }
}

extension UserLookup {
  /// E-mail addresses without regard to case.
  var normalized: UserLookup {
    if case .emailAddress(let text) = self { .emailAddress(text.lowercased()) } else { self }
  }
}

extension CloudServer {
  /// 22 characters that nobody can guess.
  func newShortGUID() -> String {
    Base64URL.encode((0..<2).flatMap { _ in withUnsafeBytes(of: randomness.next()) { Array($0) } })
  }
}
