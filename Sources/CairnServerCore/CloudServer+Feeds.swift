import CairnRecords

/// What a client wants of a zone's feed.
public struct ZoneFeedQuery: Sendable {
  public var zone: ZoneID
  /// Nil, or an empty text, for a run from the beginning.
  public var token: ChangeToken?
  public var resultsLimit: Int?
  /// Names of the fields that are wanted; nil for all.
  public var desiredKeys: [String]?
  public var desiredTypes: [String]?
  /// Newest first. A run in reverse begins without a token; its tokens go on with it.
  public var reverse = false

  public init(zone: ZoneID, token: ChangeToken? = nil) {
    self.zone = zone
    self.token = token
  }
}

/// One entry of a feed.
public enum FeedEntry: Sendable {
  case record(Record)
  case tombstone(Tombstone)
}

/// A record's end with everything that the server knows of it; which part a client sees is up to its extensions.
public struct Tombstone: Hashable, Sendable {
  public var id: RecordID
  public var type: String
  public var changeTag: ChangeTag
  /// Time of the delete in ms since 1970, by the client where it told, and its user.
  public var modified: RecordStamp
}

/// A page of a zone's feed, oldest change first.
public struct FeedPage: Sendable {
  public var zone: ZoneID
  public var entries: [FeedEntry]
  public var token: ChangeToken
  public var moreComing: Bool
}

/// A page of a database's feed.
public struct ZoneFeedPage: Sendable {
  public var zones: [ZoneAnswer]
  public var token: ChangeToken
  public var moreComing: Bool
}

extension CloudServer {
  /// One result per zone (changes/zone). All pages are of one snapshot.
  public func changes(
    _ caller: Caller, _ scope: DatabaseScope, _ requests: [ZoneFeedQuery],
    _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<FeedPage, CloudError>] {
    try checkCount(requests.count, options)
    let (database, caller) = try open(caller, scope)
    return try read { reader in
      var bytesLeft = settings.bytesPerPage
      let types = try schema(scope, reader).yielded
      return try requests.map { request in
        do {
          let zone = try zone(request.zone, caller, database, reader)
          return .success(try page(zone, request, options, caller.acting(in: zone), types, reader, &bytesLeft))
        } catch let error as CloudError {
          return .failure(error)
        }
      }
    }
  }

  /// One page of the zones that changed (changes/database, zones/changes).
  public func databaseChanges(
    _ caller: Caller, _ scope: DatabaseScope, since token: ChangeToken?, resultsLimit: Int? = nil,
    _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> ZoneFeedPage {
    let (database, caller) = try open(caller, scope)
    let limit = pageLimit(resultsLimit, options)
    return try read { reader in
      let epochs = try epochs(database, reader)
      let zones = try zones(database, reader).filter { $0.name != CloudServer.defaultZoneName }
      let newest = zones.last?.position ?? 0
      let start = try start(
        token, .database, epochs, incarnation: database.incarnation, newest: newest, pruned: 0, options)
      var answers: [ZoneAnswer] = []
      var position = start.position
      var moreComing = false
      for zone in zones where zone.position > start.position {
        if zone.isDeleted, start.skips(zone.position) { continue }
        if answers.count == limit {
          moreComing = true
          break
        }
        answers.append(feedAnswer(zone, try shown(zone, caller, reader), caller))
        position = zone.position
      }
      let end = FeedToken(
        .database, epochs: epochs, incarnation: database.incarnation,
        position: moreComing ? position : max(newest, start.position), head: start.head,
        replaysTombstones: start.replaysTombstones)
      return ZoneFeedPage(zones: answers, token: end.changeToken, moreComing: moreComing)
    }
  }

  // MARK: Where a reader stands

  /// A reader's position, after the checks of web-services section 8.
  private func start(
    _ token: ChangeToken?, _ namespace: FeedToken.Namespace, _ epochs: Epochs, incarnation: Int64, newest: Int64,
    pruned: Int64, _ options: RequestOptions
  ) throws -> FeedToken {
    guard let token, !token.rawValue.isEmpty else {
      return FeedToken(
        namespace, epochs: epochs, incarnation: incarnation, position: 0, head: newest,
        replaysTombstones: options.allTombstones)
    }
    let start = try FeedToken(token, in: namespace)
    guard start.incarnation == incarnation else { throw CloudServer.expired(.incarnation) }
    guard epochs.contains(start.furthest, in: start.epoch, current: newest) else {
      throw CloudServer.expired(.epoch)
    }
    guard start.furthest >= pruned else { throw CloudServer.expired(.retention) }
    return start
  }

  private static func expired(_ cause: CloudError.ExpiryCause) -> CloudError {
    CloudError(.changeTokenExpired, "Sync token expired", expiryCause: cause)
  }

  // MARK: One zone

  private func page(
    _ zone: StoredZone, _ request: ZoneFeedQuery, _ options: RequestOptions, _ caller: Caller,
    _ types: YieldedTypes, _ reader: any StorageReader, _ bytesLeft: inout Int
  ) throws -> FeedPage {
    if zone.name == CloudServer.defaultZoneName, !settings.defaultZoneHasFeed {
      throw CloudError(.badRequest, "AppDefaultZone does not support getChanges call")
    }
    let hasToken = request.token.map { !$0.rawValue.isEmpty } ?? false
    let start = try start(
      request.token, .zone, zone.epochs, incarnation: zone.incarnation, newest: zone.position, pruned: zone.pruned,
      options)
    if request.reverse, hasToken, !start.isReverse {
      throw CloudError(.badRequest, "reverse begins without a syncToken")
    }
    let isReverse = request.reverse || start.isReverse
    var collector = PageCollector(
      start: start, limit: pageLimit(request.resultsLimit, options), types: request.desiredTypes)
    collector.rowsLeft = settings.rowsPerScan
    // Nothing has been read yet, should the page have no room at all.
    if isReverse, !start.isReverse { collector.position = start.head + 1 }
    collector.bytesLeft = bytesLeft
    let id = zone.id(for: caller)
    var entries: [FeedEntry] = []
    try scan(
      zone, after: isReverse ? 0 : start.position, before: start.isReverse ? start.position : .max,
      newestFirst: isReverse, reader
    ) { row in
      switch collector.take(row) {
      case .skip: return true
      case .stop: return false
      case .show:
        entries.append(try entry(row, in: id, of: zone, keys: request.desiredKeys, types, caller, reader))
        return true
      }
    }
    bytesLeft = collector.bytesLeft
    let moreComing = collector.isCutOff
    // What has changed since a run in reverse began comes after it, in the order of changes.
    let last = start.isReverse ? start.head : max(zone.position, start.position)
    let end = FeedToken(
      .zone, epochs: zone.epochs, incarnation: zone.incarnation,
      position: moreComing ? collector.position : last, head: start.head,
      replaysTombstones: start.replaysTombstones, isReverse: isReverse && moreComing)
    return FeedPage(zone: id, entries: entries, token: end.changeToken, moreComing: moreComing)
  }

  private func entry(
    _ found: FeedRow, in id: ZoneID, of zone: StoredZone, keys: [String]?, _ types: YieldedTypes, _ caller: Caller,
    _ reader: any StorageReader
  ) throws -> FeedEntry {
    let row = found.row
    if row.isLive { return .record(try record(row, in: id, of: zone, keys: keys, types, caller, reader)) }
    return .tombstone(
      Tombstone(
        id: RecordID(name: row.name, zone: id), type: row.type, changeTag: zone.epochs.tag(row.position),
        modified: RecordStamp(timestamp: row.modified, userRecordName: try userName(row.modifiedBy, caller, reader))))
  }
}

extension FeedToken {
  /// Whether a tombstone at `position` is of a record that died before the run began.
  func skips(_ position: Int64) -> Bool { position <= head && !replaysTombstones }
}

/// Decides which rows make a page and where it ends.
private struct PageCollector {
  enum Verdict { case show, skip, stop }

  let start: FeedToken
  let limit: Int
  let types: [String]?
  var rowsLeft = Int.max
  var bytesLeft = Int.max
  var shown = 0
  /// Everything up to here, in reverse down to here, is on this page or of no interest.
  var position: Int64
  var isCutOff = false

  init(start: FeedToken, limit: Int, types: [String]?) {
    self.start = start
    self.limit = limit
    self.types = types
    position = start.position
  }

  mutating func take(_ found: FeedRow) -> Verdict {
    let row = found.row
    if rowsLeft == 0 {
      isCutOff = true
      return .stop
    }
    rowsLeft -= 1
    let isOfInterest = (row.isLive || !start.skips(found.position)) && types?.contains(row.type) ?? true
    guard isOfInterest, !found.isOutdated else {
      position = found.position
      return .skip
    }
    if shown == limit || bytesLeft <= 0 {
      isCutOff = true
      return .stop
    }
    shown += 1
    bytesLeft -= row.fields.count + 200
    position = found.position
    return .show
  }
}
