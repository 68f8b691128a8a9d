import CairnRecords

/// The server as the engine sees it: one database of one signed-in user.
///
/// Calls block until the answer is there and are made on the engine's own thread, never on Swift's cooperative pool.
/// `CairnClient` implements it over HTTP; `CairnTesting` over the server core in memory.
public protocol CloudDatabase: AnyObject, Sendable {
  /// What the server allows per request. Defaults until the first answer told otherwise.
  var limits: CloudLimits { get }

  /// The user record name of the signed-in user: the identity.
  func currentUser() throws(CloudError) -> String

  func databaseChanges(since token: ChangeToken?) throws(CloudError) -> DatabasePage

  /// One page of a zone's feed. A failure of the zone is thrown like a failure of the request.
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?) throws(CloudError) -> ZonePage

  /// The same, limited to records of the given types. A server that can't limit answers them all; the caller gets only
  /// those asked for. Default: filters ``zoneChanges(in:since:)``.
  func zoneChanges(in zone: ZoneID, since token: ChangeToken?, types: [String]) throws(CloudError) -> ZonePage

  /// One outcome per operation, in the order of `operations`; and where the zone's feed stood before and after, on
  /// servers that tell.
  func modifyReportingPosition(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> ModifyReport

  /// One result per name, in the order of `names`.
  func lookup(in zone: ZoneID, names: [String]) throws(CloudError) -> [Result<Record, CloudError>]

  /// One result per zone, in the order of `zones`. Creating a zone that exists succeeds.
  func createZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>]

  func deleteZones(_ zones: [ZoneID]) throws(CloudError) -> [Result<ZoneID, CloudError>]

  func zoneExists(_ zone: ZoneID) throws(CloudError) -> Bool

  /// Uploads the bytes of assets, one after the other, and gives each with its receipt. Failures of one asset are in
  /// its place; a failure that concerns them all is thrown. Safe to repeat.
  ///
  /// - Parameter bytes: the bytes of the target of that index, asked for when they are sent; what it throws takes the
  ///   asset's place. Default: a server without assets.
  func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>]

  /// The bytes of an asset as a record of the server names it. Fails with `notFound` when they are not there any more,
  /// with `accessDenied` when its address has expired: the record, looked up again, has another. Default: no assets.
  func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8]

  /// Makes a call that is under way, and every later one, fail with `cancelled`. May be called from any thread.
  func cancel()
}

extension CloudDatabase {
  public func zoneChanges(in zone: ZoneID, since token: ChangeToken?, types: [String]) throws(CloudError) -> ZonePage {
    var page = try zoneChanges(in: zone, since: token)
    page.records.removeAll { !types.contains($0.type) }
    return page
  }

  /// One outcome per operation, in the order of `operations`.
  public func modify(
    in zone: ZoneID, _ operations: [RecordOperation], atomic: Bool
  ) throws(CloudError) -> [OperationOutcome] {
    try modifyReportingPosition(in: zone, operations, atomic: atomic).outcomes
  }
}

/// What became of a modify request.
public struct ModifyReport: Hashable, Sendable {
  /// One per operation, in their order.
  public var outcomes: [OperationOutcome]
  /// Between its tokens lies nothing but what the operations name. Nil where the server does not tell.
  public var position: FeedStep?

  public init(_ outcomes: [OperationOutcome], position: FeedStep? = nil) {
    self.outcomes = outcomes
    self.position = position
  }
}

/// Request limits of a server.
public struct CloudLimits: Hashable, Sendable {
  /// Operations, look-ups or entries per request.
  public var entriesPerRequest: Int
  /// Encoded bytes of a record without assets.
  public var bytesPerRecord: Int
  /// Encoded bytes of a request, assets aside.
  public var bytesPerRequest: Int

  public init(entriesPerRequest: Int = 200, bytesPerRecord: Int = 1_000_000, bytesPerRequest: Int = 1_500_000) {
    self.entriesPerRequest = entriesPerRequest
    self.bytesPerRecord = bytesPerRecord
    self.bytesPerRequest = bytesPerRequest
  }
}
