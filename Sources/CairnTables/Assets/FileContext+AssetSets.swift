import CairnRecords

/// Applying records whose values lie in assets.
extension FileContext {
  /// Bytes of assets in records that are applied together: bounds memory.
  private static let assetBytesPerSet: Int64 = 32 << 20

  /// Applies records, those whose assets are here in parts that fit in memory; the others are parked as they are. The
  /// result does not depend on where a set is cut (tables M1).
  func applyWithAssets(_ records: [Record], _ deletions: [RecordDeletion], now: Int64) throws -> ApplyCounts {
    if !records.contains(where: \.fields.hasAssets), try large.knowsNothing() {
      return try applySet(records, deletions, now: now)
    }
    var counts = ApplyCounts()
    let incoming = IncomingAssets(self)
    var set: [Record] = []
    var bytes: Int64 = 0
    for record in records {
      guard let plan = catalog.plan(wireName: record.type) else {
        set.append(record)
        continue
      }
      if record.fields.hasAssets {
        if try incoming.isEcho(record, plan) { continue }
        for case .asset(let asset)? in record.fields.lazy.map(\.value) { bytes += asset.size }
      }
      set.append(try incoming.taken(record, plan))
      guard bytes >= Self.assetBytesPerSet else { continue }
      counts.add(try applySet(set, [], now: now))
      (set, bytes) = ([], 0)
    }
    counts.add(try applySet(set, deletions, now: now))
    return counts
  }

  private func applySet(_ records: [Record], _ deletions: [RecordDeletion], now: Int64) throws -> ApplyCounts {
    let applier = Applier(self, now: now)
    try applier.apply(records, deletions)
    return applier.counts
  }
}

extension ApplyCounts {
  fileprivate mutating func add(_ other: ApplyCounts) {
    fetched += other.fetched
    removed += other.removed
    parked += other.parked
  }
}
