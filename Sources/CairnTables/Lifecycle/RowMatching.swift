import CairnEngine
import CairnRecords
import CairnSQLite

/// Combines the rows of a file with the records of a zone (tables L4, L5).
///
/// Rows with natural keys meet the record of their name. Rows with local integers are paired with records of the same
/// content, those with the same integer first; what is left over with an integer that the zone uses for something else
/// is ambiguous, and the command stops. Everything happens in one transaction: a merge that stops changes nothing.
struct RowMatching {
  private let file: FileContext
  private let cloud: any CloudDatabase
  private let options: Preparation.Options
  private let clock: FieldClock

  init(_ file: FileContext, cloud: any CloudDatabase, options: Preparation.Options, clock: FieldClock) {
    self.file = file
    self.cloud = cloud
    self.options = options
    self.clock = clock
  }

  /// The clock of local fields that the server's must win over (tables L4).
  private static let oldest: FieldClock = 0

  func run() throws {
    let records = try fetchAll()
    do {
      try file.transaction {
        try Folder.fold(file)
        for plan in file.catalog.plans { try RowTakeUp(file: file, clock: Self.oldest).run(plan) }
        try pair(records)
        let applier = Applier(file, now: clock)
        try applier.apply(records.filter { file.catalog.plan(wireName: $0.type) != nil }, [])
        try ageTheRest()
      }
    } catch let problem as TablesError {
      // Nothing of the merge stays; the file is as before the command.
      try file.connection.transaction { try CaptureInstaller(connection: file.connection).uninstall() }
      throw problem
    }
  }

  private func fetchAll() throws -> [Record] {
    var records: [String: Record] = [:]
    var token: ChangeToken?
    while true {
      let page = try cloud.zoneChanges(in: file.zone, since: token)
      for record in page.records { records[record.id.name] = record }
      for deletion in page.deletions { records[deletion.id.name] = nil }
      if !page.moreComing { break }
      token = page.token
    }
    return records.keys.sorted().compactMap { records[$0] }
  }

  // MARK: Pairing

  private func pair(_ records: [Record]) throws {
    var ambiguous: [(String, Int)] = []
    for plan in file.catalog.plans where plan.keyKind == .mapped {
      let versions = records.filter { $0.type == plan.wireName }.compactMap { record -> FetchedVersion? in
        guard case .success(let version) = FetchedVersion.decode(record, file.codec(plan)) else { return nil }
        return version
      }
      let left = try pair(plan, versions)
      if left > 0 { ambiguous.append((plan.name, left)) }
    }
    guard ambiguous.isEmpty else {
      let list = ambiguous.map { "\($0.1) in \($0.0)" }.joined(separator: ", ")
      throw TablesError.mode(
        "rows here have the integer of another row in the zone (\(list)): say with --match-integers TABLE that they are the same rows, or with --new-integers TABLE that they are different ones"
      )
    }
  }

  /// Returns the number of rows whose integer stands for a record with other content.
  private func pair(_ plan: TablePlan, _ versions: [FetchedVersion]) throws -> Int {
    var free = Dictionary(grouping: versions, by: { Content(cells: $0.cells, plan) })
    var byInteger: [Int64: FetchedVersion] = [:]
    for version in versions { if let wish = version.wish { byInteger[wish] = version } }
    var used: Set<String> = []
    var unpaired: [(RecordRow, Int64)] = []
    let rows = try localRows(plan)
    for (record, integer, content) in rows {
      guard let version = byInteger[integer], Content(cells: version.cells, plan) == content else {
        unpaired.append((record, integer))
        continue
      }
      used.insert(version.name)
      try adopt(record, version)
    }
    let contents = Dictionary(uniqueKeysWithValues: rows.map { ($0.1, $0.2) })
    var left = 0
    for (record, integer) in unpaired {
      if let content = contents[integer], let place = free[content]?.firstIndex(where: { !used.contains($0.name) }),
        let version = free[content]?.remove(at: place)
      {
        used.insert(version.name)
        try adopt(record, version)
      } else if let version = byInteger[integer], !used.contains(version.name) {
        if options.matchIntegers.contains(where: { SQLName.equal($0, plan.name) }) {
          used.insert(version.name)
          try adopt(record, version)
        } else if !options.newIntegers.contains(where: { SQLName.equal($0, plan.name) }) {
          left += 1
        }
      }
    }
    return left
  }

  private func localRows(_ plan: TablePlan) throws -> [(RecordRow, Int64, Content)] {
    var result: [(RecordRow, Int64, Content)] = []
    var cursor: Value?
    while true {
      let records = try file.records.all(table: plan.number, after: cursor, limit: 1_000)
      for record in records {
        guard record.isAlive, case .integer(let integer) = record.key, let row = try file.row(plan, record.key) else {
          continue
        }
        result.append((record, integer, Content(cells: try file.cells(of: row, plan), plan)))
      }
      guard records.count == 1_000 else { return result }
      cursor = records.last?.key
    }
  }

  /// The values of a row without its own integer.
  private struct Content: Hashable {
    var cells: [MergeCell]

    init(cells: [MergeCell], _ plan: TablePlan) {
      self.cells = plan.columns.indices.filter { plan.isField($0) }.map { cells[$0] }
    }
  }

  /// The row is the server's record from now on.
  private func adopt(_ record: RecordRow, _ version: FetchedVersion) throws {
    guard let uuid = RecordNameCodec.uuid(version.name, table: version.plan.wireName) else { return }
    var paired = record
    paired.name = .blob(uuid)
    try file.records.update(record, to: paired)
  }

  // MARK: The rest

  /// Rows that met no record are uploaded at the time of init.
  private func ageTheRest() throws {
    try file.connection.run(
      """
      UPDATE cairn_record SET clock = ?1, life = NULL WHERE tag IS NULL AND deleted IS NULL AND pending = 1 AND clock = 0
        AND clocks IS NULL
      """, .integer(clock))
  }
}
