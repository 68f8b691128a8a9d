import CairnRecords
import CairnWire

/// A record that can't be read into a row (tables M9, V8).
public enum RecordBodyError: Error, Hashable, Sendable {
  /// Parked `undecodable`, with what is wrong.
  case undecodable(String)
  /// Parked `newerFormat`.
  case newerFormat(Int64)
}

/// Names of the fields that are Cairn's own (tables 1.4).
public enum RecordField {
  public static let clocks = "cairn_clocks"
  public static let life = "cairn_life"
  public static let cut = "cairn_cut"
  public static let key = "cairn_key"
  public static let values = "cairn_values"
  public static let format = "cairn_format"
  /// Before the wire name of a field whose value lies in an asset.
  public static let assetPrefix = "cairn_a_"
  public static let currentFormat: Int64 = 1
}

/// The fields of a table's records: rows in, rows out (tables 1.4).
///
/// Made once per table; what is the same for every record is prepared.
public final class RecordBodyCodec: Sendable {
  public let plan: TablePlan
  /// Field columns by wire name, bytewise: the order in `cairn_clocks`.
  let sortedColumns: [Int]
  /// `["a","b"]` of all fields: most records have one clock.
  let allNames: [UInt8]
  /// Wire names of ``sortedColumns`` as they stand in JSON, with quotes.
  let sortedNames: [[UInt8]]
  let columnByName: [String: Int]
  let assetNames: [String]
  let isField: [Bool]
  let wireNames: [String]
  let shapes: [ValueCodec.Shape]
  /// What reading a record begins with, by column: no field, no clock.
  let noPlaces: [Int]
  let noClocks: [FieldClock]

  /// Stands in ``noPlaces`` for a column whose field the record does not have.
  static let nowhere = -1

  public init(_ plan: TablePlan) {
    self.plan = plan
    let isField = plan.columns.indices.map { plan.isField($0) }
    self.isField = isField
    sortedColumns = plan.columns.indices.filter { isField[$0] }
      .sorted { plan.columns[$0].wireName.utf8.lexicographicallyPrecedes(plan.columns[$1].wireName.utf8) }
    var writer = JSONWriter(capacity: 256)
    writer.beginArray()
    for column in sortedColumns { writer.string(plan.columns[column].wireName) }
    writer.endArray()
    allNames = writer.bytes
    sortedNames = sortedColumns.map { column in
      var writer = JSONWriter(capacity: 64)
      writer.string(plan.columns[column].wireName)
      return writer.bytes
    }
    columnByName = Dictionary(
      sortedColumns.map { (plan.columns[$0].wireName, $0) }, uniquingKeysWith: { first, _ in first })
    wireNames = plan.columns.map(\.wireName)
    shapes = plan.columns.map { ValueCodec.Shape($0) }
    noPlaces = Array(repeating: Self.nowhere, count: plan.columns.count)
    noClocks = Array(repeating: RecordContent.never, count: plan.columns.count)
    assetNames = plan.columns.map { RecordField.assetPrefix + $0.wireName }
  }
}
