/// Makes a random schema: one or two tables that the model judges field by field, and a group of tables that are tied
/// together by foreign keys or hit each other through UNIQUE constraints.
struct SchemaGenerator {
  private var chance: Chance
  private let features: Simulation.Features
  private var tables: [SimulatedTable] = []

  static func make(_ chance: Chance, features: Simulation.Features) -> SimulatedSchema {
    var generator = SchemaGenerator(chance: chance, features: features)
    generator.fill()
    return SimulatedSchema(tables: generator.tables)
  }

  private init(chance: Chance, features: Simulation.Features) {
    self.chance = chance
    self.features = features
  }

  private mutating func fill() {
    modelled(features.contains(.manyKeys) ? chance.pick([.text, .noCase, .blob, .composite, .mappedBorn]) : .text)
    if chance.happens(30) { modelled(chance.pick([.text, .mappedBorn])) }
    if features.contains(.foreignKeys) && chance.happens(70) { family() }
    if features.contains(.unique) && chance.happens(50) { unique() }
  }

  // MARK: Modelled tables

  private mutating func modelled(_ key: SimulatedTable.Key) {
    let name = "m\(tables.count)"
    let isStrict = features.contains(.manyKeys) && chance.happens(30)
    let kinds: [SimulatedTable.Column] = isStrict ? [.text, .integer, .real, .blob] : [.free, .text, .integer, .free]
    let fields = (0..<2 + chance.below(3)).map { SimulatedTable.Field(name: "f\($0)", column: chance.pick(kinds)) }
    var columns = [keySQL(key, isStrict: isStrict)]
    columns += fields.map { "\($0.name) \(type($0.column, isStrict: isStrict))" }
    if chance.happens(25) { columns[columns.count - 1] += " CHECK (\(fields[fields.count - 1].name) IS NOT 'never')" }
    if key == .composite { columns.append("PRIMARY KEY (k1, k2)") }
    var options: [String] = isStrict ? ["STRICT"] : []
    if key != .mappedBorn && features.contains(.manyKeys) && chance.happens(30) { options.append("WITHOUT ROWID") }
    tables.append(
      SimulatedTable(
        name: name, key: key, fields: fields,
        statements: ["CREATE TABLE \(name)(\(columns.joined(separator: ", "))) \(options.joined(separator: ", "))"],
        isModelled: true))
  }

  private func keySQL(_ key: SimulatedTable.Key, isStrict: Bool = false) -> String {
    switch key {
    case .text: "k TEXT PRIMARY KEY NOT NULL"
    case .noCase: "k TEXT PRIMARY KEY NOT NULL COLLATE NOCASE"
    case .blob: "k BLOB PRIMARY KEY NOT NULL"
    case .composite: "k1 TEXT NOT NULL, k2 INTEGER NOT NULL"
    case .mapped: "id INTEGER PRIMARY KEY"
    case .mappedBorn: "id INTEGER PRIMARY KEY, born TEXT"
    case .parents: ""
    }
  }

  private func type(_ column: SimulatedTable.Column, isStrict: Bool = false) -> String {
    switch column {
    case .free: isStrict ? "ANY" : ""
    case .text, .few: "TEXT"
    case .integer: "INTEGER"
    case .real: "REAL"
    case .blob: "BLOB"
    case .reference: ""
    }
  }

  // MARK: Families

  private mutating func family() {
    let parent = parentTable()
    switch chance.below(6) {
    case 0: link(parent, chance.happens(50) ? parentTable() : parent)
    case 1: selfReference()
    case 2: sharedKey(parent)
    case 3:
      let child = childTable(of: parent)
      if chance.happens(60) { _ = childTable(of: child) }
    default:
      _ = childTable(of: parent)
      if chance.happens(40) { _ = childTable(of: parent) }
    }
  }

  private mutating func parentTable() -> Int {
    let key: SimulatedTable.Key = features.contains(.manyKeys) ? chance.pick([.text, .noCase, .mapped, .blob]) : .text
    let name = "p\(tables.count)"
    tables.append(
      SimulatedTable(
        name: name, key: key, fields: [.init(name: "title", column: .text)],
        statements: ["CREATE TABLE \(name)(\(keySQL(key)), title TEXT)"], isModelled: false))
    return tables.count - 1
  }

  private mutating func action(canBeNull: Bool) -> String {
    var actions = ["CASCADE", "CASCADE", "RESTRICT", "NO ACTION"]
    if canBeNull { actions += ["SET NULL", "SET NULL", "SET DEFAULT"] }
    let onDelete = chance.pick(actions)
    let onUpdate = chance.happens(40) ? " ON UPDATE CASCADE" : ""
    return "ON DELETE \(onDelete)\(onUpdate)"
  }

  /// The declared type of a column that refers to a table.
  private func referenceType(_ table: Int) -> String {
    switch tables[table].key {
    case .text: "TEXT"
    case .noCase: "TEXT COLLATE NOCASE"
    case .blob: "BLOB"
    default: "INTEGER"
    }
  }

  private mutating func childTable(of parent: Int) -> Int {
    let key: SimulatedTable.Key = features.contains(.manyKeys) ? chance.pick([.text, .mapped]) : .text
    let name = "c\(tables.count)"
    let isNotNull = chance.happens(40)
    let action = action(canBeNull: !isNotNull)
    let reference =
      "up \(referenceType(parent))\(isNotNull ? " NOT NULL" : "") REFERENCES \(tables[parent].name) \(action)"
    tables.append(
      SimulatedTable(
        name: name, key: key,
        fields: [
          .init(name: "up", column: .reference(parent), isNotNull: isNotNull), .init(name: "note", column: .text),
        ], statements: ["CREATE TABLE \(name)(\(keySQL(key)), \(reference), note TEXT)"], isModelled: false))
    return tables.count - 1
  }

  private mutating func link(_ a: Int, _ b: Int) {
    let name = "l\(tables.count)"
    let actions = [action(canBeNull: false), action(canBeNull: false)]
    let columns = [a, b].enumerated().map {
      "p\($0) \(referenceType($1)) NOT NULL REFERENCES \(tables[$1].name) \(actions[$0])"
    }
    tables.append(
      SimulatedTable(
        name: name, key: .parents([a, b]), fields: [.init(name: "note", column: .text)],
        statements: ["CREATE TABLE \(name)(\(columns.joined(separator: ", ")), note TEXT, PRIMARY KEY (p0, p1))"],
        isModelled: false))
  }

  /// A table whose key is its reference.
  private mutating func sharedKey(_ parent: Int) {
    let name = "s\(tables.count)"
    let reference =
      "p0 \(referenceType(parent)) PRIMARY KEY NOT NULL REFERENCES \(tables[parent].name) \(action(canBeNull: false))"
    tables.append(
      SimulatedTable(
        name: name, key: .parents([parent]), fields: [.init(name: "note", column: .text)],
        statements: ["CREATE TABLE \(name)(\(reference), note TEXT)"], isModelled: false))
  }

  private mutating func selfReference() {
    let key: SimulatedTable.Key = features.contains(.manyKeys) ? chance.pick([.text, .mapped]) : .text
    let name = "r\(tables.count)"
    let type = key == .text ? "TEXT" : "INTEGER"
    tables.append(
      SimulatedTable(
        name: name, key: key,
        fields: [.init(name: "up", column: .reference(tables.count)), .init(name: "note", column: .text)],
        statements: [
          "CREATE TABLE \(name)(\(keySQL(key)), up \(type) REFERENCES \(name) \(action(canBeNull: true)), note TEXT)"
        ], isModelled: false))
  }

  // MARK: Unique

  private mutating func unique() {
    let key: SimulatedTable.Key = features.contains(.manyKeys) ? chance.pick([.text, .mapped]) : .text
    let name = "u\(tables.count)"
    var fields: [SimulatedTable.Field] = [.init(name: "pos", column: .few), .init(name: "note", column: .text)]
    let statements: [String]
    switch chance.below(5) {
    case 0:
      statements = [
        "CREATE TABLE \(name)(\(keySQL(key)), pos TEXT, note TEXT)",
        "CREATE UNIQUE INDEX \(name)_pos ON \(name)(lower(pos))",
      ]
    case 1:
      fields.append(.init(name: "ok", column: .few))
      statements = [
        "CREATE TABLE \(name)(\(keySQL(key)), pos TEXT, note TEXT, ok TEXT)",
        "CREATE UNIQUE INDEX \(name)_pos ON \(name)(pos) WHERE ok = 'x'",
      ]
    case 2:
      fields.append(.init(name: "also", column: .few))
      statements = ["CREATE TABLE \(name)(\(keySQL(key)), pos TEXT, note TEXT, also TEXT, UNIQUE (pos, also))"]
    default:
      let isNotNull = chance.happens(30)
      fields[0].isNotNull = isNotNull
      statements = ["CREATE TABLE \(name)(\(keySQL(key)), pos TEXT\(isNotNull ? " NOT NULL" : "") UNIQUE, note TEXT)"]
    }
    tables.append(
      SimulatedTable(name: name, key: key, fields: fields, statements: statements, isModelled: false))
    if features.contains(.foreignKeys) && chance.happens(40) { _ = childTable(of: tables.count - 1) }
  }
}
