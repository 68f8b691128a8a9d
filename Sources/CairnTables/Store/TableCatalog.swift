import CairnRecords
import CairnSQLite

/// The synced tables of an open file: their plans, and the trigger generations that log entries may come from
/// (tables F9).
final class TableCatalog {
  /// What one generation of a table's triggers logs.
  final class Shape {
    let table: Int
    let generation: Int
    /// Wire names by bit of the mask.
    let columns: [String]
    let keyCount: Int
    /// How many values of an entry are masks.
    let maskCount: Int
    /// By bit of the mask: the index of the column in the table's plan; nil where the table has it no more.
    let planColumns: [Int?]
    /// The mask of the last entry that was read, and its columns: many entries have the same.
    private var last: (mask: UInt64, columns: [Int]) = (0, [])

    /// The columns of a table whose bits fit one mask.
    func columns(ofMask mask: UInt64) -> [Int] {
      if mask == last.mask { return last.columns }
      last = (mask, columns(ofMask: mask, from: 0))
      return last.columns
    }

    /// - Parameter first: the bit that the mask begins with.
    func columns(ofMask mask: UInt64, from first: Int) -> [Int] {
      var (rest, columns) = (mask, [Int]())
      while rest != 0 {
        let bit = first + rest.trailingZeroBitCount
        rest &= rest - 1
        if bit < planColumns.count, let column = planColumns[bit] { columns.append(column) }
      }
      return columns
    }

    init(table: Int, generation: Int, columns: [String], keyCount: Int, plan: TablePlan?) {
      self.table = table
      self.generation = generation
      self.columns = columns
      self.keyCount = keyCount
      maskCount = LogLayout(keyCount: keyCount, columnCount: columns.count).maskCount
      planColumns = columns.map { plan?.column(wireName: $0) }
    }
  }

  /// By rank: parents before children.
  let plans: [TablePlan]
  /// Tables that are not sent, applied or deleted until their schema is repaired (tables T30).
  let suspended: [SuspendedTable]
  let remembered: [RememberedTable]
  private var byNumber: [TablePlan?]
  private var byWireName: [String: Int] = [:]
  private var shapes: [[Shape]]
  private var children: [[(child: Int, foreignKey: ForeignKeyPlan)]]
  private var roomForKeys: [Int: Int] = [:]

  init(plans: [TablePlan], remembered: [RememberedTable], suspended: [SuspendedTable] = []) {
    self.plans = plans.sorted { ($0.rank, $0.number) < ($1.rank, $1.number) }
    self.remembered = remembered
    self.suspended = suspended
    let last = max(plans.map(\.number).max() ?? 0, remembered.map(\.number).max() ?? 0)
    byNumber = Array(repeating: nil, count: last + 1)
    shapes = Array(repeating: [], count: last + 1)
    children = Array(repeating: [], count: last + 1)
    for plan in self.plans {
      byNumber[plan.number] = plan
      byWireName[plan.wireName] = plan.number
      for foreignKey in plan.foreignKeys { children[foreignKey.parent].append((plan.number, foreignKey)) }
    }
    for plan in self.plans { roomForKeys[plan.number] = RecordNameCodec.roomForKey(plan, self.plan) }
    for table in remembered { shapes[table.number] = Self.shapes(of: table, plan(table.number)) }
  }

  private static func shapes(of table: RememberedTable, _ plan: TablePlan?) -> [Shape] {
    table.generations.enumerated().map { number, generation in
      Shape(
        table: table.number, generation: number, columns: generation.columns.map { table.columns[$0].wireName },
        keyCount: generation.keyColumns.count, plan: plan)
    }
  }

  func plan(_ number: Int) -> TablePlan? { byNumber.indices.contains(number) ? byNumber[number] : nil }

  func plan(wireName: String) -> TablePlan? { byWireName[wireName].flatMap { byNumber[$0] } }

  /// Bytes of text, blob or packed key that a record name of the table holds in any case; nil where a name does not give
  /// its key back, however short.
  func roomForKey(_ table: Int) -> Int? { roomForKeys[table] }

  /// The foreign keys that refer to a table, each with the number of the table that declares it.
  func foreignKeys(to table: Int) -> [(child: Int, foreignKey: ForeignKeyPlan)] { children[table] }

  func shape(_ table: Int, _ generation: Int) -> Shape? {
    shapes.indices.contains(table) && shapes[table].indices.contains(generation) ? shapes[table][generation] : nil
  }

  /// Every generation of a table's triggers that log entries may come from.
  func shapes(of table: Int) -> [Shape] { shapes.indices.contains(table) ? shapes[table] : [] }

  /// The wire names of the fields that a generation's triggers see.
  func fieldNames(_ table: Int, _ generation: Int) throws -> [String] {
    guard let shape = shape(table, generation) else {
      throw TablesError.damagedMetadata("cairn_record names the trigger generation \(generation), which is not known")
    }
    return shape.columns
  }

  /// The newest trigger generation of a table.
  func currentGeneration(_ table: Int) -> Int {
    shapes.indices.contains(table) ? max(0, shapes[table].count - 1) : 0
  }
}
