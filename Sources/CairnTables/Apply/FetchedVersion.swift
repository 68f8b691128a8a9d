import CairnRecords
import CairnSQLite

/// A fetched record of a synced table, read into the table's columns.
struct FetchedVersion {
  var record: Record
  var plan: TablePlan
  var clocks: FieldClocks
  /// By column; meaningful where ``FieldClocks/clock(of:)`` is not nil.
  var cells: [MergeCell]
  /// Fields without a column here.
  var kept: KeptFields?
  /// The creator's integer, of mapped tables.
  var wish: Int64?

  var name: String { record.id.name }
  var tag: ChangeTag? { record.changeTag }
}
