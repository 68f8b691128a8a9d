import CairnRecords
import CairnSQLite
import Foundation

/// Empties the synced tables after a copy of the file was put beside it (tables L2, L11). No deletes are sent, and rows
/// of tables that are not synced stay, whatever their foreign keys say.
struct TableEmptying {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// May be called in a transaction; the backup then has what was committed before it.
  ///
  /// - Parameter done: runs in the transaction that empties.
  /// - Returns: the path of the backup; nil when there was nothing to keep.
  @discardableResult
  func backUpAndEmpty(now: Int64, done: () throws -> Void = {}) throws -> String? {
    var backup: String?
    if try hasRows() {
      let path = freePath(now)
      // A connection of its own: VACUUM does not run inside a transaction.
      try Connection(path: file.connection.path, mode: .readOnly).run("VACUUM INTO ?", .text(path))
      backup = path
    }
    try file.transaction {
      try WholeTables(file).empty(file.catalog.plans)
      for table in ["cairn_record", "cairn_prefix", "cairn_log", "cairn_inbox"] {
        try file.connection.execute("DELETE FROM \(table)")
      }
      try FoldMark.remove(file.settings)
      file.records.prefixes.forget()
      try file.connection.execute("UPDATE cairn_table SET live = 0, null_keys = 0")
      try done()
    }
    return backup
  }

  private func hasRows() throws -> Bool {
    for plan in file.catalog.plans
    where try file.connection.scalar("SELECT 1 FROM main.\(SQLText.quoted(plan.name)) LIMIT 1") != nil {
      return true
    }
    return false
  }

  private func freePath(_ now: Int64) -> String {
    let base = "\(file.connection.path).backup-\(now)"
    var path = base
    var number = 1
    while FileManager.default.fileExists(atPath: path) {
      number += 1
      path = "\(base)-\(number)"
    }
    return path
  }
}
