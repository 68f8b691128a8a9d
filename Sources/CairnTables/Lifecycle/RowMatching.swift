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

  /// - Parameter done: runs in the transaction that combines.
  func run(done: () throws -> Void) throws {
    let records = try fetchAll()
    try fetchAssets(of: records)
    do {
      try file.transaction {
        try Folder.fold(file)
        for plan in file.catalog.plans { try RowTakeUp(file: file, clock: RowPairing.oldest).run(plan) }
        try pair(records)
        _ = try file.applyWithAssets(records.filter { TablesCategory.isType($0.type) }, [], now: clock)
        try file.large.removeBytes()
        for plan in file.catalog.plans { try RowPairing.age(plan, file, to: clock) }
        try done()
      }
    } catch let problem as TablesError {
      // Nothing of the merge stays; the file is as before the command.
      try file.connection.transaction { try CaptureInstaller(connection: file.connection).uninstall() }
      throw problem
    }
  }

  /// Every record of the zone but the schemas.
  private func fetchAll() throws -> [Record] {
    var records: [String: Record] = [:]
    var token: ChangeToken?
    while true {
      let page = try cloud.zoneChanges(in: file.zone, since: token)
      for record in page.records where record.type != PublishedTable.recordType { records[record.id.name] = record }
      for deletion in page.deletions { records[deletion.id.name] = nil }
      if !page.moreComing { break }
      token = page.token
    }
    return records.keys.sorted().compactMap { records[$0] }
  }

  /// Rows are paired by their whole content. What can't be had is parked and tried again by the syncs.
  private func fetchAssets(of records: [Record]) throws {
    let incoming = IncomingAssets(file)
    for needed in try incoming.needed(by: records) {
      do throws(CloudError) {
        let bytes = try cloud.downloadAsset(needed.asset)
        do { _ = try incoming.hold(bytes, needed.hash) } catch { throw CloudError(.internalError, "\(error)") }
      } catch {
        guard error.code == .notFound || error.code == .accessDenied else { throw error }
      }
    }
  }

  private func pair(_ records: [Record]) throws {
    var pairing = try RowPairing(file, records)
    try pairing.pair()
    try pairing.pairByInteger { isNamed($0, options.matchIntegers) }
    // What is paired by integer may be what other rows refer to.
    try pairing.pair()
    let ambiguous = try pairing.leftOver().filter { !isNamed($0.plan, options.newIntegers) }
    guard ambiguous.isEmpty else {
      let list = ambiguous.map { "\($0.count) in \($0.plan.name)" }.joined(separator: ", ")
      throw TablesError.mode(
        "rows here have the integer of another row in the zone (\(list)): say with --match-integers TABLE that they are the same rows, or with --new-integers TABLE that they are different ones"
      )
    }
  }

  private func isNamed(_ plan: TablePlan, _ names: [String]) -> Bool {
    names.contains { SQLName.equal($0, plan.name) }
  }
}
