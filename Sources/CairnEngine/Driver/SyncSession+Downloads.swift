import CairnRecords

/// Fetches what records need before a category gets them (engine section 7, rule 7).
extension SyncSession {
  /// What came with the answer to a task. Throws what concerns the connection or the account: then the records come
  /// again.
  func supplyAssets(_ task: EngineTask, _ answer: EngineAnswer) throws {
    switch (task, answer) {
    case (.fetchPage, _), (.sweep, _):
      for (index, part) in page?.parts ?? [:] { try supply(part.records, categories[index]) }
    case (.modify(let zone, _, _), .outcomes(let outcomes, _)):
      let records = outcomes.compactMap { outcome -> Record? in
        if case .failed(_, let error) = outcome { error.serverRecord } else { nil }
      }
      try supplyConflicts(records, zone)
    case (.lookup(let zone, _), .records(let results)):
      try supplyConflicts(results.compactMap { if case .success(let record) = $0 { record } else { nil } }, zone)
    default: break
    }
  }

  /// Tries again what could not be had. Whatever fails, the records stay where they are.
  func supplyWaiting(_ zone: ZoneID, _ index: Int, all: Bool) throws {
    guard let category = categories[index] as? any AssetCategory else { return }
    let names = try category.recordsWithoutAssets(in: zone, all: all, now: time.wallClock)
    guard !names.isEmpty else { return }
    var rest = names[...]
    do {
      while !rest.isEmpty {
        let chunk = Array(rest.prefix(max(1, cloud.limits.entriesPerRequest)))
        rest = rest.dropFirst(chunk.count)
        let records = try cloud.lookup(in: zone, names: chunk).compactMap { result in
          if case .success(let record) = result { record } else { nil }
        }
        try supply(records, category)
        try retrying { try category.refreshRecordsWithoutAssets(records, now: time.wallClock) }
      }
    } catch is CloudError {
      // The next call tries again; the reason that the records are parked for stands as it is.
    }
  }

  /// The answer to the request must not be lost for a download: what fails here is put aside by the category.
  private func supplyConflicts(_ records: [Record], _ zone: ZoneID) throws {
    for category in categories {
      let own = records.filter { category.claims(type: $0.type, name: $0.id.name, in: zone) }
      do { try supply(own, category) } catch is CloudError { continue }
    }
  }

  private func supply(_ records: [Record], _ category: any RecordCategory) throws {
    guard let category = category as? any AssetCategory, records.contains(where: \.fields.hasAssets),
      try category.isEnabled()
    else { return }
    for needed in try category.assetsNeeded(by: records.filter(\.fields.hasAssets)) {
      if wasCancelled { throw CloudError(.cancelled, "Cancelled") }
      do throws(CloudError) {
        let bytes = try cloud.downloadAsset(needed.asset)
        try keep(bytes, needed, category)
      } catch {
        switch error.code {
        case .networkUnavailable, .networkFailure, .cancelled, .throttled, .authenticationFailed,
          .authenticationRequired:
          throw error
        // Only this asset can't be had: the others can.
        default: continue
        }
      }
    }
  }

  private func keep(_ bytes: [UInt8], _ needed: NeededAsset, _ category: any AssetCategory) throws(CloudError) {
    do { _ = try retrying { try category.hold(bytes, for: needed) } } catch {
      // The file can't be written: as if the asset had not come.
      throw CloudError(.notFound, "\(error)")
    }
  }
}
