import CairnSQLite

/// The values of a row here, by column, as the merge compares them: local foreign keys as references.
struct LocalCells {
  private let row: [Value]
  private var references: [Int: String] = [:]
  private let given: [MergeCell]?

  init(_ row: [Value]) {
    self.row = row
    given = nil
  }

  /// - Parameter cells: by column.
  init(cells: [MergeCell]) {
    row = []
    given = cells
  }

  mutating func refer(_ column: Int, to name: String) { references[column] = name }

  subscript(column: Int) -> MergeCell {
    if let given { return given[column] }
    if !references.isEmpty, let name = references[column] { return .reference(name) }
    return .value(row[column])
  }

  /// By column.
  var all: [MergeCell] { given ?? row.indices.map { self[$0] } }
}
