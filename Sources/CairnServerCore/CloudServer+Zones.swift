import CairnRecords

/// A zone as answers show it.
public struct ZoneAnswer: Hashable, Sendable {
  public var id: ZoneID
  /// The token of a reader that has read the whole zone; nil for a zone without feed.
  public var token: ChangeToken?
  /// Whether requests in it are atomic; the default zone's are not.
  public var atomic: Bool
  public var isDeleted: Bool

  public init(id: ZoneID, token: ChangeToken?, atomic: Bool, isDeleted: Bool = false) {
    self.id = id
    self.token = token
    self.atomic = atomic
    self.isDeleted = isDeleted
  }
}

/// One element of a zones/modify request.
public enum ZoneOperation: Hashable, Sendable {
  case create(ZoneID)
  case delete(ZoneID)

  public var id: ZoneID {
    switch self {
    case .create(let id), .delete(let id): id
    }
  }

  var isDelete: Bool { if case .delete = self { true } else { false } }
}

extension CloudServer {
  /// All live zones, the default zone included (zones/list).
  public func zones(_ caller: Caller, _ scope: DatabaseScope) throws(CloudError) -> [ZoneAnswer] {
    let (database, caller) = try open(caller, scope)
    return try read { reader in
      try self.zones(database, reader).compactMap { try shown($0, caller, reader) }
        .sorted { $0.rowName < $1.rowName }.map { answer($0, caller) }
    }
  }

  /// One result per zone (zones/lookup).
  public func lookupZones(
    _ caller: Caller, _ scope: DatabaseScope, _ ids: [ZoneID], _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<ZoneAnswer, CloudError>] {
    try checkCount(ids.count, options)
    let (database, caller) = try open(caller, scope)
    return try read { reader in
      try ids.map { id in
        do { return .success(answer(try zone(id, caller, database, reader), caller)) } catch let error as CloudError {
          return .failure(error)
        }
      }
    }
  }

  /// One result per operation, in order, each on its own (zones/modify). Web-services section 10.
  public func modifyZones(
    _ caller: Caller, _ scope: DatabaseScope, _ operations: [ZoneOperation],
    _ options: RequestOptions = RequestOptions(), clientID: String? = nil
  ) throws(CloudError) -> [Result<ZoneAnswer, CloudError>] {
    try checkCount(operations.count, options)
    guard Set(operations.map(\.id.name)).count == operations.count else {
      throw CloudError(.badRequest, "A request may name a zone only once")
    }
    guard scope.kind != .shared else {
      throw CloudError(.accessDenied, "Zones of the shared database come and go with their shares")
    }
    let (database, caller) = try open(caller, scope, toWrite: true)
    defer { if operations.contains(where: \.isDelete) { removeGarbage() } }
    let (results, news) = try write(in: database.key) { [self] writer in
      var others: [News] = []
      var finder = try NotificationFinder(self, caller, scope, database, writer)
      let results = try operations.map { operation -> Result<ZoneAnswer, CloudError> in
        do {
          let (answer, isNews) =
            switch operation {
            case .create(let id): try createZone(id, caller, database, writer)
            case .delete(let id): (try deleteZone(id, caller, database, &others, writer), true)
            }
          if isNews { try finder?.zoneChanged(answer.id, writer) }
          return .success(answer)
        } catch let error as CloudError {
          return .failure(error)
        }
      }
      return (results, (finder?.news(from: clientID) ?? []) + others)
    }
    tell(news)
    return results
  }

  private func createZone(
    _ id: ZoneID, _ caller: Caller, _ database: StoredDatabase, _ writer: any StorageWriter
  ) throws -> (ZoneAnswer, isNews: Bool) {
    guard CloudServer.owns(caller, id) else {
      throw CloudError(.accessDenied, "Zone '\(id.name)' belongs to another user")
    }
    if let present = try writer.zone(database.key, named: id.name) {
      if !present.isDeleted { return (answer(try withEpochs(present, database, writer), caller), false) }
      try writer.removeZone(present.key)
    }
    guard CloudServer.isValidName(id.name) else { throw CloudError(.badRequest, "'\(id.name)' is no valid zone name") }
    let zone = try writer.addZone(
      database.key, name: id.name, incarnation: newIncarnation(), position: try writer.takePosition(database.key))
    return (answer(try withEpochs(zone, database, writer), caller), true)
  }

  private func deleteZone(
    _ id: ZoneID, _ caller: Caller, _ database: StoredDatabase, _ others: inout [News], _ writer: any StorageWriter
  ) throws -> ZoneAnswer {
    guard id.name != CloudServer.defaultZoneName else {
      throw CloudError(.badRequest, "The default zone cannot be deleted")
    }
    let zone = try zone(id, caller, database, writer)
    try writer.removeSubscriptions(database.key, zone: zone.name)
    if zone.hasShares, let place = try writer.place(ofZone: zone.key) {
      let ended = try SharesOfUser.end(inZone: zone.key, now: clock.now, writer) { [self] in newIncarnation() }
      others += try news(ended, in: zone, of: caller, place, [], except: caller, nil, writer)
    }
    if zone.bytes != 0 { try writer.addUsage(-zone.bytes, user: caller.storageOwner, zone: zone.key) }
    try writer.markZoneDeleted(zone.key, position: try writer.takePosition(database.key))
    return ZoneAnswer(id: ZoneID(name: zone.name, owner: caller.zoneOwner), token: nil, atomic: true, isDeleted: true)
  }

  func answer(_ zone: StoredZone, _ caller: Caller) -> ZoneAnswer {
    let isDefault = zone.name == CloudServer.defaultZoneName
    let hasFeed = !isDefault || settings.defaultZoneHasFeed
    return ZoneAnswer(
      id: zone.id(for: caller), token: hasFeed ? caughtUp(zone) : nil, atomic: !isDefault, isDeleted: zone.isDeleted)
  }

  /// An entry of a database's feed, from its row and what is to be seen of it.
  func feedAnswer(_ row: StoredZone, _ zone: StoredZone?, _ caller: Caller) -> ZoneAnswer {
    if let zone { return answer(zone, caller) }
    guard caller.isInShared else { return answer(row, caller) }
    return ZoneAnswer(id: ShareView.zoneID(ofRow: row.name), token: nil, atomic: true, isDeleted: true)
  }

  /// The token of a reader that has read the whole zone.
  func caughtUp(_ zone: StoredZone) -> ChangeToken {
    FeedToken(.zone, epochs: zone.epochs, incarnation: zone.incarnation, position: zone.position).changeToken
  }

  /// Throws when a request holds more entries than the server takes.
  public func checkCount(_ count: Int, _ options: RequestOptions) throws(CloudError) {
    let limit = requestLimit(options)
    guard count <= limit else {
      throw CloudError(.badRequest, "A request may hold \(limit) entries, this one holds \(count)")
    }
  }

  /// ASCII without control characters, 1 to 255 bytes, no `_` in front.
  static func isValidName(_ name: String) -> Bool {
    let bytes = name.utf8
    return (1...255).contains(bytes.count) && bytes.first != UInt8(ascii: "_")
      && bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7f }
  }
}
