import CairnRecords

/// Keeps the shares of one zone in step with its records, inside a write job about the owner's database.
///
/// Invariants, at the end of each job (web-services section 12):
/// 1. A share's feed has an entry without ``StoredShareEntry/left`` for its root, for every live record from which
///    following `parent` leads to the root, and for the record of the share; and no others.
/// 2. An entry's position is not less than that of its record, so whoever has read up to a position has seen every
///    record of the share as it was then.
/// 3. A participant's shared database has a live row for the zone exactly while there is an accepted share in it.
struct ShareKeeper {
  let writer: any StorageWriter
  let place: StoredZonePlace
  let owner: Caller
  let now: Int64
  let newIncarnation: () -> Int64
  /// By share, the newest position of its feed and the records of which it tells.
  private(set) var touched: [Int64: (position: Int64, names: Set<String>)] = [:]
  /// Users whose zones came, went or began anew.
  private(set) var refreshed: [Int64] = []
  /// The position of the last row of the zone that was changed here.
  private(set) var lastRowPosition: Int64?

  private var zone: Int64 { place.zone.key }

  init(
    _ writer: any StorageWriter, _ place: StoredZonePlace, owner: Caller, now: Int64,
    newIncarnation: @escaping () -> Int64
  ) {
    self.writer = writer
    self.place = place
    self.owner = owner
    self.now = now
    self.newIncarnation = newIncarnation
  }

  private func takePosition() throws -> Int64 { try writer.takePosition(place.database.key) }

  // MARK: Records

  /// Brings the feeds of all shares up to date with records that were stored or deleted, and with all that depends on
  /// them.
  ///
  /// - Parameters:
  ///   - changed: the present rows, tombstones among them.
  ///   - roots: records whose share has just come.
  mutating func recordsChanged(_ changed: [StoredRecord], roots: [String] = []) throws {
    var tree = ShareTree(zone: zone)
    var seen = Set<String>()
    var open: [String] = []
    for row in changed {
      seen.insert(row.name)
      if try update(row, at: row.position, isChanged: true, &tree) { open.append(row.name) }
    }
    for root in roots where seen.insert(root).inserted {
      guard let row = try writer.record(zone, named: root) else { continue }
      if try update(row, at: nil, isChanged: false, &tree) { open.append(root) }
    }
    while let parent = open.popLast() {
      for reference in try writer.referrers(zone, of: parent, limit: .max) where reference.kind == .parent {
        guard seen.insert(reference.source).inserted, let row = try writer.record(zone, named: reference.source) else {
          continue
        }
        if try update(row, at: nil, isChanged: false, &tree) { open.append(row.name) }
      }
    }
  }

  /// Returns whether the record is in other shares than before.
  private mutating func update(
    _ row: StoredRecord, at position: Int64?, isChanged: Bool, _ tree: inout ShareTree
  ) throws -> Bool {
    let before = Set(try writer.shareEntries(zone, named: row.name).filter { $0.left == nil }.map(\.share))
    let after = row.isLive ? try tree.shares(of: row.name, writer) : []
    var place = position
    for share in after.union(before).sorted() {
      let isIn = after.contains(share)
      guard isChanged || isIn != before.contains(share) else { continue }
      let entryPosition = try place ?? takePosition()
      place = entryPosition
      try put(
        StoredShareEntry(
          share: share, position: entryPosition, name: row.name, type: row.type, left: isIn ? nil : now))
    }
    return before != after
  }

  private mutating func put(_ entry: StoredShareEntry) throws {
    try writer.putShareEntry(entry, in: zone)
    var seen = touched[entry.share] ?? (0, [])
    seen.position = max(seen.position, entry.position)
    seen.names.insert(entry.name)
    touched[entry.share] = seen
  }

  /// Stores a record again whose answer has changed though its fields have not.
  @discardableResult
  mutating func renew(_ name: String, isShared: Bool, by user: Int64? = nil) throws -> StoredRecord? {
    guard var row = try writer.record(zone, named: name), row.isLive else { return nil }
    let previous = row.position
    row.isShared = isShared
    row.position = try takePosition()
    if let user { (row.modified, row.modifiedBy) = (now, user) }
    try writer.put(row, in: zone, replacing: previous)
    lastRowPosition = row.position
    return row
  }

  // MARK: Shares

  /// Ends a share: it is gone from the shared databases of all who have accepted it. Its record is the caller's matter.
  mutating func end(_ share: StoredShare) throws {
    let users = try accepted(share.key)
    try writer.removeShare(share.key)
    touched[share.key] = nil
    for user in users { try refresh(user) }
  }

  /// Those who have accepted a share.
  private func accepted(_ share: Int64) throws -> [Int64] {
    try writer.participants(of: share).filter(\.hasAccepted).compactMap(\.user)
  }

  /// Stores who takes part, and lets in and out those for whom that makes a difference.
  mutating func setParticipants(_ participants: [StoredParticipant], of share: StoredShare) throws {
    func seeing(_ all: [StoredParticipant]) -> Set<Int64> {
      Set(all.filter { StoredParticipation(share: share, participant: $0).shows }.compactMap(\.user))
    }
    let before = Set(try accepted(share.key))
    try writer.setParticipants(of: share.key, participants)
    for user in before.symmetricDifference(seeing(participants)).sorted() { try refresh(user) }
  }

  /// Gives a participant's zone another incarnation, or ends it: the set of shares in it is another one.
  private mutating func refresh(_ user: Int64) throws {
    let remaining = try writer.participations(of: user).filter { $0.share.zone == zone && $0.shows }
    let scope = place.scope.of(.shared)
    let name = ShareView.rowName(owner: owner.recordName, zone: place.zone.name)
    let database =
      try writer.database(user, scope) ?? writer.addDatabase(user, scope, incarnation: newIncarnation())
    let row = try writer.zone(database.key, named: name)
    if remaining.isEmpty {
      guard let row, !row.isDeleted else { return }
      try writer.removeSubscriptions(database.key, zone: name)
      try writer.markZoneDeleted(row.key, position: try writer.takePosition(database.key))
    } else {
      if let row { try writer.removeZone(row.key) }
      _ = try writer.addZone(
        database.key, name: name, incarnation: newIncarnation(), position: try writer.takePosition(database.key))
    }
    if !refreshed.contains(user) { refreshed.append(user) }
  }

  // MARK: The end of the job

  /// Notes how far feeds have come, and tells the shared databases of all who have accepted them.
  ///
  /// - Returns: by user, the records of which their feed of the zone has news.
  mutating func finish() throws -> [Int64: Set<String>] {
    var news: [Int64: Set<String>] = [:]
    if let lastRowPosition { try writer.setZonePosition(zone, lastRowPosition) }
    for (key, seen) in touched.sorted(by: { $0.key < $1.key }) {
      guard var share = try writer.shares(.key(key)).first else { continue }
      share.position = seen.position
      try writer.putShare(share)
      for user in try accepted(key) { news[user, default: []].formUnion(seen.names) }
    }
    let name = ShareView.rowName(owner: owner.recordName, zone: place.zone.name)
    for user in news.keys.sorted() {
      guard let database = try writer.database(user, place.scope.of(.shared)),
        let row = try writer.zone(database.key, named: name), !row.isDeleted
      else { continue }
      try writer.setZonePosition(row.key, try writer.takePosition(database.key))
    }
    for user in refreshed { news[user, default: []].formUnion([]) }
    return news
  }
}

/// To which shares records belong, by their parents.
struct ShareTree {
  let zone: Int64
  private var known: [String: Set<Int64>] = [:]

  init(zone: Int64) { self.zone = zone }

  /// The shares of a live record: its own and those of its parent. Nothing for what is not there.
  mutating func shares(of name: String, _ reader: any StorageReader) throws -> Set<Int64> {
    var path: [(name: String, own: Set<Int64>)] = []
    var found: Set<Int64> = []
    var seen = Set<String>()
    var next: String? = name
    while let current = next {
      if let base = known[current] {
        found = base
        break
      }
      guard let row = try reader.record(zone, named: current), row.isLive else { break }
      // Parents of stores that are older than sharing may go round in circles.
      guard seen.insert(current).inserted else { break }
      path.append((current, try own(row, reader)))
      next = row.parent
    }
    for step in path.reversed() {
      found.formUnion(step.own)
      known[step.name] = found
    }
    return found
  }

  private func own(_ row: StoredRecord, _ reader: any StorageReader) throws -> Set<Int64> {
    guard row.isShared else { return [] }
    let isShare = row.type == RecordSharing.shareType
    let share = try reader.shares(
      isShare ? .record(zone: zone, name: row.name) : .root(zone: zone, name: row.name)
    ).first
    // A short GUID alone shares nothing.
    guard let share, share.name != nil else { return [] }
    return [share.key]
  }
}
