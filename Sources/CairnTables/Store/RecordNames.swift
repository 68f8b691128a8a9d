import CairnRecords
import CairnSQLite

/// Finds the record name of a row and the record of a name (tables 1.2).
///
/// Foreign keys to mapped tables hold local integers here and record names on the wire; this is where one becomes the
/// other.
struct RecordNames {
  private unowned let file: FileContext
  private let namer: RecordNamer

  init(_ file: FileContext) {
    self.file = file
    namer = RecordNamer(file.catalog.plans)
  }

  // MARK: Names of records

  /// The record's name; nil when a parent that names it is not known.
  func name(of row: RecordRow, _ plan: TablePlan) throws -> String? {
    switch row.name {
    case .blob(let uuid): RecordNameCodec.mapped(table: plan.wireName, uuid: uuid)
    case .text(let name): name
    default: try name(ofKey: row.key, plan)
    }
  }

  /// The name that a key gives; nil when a parent that names it is not known.
  func name(ofKey key: Value, _ plan: TablePlan) throws -> String? {
    if plan.keyKind == .mapped {
      guard case .integer(let integer) = key else { return nil }
      return try name(ofMapped: integer, in: plan.number)
    }
    return try namer.name(plan, key: RowKey.parts(of: key, plan), mappedName: name(ofMapped:_:))
  }

  /// What ``RecordRow/name`` holds of a live natural record: its name where that is hashed, because the key can't be read
  /// from it.
  func kept(ofKey key: Value, _ plan: TablePlan) throws -> Value {
    guard plan.keyKind == .natural, Self.mayBeHashed(key, plan), let name = try name(ofKey: key, plan),
      RecordNameCodec.decode(name, plan) == .hashed
    else { return .null }
    return .text(name)
  }

  /// Whether a name can be over the limit: a byte takes at most three, nine in the name of a parent.
  private static func mayBeHashed(_ key: Value, _ plan: TablePlan) -> Bool {
    let bytes =
      switch key {
      case .text(let text): text.utf8.count
      case .malformedText(let raw), .blob(let raw): raw.count
      default: 20
      }
    let most = plan.keyParts.contains(.value) && !plan.keyParts.contains { $0 != .value } ? 3 : 9
    return bytes * most + 64 * plan.keyParts.count + plan.wireName.utf8.count > RecordNameCodec.maximumLength
  }

  /// The name of the record that an integer stands for in a mapped table.
  func name(ofMapped integer: Int64, in table: Int) throws -> String? { try name(ofMapped: table, integer) }

  private func name(ofMapped table: Int, _ integer: Int64) throws -> String? {
    guard let plan = file.catalog.plan(table),
      case .blob(let uuid)? = try file.records.storedName(table, key: .integer(integer))
        ?? file.endedNames[table]?[integer]
    else { return nil }
    return RecordNameCodec.mapped(table: plan.wireName, uuid: uuid)
  }

  /// The name that a key gave before integers lost their records in this fold.
  func formerName(ofKey key: Value, _ plan: TablePlan) throws -> String? {
    try namer.name(plan, key: RowKey.parts(of: key, plan)) { table, integer in
      if let plan = file.catalog.plan(table), case .blob(let uuid)? = file.endedNames[table]?[integer] {
        return RecordNameCodec.mapped(table: plan.wireName, uuid: uuid)
      }
      return try name(ofMapped: table, integer)
    }
  }

  // MARK: Records of names

  /// What a record name says of its key here.
  enum Resolution {
    /// The row's canonical key.
    case key(Value)
    /// A mapped record that has no integer here.
    case newMapped(uuid: [UInt8])
    /// The key is not in the name (hashed): it has to come from the fields.
    case inFields
    /// A parent that is part of the name is not known here.
    case missingParent(String)
    case undecodable
  }

  func record(named name: String, _ plan: TablePlan) throws -> RecordRow? {
    if plan.keyKind == .mapped {
      guard let uuid = RecordNameCodec.uuid(name, table: plan.wireName) else { return nil }
      return try file.records.find(name: .blob(uuid))
    }
    if case .key(let key) = try resolve(name, plan), let row = try file.records.find(plan.number, key: key) {
      return row
    }
    return try file.records.find(name: .text(name))
  }

  func resolve(_ name: String, _ plan: TablePlan) throws -> Resolution {
    switch RecordNameCodec.decode(name, plan) {
    case nil: return .undecodable
    case .hashed?: return .inFields
    case .uuid(let uuid)?:
      guard let row = try file.records.find(name: .blob(uuid)), row.isAlive else { return .newMapped(uuid: uuid) }
      return .key(row.key)
    case .parts?: break
    }
    guard let parts = namer.key(plan, of: name) else { return .undecodable }
    var values: [Value] = []
    for part in parts {
      switch part {
      case .value(let value): values.append(value)
      case .reference(let parent):
        guard let integer = try integer(of: parent) else { return .missingParent(parent) }
        values.append(integer)
      }
    }
    guard let key = RowKey.canonical(values, plan) else { return .undecodable }
    return .key(key)
  }

  /// The integer that stands here for a record of a mapped table; nil when it has no row here.
  func integer(of name: String) throws -> Value? {
    guard let plan = plan(ofName: name), let uuid = RecordNameCodec.uuid(name, table: plan.wireName),
      let row = try file.records.find(name: .blob(uuid)), row.isAlive, !row.flags.contains(.parked)
    else { return nil }
    return row.key
  }

  /// The table of a record name, by its prefix.
  func plan(ofName name: String) -> TablePlan? {
    name.utf8.firstIndex(of: UInt8(ascii: ":")).flatMap { file.catalog.plan(wireName: String(name[..<$0])) }
  }
}
