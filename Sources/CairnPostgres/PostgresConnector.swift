import CairnServerCore
import Foundation

/// Makes connections, and notices when the server behind them is another one than before.
///
/// A server that has taken the place of another, after a failover or a restore, may lack what the other one had
/// committed last. Positions would be given out twice then, so an epoch begins before anything is done there
/// (web-services section 8). A server that was only started again is treated alike; a connection that merely broke is
/// not.
final class PostgresConnector: @unchecked Sendable {
  let url: PostgresURL
  // `known` is guarded by `lock`.
  private let lock = NSLock()
  private var known: Set<String> = []

  init(_ url: PostgresURL) { self.url = url }

  /// A connection that is ready for use. Blocks for some seconds where the server is away.
  func connect() throws -> PostgresConnection {
    let connection = try PostgresConnection(url)
    try connection.query("SET search_path TO cairn")
    try limitIdleness(connection)
    let instance = try instance(of: connection)
    // Others wait: none of them may use the new server before its epoch has begun.
    try lock.withLock {
      guard !known.contains(instance) else { return }
      if !known.isEmpty {
        try connection.query(
          "UPDATE store SET epoch = $1 WHERE id = 1", [.int(Int64(UInt32.random(in: 0...(.max >> 1))))])
      }
      known.insert(instance)
    }
    return connection
  }

  /// A process that hangs inside a transaction must not keep locks for ever.
  private func limitIdleness(_ connection: PostgresConnection) throws {
    do { try connection.query("SET idle_in_transaction_session_timeout = '60s'") } catch let error as PostgresError
      where !error.isConnectionLoss
    {
      // Another engine, which may not know the setting.
    }
  }

  /// What tells one run of a server from another.
  private func instance(of connection: PostgresConnection) throws -> String {
    do {
      return try connection.query("SELECT CAST(pg_postmaster_start_time() AS text)").text(0, 0)
    } catch let error as PostgresError where !error.isConnectionLoss {
      // An engine without the function keeps what it has committed when a node goes.
      return "-"
    }
  }
}
