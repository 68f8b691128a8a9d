import CairnRecords

/// The engine's queue of changes, after CKSyncEngine's `State`: records and zones, as a value (engine S1–S9).
///
/// It holds the zone changes of every engine, and the record changes of categories that keep no outbox of their own.
/// ``takeDelta()`` gives the rows to commit: as many as changes were made.
public struct PendingState: Sendable {
  public var records: PendingQueue<RecordID>
  public var zones: PendingQueue<ZoneID>

  public init() {
    records = PendingQueue(prefix: StoredKeys.queuePrefix + "r/")
    zones = PendingQueue(prefix: StoredKeys.queuePrefix + "z/")
  }

  /// Reads the stored rows. What was in flight is pending again after ``recover()``.
  public init(rows: [String: String]) throws {
    records = try PendingQueue(prefix: StoredKeys.queuePrefix + "r/", rows: rows)
    zones = try PendingQueue(prefix: StoredKeys.queuePrefix + "z/", rows: rows)
  }

  /// A record to be saved or deleted, under CKSyncEngine's name.
  public enum RecordZoneChange: Hashable, Sendable {
    case saveRecord(RecordID)
    case deleteRecord(RecordID)
  }

  /// A zone to be saved or deleted, under CKSyncEngine's name.
  public enum DatabaseChange: Hashable, Sendable {
    case saveZone(ZoneID)
    case deleteZone(ZoneID)
  }

  public var pendingRecordZoneChanges: [RecordZoneChange] {
    records.pending.map { $0.kind == .save ? .saveRecord($0.id) : .deleteRecord($0.id) }
  }

  public var pendingDatabaseChanges: [DatabaseChange] {
    zones.pending.map { $0.kind == .save ? .saveZone($0.id) : .deleteZone($0.id) }
  }

  /// Adds changes, each once; one of the other kind takes the place of an earlier one (S1, S2).
  public mutating func add(_ changes: [RecordZoneChange]) {
    for change in changes {
      switch change {
      case .saveRecord(let id): records.add(.save, id)
      case .deleteRecord(let id): records.add(.delete, id)
      }
    }
  }

  /// The same for zones (S3).
  public mutating func add(_ changes: [DatabaseChange]) {
    for change in changes {
      switch change {
      case .saveZone(let id): zones.add(.save, id)
      case .deleteZone(let id): zones.add(.delete, id)
      }
    }
  }

  /// Removes pending changes of this kind; others, and what is in flight, stay (S5).
  public mutating func remove(_ changes: [RecordZoneChange]) {
    for change in changes {
      switch change {
      case .saveRecord(let id): if records.kind(of: id) == .save { records.remove(id) }
      case .deleteRecord(let id): if records.kind(of: id) == .delete { records.remove(id) }
      }
    }
  }

  /// The same for zones (S5).
  public mutating func remove(_ changes: [DatabaseChange]) {
    for change in changes {
      switch change {
      case .saveZone(let id): if zones.kind(of: id) == .save { zones.remove(id) }
      case .deleteZone(let id): if zones.kind(of: id) == .delete { zones.remove(id) }
      }
    }
  }

  /// Whether the record changes of a zone wait because the zone is to be deleted (S8).
  public func waitsForDeletion(_ zone: ZoneID) -> Bool {
    zones.kind(of: zone) == .delete || (zones.kind(of: zone) == nil && zones.kindInFlight(of: zone) == .delete)
  }

  /// Takes record changes of one zone for a request (S4, S8).
  public mutating func takeRecords(in zone: ZoneID, limit: Int, now: Int64) -> QueuedBatch<RecordID>? {
    guard !waitsForDeletion(zone) else { return nil }
    return records.take(limit: limit, now: now) { id, _ in id.zone == zone }
  }

  /// A zone was deleted on the server by this device: its record changes are abandoned and returned in order (S8).
  /// A later `saveZone` frees them instead.
  public mutating func zoneDeletionConfirmed(_ zone: ZoneID) -> [RecordID] {
    guard zones.kind(of: zone) != .save else { return [] }
    return records.removeAll { $0.zone == zone }
  }

  /// After a crash: what was in flight is pending again.
  public mutating func recover() {
    records.recover()
    zones.recover()
  }

  /// The rows that have changed since the last call, to be committed.
  public mutating func takeDelta() -> StateDelta {
    records.takeDelta().merging(zones.takeDelta()) { $1 }
  }
}
