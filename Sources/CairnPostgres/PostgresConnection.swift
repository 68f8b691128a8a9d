import CPostgres
import CairnServerCore

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// One connection. Statements are collected and sent together, prepared once each; ``flush()`` waits for their answers
/// in one round trip. Used by one thread at a time.
///
/// Invariant: after ``flush()``, with or without an error, no answer is outstanding but those of a `detached`
/// statement.
final class PostgresConnection {
  private let connection: OpaquePointer
  /// What the server has been sent and will answer.
  private enum Expectation {
    case preparation(String)
    case rows(String)
  }

  /// The names of the statements that the server has prepared, by their text.
  private var prepared: [String: String] = [:]
  private var nameCount = 0
  /// What was sent since the last end of a batch.
  private var expected: [Expectation] = []
  /// Batches that were ended and whose answers nobody has waited for.
  private var detached: [[Expectation]] = []
  private(set) var isBroken = false

  /// Connects; blocks until that has worked or failed.
  init(_ url: PostgresURL) throws {
    let words =
      [
        ("dbname", url.text), ("fallback_application_name", "cairn"), ("client_encoding", "UTF8"),
      ] + url.defaults
    var keys: [UnsafePointer<CChar>?] = []
    var values: [UnsafePointer<CChar>?] = []
    let copies = words.flatMap { [strdup($0.0), strdup($0.1)] }
    defer { for copy in copies { free(copy) } }
    for i in stride(from: 0, to: copies.count, by: 2) {
      keys.append(copies[i].map { UnsafePointer($0) })
      values.append(copies[i + 1].map { UnsafePointer($0) })
    }
    keys.append(nil)
    values.append(nil)
    guard let connection = PQconnectdbParams(keys, values, 1) else {
      throw PostgresError(state: "53200", message: "there is no memory for a connection")
    }
    guard PQstatus(connection) == CONNECTION_OK else {
      defer { PQfinish(connection) }
      let message = String(cString: PQerrorMessage(connection))
      throw PostgresError(state: PostgresURL.state(ofConnectionFailure: message), message: url.redacted(message))
    }
    self.connection = connection
    cairn_pq_quiet(connection)
    PQenterPipelineMode(connection)
  }

  deinit { PQfinish(connection) }

  /// Whether an idle connection still has its server. Found out before a transaction, not by the loss of its commit.
  func isAlive() -> Bool {
    guard !isBroken else { return false }
    var event = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    // Answers that nobody waits for apart, a server that says something unasked says farewell.
    if detached.isEmpty, poll(&event, 1, 0) > 0 { isBroken = true }
    return !isBroken
  }

  // MARK: Statements

  /// Collects a statement; ``flush()`` gives its rows.
  func send(_ sql: String, _ values: [PostgresValue] = []) throws {
    try settle()
    let name: String
    if let known = prepared[sql] {
      name = known
    } else {
      nameCount += 1
      name = "c\(nameCount)"
      guard PQsendPrepare(connection, name, sql, Int32(values.count), values.map(\.type)) == 1 else { throw loss() }
      expected.append(.preparation(sql))
      prepared[sql] = name
    }
    let encoded = values.map(\.encoded)
    let sent = PostgresConnection.withPointers(encoded) { pointers, lengths in
      PQsendQueryPrepared(
        connection, name, Int32(values.count), pointers, lengths, [Int32](repeating: 1, count: values.count), 1)
    }
    guard sent == 1 else { throw loss() }
    expected.append(.rows(sql))
  }

  /// Waits for the answers to everything that was collected, in its order.
  ///
  /// - Throws: the first error; the statements after it have not been run.
  @discardableResult
  func flush() throws -> [PostgresRows] {
    try settle()
    guard !expected.isEmpty else { return [] }
    guard PQpipelineSync(connection) == 1 else { throw loss() }
    let batch = expected
    expected = []
    return try collect(batch)
  }

  /// Sends what was collected without waiting. Its answers are read, and forgotten, before the next statement.
  func detach() throws {
    guard PQpipelineSync(connection) == 1, PQflush(connection) >= 0 else { throw loss() }
    detached.append(expected)
    expected = []
  }

  private func settle() throws {
    while !detached.isEmpty { _ = try collect(detached.removeFirst()) }
  }

  /// One statement in a round trip of its own, with what was collected before it.
  @discardableResult
  func query(_ sql: String, _ values: [PostgresValue] = []) throws -> PostgresRows {
    try send(sql, values)
    guard let rows = try flush().last else { throw loss() }
    return rows
  }

  /// Several statements without parameters, for making tables.
  func script(_ sql: String) throws {
    try settle()
    for statement in sql.split(separator: ";") where !statement.allSatisfy(\.isWhitespace) {
      guard sendUnprepared(String(statement)) else { throw loss() }
    }
    try flush()
  }

  // MARK: Notifications

  var socket: Int32 { PQsocket(connection) }

  /// What others have said on the channels that are listened to, without waiting.
  func notifications() throws -> [String] {
    guard PQconsumeInput(connection) == 1 else { throw loss() }
    var payloads: [String] = []
    while let found = PQnotifies(connection) {
      payloads.append(String(cString: found.pointee.extra))
      PQfreemem(found)
    }
    return payloads
  }

  // MARK: Answers

  private func collect(_ batch: [Expectation]) throws -> [PostgresRows] {
    var found: [PostgresRows] = []
    var failure: PostgresError?
    for expectation in batch {
      guard let result = PQgetResult(connection) else { throw loss() }
      let rows = PostgresRows(result)
      let status = PQresultStatus(result)
      switch (status, expectation) {
      case (PGRES_TUPLES_OK, .rows), (PGRES_COMMAND_OK, .rows): found.append(rows)
      case (PGRES_COMMAND_OK, .preparation): break
      case (_, .preparation(let sql)), (_, .rows(let sql)):
        if PQstatus(connection) != CONNECTION_OK { throw failure.map(lost) ?? lost(error(result)) }
        // Prepared again when it is used again: what the server knows of it is not certain.
        prepared[sql] = nil
        if status != PGRES_PIPELINE_ABORTED { failure = failure ?? error(result) }
      }
      // A null ends the answers to a statement.
      while let more = PQgetResult(connection) { PQclear(more) }
    }
    guard let end = PQgetResult(connection) else { throw loss() }
    PQclear(end)
    guard let failure else { return found }
    if failure.isConnectionLoss { isBroken = true }
    throw failure
  }

  /// Ends a transaction that has failed, whatever state it is in.
  func rollBack() {
    guard !isBroken else { return }
    do {
      // What was collected before the failure may fail too, and what is sent with it would not be run.
      do { try flush() } catch let error as PostgresError where !error.isConnectionLoss {}
      guard sendUnprepared("ROLLBACK") else { throw loss() }
      try flush()
    } catch {
      // The server undoes the transaction of a connection that is closed.
      isBroken = true
    }
  }

  private func sendUnprepared(_ sql: String) -> Bool {
    guard PQsendQueryParams(connection, sql, 0, nil, nil, nil, nil, 1) == 1 else { return false }
    expected.append(.rows(sql))
    return true
  }

  private func error(_ result: OpaquePointer?) -> PostgresError {
    let state = cairn_pq_sqlstate(result).map { String(cString: $0) } ?? ""
    let text = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) }
    return PostgresError(state: state, message: text ?? String(cString: PQerrorMessage(connection)))
  }

  private func loss() -> PostgresError {
    lost(PostgresError(state: "", message: String(cString: PQerrorMessage(connection))))
  }

  private func lost(_ error: PostgresError) -> PostgresError {
    isBroken = true
    expected = []
    detached = []
    let line = error.message.split(separator: "\n").first.map(String.init) ?? "the connection was lost"
    // A server that was stopped says so in its last answer; others say nothing.
    return PostgresError(state: error.isConnectionLoss ? error.state : "", message: line)
  }

  private static func withPointers<Result>(
    _ values: [[UInt8]?], _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    // One buffer for all: a pointer per value, good while the body runs.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(values.reduce(1) { $0 + ($1?.count ?? 0) })
    for value in values { if let value { bytes += value } }
    bytes.append(0)
    let lengths = values.map { Int32($0?.count ?? 0) }
    return bytes.withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { buffer in
        var at = 0
        let pointers: [UnsafePointer<CChar>?] = values.map { value in
          guard let value else { return nil }
          defer { at += value.count }
          return buffer.baseAddress.map { $0 + at }
        }
        return body(pointers, lengths)
      }
    }
  }
}
