import CairnRecords
import CairnSQLite

/// Counts the rows that the log names, where it can't be folded: by table number, those without a pending change.
///
/// A row that was inserted and deleted again counts too: whether a change stays is known after fold only.
struct UnfoldedChanges {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  func count() throws -> [Int: Int] {
    var keys: [Int: Set<Value>] = [:]
    let statement = try file.connection.prepare("SELECT * FROM cairn_log ORDER BY id")
    while try statement.step() {
      guard let entry = LogEntry(statement, file.catalog), let plan = file.catalog.plan(entry.shape.table) else {
        continue
      }
      switch entry.operation {
      case .candidate, .danger, .begin, .announcement: continue
      case .insert, .update, .delete, .rekey: break
      }
      guard let key = RowKey.canonical(entry.key, plan) else { continue }
      if keys[plan.number]?.contains(key) == true { continue }
      let isCounted = try file.records.find(plan.number, key: key).map { $0.pending != .none } ?? false
      if !isCounted { keys[plan.number, default: []].insert(key) }
    }
    return keys.mapValues(\.count)
  }
}
