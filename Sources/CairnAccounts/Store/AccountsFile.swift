import CairnEngine
import CairnSQLite
import Foundation

/// The one SQLite file of a profile: every state and, where the engine serves only this category, the engine's rows
/// too.
///
/// A change is made on a copy of the state and becomes visible when its rows are committed: one transaction is one
/// durable commit (accounts.md section 4). Other processes may change the file; each transaction begins with what is
/// stored.
///
/// Thread-safe: every use is under one recursive lock. Calls block.
final class AccountsFile: @unchecked Sendable {
  // Everything below is guarded by `lock`.
  private let lock = NSRecursiveLock()
  private let connection: Connection
  private var committed: AccountsState?
  private var working: AccountsState?
  private var version: Int64 = -1
  private var depth = 0
  /// Told after each commit that changed the state, under the lock.
  private var observer: ((AccountsState) -> Void)?
  /// The counter of accounts.md section 1: raised on every scope transition, reset and teardown.
  let generations = EngineGeneration()

  static let formatVersion = "1"

  /// Opens the file, or makes it.
  ///
  /// - Parameter initial: the device's state, where the file is new.
  init(path: String, initial: DeviceState, willCommit: (() throws -> Void)? = nil) throws {
    let connection = try Connection(path: path, mode: .create)
    self.connection = connection
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
    try connection.transaction {
      try connection.execute(
        """
        CREATE TABLE IF NOT EXISTS cairn_accounts (
          scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS cairn_engine (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        """)
      if try connection.scalar("SELECT 1 FROM cairn_accounts WHERE scope = '' AND key = 'format'") == nil {
        try connection.run("INSERT INTO cairn_accounts VALUES ('', 'format', ?)", .text(Self.formatVersion))
        var state = AccountsState(device: initial)
        state.switchIdentity(to: initial.identity)
        try write(StateRows.difference(nil, state))
      }
    }
    connection.willCommit = willCommit
    guard
      try connection.scalar("SELECT value FROM cairn_accounts WHERE scope = '' AND key = 'format'")
        == .text(Self.formatVersion)
    else { throw AccountsError.damaged("the profile was written by a newer release: update this one") }
    try locked { _ = try load() }
  }

  func observe(_ observer: @escaping (AccountsState) -> Void) { locked { self.observer = observer } }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }

  // MARK: State

  /// The state as it is stored, or inside a transaction as it is going to be.
  func read() throws -> AccountsState {
    try locked { try working ?? load() }
  }

  /// Changes the state in one durable commit. Nothing of it stays if `body` throws.
  @discardableResult
  func change<Result>(_ body: (inout AccountsState) throws -> Result) throws -> Result {
    try transaction {
      var copy = try working ?? load()
      let result = try body(&copy)
      working = copy
      return result
    }
  }

  /// Raises the generation: work that began before it writes nothing any more (accounts.md A60).
  func raiseGeneration() { generations.raise() }

  var generation: Int64 { generations.current }

  /// One durable transaction. Calls nest; an inner one that throws leaves what was before it.
  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try locked {
      guard depth == 0 else { return try nested(body) }
      var changed: AccountsState?
      do {
        depth = 1
        defer { (depth, working) = (0, nil) }
        let result = try connection.transaction {
          let before = try load()
          working = before
          let result = try body()
          if let working, working != before {
            try write(StateRows.difference(before, working))
            changed = working
          }
          return result
        }
        if let changed { committed = changed }
        if let changed { observer?(changed) }
        return result
      }
    }
  }

  private func nested<Result>(_ body: () throws -> Result) throws -> Result {
    let before = working
    depth += 1
    defer { depth -= 1 }
    do {
      return try connection.savepoint(body)
    } catch {
      working = before
      throw error
    }
  }

  /// The committed state, read again where another connection has written. Inside a transaction.
  private func load() throws -> AccountsState {
    let now = try connection.dataVersion()
    if let committed, now == version { return committed }
    var rows: StateRows.Rows = [:]
    for row in try connection.rows("SELECT scope, key, value FROM cairn_accounts") {
      guard case .text(let scope) = row[0], case .text(let key) = row[1], case .text(let value) = row[2] else {
        throw AccountsError.damaged("the profile holds a row that is no text: restore it from a backup")
      }
      rows[StateRows.Address(scope: scope, key: key)] = value
    }
    do {
      let (state, lost) = try StateLoader.load(rows)
      if !lost.isEmpty {
        var delta: [StateRows.Address: String?] = [StateRows.Address(scope: "", key: "need"): "1"]
        for address in lost { delta[address] = .some(nil) }
        try write(delta)
      }
      (committed, version) = (state, now)
      return state
    } catch StateRows.Failure.unreadable(let what) {
      throw AccountsError.damaged("the profile's row \(what) can't be read: restore it from a backup")
    }
  }

  private func write(_ delta: [StateRows.Address: String?]) throws {
    for (address, value) in delta.sorted(by: { ($0.key.scope, $0.key.key) < ($1.key.scope, $1.key.key) }) {
      if let value {
        try connection.run(
          "INSERT INTO cairn_accounts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
          .text(address.scope), .text(address.key), .text(value))
      } else {
        try connection.run(
          "DELETE FROM cairn_accounts WHERE scope = ? AND key = ?", .text(address.scope), .text(address.key))
      }
    }
  }

  // MARK: The engine's rows

  func engineRows() throws -> [String: String] {
    try locked {
      var rows: [String: String] = [:]
      for row in try connection.rows("SELECT key, value FROM cairn_engine") {
        guard case .text(let key) = row[0], case .text(let value) = row[1] else { continue }
        rows[key] = value
      }
      return rows
    }
  }

  func engineRow(_ key: String) throws -> String? {
    try locked {
      guard case .text(let value)? = try connection.scalar("SELECT value FROM cairn_engine WHERE key = ?", .text(key))
      else { return nil }
      return value
    }
  }

  func writeEngineRows(_ delta: [String: String?]) throws {
    try locked {
      for (key, value) in delta.sorted(by: { $0.key < $1.key }) {
        if let value {
          try connection.run(
            "INSERT INTO cairn_engine VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", .text(key),
            .text(value))
        } else {
          try connection.run("DELETE FROM cairn_engine WHERE key = ?", .text(key))
        }
      }
    }
  }
}

/// The engine's state in the profile's own file: tokens commit with what they cover (DESIGN G3).
final class ProfileEngineStore: EngineStore {
  private let file: AccountsFile

  init(_ file: AccountsFile) { self.file = file }

  func loadState() throws -> [String: String] { try file.engineRows() }
  func readState(_ key: String) throws -> String? { try file.engineRow(key) }
  func transaction<Result>(_ body: () throws -> Result) throws -> Result { try file.transaction(body) }
  func writeState(_ delta: [String: String?]) throws { try file.writeEngineRows(delta) }
}
