import CairnRecords
import CairnSQLite

/// Moves the values of columns that are about to be dropped into kept fields (tables V3).
struct KeptColumns {
  private let file: FileContext
  private let plan: TablePlan

  init(_ file: FileContext, _ plan: TablePlan) {
    self.file = file
    self.plan = plan
  }

  func keep(_ columns: [Int]) throws {
    var cursor: Value?
    while true {
      let records = try file.records.all(table: plan.number, after: cursor, limit: 500)
      for record in records where record.isAlive { try keep(columns, record) }
      guard records.count == 500 else { return }
      cursor = records.last?.key
    }
  }

  private func keep(_ columns: [Int], _ record: RecordRow) throws {
    guard let row = try file.row(plan, record.key) else { return }
    let cells = try file.cells(of: row, plan)
    var changed = record
    var kept = record.kept ?? KeptFields()
    for column in columns where record.clocks.clock(of: column) != nil {
      let content: FieldContent =
        switch cells[column] {
        case .value(let value): .value(value)
        case .reference(let name): .reference(name)
        }
      kept.add(ValueCodec.kept(content, plan.columns[column], clock: record.clocks.columns[column]))
    }
    changed.kept = kept.isEmpty ? nil : kept
    try file.records.update(record, to: changed)
  }
}

extension ValueCodec {
  /// A column's value as a field without a column.
  static func kept(_ content: FieldContent, _ column: ColumnPlan, clock: FieldClock) -> RecordContent.KeptField {
    switch encode(content, column) {
    case .null: RecordContent.KeptField(name: column.wireName, clock: clock)
    case .field(let value): RecordContent.KeptField(name: column.wireName, clock: clock, field: value)
    case .tagged(let text): RecordContent.KeptField(name: column.wireName, clock: clock, tagged: text)
    case .asset(let asset, let tag):
      RecordContent.KeptField(name: column.wireName, clock: clock, tagged: tag, asset: asset)
    }
  }
}
