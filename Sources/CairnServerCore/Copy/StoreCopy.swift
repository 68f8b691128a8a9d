import CairnRecords

/// Copies a whole store into an empty one, of whichever kinds: users and tokens, databases with positions and epochs,
/// records and tombstones, schema, subscriptions, assets. Clients go on with their tokens as if nothing had happened;
/// the copy's first server begins an epoch as every start does.
///
/// No server may run on either store meanwhile. Bytes of assets come first, everything else is one transaction: a copy
/// that was broken off leaves a store that still counts as empty.
public struct StoreCopy {
  /// What was copied.
  public struct Summary: Hashable, Sendable {
    public var users = 0
    public var databases = 0
    public var zones = 0
    /// Live ones and tombstones.
    public var records = 0
    public var assets = 0
  }

  private let source: (storage: any Storage, assets: any AssetStore)
  private let target: (storage: any Storage, assets: any AssetStore)

  public init(
    from source: (storage: any Storage, assets: any AssetStore),
    to target: (storage: any Storage, assets: any AssetStore)
  ) {
    self.source = source
    self.target = target
  }

  /// Copies.
  ///
  /// - Throws: `exists` when the target is not empty; what the stores throw.
  public func run() throws(CloudError) -> Summary {
    do {
      guard try target.storage.read({ try ($0 as? any StoreCopyReader & StoreCopyWriter)?.isEmptyStore() ?? false })
      else { throw CloudError(.exists, "there is data in the target already") }
      for (asset, _) in try assets() { try copyBytes(of: asset) }
      return try copyRows()
    } catch { throw CloudServer.cloudError(error) }
  }

  private func assets() throws -> [(AssetSummary, Int64)] {
    var found: [(AssetSummary, Int64)] = []
    try parts { if case .asset(let asset, let keepUntil, _) = $0 { found.append((asset, keepUntil)) } }
    return found
  }

  private func parts(_ body: (StoreCopyPart) throws -> Void) throws {
    try source.storage.read { reader in
      guard let reader = reader as? any StoreCopyReader else {
        throw StorageFailure("This kind of store can't be copied")
      }
      try reader.copyParts(body)
    }
  }

  private func copyBytes(of asset: AssetSummary) throws {
    // Bytes that are missing in the source are missing there too: their download fails in both.
    guard let bytes = try source.assets.open(asset.digest) else { return }
    let writer = try target.assets.makeWriter()
    try bytes.forEachPiece { try writer.append($0) }
    guard try writer.finish() == asset else {
      throw StorageFailure("The bytes of an asset are damaged: its SHA-256 is another one")
    }
    try CloudServer.write(target.storage) { job in
      try writer.publish(job)
      try job.keepAsset(asset, until: 0)
    }
  }

  private func copyRows() throws(CloudError) -> Summary {
    let source = source.storage
    return try CloudServer.write(target.storage) { writer in
      guard let writer = writer as? any StoreCopyWriter else {
        throw StorageFailure("A copy can't be put into this kind of store")
      }
      try writer.beginCopy()
      var summary = Summary()
      try source.read { reader in
        guard let reader = reader as? any StoreCopyReader else {
          throw StorageFailure("This kind of store can't be copied")
        }
        try reader.copyParts { part in
          try writer.putCopy(part)
          summary.count(part)
        }
      }
      return summary
    }
  }
}

extension StoreCopy.Summary {
  fileprivate mutating func count(_ part: StoreCopyPart) {
    switch part {
    case .user: users += 1
    case .database: databases += 1
    case .zone(_, let zone) where !zone.isDeleted: zones += 1
    case .records(_, let all): records += all.count
    case .asset: assets += 1
    default: break
    }
  }
}
