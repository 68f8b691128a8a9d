import CairnEngine
import CairnRecords
import CairnSQLite

/// What Cairn knows of one record: one row of `cairn_record`.
///
/// A value in one reference: records go through many hands, and few of them change one.
struct RecordRow: Sendable {
  private var content: Content

  init(table: Int, key: Value, name: Value = .null, clocks: FieldClocks) {
    content = Content(table, key, name, clocks)
  }

  /// Number of the table.
  var table: Int {
    _read { yield content.table }
    _modify { yield &own().table }
  }
  /// While the row lives: its key, canonical (see ``RowKey``). Of a dead record whose name is not computed from its
  /// key: the name itself, which no live key can equal.
  var key: Value {
    _read { yield content.key }
    _modify { yield &own().key }
  }
  /// What names the record where its key does not: 16 bytes of a UUID in mapped tables, the whole record name where it
  /// is hashed or the parent that named it is gone. Else null.
  var name: Value {
    _read { yield content.name }
    _modify { yield &own().name }
  }
  var pending: PendingChange {
    _read { yield content.pending }
    _modify { yield &own().pending }
  }
  var life: LifeStatus {
    _read { yield content.life }
    _modify { yield &own().life }
  }
  var flags: RecordFlags {
    _read { yield content.flags }
    _modify { yield &own().flags }
  }
  /// Raised by every local change; a batch confirms the revision that it took (DESIGN G2).
  var revision: Int64 {
    _read { yield content.revision }
    _modify { yield &own().revision }
  }
  /// Tag of the version that is the base of the next save.
  var tag: ChangeTag? {
    _read { yield content.tag }
    _modify { yield &own().tag }
  }
  /// Clock of the delete, of records without a live row.
  var deletedAt: FieldClock? {
    _read { yield content.deletedAt }
    _modify { yield &own().deletedAt }
  }
  var clocks: FieldClocks {
    _read { yield content.clocks }
    _modify { yield &own().clocks }
  }
  var dirty: DirtyFields {
    _read { yield content.dirty }
    _modify { yield &own().dirty }
  }
  /// Fields without a column here, as they came, for sending back (tables V1).
  var kept: KeptFields? {
    _read { yield content.kept }
    _modify { yield &own().kept }
  }
  /// Mapped tables: the creator's integer, where it differs from the key (tables 1.4 `cairn_key`).
  var wish: Int64? {
    _read { yield content.wish }
    _modify { yield &own().wish }
  }
  var reason: PendingReason? {
    _read { yield content.reason }
    _modify { yield &own().reason }
  }
  /// When a postponed change may be tried again, ms since 1970.
  var retryAt: Int64? {
    _read { yield content.retryAt }
    _modify { yield &own().retryAt }
  }

  private mutating func own() -> Content {
    if !isKnownUniquelyReferenced(&content) { content = Content(copying: content) }
    return content
  }

  // Unchecked, both: it is changed only through the one record that refers to it.
  private final class Content: @unchecked Sendable {
    @exclusivity(unchecked) var table: Int
    @exclusivity(unchecked) var key: Value
    @exclusivity(unchecked) var name: Value
    @exclusivity(unchecked) var pending = PendingChange.none
    @exclusivity(unchecked) var life = LifeStatus.none
    @exclusivity(unchecked) var flags: RecordFlags = []
    @exclusivity(unchecked) var revision: Int64 = 0
    @exclusivity(unchecked) var tag: ChangeTag?
    @exclusivity(unchecked) var deletedAt: FieldClock?
    @exclusivity(unchecked) var clocks: FieldClocks
    @exclusivity(unchecked) var dirty = DirtyFields.none
    @exclusivity(unchecked) var kept: KeptFields?
    @exclusivity(unchecked) var wish: Int64?
    @exclusivity(unchecked) var reason: PendingReason?
    @exclusivity(unchecked) var retryAt: Int64?

    init(_ table: Int, _ key: Value, _ name: Value, _ clocks: FieldClocks) {
      (self.table, self.key, self.name, self.clocks) = (table, key, name, clocks)
    }

    init(copying other: Content) {
      (table, key, name, pending, life) = (other.table, other.key, other.name, other.pending, other.life)
      (flags, revision, tag, deletedAt) = (other.flags, other.revision, other.tag, other.deletedAt)
      (clocks, dirty, kept, wish) = (other.clocks, other.dirty, other.kept, other.wish)
      (reason, retryAt) = (other.reason, other.retryAt)
    }
  }
}

extension RecordRow: Hashable {
  static func == (a: RecordRow, b: RecordRow) -> Bool {
    let (x, y) = (a.content, b.content)
    if x === y { return true }
    return x.table == y.table && x.key == y.key && x.name == y.name && x.pending == y.pending && x.life == y.life
      && x.flags == y.flags && x.revision == y.revision && x.tag == y.tag && x.deletedAt == y.deletedAt
      && x.clocks == y.clocks && x.dirty == y.dirty && x.kept == y.kept && x.wish == y.wish && x.reason == y.reason
      && x.retryAt == y.retryAt
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(table)
    hasher.combine(key)
  }
}

extension RecordRow {
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
