import CairnRecords
import CairnSQLite

/// The synced tables of an open file: their plans, and the trigger generations ("shapes") that log entries may come
/// from (tables F9).
final class TableCatalog {
  /// What one generation of a table's triggers logs.
  struct Shape {
    var id: Int
    var table: Int
    /// Wire names by bit of the mask.
    var columns: [String]
    var keyCount: Int
  }

  /// By rank: parents before children.
  let plans: [TablePlan]
  /// Tables that are not sent, applied or deleted until their schema is repaired, with the reason (tables T30).
  private(set) var suspended: [Int: String]
  private var byNumber: [TablePlan?]
  private var byWireName: [String: Int]
  private var shapes: [Int: Shape]
  private var current: [Int]

  init(plans: [TablePlan], shapes: [Shape], suspended: [Int: String] = [:]) {
    self.plans = plans.sorted { ($0.rank, $0.number) < ($1.rank, $1.number) }
    self.suspended = suspended
    let last = plans.map(\.number).max() ?? 0
    byNumber = Array(repeating: nil, count: last + 1)
    byWireName = [:]
    current = Array(repeating: 0, count: last + 1)
    self.shapes = [:]
    for plan in plans {
      byNumber[plan.number] = plan
      byWireName[plan.wireName] = plan.number
    }
    for shape in shapes {
      self.shapes[shape.id] = shape
      if shape.table <= last { current[shape.table] = max(current[shape.table], shape.id) }
    }
  }

  func plan(_ number: Int) -> TablePlan? { number < byNumber.count ? byNumber[number] : nil }

  func plan(wireName: String) -> TablePlan? { byWireName[wireName].flatMap { byNumber[$0] } }

  func isSuspended(_ number: Int) -> Bool { suspended[number] != nil }

  func shape(_ id: Int) -> Shape? { shapes[id] }

  /// The wire names of a shape's fields.
  func shapeColumns(_ id: Int) throws -> [String] {
    guard let shape = shapes[id] else {
      throw TablesError.damagedMetadata("cairn_record names the trigger generation \(id), which is not known")
    }
    return shape.columns
  }

  /// The newest trigger generation of a table.
  func currentShape(_ table: Int) -> Int { table < current.count ? current[table] : 0 }
}
