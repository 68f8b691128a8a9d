import CPostgres
import CairnRecords
import CairnServerCore
import Foundation

/// Servers of one store tell each other by LISTEN and NOTIFY; by a table that is looked at every second where the
/// engine has no such thing. One thread with a connection of its own, from ``start(_:)`` to ``stop()``.
///
/// Messages are sent outside of the transactions that they tell of, so that commits do not wait for each other.
final class PostgresExchange: NewsExchange, @unchecked Sendable {
  // `waiting`, `isStopped` and `pipe` are guarded by `lock`; everything else is used by the thread alone.
  private let lock = NSLock()
  private var waiting: [[UInt8]] = []
  private var isStopped = false
  /// Wakes the thread: its end for reading, and the one for writing. Empty while there is no thread.
  private var pipe: [Int32] = []

  private let connector: PostgresConnector
  private let polls: Bool
  /// Tells own messages from those of others.
  private let sender = Int64.random(in: 1...(.max))
  private var seen: Set<Int64> = []
  private var lastCleaning = Date.distantPast

  private static let channel = "cairn_news"
  /// Messages that wait while the server is away; older ones are dropped.
  private static let mostWaiting = 10_000

  init(_ connector: PostgresConnector, polling: Bool) {
    self.connector = connector
    polls = polling
  }

  func start(_ hear: @escaping @Sendable (NewsEvent) -> Void) {
    var ends: [Int32] = [-1, -1]
    let isFirst = lock.withLock {
      guard pipe.isEmpty, !isStopped, makePipe(&ends) == 0 else { return false }
      for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      pipe = ends
      return true
    }
    guard isFirst else { return }
    let (reading, writing) = (ends[0], ends[1])
    let thread = Thread { [weak self] in
      while let self, !self.hasStopped { self.serve(hear, wakenBy: reading) }
      close(reading)
      close(writing)
    }
    thread.name = "cairn.news"
    thread.start()
  }

  func tell(_ message: [UInt8]) {
    guard message.count <= NewsMessage.longest else { return }
    lock.withLock {
      guard !pipe.isEmpty else { return }
      if waiting.count >= Self.mostWaiting { waiting.removeFirst() }
      waiting.append(message)
      wake()
    }
  }

  func stop() {
    lock.withLock {
      isStopped = true
      wake()
      pipe = []
    }
  }

  private func wake() {
    if pipe.count == 2 { _ = write(pipe[1], [1], 1) }
  }

  private var hasStopped: Bool { lock.withLock { isStopped } }

  // MARK: The thread

  /// Listens until the connection is lost or the exchange is stopped.
  private func serve(_ hear: @Sendable (NewsEvent) -> Void, wakenBy reading: Int32) {
    do {
      let connection = try connector.connect()
      let isNotified = try !polls && listen(connection)
      hear(.gap)
      while !hasStopped {
        try sendWaiting(connection, isNotified: isNotified)
        if isNotified {
          for payload in try connection.notifications() { receive(payload, hear) }
        } else {
          try lookForNews(connection, hear)
        }
        waitForEvent(isNotified ? connection.socket : -1, reading, milliseconds: isNotified ? 30_000 : 1_000)
        var bytes = [UInt8](repeating: 0, count: 256)
        while read(reading, &bytes, bytes.count) > 0 {}
      }
    } catch {
      // The server is away. For hints that are lost meanwhile, everybody is told when it is back.
      if !hasStopped { waitForEvent(-1, -1, milliseconds: 500) }
    }
  }

  private func waitForEvent(_ socket: Int32, _ reading: Int32, milliseconds: Int32) {
    var events = [socket, reading].filter { $0 >= 0 }.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    poll(&events, nfds_t(events.count), milliseconds)
  }

  private func listen(_ connection: PostgresConnection) throws -> Bool {
    do {
      try connection.query("LISTEN \(Self.channel)")
      return true
    } catch let error as PostgresError where !error.isConnectionLoss {
      // The engine has no LISTEN.
      return false
    }
  }

  private func sendWaiting(_ connection: PostgresConnection, isNotified: Bool) throws {
    let messages = lock.withLock {
      defer { waiting = [] }
      return waiting
    }
    do { try send(messages, connection, isNotified: isNotified) } catch let error as PostgresError
      where error.isConnectionLoss
    {
      // Once more over the next connection: hearing a hint twice costs less than missing it.
      lock.withLock { waiting = Array((messages + waiting).suffix(Self.mostWaiting)) }
      throw error
    }
  }

  private func send(_ messages: [[UInt8]], _ connection: PostgresConnection, isNotified: Bool) throws {
    for message in messages {
      if isNotified {
        let payload = "\(sender) \(Data(message).base64EncodedString())"
        try connection.send("SELECT pg_notify('\(Self.channel)', $1)", [.text(payload)])
      } else {
        try connection.send(
          "INSERT INTO news (id, sender, message) VALUES ($1, $2, $3)",
          [.int(.random(in: 1...(.max))), .int(sender), .bytes(message)])
      }
    }
    try connection.flush()
  }

  private func receive(_ payload: String, _ hear: @Sendable (NewsEvent) -> Void) {
    let words = payload.split(separator: " ")
    guard words.count == 2, Int64(words[0]) != sender, let message = Data(base64Encoded: String(words[1])) else {
      return
    }
    hear(.message(Array(message)))
  }

  // MARK: Polling

  private func lookForNews(_ connection: PostgresConnection, _ hear: @Sendable (NewsEvent) -> Void) throws {
    // Rows become visible in any order: the last seconds are looked at each time, and what was seen is left out.
    let rows = try connection.query(
      "SELECT id, message FROM news WHERE sender <> $1 AND added > now() - interval '20 seconds'", [.int(sender)])
    var present: Set<Int64> = []
    for row in 0..<rows.count {
      present.insert(rows.integer(row, 0))
      if !seen.contains(rows.integer(row, 0)) { hear(.message(rows.bytes(row, 1))) }
    }
    seen = present
    guard Date().timeIntervalSince(lastCleaning) > 60 else { return }
    lastCleaning = Date()
    try connection.query("DELETE FROM news WHERE added < now() - interval '1 minute'")
  }
}

/// `pipe` of the C library; the class here has a property of that name.
private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }
