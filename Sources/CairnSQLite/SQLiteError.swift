import CSQLite

/// A failure of SQLite: the extended result code, SQLite's message and the statement that failed.
public struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// SQLite's extended result code, for example `SQLITE_CONSTRAINT_UNIQUE` (2067).
  public var extendedCode: Int32
  public var message: String
  public var sql: String?

  public init(extendedCode: Int32, message: String, sql: String? = nil) {
    self.extendedCode = extendedCode
    self.message = message
    self.sql = sql
  }

  init(_ database: OpaquePointer?, code: Int32, sql: String? = nil) {
    if let database {
      let extended = sqlite3_extended_errcode(database)
      self.init(
        extendedCode: extended & 0xff == code & 0xff ? extended : code,
        message: String(cString: sqlite3_errmsg(database)), sql: sql)
    } else {
      self.init(extendedCode: code, message: String(cString: sqlite3_errstr(code)), sql: sql)
    }
  }

  /// The primary result code, for example `SQLITE_BUSY` (5).
  public var code: Int32 { extendedCode & 0xff }

  /// Another connection holds the lock: the same call may succeed later.
  public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

  /// Whether the file is no database, or a damaged one: trying again is of no use.
  public var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

  /// What was asked for can't be read: the disk fails there, or the file is damaged there. Other parts may be readable.
  public var isUnreadable: Bool { code == SQLITE_IOERR || code == SQLITE_CORRUPT }

  /// The disk is full, can't be read or can't be written.
  public var isDiskFailure: Bool { code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_READONLY }

  /// A constraint of the schema refused the statement; nothing else is wrong.
  public var isConstraint: Bool { code == SQLITE_CONSTRAINT }

  public var description: String {
    sql.map { "\(message) (SQLite \(extendedCode)) in: \($0)" } ?? "\(message) (SQLite \(extendedCode))"
  }
}
