import CairnServerCore
import Foundation

/// Connections for reading, as many as threads have read at once.
final class PostgresReaders: @unchecked Sendable {
  // `idle` and `isClosed` are guarded by `lock`; a connection is used by the thread that took it from `idle`.
  private let lock = NSLock()
  private var idle: [PostgresConnection] = []
  private var isClosed = false
  private let connector: PostgresConnector

  init(_ connector: PostgresConnector) { self.connector = connector }

  /// Runs `body` in a transaction that sees one snapshot; once more, on another connection, where the first one is
  /// lost.
  func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result {
    try withConnection { connection in
      let session = PostgresSession(connection, isWriter: false)
      do {
        try session.begin()
        let result = try body(session)
        try session.end()
        return result
      } catch {
        connection.rollBack()
        throw error
      }
    }
  }

  /// Runs `body` with a connection; once more where the connection turns out to be lost.
  func withConnection<Result>(_ body: (PostgresConnection) throws -> Result) throws -> Result {
    do {
      do { return try attempt(body) } catch let error as PostgresError where error.isConnectionLoss || error.isConflict
      {
        // The server was started again, perhaps, and the other idle connections are lost too.
        lock.withLock { if error.isConnectionLoss { idle = [] } }
        return try attempt(body)
      }
    } catch {
      throw PostgresError.failure(error)
    }
  }

  private func attempt<Result>(_ body: (PostgresConnection) throws -> Result) throws -> Result {
    let connection = try take()
    defer { giveBack(connection) }
    return try body(connection)
  }

  func close() {
    lock.withLock {
      isClosed = true
      idle = []
    }
  }

  private func take() throws -> PostgresConnection {
    while let connection = lock.withLock({ idle.popLast() }) { if connection.isAlive() { return connection } }
    guard !lock.withLock({ isClosed }) else { throw StorageFailure("The store is closed", isTemporary: true) }
    return try connector.connect()
  }

  private func giveBack(_ connection: PostgresConnection) {
    lock.withLock { if !isClosed, !connection.isBroken { idle.append(connection) } }
  }
}
