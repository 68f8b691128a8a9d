import CairnRecords
import CairnSQLite

/// Decides which tables can be synced and how (tables section 1).
public enum SchemaPlanner {
  /// Plans the tables of a schema.
  ///
  /// - Parameters:
  ///   - remembered: what this file fixed earlier; it stands against everything below.
  ///   - published: what the zone says of tables; names and types of columns that are new here come from it.
  public static func plan(
    _ schema: DatabaseSchema, options: SelectionOptions = SelectionOptions(), remembered: [RememberedTable] = [],
    published: [PublishedTable] = []
  ) -> PlanningResult {
    let matches = TableMatch.reconcile(remembered, schema)
    var refused: Set<Int> = []
    var problems: [SchemaProblem] = []
    // A refused table can make its children impossible in turn: plan again without it until nothing more falls out.
    while true {
      var pass = PlanningPass(schema, options, matches, published, refused: refused)
      pass.run()
      for problem in pass.problems where !problems.contains(problem) { problems.append(problem) }
      guard !pass.newlyRefused.isEmpty else {
        var result = pass.result()
        result.problems = problems
        return result
      }
      refused.formUnion(pass.newlyRefused)
    }
  }
}

/// One look at all tables. Tables are numbered as in the schema.
struct PlanningPass {
  let schema: DatabaseSchema
  let options: SelectionOptions
  let matches: [TableMatch]
  let published: [PublishedTable]
  let refused: Set<Int>
  /// Tables by folded name.
  private let indices: [String: Int]
  private let matchOf: [TableMatch?]

  var tables: [SchemaTable] { schema.tables }
  /// Whether each table is to be synced.
  var isSelected: [Bool]
  /// Whether each table has or would have local integers as keys.
  var isMapped: [Bool]
  var keyParts: [[TablePlan.KeyPart]]
  var numbers: [Int?]
  var problems: [SchemaProblem] = []
  var usageErrors: [SchemaProblem] = []
  var skipped: [String] = []
  var newlyRefused: Set<Int> = []

  init(
    _ schema: DatabaseSchema, _ options: SelectionOptions, _ matches: [TableMatch], _ published: [PublishedTable],
    refused: Set<Int>
  ) {
    self.schema = schema
    self.options = options
    self.matches = matches
    self.published = published
    self.refused = refused
    let indices = Dictionary(
      schema.tables.indices.map { (SQLName.folded(schema.tables[$0].name), $0) },
      uniquingKeysWith: { first, _ in first })
    self.indices = indices
    var matchOf = [TableMatch?](repeating: nil, count: schema.tables.count)
    for match in matches {
      guard let name = match.table?.name, let t = indices[SQLName.folded(name)] else { continue }
      matchOf[t] = match
    }
    self.matchOf = matchOf
    isSelected = Array(repeating: false, count: schema.tables.count)
    isMapped = isSelected
    keyParts = Array(repeating: [], count: schema.tables.count)
    numbers = Array(repeating: nil, count: schema.tables.count)
  }

  mutating func run() {
    select()
    for t in tables.indices { isMapped[t] = computeIsMapped(t) }
    assignNumbers()
    for t in tables.indices where isSelected[t] { checkForeignKeys(t) }
    for t in tables.indices where isSelected[t] { keyParts[t] = computeKeyParts(t) }
    checkKeyCycles()
    checkPublished()
  }

  mutating func refuse(
    _ t: Int, _ code: SchemaProblem.Code, column: String? = nil, _ reason: String, _ remedy: String
  ) {
    problems.append(SchemaProblem(code, table: tables[t].name, column: column, reason: reason, remedy: remedy))
    newlyRefused.insert(t)
  }

  func index(_ name: String) -> Int? { indices[SQLName.folded(name)] }

  func match(_ t: Int) -> TableMatch? { matchOf[t] }

  func hasNaturalKeyOption(_ t: Int) -> Bool {
    options.naturalKeys.contains { SQLName.equal($0, tables[t].name) }
  }

  private mutating func assignNumbers() {
    var next = (matches.map(\.remembered.number).max() ?? 0) + 1
    for t in tables.indices where isSelected[t] {
      if let match = match(t) {
        numbers[t] = match.remembered.number
      } else {
        numbers[t] = next
        next += 1
      }
    }
  }
}
