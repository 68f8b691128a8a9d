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
    if plan.isNamedByValue {
      return RecordNameCodec.natural(
        table: plan.wireName, value: key, collation: plan.columns[plan.keyColumns[0]].collation)
    }
    return try namer.name(plan, key: RowKey.parts(of: key, plan), mappedName: name(ofMapped:_:))
  }

  /// What `cairn_record.name` holds for a live row with a natural key: its name, where the key can't be told from the
  /// name. That is so for hashed names, and for parts that name a natural parent, whose spelling the name does not
  /// have.
  func storedName(for key: Value, _ plan: TablePlan) throws -> Value {
    guard plan.keyKind == .natural, mayDiffer(key, plan), let name = try name(ofKey: key, plan) else { return .null }
    return try storedName(name, for: key, plan)
  }

  func storedName(_ name: String, for key: Value, _ plan: TablePlan) throws -> Value {
    if case .key(let found) = try resolve(name, plan), found == key { return .null }
    // Two rows can have one name only where a parent is found under two spellings: the second stays without.
    if let other = try file.records.find(name: .text(name)), other.isAlive, other.key != key { return .null }
    return .text(name)
  }

  /// The dead or parked record whose name a new row under `key` will have, if the key alone does not find it.
  func recordByName(ofKey key: Value, _ plan: TablePlan) throws -> RecordRow? {
    guard plan.isNamedByParent || mayDiffer(key, plan), let name = try name(ofKey: key, plan) else { return nil }
    guard let found = try file.records.find(name: .text(name)), found.table == plan.number else { return nil }
    return found.isAlive && !found.flags.contains(.parked) ? nil : found
  }

  /// Whether a key may be such that its record's name does not give it back: the name may be hashed, or holds the name of
  /// a natural parent, whose spelling it does not have.
  func mayDiffer(_ key: Value, _ plan: TablePlan) -> Bool {
    guard let room = file.catalog.roomForKey(plan.number) else { return true }
    let length =
      switch key {
      case .text(let text): text.utf8.count
      case .blob(let bytes), .malformedText(let bytes): bytes.count
      // Up to 22 digits.
      case .null, .integer, .real: 8
      }
    return length > room
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
    let decoded: [KeyPartValue]
    switch RecordNameCodec.decode(name, plan) {
    case nil: return .undecodable
    case .hashed?: return .inFields
    case .uuid(let uuid)?:
      guard let row = try file.records.find(name: .blob(uuid)), row.isAlive else { return .newMapped(uuid: uuid) }
      return .key(row.key)
    case .parts(let parts)?: decoded = parts
    }
    guard let parts = namer.key(plan, parts: decoded) else {
      return namer.hasHashedParent(plan, parts: decoded) ? .inFields : .undecodable
    }
    if parts.count == 1, case .value(let value) = parts[0] {
      return RowKey.canonical(value, of: plan).map { .key($0) } ?? .undecodable
    }
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
