import CairnSQLite

/// Watches that no row gets lost: one that a program inserted and none ever deleted, replaced or renamed, itself or by
/// a row that it may refer to, must be there in the end (DESIGN G6, G7).
///
/// Looks at tables with natural keys that the model does not judge.
struct RowPresence {
  private let schema: SimulatedSchema
  private let watched: [Int]
  /// Rows that were there after a statement, by table.
  private var inserted: [Int: Set<String>] = [:]
  /// Rows that a statement took away on some device.
  private var deleted: [Int: Set<String>] = [:]

  init(_ schema: SimulatedSchema) {
    self.schema = schema
    watched = schema.tables.indices.filter { index in
      guard !schema.tables[index].isModelled else { return false }
      switch schema.tables[index].key {
      case .text, .noCase, .blob: return true
      default: return false
      }
    }
  }

  func names(on device: SimulatedDevice) throws -> [Int: Set<String>] {
    var names: [Int: Set<String>] = [:]
    for table in watched {
      let rows = try device.rows("SELECT k FROM \(schema.tables[table].name)")
      let isCaseless = schema.tables[table].key == .noCase
      names[table] = Set(rows.map { isCaseless ? Self.text($0[0]).lowercased() : Self.text($0[0]) })
    }
    return names
  }

  mutating func note(from before: [Int: Set<String>], on device: SimulatedDevice) throws {
    for (table, after) in try names(on: device) {
      let old = before[table] ?? []
      inserted[table, default: []].formUnion(after.subtracting(old))
      deleted[table, default: []].formUnion(old.subtracting(after))
    }
  }

  /// A row that is missing without a reason.
  func loss(on device: SimulatedDevice, parked: Set<String>) throws -> String? {
    let present = try names(on: device)
    for table in watched where !canFollowADelete(table) {
      let expected = (inserted[table] ?? []).subtracting(deleted[table] ?? [])
      for name in expected.subtracting(present[table] ?? []).sorted() {
        if parked.contains(where: { $0.hasPrefix("\(schema.tables[table].name):") }) { continue }
        return "\(schema.tables[table].name): row \(name) was inserted, never deleted, and is gone"
      }
    }
    return nil
  }

  /// Whether deletes of other rows may take rows of this table along.
  private func canFollowADelete(_ table: Int) -> Bool {
    schema.tables[table].fields.contains { field in
      guard case .reference(let parent) = field.column else { return false }
      return parent == table || deleted[parent]?.isEmpty == false || !watched.contains(parent)
        || canFollowADelete(parent)
    }
  }

  static func text(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text): text
    case .malformedText(let bytes), .blob(let bytes): "\(bytes)"
    }
  }
}
