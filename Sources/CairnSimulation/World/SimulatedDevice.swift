import Cairn
import CairnEngine
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation

/// One device of a run: a database file, a program that writes to it, and an engine that syncs it.
final class SimulatedDevice {
  let number: Int
  let path: String
  let clock: DeviceClock
  let cloud: SimulatedCloud
  var coverage = Coverage()
  /// Whether something was sent since the last sync that fetched to the end: a server that is restored to a time before
  /// it then is noticed only by the next change (tables L12).
  var hasOpenSaves = false
  private let randomness: SeededRandomness
  private var program: Connection
  private var engine: DatabaseSync?
  private var commits = 0

  struct Crash: Error {}
  struct StorageFailure: Error {}

  var name: String { Step.deviceName(number) }

  init(_ number: Int, folder: URL, clock: DeviceClock, cloud: SimulatedCloud, seed: UInt64) throws {
    self.number = number
    self.clock = clock
    self.cloud = cloud
    path = folder.appendingPathComponent("\(number).db").path
    randomness = SeededRandomness(seed: seed)
    program = try SimulatedDevice.openProgram(path)
  }

  private static func openProgram(_ path: String) throws -> Connection {
    // No waiting: one thread does everything, so a lock that is held now would be held for ever.
    let connection = try Connection(path: path, mode: .create, busyTimeout: 0)
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
    return connection
  }

  func create(_ schema: SimulatedSchema) throws { try program.execute(schema.sql) }

  func prepare(_ mode: Preparation.Mode, _ place: SyncPlace) throws {
    let options = Preparation.Options(path: path, mode: mode, place: place)
    _ = try Preparation(options, cloud: cloud, time: clock, randomness: randomness).run()
  }

  // MARK: Programs

  func beginTransaction() throws { try program.execute("BEGIN IMMEDIATE") }

  func endTransaction(rollBack: Bool) throws {
    // A statement may have ended it already.
    if program.isInTransaction { try program.execute(rollBack ? "ROLLBACK" : "COMMIT") }
  }

  func setRecursiveTriggers(_ on: Bool) throws {
    try program.execute("PRAGMA recursive_triggers = \(on ? "ON" : "OFF")")
  }

  /// Runs a statement at `time` on the device's clock. Returns why SQLite refused it.
  func execute(_ sql: String, at time: Int64) throws -> SQLiteError? {
    let before = try lastLogID()
    do {
      try program.execute(sql)
    } catch {
      return error
    }
    let day = 2_440_587.5 + Double(time) / 86_400_000
    try program.run("UPDATE cairn_log SET time = ? WHERE id > ?", .real(day), .integer(before))
    return nil
  }

  private func lastLogID() throws -> Int64 {
    guard case .integer(let id)? = try program.scalar("SELECT max(id) FROM cairn_log") else { return 0 }
    return id
  }

  func rows(_ sql: String) throws -> [[Value]] { try program.rows(sql) }

  func addColumn(_ table: String) throws -> Bool {
    do {
      try program.execute("ALTER TABLE \(table) ADD COLUMN added DEFAULT 7")
      return true
    } catch {
      return false
    }
  }

  // MARK: Sync

  func open() throws -> DatabaseSync {
    if let engine { return engine }
    let opened = try DatabaseSync(path: path, time: clock, randomness: randomness) { [cloud] _ in cloud }
    engine = opened
    return opened
  }

  var database: SyncedDatabase { get throws { try open().database } }

  func restart() { engine = nil }

  /// One call to sync; nil when the process ended in it.
  func sync(_ plan: SyncPlan, during: ((Int) -> Void)? = nil) throws -> SyncReport? {
    let engine = try open()
    cloud.begin(plan.faults, during: during)
    defer { cloud.end() }
    guard plan.crashAtCommit != nil || plan.failingCommits != nil else { return try sync(engine, plan.scope) }
    commits = 0
    var hasCrashed = false
    engine.database.setWillCommit { [unowned self] in
      let commit = commits
      commits += 1
      if let last = plan.crashAtCommit, commit >= last {
        hasCrashed = true
        throw Crash()
      }
      if let failing = plan.failingCommits, failing.contains(commit) {
        coverage.note(.storageFailed)
        throw StorageFailure()
      }
    }
    defer { engine.database.setWillCommit(nil) }
    do {
      let report = try sync(engine, plan.scope)
      if !hasCrashed { return report }
    } catch is StorageFailure {
      return nil
    } catch is Crash {
      hasCrashed = true
    }
    coverage.note(.crashed)
    restart()
    return nil
  }

  private func sync(_ engine: DatabaseSync, _ scope: SyncPlan.Scope) throws -> SyncReport {
    switch scope {
    case .all: try engine.sync(SyncRequest(.all))
    case .fetchOnly: try engine.sync(SyncRequest(.fetchOnly))
    case .sendOnly: try engine.sync(SyncRequest(.sendOnly))
    }
  }

  /// Puts another device's file in place of this one's.
  func replaceFile(by other: SimulatedDevice) throws {
    restart()
    // The other connection is closed before its file goes.
    program = try Connection(path: ":memory:", mode: .create)
    try other.program.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
    try FileManager.default.copyItem(atPath: other.path, toPath: path)
    program = try SimulatedDevice.openProgram(path)
  }

  func close() throws {
    restart()
    program = try Connection(path: ":memory:", mode: .create)
  }
}
