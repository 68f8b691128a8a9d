import CSQLite
import CairnSQLite
import Foundation

/// Opens a user's database file, and says in one sentence what is wrong with one that can't be opened.
enum DatabaseOpener {
  /// - Parameter mode: `create` makes a missing file; the others refuse it.
  static func open(_ path: String, mode: Connection.Mode) throws(TablesError) -> Connection {
    if path == ":memory:" || path.isEmpty {
      throw .file(path, "is not a file", "give the path of a database file")
    }
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if isFolder.boolValue { throw .file(path, "is a folder", "give the path of a database file") }
    if !exists && mode != .create {
      throw .missingFile(path)
    }
    do {
      let connection = try Connection(path: path, mode: mode)
      try check(connection, path, mode)
      return connection
    } catch let error as TablesError {
      throw error
    } catch let error as SQLiteError {
      throw explain(error, path)
    } catch {
      throw .file(path, "could not be opened (\(error))", "check the file")
    }
  }

  private static func check(_ connection: Connection, _ path: String, _ mode: Connection.Mode) throws {
    // The first read finds out whether it is a database.
    _ = try connection.scalar("SELECT count(*) FROM main.sqlite_master")
    if mode != .readOnly, sqlite3_db_readonly(connection.handle, "main") == 1 {
      throw TablesError.file(path, "is read-only", "make it and its folder writable")
    }
    try connection.execute("PRAGMA foreign_keys = ON")
    // Deletes must fire triggers whatever the statement looks like, and REPLACE must not surprise an apply.
    try connection.execute("PRAGMA recursive_triggers = OFF")
    // Keys of records come in no order: with SQLite's own 2 MB every other record would be read from the file again.
    try connection.execute("PRAGMA cache_size = -16384")
    // A page that many transactions change is copied back to the file once for several of them; 16 MB of log at most.
    try connection.execute("PRAGMA wal_autocheckpoint = 4000")
    // What a savepoint has to remember stays in memory.
    try connection.execute("PRAGMA temp_store = MEMORY")
  }

  /// A sentence for a failure of SQLite that has to do with the file.
  static func explain(_ error: SQLiteError, _ path: String) -> TablesError {
    switch error.code {
    case SQLITE_NOTADB:
      .file(path, "is not a SQLite database, or it is encrypted", "give the path of a database file")
    case SQLITE_CORRUPT:
      .file(path, "is damaged (\(error.message))", "restore it from a backup, or try: sqlite3 \(path) .recover")
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
      .file(path, "is read-only", "make it and its folder writable")
    case SQLITE_CANTOPEN:
      .file(path, "can't be opened", "check that it and its folder can be read and written")
    case SQLITE_FULL:
      .file(path, "can't grow because the disk is full", "free some space and run the command again; nothing was lost")
    case SQLITE_IOERR:
      .file(path, "can't be read or written (\(error.message))", "check the disk; nothing was lost")
    case SQLITE_BUSY, SQLITE_LOCKED:
      .file(path, "is locked by another program", "wait until it has finished and run the command again")
    default:
      .file(path, "could not be used (\(error.message))", "run cairn doctor")
    }
  }
}
