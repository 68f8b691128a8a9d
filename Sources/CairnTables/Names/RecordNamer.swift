import CairnSQLite

/// Names rows by their keys, through the tables that name their parts (tables 1.2).
public struct RecordNamer: Sendable {
  private let byNumber: [TablePlan?]

  public init(_ plans: [TablePlan]) {
    var byNumber = [TablePlan?](repeating: nil, count: (plans.map(\.number).max() ?? -1) + 1)
    for plan in plans { byNumber[plan.number] = plan }
    self.byNumber = byNumber
  }

  private func plan(_ number: Int) -> TablePlan? { byNumber.indices.contains(number) ? byNumber[number] : nil }

  /// The record name of a row of a table with natural keys.
  ///
  /// - Parameters:
  ///   - key: values of the key columns in the order of `PRIMARY KEY(…)`.
  ///   - mappedName: the record name of the row of a mapped table with this integer, if it has one.
  /// - Returns: nil if a part is NULL or refers to a mapped row without a name.
  public func name(
    _ plan: TablePlan, key: [Value], mappedName: (_ table: Int, _ integer: Int64) throws -> String?
  ) rethrows -> String? {
    var parts: [KeyPartValue] = []
    var collations: [String] = []
    parts.reserveCapacity(key.count)
    for (i, value) in key.enumerated() {
      collations.append(plan.columns[plan.keyColumns[i]].collation)
      switch plan.keyParts[i] {
      case .value: parts.append(.value(value))
      case .reference(let table):
        guard let name = try name(table, value, mappedName) else { return nil }
        parts.append(.reference(name))
      }
    }
    return RecordNameCodec.natural(table: plan.wireName, parts: parts, collations: collations)
  }

  /// The record name of the row of a table whose only key column has this value.
  private func name(
    _ table: Int, _ value: Value, _ mappedName: (Int, Int64) throws -> String?
  ) rethrows -> String? {
    guard let plan = plan(table), let key = plan.keyColumns.first else { return nil }
    // SQLite compares a foreign key's value as it would be stored in the parent's column.
    let value = AffinityRules.stored(value, in: plan.columns[key].affinity)
    guard plan.keyKind == .mapped else { return try name(plan, key: [value], mappedName: mappedName) }
    guard case .integer(let integer) = value else { return nil }
    return try mappedName(table, integer)
  }

  /// The key that a record name stands for, part by part: values, and names of mapped rows where the integer is to be
  /// looked up. Nil for hashed names, mapped tables, and names that no row of this table can have.
  public func key(_ plan: TablePlan, of name: String) -> [KeyPartValue]? {
    guard case .parts(let parts)? = RecordNameCodec.decode(name, plan) else { return nil }
    return key(plan, parts: parts)
  }

  /// The key that the decoded parts of a record name stand for; nil where they do not fit the table's key.
  func key(_ plan: TablePlan, parts: [KeyPartValue]) -> [KeyPartValue]? {
    if parts.count == 1, case .value = plan.keyParts[0], case .value = parts[0] { return parts }
    var result: [KeyPartValue] = []
    for (i, part) in parts.enumerated() {
      switch (plan.keyParts[i], part) {
      case (.value, .value):
        result.append(part)
      case (.reference(let table), .reference(let parent)):
        guard let value = keyValue(table, of: parent) else { return nil }
        result.append(value)
      default: return nil
      }
    }
    return result
  }

  /// Whether the decoded parts of a record name hold the hashed name of a parent: its key is then in the fields alone.
  func hasHashedParent(_ plan: TablePlan, parts: [KeyPartValue]) -> Bool {
    zip(plan.keyParts, parts).contains { keyPart, part in
      guard case .reference(let table) = keyPart, case .reference(let name) = part, let parent = self.plan(table),
        parent.keyKind == .natural
      else { return false }
      switch RecordNameCodec.decode(name, parent) {
      case .hashed?: return true
      case .parts(let parts)?: return hasHashedParent(parent, parts: parts)
      case .uuid?, nil: return false
      }
    }
  }

  private func keyValue(_ table: Int, of name: String) -> KeyPartValue? {
    guard let plan = plan(table) else { return nil }
    if plan.keyKind == .mapped { return .reference(name) }
    guard let key = key(plan, of: name), key.count == 1 else { return nil }
    return key[0]
  }
}
