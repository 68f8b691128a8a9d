import CairnRecords

/// The field of a record that an asset is for.
public struct AssetTarget: Hashable, Sendable {
  public var record: String
  public var type: String
  public var field: String

  public init(record: String, type: String, field: String) {
    self.record = record
    self.type = type
    self.field = field
  }
}

extension CloudDatabase {
  /// A server without assets.
  public func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    targets.map { _ in .failure(CloudError(.limitExceeded, "This server takes no assets")) }
  }

  public func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    throw CloudError(.notFound, "This server has no assets")
  }
}

extension CloudError {
  /// Whether the failure of one asset says something about all of them: the connection, the account or the server.
  public var concernsEveryAsset: Bool {
    switch code {
    case .networkUnavailable, .networkFailure, .serverResponseLost, .cancelled, .throttled, .tryAgainLater, .zoneBusy,
      .authenticationFailed, .authenticationRequired, .internalError, .undecodableAnswer, .quotaExceeded:
      true
    default: false
    }
  }
}
