import CairnEngine
import CairnRecords
import CairnSQLite
import CairnServerCore
import Synchronization

/// A whole server in memory: the real server core without HTTP. Thread-safe and, used from one thread, deterministic.
///
/// ```swift
/// let server = try InMemoryServer()
/// let phone = try server.cloud(user: "anna")
/// let laptop = try server.cloud(user: "anna")
/// ```
public final class InMemoryServer: Sendable {
  public let clock: any ServerClock
  public let randomness: any ServerRandomness
  public let settings: ServerSettings
  private let storage: any Storage
  /// The bytes of assets. Copies of the store do not hold them.
  public let assets = MemoryAssetStore()
  private let running: Mutex<CloudServer>

  public convenience init(
    clock: any ServerClock = ManualClock(), randomness: any ServerRandomness = SeededRandomness(seed: 1),
    settings: ServerSettings = ServerSettings()
  ) throws {
    try self.init(storage: SQLiteStorage.inMemory(), clock: clock, randomness: randomness, settings: settings)
  }

  /// The same on another store, which is closed when this object goes.
  public init(
    storage: any Storage, clock: any ServerClock = ManualClock(),
    randomness: any ServerRandomness = SeededRandomness(seed: 1), settings: ServerSettings = ServerSettings()
  ) throws {
    self.clock = clock
    self.randomness = randomness
    self.settings = settings
    self.storage = storage
    running = Mutex(
      try CloudServer(
        storage: storage, assets: assets, clock: clock, randomness: randomness, settings: settings))
  }

  deinit { storage.close() }

  /// The server core that runs now; another one after ``restart()`` and ``restore(_:)``.
  public var core: CloudServer { running.withLock { $0 } }

  /// One user's private database. The user is added when the name is new; every call gives another connection.
  public func cloud(user: String, container: String = "iCloud.cairn", limits: CloudLimits = CloudLimits()) throws
    -> InMemoryCloud
  {
    InMemoryCloud(server: self, caller: try caller(user), scope: DatabaseScope(container: container), limits: limits)
  }

  /// The user of that name, added when it is new.
  public func caller(_ name: String) throws -> Caller {
    if let caller = try core.user(named: name) { return caller }
    return try UserDirectory(storage: storage, clock: clock, randomness: randomness).add(name)
  }

  /// Ends the server and starts another on the same store: a new epoch, every token stays good.
  public func restart() throws {
    let next = try CloudServer(
      storage: storage, assets: assets, clock: clock, randomness: randomness, settings: settings)
    running.withLock { $0 = next }
  }

  // MARK: Backups

  /// A copy of everything that the server stores.
  public struct Backup: Sendable {
    fileprivate var tables: [(name: String, rows: [[Value]])]
  }

  /// Empty where the store is not in memory.
  public func backup() throws -> Backup {
    let tables = try (storage as? SQLiteStorage)?.withMemoryConnection { connection in
      try InMemoryServer.tableNames(connection).map { ($0, try connection.rows("SELECT * FROM \"\($0)\"")) }
    }
    return Backup(tables: tables ?? [])
  }

  /// Puts a copy in place of what is stored and starts the server again: what was stored since is undone, and tokens
  /// of the undone history expire (web-services section 8).
  public func restore(_ backup: Backup) throws {
    _ = try (storage as? SQLiteStorage)?.withMemoryConnection { connection in
      try connection.transaction {
        for (name, rows) in backup.tables {
          try connection.execute("DELETE FROM \"\(name)\"")
          guard let width = rows.first?.count else { continue }
          let marks = Array(repeating: "?", count: width).joined(separator: ", ")
          let insert = try connection.prepare("INSERT INTO \"\(name)\" VALUES (\(marks))")
          for row in rows { try insert.run(row) }
        }
      }
    }
    try restart()
  }

  private static func tableNames(_ connection: Connection) throws -> [String] {
    try connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").compactMap {
      guard case .text(let name)? = $0.first else { return nil }
      return name
    }
  }
}
