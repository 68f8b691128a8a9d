import CairnRecords

/// What a short GUID opens, as one user sees it.
public struct ResolvedShare: Sendable {
  public var guid: String
  public var zone: ZoneID
  public var rootName: String
  /// Nil where it was not asked for.
  public var root: Record?
  public var share: Record
  public var owner: UserIdentity
  /// The caller; of one who may come but has not, the status is unknown.
  public var participant: ShareParticipant
  /// The database in which the caller finds it.
  public var database: DatabaseKind
}

/// One short GUID that a client asks about.
public struct ShareQuery: Hashable, Sendable {
  public var guid: String
  public var wantsRoot: Bool
  /// Fields of the root that are wanted; nil for all.
  public var rootKeys: [String]?

  public init(guid: String, wantsRoot: Bool = false, rootKeys: [String]? = nil) {
    self.guid = guid
    self.wantsRoot = wantsRoot
    self.rootKeys = rootKeys
  }
}

/// Web-services section 12.
extension CloudServer {
  /// One result per short GUID, in order (records/resolve). Those see a share who own it or take part, and everybody
  /// where it has a public permission.
  public func resolveShares(
    _ caller: Caller, _ scope: DatabaseScope, _ queries: [ShareQuery], _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<ResolvedShare, CloudError>] {
    try checkShareRequest(caller, queries, options)
    return try read { reader in
      try queries.map { query in
        do {
          let found = try find(query.guid, caller, scope, reader)
          return .success(try answer(found, query, caller, scope, reader))
        } catch let error as CloudError { return .failure(error) }
      }
    }
  }

  /// Takes part in shares from now on; one result per short GUID, in order (records/accept). Who takes part already,
  /// and the owner, changes nothing.
  public func acceptShares(
    _ caller: Caller, _ scope: DatabaseScope, _ queries: [ShareQuery], _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<ResolvedShare, CloudError>] {
    try checkShareRequest(caller, queries, options)
    var results: [Result<ResolvedShare, CloudError>] = []
    for query in queries {
      do throws(CloudError) { results.append(.success(try accept(query, caller, scope))) } catch {
        // What the store could not do now is no property of the share.
        if error.code == .tryAgainLater || error.code == .internalError { throw error }
        results.append(.failure(error))
      }
    }
    return results
  }

  private func checkShareRequest(
    _ caller: Caller, _ queries: [ShareQuery], _ options: RequestOptions
  ) throws(CloudError) {
    switch caller.role {
    case .user: break
    case .anonymous: throw CloudError(.authenticationRequired, "request needs authorization")
    case .server: throw CloudError(.accessDenied, "A server-to-server key takes part in no share")
    }
    try checkCount(queries.count, options)
  }

  // MARK: Finding

  private struct FoundShare {
    var share: StoredShare
    var place: StoredZonePlace
    var owner: Caller
    var participants: [StoredParticipant]
    /// The caller's place among them.
    var own: Int?
  }

  private func find(
    _ guid: String, _ caller: Caller, _ scope: DatabaseScope, _ reader: any StorageReader
  ) throws -> FoundShare {
    guard let share = try reader.shares(.guid(guid)).first, share.name != nil,
      let place = try reader.place(ofZone: share.zone), place.scope == scope.of(.private),
      let owner = try reader.user(key: place.user)
    else { throw CloudError(.notFound, "There is no such share") }
    let participants = try reader.participants(of: share.key)
    let own = try CloudServer.index(of: caller, in: participants, reader)
    guard own != nil || owner.key == caller.key || share.publicPermission != .none else {
      throw CloudError(.accessDenied, "The caller was not invited to this share")
    }
    return FoundShare(share: share, place: place, owner: owner, participants: participants, own: own)
  }

  /// The caller among those who take part: as this user, else by an invitation to their address that nobody has taken.
  private static func index(
    of caller: Caller, in participants: [StoredParticipant], _ reader: any StorageReader
  ) throws -> Int? {
    if let own = participants.firstIndex(where: { $0.user == caller.key }) { return own }
    guard let email = try reader.profile(of: caller.key).email else { return nil }
    return participants.firstIndex { $0.user == nil && $0.lookup == .emailAddress(email) }
  }

  private func answer(
    _ found: FoundShare, _ query: ShareQuery, _ caller: Caller, _ scope: DatabaseScope, _ reader: any StorageReader
  ) throws -> ResolvedShare {
    let isOwner = found.owner.key == caller.key
    var caller = caller
    caller.owner = isOwner ? nil : Caller.Owner(key: found.owner.key, recordName: found.owner.recordName)
    let zone = try withEpochs(found.place.zone, found.place.database, reader)
    let id = ZoneID(name: zone.name, owner: found.owner.recordName)
    guard let name = found.share.name, let shareRow = try reader.record(zone.key, named: name),
      let rootRow = try reader.record(zone.key, named: found.share.root), rootRow.isLive
    else { throw CloudError(.internalError, "The records of a share are missing") }
    let types = try schema(scope, reader).yielded
    let owner = try identity(of: found.owner.key, isKnown: true, reader)
    var participant = ShareParticipant(
      try identity(of: caller.key, isKnown: true, reader), kind: .publicUser,
      permission: found.share.publicPermission, status: .unknown)
    if isOwner {
      participant = ShareParticipant(owner, kind: .owner, permission: .readWrite, status: .accepted)
    } else if let own = found.own {
      let part = StoredParticipation(share: found.share, participant: found.participants[own])
      participant = try self.answer(part, showsLookup: true, reader)
    }
    return ResolvedShare(
      guid: found.share.guid, zone: id, rootName: found.share.root,
      root: query.wantsRoot
        ? try record(rootRow, in: id, of: zone, keys: query.rootKeys, types, caller, reader) : nil,
      share: try record(shareRow, in: id, of: zone, keys: nil, types, caller, reader), owner: owner,
      participant: participant, database: isOwner ? .private : .shared)
  }

  // MARK: Accepting

  private func accept(
    _ query: ShareQuery, _ caller: Caller, _ scope: DatabaseScope
  ) throws(CloudError) -> ResolvedShare {
    let first = try read { try find(query.guid, caller, scope, $0) }
    if first.owner.key != caller.key { _ = try self.database(caller.key, scope.of(.shared)) }
    let (resolved, told) = try write(in: first.place.database.key) { [self] writer in
      var found = try find(query.guid, caller, scope, writer)
      var told: [News] = []
      if found.owner.key != caller.key, try join(&found, caller, &told, writer) {
        found = try find(query.guid, caller, scope, writer)
      }
      return (try answer(found, query, caller, scope, writer), told)
    }
    tell(told)
    return resolved
  }

  /// Returns false where the caller takes part already.
  private func join(
    _ found: inout FoundShare, _ caller: Caller, _ told: inout [News], _ writer: any StorageWriter
  ) throws -> Bool {
    if let own = found.own {
      guard !found.participants[own].hasAccepted else { return false }
      found.participants[own].user = caller.key
      found.participants[own].hasAccepted = true
    } else {
      guard found.participants.count < settings.participantsPerShare else {
        throw CloudError(.badRequest, "A share may have \(settings.participantsPerShare) participants")
      }
      found.participants.append(
        StoredParticipant(
          user: caller.key, lookup: nil, kind: .publicUser, permission: .none, hasAccepted: true))
    }
    var keeper = ShareKeeper(writer, found.place, owner: found.owner, now: clock.now) { [self] in newIncarnation() }
    try keeper.setParticipants(found.participants, of: found.share)
    if let name = found.share.name, let row = try keeper.renew(name, isShared: true, by: caller.key) {
      try keeper.recordsChanged([row])
    }
    let zone = found.place.zone
    let news = try keeper.finish()
    told = try self.news(news, in: zone, of: found.owner, found.place, [], except: nil, nil, writer)
    return true
  }
}
