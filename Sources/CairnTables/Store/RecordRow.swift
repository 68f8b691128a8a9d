import CairnEngine
import CairnRecords
import CairnSQLite

/// What Cairn knows of one record: one row of `cairn_record`.
struct RecordRow: Hashable, Sendable {
  /// Number of the table.
  var table: Int
  /// While the row lives: its key, canonical (see ``RowKey``). Of a dead record whose name is not computed from its
  /// key: the name itself, which no live key can equal.
  var key: Value
  /// What names the record where its key does not: 16 bytes of a UUID in mapped tables, the whole record name where it
  /// is hashed or the parent that named it is gone. Else null.
  var name: Value = .null
  var pending: PendingChange = .none
  var life: LifeStatus = .none
  var flags: RecordFlags = []
  /// Raised by every local change; a batch confirms the revision that it took (DESIGN G2).
  var revision: Int64 = 0
  /// Tag of the version that is the base of the next save.
  var tag: ChangeTag?
  /// Clock of the delete, of records without a live row.
  var deletedAt: FieldClock?
  var clocks: FieldClocks
  var dirty: DirtyFields = .none
  /// Fields without a column here, as they came, for sending back (tables V1).
  var kept: KeptFields?
  /// Mapped tables: the creator's integer, where it differs from the key (tables 1.4 `cairn_key`).
  var wish: Int64?
  var reason: PendingReason?
  /// When a postponed change may be tried again, ms since 1970.
  var retryAt: Int64?

  /// Whether the table should hold a row for the record.
  var isAlive: Bool { deletedAt == nil }

  /// What a fetched deletion or record meets here (tables M5).
  var localLife: LocalLife {
    if let deletedAt { return .dead(deletedAt) }
    return pending == .save ? .unsent(touch: clocks.touch) : .clean(touch: clocks.touch)
  }

  /// Marks a local change: a new revision, which ends waits that only a new revision ends (tables F8).
  mutating func raiseRevision() {
    revision += 1
    if reason?.endsWithRevision == true {
      reason = nil
      retryAt = nil
    }
  }
}

extension PendingReason {
  /// Whether a new revision of the record is tried at once (tables F8).
  var endsWithRevision: Bool {
    switch self {
    case .rejected, .tooLarge, .permission, .missingParent, .nullKey, .unsent: true
    case .offline, .throttled, .quota, .signedOut, .zoneGone, .schema, .internal, .gated, .disabled, .unavailable: false
    }
  }
}
