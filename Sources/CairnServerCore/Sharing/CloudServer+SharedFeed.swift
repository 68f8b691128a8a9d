import CairnRecords

/// A row of a zone's feed where a reader finds it.
struct FeedRow {
  /// A tombstone where the record has left what the reader sees.
  var row: StoredRecord
  /// Of the feed: that of the row, or in a shared zone of the entry.
  var position: Int64
  /// Whether the feed tells of this record again, later.
  var isOutdated = false
}

extension CloudServer {
  /// Calls `body` with the rows of a zone's feed between two positions as its reader sees them, in the order of
  /// positions, until it returns false.
  func scan(
    _ zone: StoredZone, after position: Int64, before end: Int64 = .max, newestFirst: Bool, _ reader: any StorageReader,
    _ body: (FeedRow) throws -> Bool
  ) throws {
    guard let view = zone.view else {
      return try reader.scan(zone.key, after: position, before: end, newestFirst: newestFirst) {
        try body(FeedRow(row: $0, position: $0.position))
      }
    }
    var feed = SharedFeed(view: view, zone: zone.key, position: position, chunk: newestFirst ? .max : 500)
    while true {
      let found = try feed.next(reader)
      guard !found.isEmpty else { return }
      let entries = found.filter { $0.position < end }
      try reader.prefetch(zone.key, named: entries.map(\.name), referrersOf: [])
      for entry in newestFirst ? entries.reversed() : entries {
        guard try body(feed.row(entry, reader)) else { return }
      }
    }
  }
}

/// The feed of a shared zone: those of the accepted shares, merged by position.
private struct SharedFeed {
  let view: ShareView
  let zone: Int64
  var position: Int64
  let chunk: Int

  /// The next entries, each position once; none at the end.
  mutating func next(_ reader: any StorageReader) throws -> [StoredShareEntry] {
    var found: [StoredShareEntry] = []
    var end = Int64.max
    for part in view.parts where part.share.position > position {
      let entries = try reader.shareEntries(of: part.share.key, after: position, limit: chunk)
      // What comes after the end of a cut-off list is not known of this share.
      if entries.count == chunk, let last = entries.last { end = min(end, last.position) }
      found += entries
    }
    found = found.filter { $0.position <= end }
    found.sort { ($0.position, $0.share) < ($1.position, $1.share) }
    position = found.last?.position ?? position
    // One position is one record, in however many shares it is.
    var last: Int64?
    return found.filter { entry in
      defer { last = entry.position }
      return entry.position != last
    }
  }

  func row(_ entry: StoredShareEntry, _ reader: any StorageReader) throws -> FeedRow {
    var belongs = entry.left == nil
    var isOutdated = false
    if view.parts.count > 1 {
      let all = try reader.shareEntries(zone, named: entry.name).filter { other in
        view.parts.contains { $0.share.key == other.share }
      }
      belongs = all.contains { $0.left == nil }
      isOutdated = all.contains { $0.position > entry.position }
    }
    let stored = try reader.record(zone, named: entry.name)
    if belongs, let stored, stored.isLive {
      return FeedRow(row: stored, position: entry.position, isOutdated: isOutdated)
    }
    var end = StoredRecord(
      name: entry.name, position: entry.position, type: entry.type, created: 0, createdBy: 0,
      modified: entry.left ?? 0, modifiedBy: 0, died: entry.left ?? 0, fields: [])
    if let stored, !stored.isLive, stored.position == entry.position {
      (end.modified, end.modifiedBy) = (stored.modified, stored.modifiedBy)
    }
    return FeedRow(row: end, position: entry.position, isOutdated: isOutdated)
  }
}
