import CairnRecords
import CairnSQLite

/// Wire names and field types of the tables that are planned: what was fixed before, what the zone says, and the rules
/// of tables 1.3 and 1.5 for the rest.
struct TableNames {
  private let pass: PlanningPass
  /// Record type by table.
  private(set) var tables: [Int: String] = [:]

  init(pass: PlanningPass, chosen: [Int]) {
    self.pass = pass
    var taken = Set(pass.matches.map(\.remembered.wireName))
    for t in chosen {
      if let match = pass.match(t) {
        tables[t] = match.remembered.wireName
      } else if let known = pass.publishedTable(t), !taken.contains(known.wireName) {
        tables[t] = known.wireName
        taken.insert(known.wireName)
      }
    }
    // A plain name goes to the table that has it; a second claim gets the number.
    for t in chosen where tables[t] == nil {
      let name = WireName.free(WireName.table(pass.tables[t].name), taken: taken)
      tables[t] = name
      taken.insert(name)
    }
  }

  /// Name, wire name and field type of each column that is not generated.
  func columns(_ t: Int) -> [RememberedColumn] {
    let table = pass.tables[t]
    let plain = table.columns.indices.filter { table.columns[$0].generated == .no }
    let match = pass.match(t)
    let known = pass.publishedTable(t)
    var taken = Set((match?.remembered.columns ?? []).map(\.wireName))
    var wireNames = [String?](repeating: nil, count: plain.count)
    var types = [FieldType?](repeating: nil, count: plain.count)
    for i in plain.indices {
      guard let old = match?.columns[i] else { continue }
      wireNames[i] = match?.remembered.columns[old].wireName
      types[i] = match?.remembered.columns[old].fieldType
    }
    // A column with one claim takes it; one with several, after a rename, what the others leave.
    let claims = plain.map { known?.claims(for: table.columns[$0].name) ?? [] }
    for i in plain.indices.sorted(by: { (claims[$0].count, $0) < (claims[$1].count, $1) }) where wireNames[i] == nil {
      guard let claim = claims[i].first(where: { !taken.contains($0.wireName) }) else { continue }
      wireNames[i] = claim.wireName
      types[i] = known?.fieldType(of: claim.wireName)
      taken.insert(claim.wireName)
    }
    // Names that are on the server already are not free for other columns.
    taken.formUnion((known?.columns ?? []).map(\.wireName))
    for i in plain.indices where wireNames[i] == nil {
      let name = WireName.free(WireName.column(table.columns[plain[i]].name), taken: taken)
      wireNames[i] = name
      taken.insert(name)
    }
    return plain.enumerated().map { i, column in
      let type = types[i] ?? FieldType(table.columns[column], isLocal: pass.localEnd(t, column) != nil)
      return RememberedColumn(name: table.columns[column].name, wireName: wireNames[i] ?? "", fieldType: type)
    }
  }
}

extension PlanningPass {
  /// What the zone says of a table: by its wire name if that is fixed, else by its name, else, if no table here has the
  /// name that the zone knows, by the wire name that it would get: another device has renamed it.
  func publishedTable(_ t: Int) -> PublishedTable? {
    if let match = match(t) { return published.first { $0.wireName == match.remembered.wireName } }
    return published.first { SQLName.equal($0.name, tables[t].name) }
      ?? published.first { $0.wireName == WireName.table(tables[t].name) && index($0.name) == nil }
  }

  /// Refuses tables whose keys are of another kind in the zone.
  mutating func checkPublished() {
    for t in tables.indices where isSelected[t] {
      guard let known = publishedTable(t), known.isMapped != isMapped[t] else { continue }
      let name = tables[t].name
      if isMapped[t] {
        refuse(t, .keyKindDiffers, "the zone has \(name) with natural keys", "use --natural-key \(name)")
      } else {
        refuse(
          t, .keyKindDiffers, "the zone has \(name) with integers that differ between devices",
          hasNaturalKeyOption(t) ? "leave out --natural-key \(name)" : "use --exclude \(name)")
      }
    }
  }
}

extension PublishedTable {
  /// The claims of a column name, the one that stands first (tables 1.4).
  func claims(for name: String) -> [ColumnClaim] {
    columns.filter { SQLName.equal($0.name, name) }.sorted { ($0.clock, $0.wireName) < ($1.clock, $1.wireName) }
  }

  /// The type of a field: the server knows one only, that of the first claim.
  func fieldType(of wireName: String) -> FieldType? {
    columns.filter { $0.wireName == wireName }
      .min { ($0.clock, $0.fieldType.rawValue) < ($1.clock, $1.fieldType.rawValue) }?.fieldType
  }
}

extension FieldType {
  /// The type of a column that is synced for the first time (tables 1.5).
  init(_ column: SchemaColumn, isLocal: Bool) {
    let type = SQLName.folded(column.declaredType)
    self =
      if isLocal {
        .reference
      } else if type == "any" {
        .string
      } else {
        switch column.affinity {
        case .integer: .int64
        case .real: .double
        case .text: .string
        case .blob: type.isEmpty ? .string : .bytes
        case .numeric:
          if type.hasPrefix("bool") {
            .int64
          } else if type.hasPrefix("date") || type.hasPrefix("time") {
            .string
          } else {
            .double
          }
        }
      }
  }
}
