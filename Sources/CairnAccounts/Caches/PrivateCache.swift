import Foundation
import Synchronization

/// Names an entry of a private cache: always of one account (accounts.md A73).
public struct PrivateCacheKey: Hashable, Sendable, Codable {
  public var account: AccountID
  public var name: String

  public init(account: AccountID, name: String) {
    self.account = account
    self.name = name
  }
}

/// What a purge removes.
public enum PrivateCachePurge: Hashable, Sendable {
  case all
  case account(AccountID)
}

/// Something made from private data: a widget's snapshot, thumbnails, badge counts, pending notifications
/// (accounts.md A74).
public protocol DerivedCopy: Sendable {
  /// Removes what was made from the purged data. Called again after a crash: must be harmless when there is nothing.
  func purge(_ what: PrivateCachePurge)
}

/// Why the file of a private cache can't be read or written: one sentence.
public struct PrivateCacheError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
}

/// Data fetched with accounts, in one file stamped with its owner (accounts.md section 3, private caches).
///
/// Invariants:
/// 1. The owner's scope stands in the same atomic file as the content; another owner, or none, purges it before
///    anything is shown (accounts.md A69).
/// 2. A purge is marked on disk before anything is removed, and ends at the latest with the next start (A72).
/// 3. Loads, writes and purges are under one lock (A70).
///
/// Thread-safe. Calls read and write a small file and block for it.
public final class PrivateCache<Value: Codable & Sendable>: Sendable {
  private struct Contents: Codable {
    struct Entry: Codable {
      var key: PrivateCacheKey
      var value: Value
    }
    var owner: String
    var entries: [Entry]
  }

  private struct State {
    /// Nil: not loaded yet.
    var entries: [PrivateCacheKey: Value]?
    var owner: ScopeID?
    /// Purges so far, of everything and by account.
    var purges = 0
    var accountPurges: [AccountID: Int] = [:]
  }

  private let path: String
  private let core: AccountsCore
  private let derivedCopies: [any DerivedCopy]
  private let state = Mutex(State())

  /// Completes a purge that was cut off. Shows nothing and reads nothing else.
  public init(file: URL, store: AccountsCore, derivedCopies: [any DerivedCopy] = []) throws(PrivateCacheError) {
    path = file.path
    core = store
    self.derivedCopies = derivedCopies
    PrivateFile.removeLeftovers(in: file.deletingLastPathComponent().path, of: file.lastPathComponent)
    if FileManager.default.fileExists(atPath: markPath) {
      try finishPurge()
    }
  }

  private var markPath: String { path + ".purge" }

  /// What is kept under a key, for the present owner; nil while the identity is unresolved (accounts.md A75).
  public func value(for key: PrivateCacheKey) throws(PrivateCacheError) -> Value? {
    let snapshot = core.snapshot
    return try state.withLock { state throws(PrivateCacheError) in
      guard try prepare(&state, snapshot) else { return nil }
      return state.entries?[key]
    }
  }

  /// Fetches a value and keeps it, unless the scope, the account or the cache has changed under it (accounts.md A71).
  ///
  /// - Returns: what was fetched; nil where it belongs to nobody here any more.
  public func refresh(_ key: PrivateCacheKey, with fetch: @Sendable () async throws -> Value) async throws -> Value? {
    let before = core.snapshot
    guard before.scope != nil, before.accounts.contains(where: { $0.id == key.account }) else { return nil }
    let purges = state.withLock { ($0.purges, $0.accountPurges[key.account] ?? 0) }
    let value = try await fetch()
    let after = core.snapshot
    return try state.withLock { state throws(PrivateCacheError) -> Value? in
      guard after.scope == before.scope, after.generation == before.generation,
        after.accounts.contains(where: { $0.id == key.account }),
        purges == (state.purges, state.accountPurges[key.account] ?? 0), try prepare(&state, after)
      else { return nil }
      state.entries?[key] = value
      try write(state)
      return value
    }
  }

  /// Removes everything, or what belongs to one account, and what was derived from it.
  public func purge(_ what: PrivateCachePurge) throws(PrivateCacheError) {
    try state.withLock { state throws(PrivateCacheError) in try purge(what, &state) }
  }

  /// Removes what the present owner may not have: another owner's file, entries of deleted accounts. Call it at launch
  /// and when the snapshot changes; every access does it too.
  public func reconcile() throws(PrivateCacheError) {
    let snapshot = core.snapshot
    try state.withLock { state throws(PrivateCacheError) in _ = try prepare(&state, snapshot) }
  }

  // MARK: Under the lock

  /// Loads the file for the present owner. False: nothing may be shown.
  private func prepare(_ state: inout State, _ snapshot: AccountsSnapshot) throws(PrivateCacheError) -> Bool {
    guard let scope = snapshot.scope else { return false }
    if state.entries == nil || state.owner != scope {
      if state.entries != nil { try purge(.all, &state) }
      try load(&state, scope)
    }
    let live = Set(snapshot.accounts.map(\.id))
    let dead = Set((state.entries ?? [:]).keys.map(\.account)).subtracting(live)
    for id in dead.sorted() { try purge(.account(id), &state) }
    return true
  }

  private func load(_ state: inout State, _ scope: ScopeID) throws(PrivateCacheError) {
    state.owner = scope
    state.entries = [:]
    guard FileManager.default.fileExists(atPath: path) else { return }
    // Without a readable owner it is nobody's.
    guard let contents = storedContents(), contents.owner == scope.rawValue else { return try purge(.all, &state) }
    state.entries = Dictionary(contents.entries.map { ($0.key, $0.value) }) { $1 }
  }

  private func purge(_ what: PrivateCachePurge, _ state: inout State) throws(PrivateCacheError) {
    switch what {
    case .all:
      state.purges += 1
      state.entries = state.entries == nil ? nil : [:]
    case .account(let id):
      state.accountPurges[id, default: 0] += 1
      state.entries = state.entries?.filter { $0.key.account != id }
    }
    do { try PrivateFile.replace(markPath, with: Data(mark(what).utf8)) } catch {
      throw PrivateCacheError(description: "\(markPath) can't be written")
    }
    try finishPurge()
  }

  private func mark(_ what: PrivateCachePurge) -> String {
    switch what {
    case .all: "all"
    case .account(let id): id.rawValue
    }
  }

  /// Does what the mark says, derived copies included, and takes the mark away last.
  private func finishPurge() throws(PrivateCacheError) {
    var what = PrivateCachePurge.all
    if let data = FileManager.default.contents(atPath: markPath),
      let id = AccountID(String(decoding: data, as: UTF8.self))
    {
      what = .account(id)
    }
    if case .account(let id) = what, let contents = storedContents() {
      try write(Contents(owner: contents.owner, entries: contents.entries.filter { $0.key.account != id }))
    } else {
      guard unlink(path) == 0 || errno == ENOENT else {
        throw PrivateCacheError(description: "\(path) can't be removed")
      }
    }
    for copy in derivedCopies { copy.purge(what) }
    guard unlink(markPath) == 0 || errno == ENOENT else {
      throw PrivateCacheError(description: "\(markPath) can't be removed")
    }
  }

  /// The file as it is; nil where it is missing or can't be read.
  private func storedContents() -> Contents? {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    do { return try JSONDecoder().decode(Contents.self, from: data) } catch { return nil }
  }

  private func write(_ state: State) throws(PrivateCacheError) {
    guard let owner = state.owner else { return }
    let entries = (state.entries ?? [:]).map { Contents.Entry(key: $0.key, value: $0.value) }
    try write(Contents(owner: owner.rawValue, entries: entries))
  }

  private func write(_ contents: Contents) throws(PrivateCacheError) {
    do { try PrivateFile.replace(path, with: JSONEncoder().encode(contents)) } catch {
      throw PrivateCacheError(description: "\(path) can't be written")
    }
  }
}
