import CairnRecords
import CairnSQLite

/// What a record holds after a fetched version was merged with content that is in no row: that of a parked record
/// (tables M5, "joined with the parked version").
struct MergedContent {
  /// The record's state after the merge.
  private(set) var record: RecordRow
  private(set) var merge: RecordMerge
  let cells: [MergeCell]
  private let fetched: FetchedVersion

  /// - Parameters:
  ///   - own: the content that is parked, under the clocks of `local`.
  init(local: RecordRow, _ own: FetchedVersion, with fetched: FetchedVersion) {
    merge = RecordMerge(local: local, cells: LocalCells(cells: own.cells), fetched: fetched)
    record = merge.record
    self.fetched = fetched
    var cells = own.cells
    for (column, change) in merge.changes {
      switch change {
      case .set(let cell): cells[column] = cell
      case .setDefault: cells[column] = .null
      }
    }
    self.cells = cells
  }

  /// The merged content of a row whose values are `cells` once `merge` is applied.
  init(_ merge: RecordMerge, rowCells cells: [MergeCell], fetched: FetchedVersion) {
    self.merge = merge
    record = merge.record
    self.fetched = fetched
    var cells = cells
    for (column, change) in merge.changes {
      switch change {
      case .set(let cell): cells[column] = cell
      case .setDefault: cells[column] = .null
      }
    }
    self.cells = cells
  }

  /// The merged content as a version that can be applied or parked.
  func version(_ file: FileContext) -> FetchedVersion {
    var version = fetched
    version.clocks = record.clocks
    version.cells = cells
    version.kept = record.kept
    version.wish = version.wish ?? record.wish
    var content = RecordContent(
      life: record.clocks.life, cut: record.clocks.cut, key: version.wish,
      values: cells.map { cell in
        switch cell {
        case .value(let value): .value(value)
        case .reference(let name): .reference(name)
        }
      }, clocks: record.clocks.columns)
    if let kept = record.kept {
      content.kept = record.clocks.kept.keys.sorted().map { kept.field($0, clock: record.clocks.kept[$0] ?? 0) }
    }
    version.record = Record(
      id: fetched.record.id, type: fetched.record.type, changeTag: fetched.tag,
      fields: file.codec(fetched.plan).encode(content))
    return version
  }
}
