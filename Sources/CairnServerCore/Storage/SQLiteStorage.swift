import CairnSQLite
import Foundation

/// The store in one SQLite file, or in memory.
///
/// With a file, one thread owns the writing connection and commits all waiting jobs together; reads run on connections
/// of their own, on the caller's thread. In memory there is one connection under a lock, and everything runs on the
/// caller's thread: the same calls in the same order give the same result.
public final class SQLiteStorage: Storage {
  private enum Backing {
    case memory(LockedSession)
    case file(WriteQueue, ReaderPool)
  }

  private let backing: Backing

  /// A store that lives as long as this object.
  public static func inMemory() throws -> SQLiteStorage {
    let connection = try Connection(path: ":memory:", mode: .create)
    try SQLiteTables.prepare(connection)
    return SQLiteStorage(.memory(LockedSession(SQLiteSession(connection))))
  }

  /// Opens or creates a store. Its folder must exist.
  public convenience init(path: String) throws {
    let connection = try Connection(path: path, mode: .create)
    try connection.execute("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL")
    // FULL: what was answered as stored survives a power cut.
    try connection.execute(
      "PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA journal_size_limit = 67108864")
    try SQLiteTables.prepare(connection)
    self.init(.file(WriteQueue(SQLiteSession(connection)), ReaderPool(path: path)))
  }

  private init(_ backing: Backing) { self.backing = backing }

  public func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result {
    switch backing {
    case .memory(let locked): try locked.read(body)
    case .file(_, let pool): try pool.read(body)
    }
  }

  public func submit(
    in database: Int64?, _ body: @escaping @Sendable (any StorageWriter) throws -> @Sendable () -> Void,
    failed: @escaping @Sendable (any Error) -> Void
  ) {
    let job = WriteJob(body: body, failed: failed)
    switch backing {
    case .memory(let locked): locked.run(job)
    case .file(let queue, _): queue.submit(job)
    }
  }

  public var queuedWrites: Int {
    switch backing {
    case .memory: 0
    case .file(let queue, _): queue.count
    }
  }

  public func close() {
    switch backing {
    case .memory: break
    case .file(let queue, let pool):
      queue.close()
      pool.close()
    }
  }

  /// Runs `body` with the connection of a store in memory, for copies of it; nil for a store in a file.
  public func withMemoryConnection<Result>(_ body: (Connection) throws -> Result) rethrows -> Result? {
    guard case .memory(let locked) = backing else { return nil }
    return try locked.withConnection(body)
  }
}

extension SQLiteSession {
  /// Runs jobs in one transaction, each in a savepoint of its own, and reports to them after the commit.
  func commit(_ jobs: [WriteJob]) {
    var reports: [@Sendable () -> Void] = []
    do {
      try connection.execute("BEGIN IMMEDIATE")
      // Taken from the store each time: a copy of it may have been put in its place.
      position = nil
      position = try currentPosition()
      for job in jobs { reports.append(try run(job, isAlone: jobs.count == 1)) }
      try savePosition()
      try connection.execute("COMMIT")
    } catch {
      connection.rollBack()
      let error = SQLiteStorage.failure(error)
      for job in jobs { job.failed(error) }
      return
    }
    for report in reports { report() }
  }

  private func run(_ job: WriteJob, isAlone: Bool) throws -> @Sendable () -> Void {
    let before = position
    try hot(.savepoint) { "SAVEPOINT job" }.run()
    do {
      let report = try job.body(self)
      try hot(.release) { "RELEASE job" }.run()
      return report
    } catch {
      // An error that ended the whole transaction ends the other jobs too.
      guard connection.isInTransaction else { throw error }
      try connection.execute("ROLLBACK TO job; RELEASE job")
      position = before
      let failed = job.failed
      let failure = SQLiteStorage.failure(error)
      return { failed(failure) }
    }
  }
}

extension SQLiteStorage {
  /// Why a store can't be used, for who runs it: without the statement that failed.
  public static func reason(_ error: any Error) -> String {
    guard let error = error as? SQLiteError else { return "\(error)" }
    return "\(error.message), SQLite \(error.extendedCode)"
  }

  /// SQLite's errors in the words of ``Storage``.
  static func failure(_ error: any Error) -> any Error {
    guard let error = error as? SQLiteError else { return error }
    return StorageFailure("\(error)", isTemporary: error.isBusy)
  }
}

/// The single session of a store in memory.
private final class LockedSession: @unchecked Sendable {
  // `session` is used only while `lock` is held.
  private let lock = NSLock()
  private let session: SQLiteSession

  init(_ session: SQLiteSession) { self.session = session }

  func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result {
    lock.lock()
    defer { lock.unlock() }
    session.position = nil
    return try body(session)
  }

  func run(_ job: WriteJob) {
    lock.lock()
    // Reports run after the lock is released: they may call the store again.
    let reports = Reports()
    session.commit([
      WriteJob(
        body: { writer in
          let report = try job.body(writer)
          return { reports.report = report }
        }, failed: { error in reports.report = { job.failed(error) } })
    ])
    lock.unlock()
    reports.report?()
  }

  func withConnection<Result>(_ body: (Connection) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    session.forgetStatements()
    return try body(session.connection)
  }

  /// Written and read on one thread, inside one call.
  private final class Reports: @unchecked Sendable {
    var report: (@Sendable () -> Void)?
  }
}
