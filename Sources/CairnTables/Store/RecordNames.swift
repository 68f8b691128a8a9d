import CairnRecords
import CairnSQLite

/// Finds the record name of a row and the record of a name (tables 1.2).
///
/// Foreign keys to mapped tables hold local integers here and record names on the wire; this is where one becomes the
/// other.
struct RecordNames {
  private unowned let file: FileContext

  init(_ file: FileContext) { self.file = file }

  // MARK: Names of records

  /// The record's name; nil when a parent that names it is not known.
  func name(of row: RecordRow, _ plan: TablePlan) throws -> String? {
    switch row.name {
    case .blob(let uuid): RecordNameCodec.mapped(plan.wireName, uuid: uuid)
    case .text(let name): name
    default: try name(ofKey: row.key, plan)
    }
  }

  /// The name that a key of a natural table gives; nil when a parent that names it is not known.
  func name(ofKey key: Value, _ plan: TablePlan) throws -> String? {
    var parts: [RecordNamePart] = []
    for (i, value) in RowKey.parts(of: key, plan).enumerated() {
      if let target = plan.columns[plan.keyColumns[i]].localTarget {
        guard let parent = try name(ofMapped: value, in: target) else { return nil }
        parts.append(.reference(parent))
      } else if let parent = try naturalParent(plan, column: plan.keyColumns[i], value) {
        parts.append(.reference(parent))
      } else {
        parts.append(.value(value))
      }
    }
    return RecordNameCodec.natural(plan.wireName, parts)
  }

  /// The record name behind an integer of a mapped table.
  func name(ofMapped key: Value, in table: Int) throws -> String? {
    guard let plan = file.catalog.plan(table), let row = try file.records.find(table, key: key),
      case .blob(let uuid) = row.name
    else { return nil }
    return RecordNameCodec.mapped(plan.wireName, uuid: uuid)
  }

  /// The name of the parent whose natural key a key column holds; nil where the column is no foreign key (tables 1.2).
  private func naturalParent(_ plan: TablePlan, column: Int, _ value: Value) throws -> String? {
    for foreignKey in plan.foreignKeys where foreignKey.columns == [column] {
      guard let parent = file.catalog.plan(foreignKey.parent), parent.keyKind == .natural,
        parent.keyColumns == foreignKey.parentColumns
      else { continue }
      return try name(ofKey: RowKey.canonical(value, parent.columns[parent.keyColumns[0]].collation), parent)
    }
    return nil
  }

  // MARK: Records of names

  /// What a record name says of its key here.
  enum Resolution {
    /// The row's canonical key.
    case key(Value)
    /// A mapped record that has no integer here yet.
    case newMapped(uuid: [UInt8])
    /// The key is not in the name (hashed): it has to come from the fields.
    case inFields
    /// A parent that is part of the name is not known here.
    case missingParent(String)
    case undecodable
  }

  func record(named name: String, _ plan: TablePlan) throws -> RecordRow? {
    if plan.keyKind == .mapped {
      guard let uuid = RecordNameCodec.uuid(name, plan.wireName) else { return nil }
      return try file.records.find(name: .blob(uuid))
    }
    if let row = try file.records.find(name: .text(name)) { return row }
    guard case .key(let key) = try resolve(name, plan) else { return nil }
    return try file.records.find(plan.number, key: key)
  }

  func resolve(_ name: String, _ plan: TablePlan) throws -> Resolution {
    if plan.keyKind == .mapped {
      guard let uuid = RecordNameCodec.uuid(name, plan.wireName) else { return .undecodable }
      guard let row = try file.records.find(name: .blob(uuid)), row.isAlive else { return .newMapped(uuid: uuid) }
      return .key(row.key)
    }
    guard let parsed = RecordNameCodec.parse(name, plan.wireName) else { return .undecodable }
    guard case .parts(let parts) = parsed else { return .inFields }
    guard parts.count == plan.keyColumns.count else { return .undecodable }
    var values: [Value] = []
    for (i, part) in parts.enumerated() {
      switch part {
      case .value(let value): values.append(value)
      case .reference(let parent):
        guard let value = try keyValue(ofParent: parent, plan, column: plan.keyColumns[i]) else {
          return .missingParent(parent)
        }
        values.append(value)
      }
    }
    guard let key = RowKey.canonical(values, plan) else { return .undecodable }
    return .key(key)
  }

  /// The value that a foreign key column takes to refer to a record; nil when the record is not here.
  func keyValue(ofParent name: String, _ plan: TablePlan, column: Int) throws -> Value? {
    if let target = plan.columns[column].localTarget {
      guard let parent = file.catalog.plan(target), let uuid = RecordNameCodec.uuid(name, parent.wireName),
        let row = try file.records.find(name: .blob(uuid)), row.isAlive
      else { return nil }
      return row.key
    }
    // A natural parent: its own key is in its name, whether it is here or not.
    for foreignKey in plan.foreignKeys where foreignKey.columns == [column] {
      guard let parent = file.catalog.plan(foreignKey.parent), parent.keyColumns.count == 1,
        case .key(let key) = try resolve(name, parent)
      else { continue }
      return key
    }
    return nil
  }

  /// The table of a record name, by its prefix.
  func plan(ofName name: String) -> TablePlan? {
    name.firstIndex(of: ":").flatMap { file.catalog.plan(wireName: String(name[..<$0])) }
  }
}
