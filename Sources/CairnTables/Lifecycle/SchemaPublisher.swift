import CairnEngine
import CairnRecords
import CairnSQLite

/// Publishes the schema of the synced tables in the zone, so that other devices can create them and use the same names
/// (tables 1.4).
struct SchemaPublisher {
  let cloud: any CloudDatabase
  let file: FileContext

  /// Several devices may publish at once: each try merges with what is there.
  private static let tries = 10

  /// Publishes every table, or those that `clocks` gives a time of change by their number.
  func publish(clock: FieldClock, only clocks: [Int: FieldClock]? = nil) throws {
    let schema = try DatabaseSchema.read(from: file.connection)
    let local = file.catalog.plans.compactMap { plan -> PublishedTable? in
      if let clocks, clocks[plan.number] == nil { return nil }
      return schema.table(plan.name).map { PublishedTable(plan, $0, clock: clocks?[plan.number] ?? clock) }
    }
    for start in stride(from: 0, to: local.count, by: cloud.limits.entriesPerRequest) {
      let part = Array(local[start..<min(start + cloud.limits.entriesPerRequest, local.count)])
      try publish(part)
    }
  }

  private func publish(_ tables: [PublishedTable]) throws {
    for _ in 0..<Self.tries {
      let present = try cloud.lookup(in: file.zone, names: tables.map(\.recordName))
      var operations: [RecordOperation] = []
      for (table, result) in zip(tables, present) {
        if let operation = try operation(table, result) { operations.append(operation) }
      }
      if operations.isEmpty { return }
      let outcomes = try cloud.modify(in: file.zone, operations, atomic: false)
      var isRefused = false
      for outcome in outcomes {
        guard case .failed(_, let error) = outcome else { continue }
        guard error.code == .conflict || error.code == .exists || error.code == .notFound else { throw error }
        isRefused = true
      }
      if !isRefused { return }
    }
    throw CloudError(.conflict, "the schema could not be published: other devices keep changing it")
  }

  private func operation(_ table: PublishedTable, _ present: Result<Record, CloudError>) throws -> RecordOperation? {
    let id = RecordID(name: table.recordName, zone: file.zone)
    switch present {
    case .failure(let error):
      guard error.code == .notFound else { throw error }
      return RecordOperation(.create, Record(id: id, type: PublishedTable.recordType, fields: table.fields))
    case .success(var record):
      let theirs = try PublishedTable(recordName: record.id.name, fields: record.fields)
      var table = table
      // The same statements are no change, whenever they are published.
      if table.statements == theirs.statements { table.statementsClock = theirs.statementsClock }
      guard theirs.lacks(table) else { return nil }
      for field in theirs.merged(with: table).fields { record.fields.set(field.name, field.value) }
      return RecordOperation(.update, record)
    }
  }
}
