import CSQLite
import CairnSQLite

extension Connection {
  /// Runs `body` while foreign keys of this connection neither refuse nor do anything; also inside a transaction, where
  /// the PRAGMA does nothing.
  func withoutForeignKeys<Result>(_ body: () throws -> Result) throws -> Result {
    try setForeignKeys(false)
    let result = Swift.Result { try body() }
    try setForeignKeys(true)
    return try result.get()
  }

  private func setForeignKeys(_ enabled: Bool) throws(SQLiteError) {
    var now: Int32 = 0
    let code = cairn_sqlite3_db_config_int(handle, SQLITE_DBCONFIG_ENABLE_FKEY, enabled ? 1 : 0, &now)
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: "foreign keys could not be switched")
    }
  }
}
