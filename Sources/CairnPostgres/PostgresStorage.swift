import CairnServerCore
import Foundation

/// The store in PostgreSQL, or in an engine that speaks its protocol, for any number of servers at the same time.
///
/// What is one database of one user is written by one transaction at a time, whichever process runs it: each takes the
/// lock of the database's row first. Different databases are written at the same time.
/// docs/internals/postgres-storage.md says how order, epochs and failures work.
public final class PostgresStorage: Storage {
  public let isShared = true
  public var exchange: (any NewsExchange)? { news }

  let connector: PostgresConnector
  let readers: PostgresReaders
  private let writers: PostgresWriters
  private let news: PostgresExchange

  /// Opens a store, and makes its tables where they are missing.
  ///
  /// - Parameters:
  ///   - writers: how many transactions may write at once; each has a connection, which is made when it is needed.
  ///   - creating: makes a store where there is none; without it that is an error.
  ///   - polling: tells others by a table that they poll, also where the engine can notify them.
  public init(_ url: PostgresURL, writers: Int = 8, creating: Bool = true, polling: Bool = false)
    throws(PostgresStartError)
  {
    connector = PostgresConnector(url)
    do {
      let connection = try PostgresConnection(url)
      try connection.query("SET search_path TO cairn")
      guard try creating || PostgresTables.exist(connection) else {
        throw PostgresStartError(
          "there is no server's data at \(url)", remedy: "give the address that cairn serve uses")
      }
      try PostgresTables.prepare(connection)
    } catch {
      throw PostgresStartError(error, at: url)
    }
    readers = PostgresReaders(connector)
    self.writers = PostgresWriters(connector, threads: writers)
    news = PostgresExchange(connector, polling: polling)
  }

  public func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result { try readers.read(body) }

  public func submit(
    in database: Int64?, _ body: @escaping @Sendable (any StorageWriter) throws -> @Sendable () -> Void,
    failed: @escaping @Sendable (any Error) -> Void
  ) { writers.submit(WriteJob(body: body, failed: failed), in: database) }

  /// Whether another process of Cairn is connected to the store, as each server always is. Blocks for up to two
  /// seconds: a connection that was just given up is still counted by PostgreSQL for a moment.
  ///
  /// Engines that do not keep this list answer no; so do servers that call themselves otherwise by `application_name`.
  public func isUsedByOthers() throws -> Bool {
    let question = """
      SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'cairn' AND pid <> pg_backend_pid()
      """
    for _ in 0..<40 {
      if try readers.withConnection({ try $0.query(question).integer(0, 0) }) == 0 { return false }
      Thread.sleep(forTimeInterval: 0.05)
    }
    return true
  }

  public var queuedWrites: Int { writers.queued }

  public func close() {
    news.stop()
    writers.close()
    readers.close()
  }
}
