import CairnSQLite
import Foundation

/// Connections for reading, as many as threads have read at once.
final class ReaderPool: @unchecked Sendable {
  // `idle` and `isClosed` are guarded by `lock`; a session is used by the thread that took it from `idle`.
  private let lock = NSLock()
  private var idle: [SQLiteSession] = []
  private var isClosed = false
  private let path: String

  init(path: String) { self.path = path }

  func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result {
    do {
      let session = try take()
      defer { giveBack(session) }
      return try session.connection.transaction(.deferred) { try body(session) }
    } catch {
      throw SQLiteStorage.failure(error)
    }
  }

  func close() {
    lock.lock()
    defer { lock.unlock() }
    isClosed = true
    idle = []
  }

  private func take() throws -> SQLiteSession {
    lock.lock()
    let session = idle.popLast()
    let isClosed = isClosed
    lock.unlock()
    if let session { return session }
    guard !isClosed else { throw StorageFailure("The store is closed", isTemporary: true) }
    // Not read-only: a reader may have to recover the WAL that a killed writer left.
    let connection = try Connection(path: path, mode: .readWrite)
    try connection.execute("PRAGMA query_only = ON; PRAGMA cache_size = -8000")
    return SQLiteSession(connection)
  }

  private func giveBack(_ session: SQLiteSession) {
    lock.lock()
    defer { lock.unlock() }
    if !isClosed { idle.append(session) }
  }
}
