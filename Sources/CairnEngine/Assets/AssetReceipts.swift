import CairnRecords

/// Assets that were uploaded and whose records are not saved yet: a request that is repeated uploads nothing again.
struct AssetReceipts {
  private struct Key: Hashable {
    var zone: ZoneID
    var target: AssetTarget
    var hash: String
  }

  private var receipts: [Key: Asset] = [:]

  /// Receipts are good for a limited time only; a sync that leaves more than this behind uploads some again.
  private static let most = 5_000

  subscript(zone: ZoneID, target: AssetTarget, hash: String) -> Asset? {
    get { receipts[Key(zone: zone, target: target, hash: hash)] }
    set {
      if receipts.count > Self.most { receipts = [:] }
      receipts[Key(zone: zone, target: target, hash: hash)] = newValue
    }
  }
}
