import CairnRecords

/// One parked record, as `cairn parked` shows it.
public struct ParkedRecord: Hashable, Sendable {
  public var table: String
  public var record: String
  public var reason: ParkedReason
  public var detail: String
  /// ms since 1970.
  public var since: Int64
}

/// One event, as `cairn log` shows it.
public struct LoggedEvent: Hashable, Sendable {
  /// ms since 1970.
  public var time: Int64
  public var kind: String
  public var table: String?
  public var record: String?
  public var detail: String
}

extension SyncedDatabase {
  /// Every parked record, parents first.
  public func parked() throws -> [ParkedRecord] {
    try file.inbox.parked().compactMap { entry in
      guard let parking = entry.parking else { return nil }
      let type = entry.record?.type ?? ""
      return ParkedRecord(
        table: file.catalog.plan(wireName: type)?.name ?? type, record: entry.name, reason: parking.reason,
        detail: parking.detail, since: parking.since)
    }
  }

  /// Tries every parked record again, now.
  public func retryParked(now: Int64) throws { try category.retryParked(in: zone, all: true, now: now) }

  /// The newest events, newest last.
  public func events(limit: Int) throws -> [LoggedEvent] {
    try file.outcomes.events(limit: limit).map {
      LoggedEvent(time: $0.time, kind: $0.kind, table: $0.table, record: $0.record, detail: $0.detail)
    }
  }

  /// Notes what a finished sync did, for `cairn log`. A sync that did nothing is not written down.
  ///
  /// - Parameter failure: why it ended early; nil also where it only waits for a time that is known.
  public func noteSync(_ counts: TablesCounts, failure: String?) throws {
    // Taking the write lock for nothing would hold up other programs.
    guard failure != nil || counts != TablesCounts() else { return }
    try file.transaction {
      if let failure { try file.outcomes.add(.error, failure) }
      guard counts != TablesCounts() else { return }
      try file.outcomes.add(
        .synced,
        "sent \(counts.saved) saves and \(counts.deleted) deletes, fetched \(counts.fetched), removed \(counts.removed), merged \(counts.conflicts)"
      )
    }
  }
}
