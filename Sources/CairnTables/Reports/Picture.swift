import CairnSQLite

extension SyncedDatabase {
  /// Every row of every synced table, by table name: `record name{column=value …}`, sorted; local integers as the
  /// records that they stand for. Two devices are equal when their pictures are (tables, "equal devices").
  ///
  /// Reads everything: for tests, the simulation and `cairn doctor`.
  public func picture() throws -> [String: [String]] {
    try Folder.fold(file)
    var picture: [String: [String]] = [:]
    for plan in file.catalog.plans {
      var rows: [String] = []
      var cursor: Value?
      while true {
        let records = try file.records.all(table: plan.number, after: cursor, limit: 1_000)
        for record in records where record.isAlive {
          guard let row = try file.row(plan, record.key) else { continue }
          let cells = try file.cells(of: row, plan)
          let name = try file.names.name(of: record, plan) ?? "?"
          let values = plan.columns.indices.filter { plan.isField($0) }.map { column in
            "\(plan.columns[column].wireName)=\(cells[column].text)"
          }
          rows.append("\(name){\(values.joined(separator: " "))}")
        }
        guard records.count == 1_000 else { break }
        cursor = records.last?.key
      }
      picture[plan.wireName] = rows.sorted()
    }
    return picture
  }
}

extension MergeCell {
  /// The value with its storage class, for people and comparisons.
  var text: String {
    switch self {
    case .reference(let name): "→\(name)"
    case .value(.null): "NULL"
    case .value(.integer(let integer)): "\(integer)"
    case .value(.real(let real)): "real(\(real))"
    case .value(.text(let text)): "'\(text)'"
    case .value(.malformedText(let bytes)): "text(\(bytes))"
    case .value(.blob(let bytes)): "blob(\(bytes.count):\(bytes.hashValueForPicture))"
    }
  }
}

extension [UInt8] {
  /// FNV-1a, the same on every run.
  fileprivate var hashValueForPicture: String {
    String(reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16)
  }
}
