import CairnRecords
import CairnSQLite

/// The merge of a fetched version into a record whose row is alive here (tables M2–M4, M6). Pure: values come in, what
/// to write comes out.
struct RecordMerge {
  /// What to do with one column of the row.
  enum Change: Hashable {
    case set(MergeCell)
    /// The field belongs to a row that was deleted: the column gets its default.
    case setDefault
  }

  /// A local edit that the server never saw and that lost against a later one.
  struct Loss: Hashable {
    var field: String
    var localClock: FieldClock
    var remoteClock: FieldClock
    /// It lost against the delete that came before the row's present life; else against an edit.
    var isCut = false
  }

  private(set) var record: RecordRow
  /// By column, only where the row must change.
  private(set) var changes: [(column: Int, change: Change)] = []
  private(set) var losses: [Loss] = []
  /// Whether the fetched version brought anything that was not here.
  private(set) var broughtNews = false

  private let plan: TablePlan
  private var dirty: Set<String> = []
  private var droppedFromServer = false

  /// - Parameter cells: the local row's values.
  init(local: RecordRow, cells: LocalCells, fetched: FetchedVersion) {
    plan = fetched.plan
    record = local
    let cut = maximum(local.clocks.cut, fetched.clocks.cut)
    record.clocks.cut = cut
    record.clocks.life = max(local.clocks.life, fetched.clocks.life)
    let (theirs, theirCells) = (fetched.clocks.columns, fetched.cells)
    for column in theirs.indices where plan.isField(column) {
      // Most fields of most versions are those that are here.
      if theirs[column] == local.clocks.columns[column], cut == nil, theirCells[column] == cells[column] { continue }
      mergeColumn(column, local: local, localCell: cells[column], theirs[column], theirCells[column], cut: cut)
    }
    mergeKept(local: local, fetched: fetched, cut: cut)
    finish(local: local, fetched: fetched)
  }

  /// Gives the merged record the canonical key of its row.
  mutating func move(to key: Value) { record.key = key }

  private mutating func mergeColumn(
    _ column: Int, local: RecordRow, localCell: MergeCell, _ theirClock: FieldClock, _ theirCell: MergeCell,
    cut: FieldClock?
  ) {
    let theirClock = theirClock == FieldClocks.never ? nil : theirClock
    let name = plan.columns[column].wireName
    let ours = alive(local.clocks.clock(of: column), cut)
    let theirs = alive(theirClock, cut)
    if theirs == nil && theirClock != nil { droppedFromServer = true }
    let unsent = local.pending == .save && local.dirty.contains(name) ? local.clocks.clock(of: column) : nil
    switch mergeField(local: ours, remote: theirs, localValue: localCell, remoteValue: theirCell) {
    case .local:
      dirty.insert(name)
    case .remote:
      record.clocks.columns[column] = theirs ?? FieldClocks.never
      broughtNews = true
      if theirCell != localCell { changes.append((column, .set(theirCell))) }
      if let unsent, let theirs { losses.append(Loss(field: name, localClock: unsent, remoteClock: theirs)) }
    case .equal:
      guard ours == nil, local.clocks.clock(of: column) != nil else { return }
      if let unsent, let cut {
        losses.append(Loss(field: name, localClock: unsent, remoteClock: cut, isCut: true))
      }
      record.clocks.columns[column] = FieldClocks.never
      changes.append((column, .setDefault))
    }
  }

  /// Fields without a column merge the same way (tables M3).
  private mutating func mergeKept(local: RecordRow, fetched: FetchedVersion, cut: FieldClock?) {
    guard local.kept != nil || fetched.kept != nil else { return }
    var kept = KeptFields()
    record.clocks.kept = [:]
    let names = Set(local.clocks.kept.keys).union(fetched.clocks.kept.keys)
    for name in names.sorted() {
      let ours = alive(local.clocks.kept[name], cut)
      let theirs = alive(fetched.clocks.kept[name], cut)
      if theirs == nil && fetched.clocks.kept[name] != nil { droppedFromServer = true }
      let winner = mergeField(
        local: ours, remote: theirs, localValue: local.kept?.cell(name) ?? .null,
        remoteValue: fetched.kept?.cell(name) ?? .null)
      switch winner {
      case .local:
        dirty.insert(name)
        record.clocks.kept[name] = ours
        kept.take(name, from: local.kept)
      case .remote, .equal:
        guard let theirs else { continue }
        if winner == .remote { broughtNews = true }
        record.clocks.kept[name] = theirs
        kept.take(name, from: fetched.kept)
      }
    }
    record.kept = kept.isEmpty ? nil : kept
  }

  /// A clock at or below the cut belongs to the dead row (tables M2).
  private func alive(_ clock: FieldClock?, _ cut: FieldClock?) -> FieldClock? {
    guard let clock, let cut, clock <= cut else { return clock }
    return nil
  }

  private mutating func finish(local: RecordRow, fetched: FetchedVersion) {
    record.tag = fetched.tag
    record.life = .none
    let newerLife =
      local.clocks.life > fetched.clocks.life || (local.clocks.cut ?? -1) > (fetched.clocks.cut ?? -1)
    if fetched.clocks.life > local.clocks.life { broughtNews = true }
    if dirty.isEmpty && !newerLife && !droppedFromServer {
      record.pending = .none
      record.dirty = .none
      record.reason = nil
      record.retryAt = nil
      record.flags.remove(.replaces)
    } else {
      if local.pending != .save { record.raiseRevision() }
      record.pending = .save
      record.dirty = DirtyFields(dirty)
      if droppedFromServer { record.flags.insert(.replaces) }
    }
  }
}
