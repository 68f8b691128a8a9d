/// Makes random statements. In modelled tables every written value is used once only, so that a value tells who wrote
/// it.
struct StatementGenerator {
  var chance: Chance
  private let schema: SimulatedSchema
  private var serial = 0
  /// Values of `born` that statements used, by table.
  private var born: [Int: [String]] = [:]

  init(_ chance: Chance, schema: SimulatedSchema) {
    self.chance = chance
    self.schema = schema
  }

  /// One or two statements; two where they belong together.
  mutating func statements() -> [Program.Statement] {
    let table = chance.below(schema.tables.count)
    return statements(table).map { Program.Statement(table: table, sql: $0) }
  }

  private mutating func statements(_ index: Int) -> [String] {
    let table = schema.tables[index]
    if table.key == .mappedBorn { return [bornStatement(index, table)] }
    switch chance.below(100) {
    case ..<28: return [insert(index, table, "INSERT INTO")]
    case ..<34: return [insert(index, table, "INSERT OR IGNORE INTO")]
    case ..<44: return [insert(index, table, "INSERT OR REPLACE INTO")]
    case ..<52: return [upsert(index, table)]
    case ..<72: return [update(index, table)]
    case ..<74: return ["UPDATE \(table.name) SET \(assignments(index, table))"]
    case ..<84: return ["DELETE FROM \(table.name) WHERE \(keyCondition(table))"]
    case ..<85: return ["DELETE FROM \(table.name)"]
    case ..<93:
      let key = keyValues(table)
      return [
        "DELETE FROM \(table.name) WHERE \(condition(table, key))", insert(index, table, "INSERT INTO", key: key),
      ]
    default: return [changeKey(index, table)]
    }
  }

  // MARK: Kinds of statements

  private mutating func insert(_ index: Int, _ table: SimulatedTable, _ verb: String, key: [String]? = nil) -> String {
    var columns = table.keyColumns
    var values = key ?? keyValues(table)
    if table.key == .mapped && key == nil && chance.happens(50) { (columns, values) = ([], []) }
    for field in table.fields {
      columns.append(field.name)
      values.append(value(field))
    }
    return "\(verb) \(table.name)(\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))"
  }

  private mutating func upsert(_ index: Int, _ table: SimulatedTable) -> String {
    let insert = insert(index, table, "INSERT INTO", key: keyValues(table))
    let field = chance.pick(table.fields)
    return
      "\(insert) ON CONFLICT(\(table.keyColumns.joined(separator: ", "))) DO UPDATE SET \(field.name) = excluded.\(field.name)"
  }

  private mutating func update(_ index: Int, _ table: SimulatedTable) -> String {
    "UPDATE \(table.name) SET \(assignments(index, table)) WHERE \(keyCondition(table))"
  }

  private mutating func assignments(_ index: Int, _ table: SimulatedTable) -> String {
    let one = chance.happens(65)
    let start = chance.below(table.fields.count)
    var fields = [table.fields[start]]
    if !one { fields = table.fields }
    return fields.map { "\($0.name) = \(value($0))" }.joined(separator: ", ")
  }

  /// With fresh values, so that a modelled row's values are its own.
  private mutating func changeKey(_ index: Int, _ table: SimulatedTable) -> String {
    let verb = chance.happens(40) ? "UPDATE OR REPLACE" : "UPDATE"
    let key = zip(table.keyColumns, keyValues(table)).map { "\($0) = \($1)" }
    let values = table.isModelled ? table.fields.map { "\($0.name) = \(value($0))" } : []
    return "\(verb) \(table.name) SET \((key + values).joined(separator: ", ")) WHERE \(keyCondition(table))"
  }

  private mutating func bornStatement(_ index: Int, _ table: SimulatedTable) -> String {
    let known = born[index] ?? []
    if known.isEmpty || chance.happens(35) {
      serial += 1
      let name = "'b\(serial)'"
      born[index, default: []].append(name)
      let columns = (["born"] + table.fields.map(\.name)).joined(separator: ", ")
      let values = ([name] + table.fields.map { value($0) }).joined(separator: ", ")
      if chance.happens(30) {
        return "INSERT INTO \(table.name)(id, \(columns)) VALUES (\(1 + chance.below(8)), \(values))"
      }
      return "INSERT INTO \(table.name)(\(columns)) VALUES (\(values))"
    }
    let name = chance.pick(known)
    switch chance.below(10) {
    case ..<6: return "UPDATE \(table.name) SET \(assignments(index, table)) WHERE born = \(name)"
    case ..<7: return "UPDATE \(table.name) SET id = \(1 + chance.below(30)) WHERE born = \(name)"
    default: return "DELETE FROM \(table.name) WHERE born = \(name)"
    }
  }

  // MARK: Keys and values

  private mutating func keyCondition(_ table: SimulatedTable) -> String { condition(table, keyValues(table)) }

  private func condition(_ table: SimulatedTable, _ key: [String]) -> String {
    zip(table.keyColumns, key).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  private mutating func keyValues(_ table: SimulatedTable) -> [String] {
    switch table.key {
    case .text: ["'\(chance.pick(["a", "b", "c", "d"]))'"]
    case .noCase: ["'\(chance.pick(["a", "A", "b", "B", "c", "D"]))'"]
    case .blob: [chance.pick(["x'01'", "x'02'", "x''", "x'00ff'"])]
    case .composite: ["'\(chance.pick(["a", "b"]))'", "\(chance.below(2))"]
    case .mapped, .mappedBorn: ["\(1 + chance.below(5))"]
    case .parents(let parents): parents.map { keyValues(schema.tables[$0])[0] }
    }
  }

  private mutating func value(_ field: SimulatedTable.Field) -> String {
    serial += 1
    switch field.column {
    case .free: return chance.pick(["'v\(serial)'", "\(serial)", "\(serial).5", "x'\(hex(serial))'"])
    case .text: return "'v\(serial)'"
    case .integer: return "\(serial)"
    case .real: return "\(serial).5"
    case .blob: return "x'\(hex(serial))'"
    case .few: return !field.isNotNull && chance.happens(20) ? "NULL" : chance.pick(["'x'", "'y'", "'z'", "'X'"])
    case .reference(let table):
      return !field.isNotNull && chance.happens(20) ? "NULL" : keyValues(schema.tables[table])[0]
    }
  }

  private func hex(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return digits.count % 2 == 0 ? digits : "0" + digits
  }
}
