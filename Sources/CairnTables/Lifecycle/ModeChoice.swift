import CairnEngine
import CairnRecords
import CairnSQLite

/// Decides between create, join and merge by what is in the file and in the zone (tables L1, L6).
struct ModeChoice {
  private let preparation: Preparation
  private let connection: Connection
  private let published: [Record]

  init(_ preparation: Preparation, _ connection: Connection, _ published: [Record]) {
    self.preparation = preparation
    self.connection = connection
    self.published = published
  }

  func choose() throws -> Preparation.Mode {
    let zone = preparation.options.place.zone
    if preparation.options.mode == .join || preparation.options.mode == .merge {
      return preparation.options.mode ?? .join
    }
    let count = try countRecords()
    let recordText = Self.text(count)
    switch preparation.options.mode {
    case .create?:
      if !published.isEmpty || count > 0 {
        throw TablesError.mode(
          "the zone \(zone) already has tables of another file (\(recordText)): use --mode join to take them into this file, --mode merge to combine both, or another --zone"
        )
      }
      return .create
    case let mode?:
      return mode
    case nil:
      if published.isEmpty && count == 0 { return .create }
      let rows = try rowCount()
      if rows == 0 { return .join }
      throw TablesError.mode(
        "this file has \(rows == 1 ? "1 row" : "\(rows) rows") and the zone \(zone) has \(recordText): choose --mode join (back this file up, then take the zone's rows), --mode merge (match and combine both), or --mode create with another --zone"
      )
    }
  }

  private static func text(_ count: Int) -> String { count == 1 ? "1 record" : "\(count) records" }

  /// Records of tables in the zone, those of other categories not counted.
  private func countRecords() throws -> Int {
    var names: Set<String> = []
    var token: ChangeToken?
    while true {
      let page = try preparation.cloud.zoneChanges(in: preparation.zone, since: token)
      for record in page.records where TablesCategory.isType(record.type) && record.type != PublishedTable.recordType {
        names.insert(record.id.name)
      }
      for deletion in page.deletions { names.remove(deletion.id.name) }
      guard page.moreComing else { return names.count }
      token = page.token
    }
  }

  private func rowCount() throws -> Int64 {
    let schema = try DatabaseSchema.read(from: connection)
    let plan = SchemaPlanner.plan(schema, options: preparation.options.selection)
    return try plan.plans.reduce(0) { sum, table in
      let count = try connection.scalar("SELECT count(*) FROM main.\(SQLText.quoted(table.name))")?.integer ?? 0
      return sum + count
    }
  }
}
