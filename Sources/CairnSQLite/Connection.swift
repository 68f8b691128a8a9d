import CSQLite
import Synchronization

/// A connection to one SQLite database file.
///
/// Confined to one thread at a time: it is not `Sendable`, and SQLite's own mutexes are off (`SQLITE_OPEN_NOMUTEX`).
/// Only ``interruptHandle`` may be used from elsewhere.
public final class Connection {
  public enum Mode: Sendable {
    /// The file must exist and is not changed.
    case readOnly
    /// The file must exist.
    case readWrite
    /// The file is created if it does not exist.
    case create
    /// The file must exist, and nobody changes it while the connection lives: it is read without locks and without the
    /// files that SQLite keeps beside it.
    case immutable
  }

  /// SQLite's own handle, for calls that this module does not wrap.
  public let handle: OpaquePointer
  public let path: String
  private var cache: [StatementKey: Statement] = [:]
  private var savepointDepth = 0
  /// Raised whenever a transaction begins or something is rolled back: what was read before may be different then,
  /// though ``totalChanges`` is the same.
  public private(set) var epoch = 0
  /// Called before each COMMIT of ``transaction(_:_:)``; when it throws, the transaction is rolled back. For the
  /// simulation, which ends processes and fails disks at these borders.
  package var willCommit: (() throws -> Void)?
  private let interruptTarget: InterruptTarget

  /// Statements kept at most: a bound for callers whose SQL text varies.
  private static let cacheLimit = 500

  /// Opens a file, or a private database in memory for `:memory:`.
  ///
  /// - Parameter busyTimeout: how long a call waits for another connection's lock, in milliseconds.
  public init(path: String, mode: Mode = .readWrite, busyTimeout: Int32 = 5_000) throws(SQLiteError) {
    let flags =
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
      | (mode == .readOnly || mode == .immutable ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
      | (mode == .create ? SQLITE_OPEN_CREATE : 0) | (mode == .immutable ? SQLITE_OPEN_URI : 0)
    var opened: OpaquePointer?
    let name = mode == .immutable ? Self.immutableURI(path) : path
    let code = sqlite3_open_v2(name, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteError(opened, code: code)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    self.path = path
    interruptTarget = InterruptTarget(opened)
    sqlite3_busy_timeout(handle, busyTimeout)
  }

  private static func immutableURI(_ path: String) -> String {
    var bytes: [UInt8] = Array("file:".utf8)
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): bytes += "%\(String(byte, radix: 16))".utf8
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self) + "?immutable=1"
  }

  deinit {
    interruptTarget.clear()
    cache.removeAll()
    sqlite3_close_v2(handle)
  }

  /// Whether the main database can't be written to through this connection.
  public var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  // MARK: Statements

  /// Runs one or more statements that return nothing of interest.
  ///
  /// When one fails, those before it have run: use a transaction where that matters.
  public func execute(_ sql: String) throws(SQLiteError) {
    try Statement.checkText(sql)
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteError(handle, code: code, sql: sql) }
  }

  /// Compiles one statement that the caller keeps.
  ///
  /// - Throws: also `SQLITE_MISUSE` when `sql` holds no statement, or more than one.
  public func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    try Statement(self, sql)
  }

  /// The statement for `sql` from this connection's cache, reset and without bindings.
  ///
  /// The same text gives the same object: don't use it again while it is being stepped.
  public func cached(_ sql: String) throws(SQLiteError) -> Statement {
    let key = StatementKey(sql: sql)
    if let statement = cache[key] {
      statement.reset()
      return statement
    }
    let statement = try Statement(self, sql)
    if cache.count >= Self.cacheLimit { cache.removeAll() }
    cache[key] = statement
    return statement
  }

  /// Finalizes all cached statements, for example before a schema change.
  public func clearCache() { cache.removeAll() }

  /// Binds `values` to a cached statement and runs it to its end.
  public func run(_ sql: String, _ values: Value...) throws(SQLiteError) {
    try cached(sql).run(values)
  }

  /// The rows of a query, copied.
  public func rows(_ sql: String, _ values: Value...) throws(SQLiteError) -> [[Value]] {
    let statement = try cached(sql)
    defer { statement.reset() }
    try statement.bind(values)
    var result: [[Value]] = []
    while try statement.step() { result.append(statement.row) }
    return result
  }

  /// The first column of a query's first row; nil when there is no row.
  public func scalar(_ sql: String, _ values: Value...) throws(SQLiteError) -> Value? {
    let statement = try cached(sql)
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step() ? statement.value(0) : nil
  }

  // MARK: Transactions

  public enum TransactionKind: String, Sendable {
    case deferred = "DEFERRED"
    /// Takes the write lock at once, so that it can't fail half-way for want of it.
    case immediate = "IMMEDIATE"
  }

  /// Runs `body` in a transaction, or in a savepoint when one is open already. Rolls back and rethrows if it throws.
  ///
  /// Throws too when a statement in `body` rolled the transaction back by itself (`RAISE(ROLLBACK)`, a full disk, an
  /// interrupt) and `body` went on: nothing then was in a transaction, and what ran later is kept.
  public func transaction<Result>(
    _ kind: TransactionKind = .immediate, _ body: () throws -> Result
  ) throws -> Result {
    guard !isInTransaction else { return try savepoint(body) }
    epoch += 1
    try execute("BEGIN \(kind.rawValue)")
    do {
      let result = try body()
      try willCommit?()
      try execute("COMMIT")
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  /// Runs `body` in a savepoint. Rolls back to it and rethrows if it throws.
  public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    if !isInTransaction { epoch += 1 }
    savepointDepth += 1
    defer { savepointDepth -= 1 }
    let name = "cairn_savepoint_\(savepointDepth)"
    try execute("SAVEPOINT \(name)")
    do {
      let result = try body()
      try execute("RELEASE \(name)")
      return result
    } catch {
      epoch += 1
      // A statement that rolled the whole transaction back took the savepoint with it. If `body` then began another
      // transaction, the savepoint's own changes can't be told apart from it any more: none are kept.
      if isInTransaction {
        do { try execute("ROLLBACK TO \(name); RELEASE \(name)") } catch { rollBack() }
      }
      throw error
    }
  }

  /// Ends the open transaction, if any, without keeping its changes.
  public func rollBack() {
    epoch += 1
    // ROLLBACK fails when no transaction is open, which is what the caller wants, and when another thread interrupts
    // it.
    for _ in 0..<1_000 where isInTransaction { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  // MARK: Facts

  /// Rows changed by the last statement, triggers not counted.
  public var changes: Int64 { sqlite3_changes64(handle) }

  /// Rows changed since the connection was opened, triggers counted.
  public var totalChanges: Int64 { sqlite3_total_changes64(handle) }

  public var lastInsertRowID: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Whether a deferred foreign key of the open transaction is violated at this moment.
  public var hasDeferredForeignKeyViolations: Bool {
    var now: Int32 = 0
    var high: Int32 = 0
    sqlite3_db_status(handle, SQLITE_DBSTATUS_DEFERRED_FKS, &now, &high, 0)
    return now != 0
  }

  /// A number that changes when another connection commits to the file.
  public func dataVersion() throws(SQLiteError) -> Int64 {
    guard case .integer(let version)? = try scalar("PRAGMA data_version") else { return 0 }
    return version
  }

  // MARK: Interrupting

  /// Lets another thread stop what runs on this connection.
  public var interruptHandle: InterruptHandle { InterruptHandle(target: interruptTarget) }

  /// Stops a connection's running statements with `SQLITE_INTERRUPT`, which rolls back a transaction in which one of
  /// them was writing. Does nothing while none runs, or when the connection is closed. Safe on any thread.
  public struct InterruptHandle: Sendable {
    fileprivate let target: InterruptTarget
    public func interrupt() { target.interrupt() }
  }

  fileprivate final class InterruptTarget: Sendable {
    /// SQLite's handle as an address, 0 when it is closed: pointers can't be sent.
    private let address: Mutex<UInt>

    init(_ handle: OpaquePointer) { address = Mutex(UInt(bitPattern: handle)) }

    func interrupt() {
      address.withLock { if let handle = OpaquePointer(bitPattern: $0) { sqlite3_interrupt(handle) } }
    }

    func clear() { address.withLock { $0 = 0 } }
  }
}
