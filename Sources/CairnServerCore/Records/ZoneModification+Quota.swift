import CairnRecords

/// What records take, and users' quotas (web-services section 12).
///
/// Invariant: a zone's `bytes` are the sum of what its live records count for, and a user's usage is the sum over the
/// zones of their databases and their records in public databases. Both move with the write that changes them, so no
/// request has to add anything up.
extension ZoneModification {
  /// Who pays for a record: the owner of the database, in a public one who created the record.
  private func payer(_ row: StoredRecord) -> Int64 { caller.isInPublic ? row.createdBy : caller.storageOwner }

  /// Bytes that an operation adds to the usage of its payer.
  private func growth(_ step: Step, _ reader: any StorageReader) throws -> (payer: Int64, bytes: Int64) {
    let before = try step.live.map { try counted($0, reader) } ?? 0
    if step.isSave, let after = step.after {
      return (payer(after), after.bytesCounted(assets: step.assetBytes) - before)
    }
    if step.isDelete, let live = step.live { return (payer(live), -before) }
    return (caller.storageOwner, 0)
  }

  private func counted(_ row: StoredRecord, _ reader: any StorageReader) throws -> Int64 {
    var assets: Int64 = 0
    if row.hasAssets {
      for digest in try ZoneModification.digests(of: row) { assets += try reader.asset(digest)?.size ?? 0 }
    }
    return row.bytesCounted(assets: assets)
  }

  /// Fails the saves that would take a user beyond the quota, in the order of the request. What a delete frees, the
  /// saves after it may use; a save that makes a record no greater always works. Returns whether one failed.
  func judgeQuota(_ reader: any StorageReader) throws -> Bool {
    var usages: [Int64: StoredUsage] = [:]
    var failed = false
    for step in steps where step.failure == nil {
      step.growth = try growth(step, reader)
      var usage = try usages[step.growth.payer] ?? reader.usage(of: step.growth.payer)
      if step.growth.bytes > 0, let quota = usage.quota, usage.bytes + step.growth.bytes > quota {
        step.failure = CloudError(
          .quotaExceeded, "The user has \(quota) bytes, of which \(max(0, quota - usage.bytes)) are left")
        failed = true
      } else {
        usage.bytes += step.growth.bytes
      }
      usages[step.growth.payer] = usage
    }
    return failed
  }

  /// Notes what the request changes; before the rows of the cascade are changed, from which that is known.
  func storeUsage(_ writer: any StorageWriter) throws {
    var growths: [Int64: Int64] = [:]
    for step in steps where step.failure == nil { growths[step.growth.payer, default: 0] += step.growth.bytes }
    for row in cascade { growths[payer(row), default: 0] -= try counted(row, writer) }
    for (user, bytes) in growths.sorted(by: { $0.key < $1.key }) where bytes != 0 {
      try writer.addUsage(bytes, user: user, zone: zone.key)
    }
  }
}

extension CloudServer {
  /// Refuses to take bytes for records that could not be saved.
  func refuseUploads(of caller: Caller) throws(CloudError) {
    let usage = try read { try $0.usage(of: caller.key) }
    guard let quota = usage.quota, usage.bytes >= quota else { return }
    throw CloudError(.quotaExceeded, "The user has \(quota) bytes, of which none are left")
  }
}
