import CairnEngine
import CairnRecords
import CairnSQLite

/// Values that are too large for their record (tables 1.5, M16).
extension TablesCategory: AssetCategory {
  // MARK: Sending

  public func assetBytes(of record: String, field: String) throws -> [UInt8]? {
    guard let plan = file.names.plan(ofName: record), field.hasPrefix(RecordField.assetPrefix),
      let column = file.codec(plan).columnByName[String(field.dropFirst(RecordField.assetPrefix.count))]
    else { return nil }
    return try file.transaction {
      try Folder.fold(file)
      guard let row = try file.names.record(named: record, plan), row.isAlive,
        row.revision == sent[record]?.revision
      else { return nil }
      if row.flags.contains(.parked) {
        guard let parked = try file.inbox.find(record)?.record,
          case .success(let version) = FetchedVersion.decode(parked, file.codec(plan))
        else { return nil }
        return version.cells[column].plainValue.largeBytes
      }
      return try file.columnValue(plan, column, row.key)?.largeBytes
    }
  }

  public func noteUploaded(_ asset: Asset, of record: String, field: String) {
    file.large.noteUploaded(asset, record, String(field.dropFirst(RecordField.assetPrefix.count)))
  }

  // MARK: Receiving

  public func assetsNeeded(by records: [Record]) throws -> [NeededAsset] {
    try file.transaction {
      try Folder.fold(file)
      return try IncomingAssets(file).needed(by: records)
    }
  }

  public func hold(_ bytes: [UInt8], for asset: NeededAsset) throws -> Bool {
    try IncomingAssets(file).hold(bytes, asset.hash)
  }

  /// Fetched bytes go when nothing that is still to be applied can need them.
  func dropAssetBytes() throws {
    if try file.inbox.has(.staged) || file.inbox.has(.sealed) { return }
    try file.large.removeBytes()
  }

  // MARK: What could not be had

  public func recordsWithoutAssets(in zone: ZoneID, all: Bool, now: Int64) throws -> [String] {
    guard try file.inbox.has(.parked) else { return [] }
    return try file.inbox.parked().filter { entry in
      guard let record = entry.record, record.fields.hasAssets, let parking = entry.parking,
        file.catalog.plan(wireName: record.type) != nil
      else { return false }
      switch parking.reason {
      case .assetMissing: return all || parking.isDue(now)
      case .unknownTable: return true
      default: return false
      }
    }.map(\.name)
  }

  public func refreshRecordsWithoutAssets(_ records: [Record], now: Int64) throws {
    try file.transaction {
      try Folder.fold(file)
      let incoming = IncomingAssets(file)
      for record in records {
        guard let plan = file.catalog.plan(wireName: record.type), var entry = try file.inbox.find(record.id.name),
          var parking = entry.parking
        else { continue }
        if let resolved = try incoming.resolved(record, plan) {
          entry.record = resolved
          parking.retryAt = 0
          try release(record, plan)
        } else {
          entry.record = record
          parking.reason = .assetMissing
          parking.tries += 1
          parking.retryAt = now + Inbox.Parking.delay(tries: parking.tries)
        }
        entry.parking = parking
        try incoming.note(record, plan)
        try file.inbox.put(entry, table: plan)
      }
      try dropAssetBytes()
    }
  }

  /// Edits that waited for the version that they are to be merged with go on.
  private func release(_ record: Record, _ plan: TablePlan) throws {
    guard let local = try file.names.record(named: record.id.name, plan), local.reason == .unavailable else { return }
    var free = local
    free.reason = nil
    free.retryAt = nil
    try file.records.update(local, to: free)
  }
}
