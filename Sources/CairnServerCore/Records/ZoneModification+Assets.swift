import CairnRecords

/// Assets of a write (web-services section 11): each needs a receipt, unless the record has it already.
extension ZoneModification {
  /// Checks receipts and leaves of every asset what the store keeps.
  func admitAssets(_ fields: inout Fields, _ step: Step, _ reader: any StorageReader) throws {
    guard fields.contains(where: { $0.value?.holdsAssets == true }) else { return }
    var present: Set<[UInt8]>?
    for field in fields.storage {
      guard let value = field.value, value.holdsAssets else { continue }
      let admitted = try value.mapAssets { asset in
        let summary: AssetSummary
        if let receipt = asset.receipt {
          summary = try check(receipt, field.name, step, reader)
        } else {
          if present == nil { present = try ZoneModification.digests(of: step.live) }
          guard let digest = asset.digest, present?.contains(digest) == true else { throw CloudServer.badReceipt }
          summary = AssetSummary(digest: digest, size: asset.size)
        }
        if step.assets.insert(summary.digest).inserted, let stored = try reader.asset(summary.digest) {
          guard stored.size == summary.size || asset.receipt == nil else { throw CloudServer.badReceipt }
          step.assetBytes += stored.size
        }
        var kept = Asset(summary)
        kept.referenceChecksum = asset.referenceChecksum
        kept.wrappingKey = asset.wrappingKey
        return kept
      }
      fields.set(field.name, admitted)
    }
  }

  private func check(
    _ receipt: String, _ field: String, _ step: Step, _ reader: any StorageReader
  ) throws -> AssetSummary {
    guard let secret = try server.assetSecret(reader),
      let ticket = AssetTicket(receipt, [.receipt, .copy], secret, now: now), ticket.owner == database.incarnation,
      ticket.kind == .copy
        || ticket.binding == AssetTicket.binding(type: step.type, name: step.name, field: field),
      // A store that was restored may not know what it once gave a receipt for.
      try reader.asset(ticket.digest) != nil
    else { throw CloudServer.badReceipt }
    return AssetSummary(digest: ticket.digest, size: ticket.size)
  }

  /// What a stored record has; a record without assets is not decoded.
  static func digests(of row: StoredRecord?) throws -> Set<[UInt8]> {
    guard let row, row.hasAssets else { return [] }
    var found: Set<[UInt8]> = []
    for field in try FieldBlob.decode(row.fields) {
      _ = field.value?.mapAssets { asset in
        if let digest = asset.digest { found.insert(digest) }
        return asset
      }
    }
    return found
  }
}
