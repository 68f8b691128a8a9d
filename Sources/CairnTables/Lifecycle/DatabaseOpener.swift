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

  static func open(_ path: String, for purpose: SyncedDatabase.Purpose) throws(TablesError) -> Connection {
    switch purpose {
    case .work: return try open(path, mode: .readWrite)
    case .reports: return try openForReading(path)
    }
  }

  /// Opens a file for a report: also one that can't be written to, or whose folder can't be.
  ///
  /// A file in WAL mode is read through files beside it. Where these can't be made, it is read as it lies there, unless
  /// a program has left changes in them.
  static func openForReading(_ path: String) throws(TablesError) -> Connection {
    guard FileManager.default.fileExists(atPath: path), !mayWrite(path) else { return try open(path, mode: .readWrite) }
    do {
      return try open(path, mode: .readOnly)
    } catch {
      let log = URL(fileURLWithPath: path).resolvingSymlinksInPath().path + "-wal"
      guard access(path, R_OK) == 0, !isFilled(log) else { throw unreadable(path, error) }
      return try open(path, mode: .immutable)
    }
  }

  private static func mayWrite(_ path: String) -> Bool {
    let file = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    return access(file.path, W_OK) == 0 && access(file.deletingLastPathComponent().path, W_OK) == 0
  }

  private static func isFilled(_ path: String) -> Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_size > 0
  }

  /// Why a file that can't be written to can't be read either.
  private static func unreadable(_ path: String, _ error: TablesError) -> TablesError {
    guard access(path, R_OK) == 0 else { return .file(path, "can't be read", "make it readable") }
    guard case .file(_, let what, _) = error, what.hasPrefix("can't be opened") || what.hasPrefix("is read-only") else {
      return error
    }
    return .file(
      path, "holds changes that can't be read without writing",
      "make it and its folder writable, or read a copy of them")
  }

  private static func check(_ connection: Connection, _ path: String, _ mode: Connection.Mode) throws {
    // The first read finds out whether it is a database.
    _ = try connection.scalar("SELECT count(*) FROM main.sqlite_master")
    if mode != .readOnly && mode != .immutable, connection.isReadOnly {
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
