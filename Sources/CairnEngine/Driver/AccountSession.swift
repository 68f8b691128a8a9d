import CairnRecords

/// Who is signed in, as far as the app could find out (engine section 11).
public enum Identity: Hashable, Sendable {
  /// Nobody: edits are kept under no identity.
  case none
  /// Not known, because the look-up failed or has not come back: nothing is applied or sent.
  case unresolved
  case user(String)
}

/// Keeps a session for whoever is signed in, and files everything under the identity that it belongs to (engine section
/// 11): on a change the old session ends, its state is set aside under its name, and comes back when that user does.
///
/// Used on one thread, like its sessions. Apps use ``SyncEngine``, which gives it one.
public final class AccountSession {
  /// Makes the session of a user; it has to take the generation, or it will go on after a switch.
  public typealias MakeSession = (_ user: String, _ generation: EngineGeneration) throws -> SyncSession

  public let generation: EngineGeneration
  public weak var observer: (any EngineObserver)?
  /// Nil unless a user is signed in and known.
  public private(set) var session: SyncSession?
  public private(set) var identity = Identity.unresolved

  private let store: any EngineStore
  private let categories: [any RecordCategory]
  private let makeSession: MakeSession

  public init(
    store: any EngineStore, categories: [any RecordCategory], generation: EngineGeneration = EngineGeneration(),
    observer: (any EngineObserver)? = nil, makeSession: @escaping MakeSession
  ) {
    self.store = store
    self.categories = categories
    self.generation = generation
    self.observer = observer
    self.makeSession = makeSession
  }

  /// Who was signed in when that was last known, also before a restart. Nil: never known.
  public static func lastIdentity(in store: any EngineStore) throws -> Identity? {
    guard let text = try store.readState(SyncSession.sharedKey(StoredKeys.identity)) else { return nil }
    return text.isEmpty ? Identity.none : .user(text)
  }

  /// Takes note of who is signed in. Several changes while the app was closed are one.
  ///
  /// In this order: the old session ends and writes nothing any more, the new identity is stored together with what the
  /// categories set aside, the observer hears of it, the new session begins. If it throws, the identity is unresolved,
  /// and the same call may be made again.
  @discardableResult
  public func resolve(_ identity: Identity) throws -> AccountChange? {
    if identity == self.identity, identity != .unresolved, session?.isReplaced != true { return nil }
    if session != nil { generation.raise() }
    session = nil
    self.identity = .unresolved
    guard identity != .unresolved else { return nil }
    let change = Self.change(from: try Self.lastIdentity(in: store) ?? .none, to: identity)
    try store.transaction { try file(identity, change) }
    if let change { observer?.handle(.accountChange(change)) }
    if case .user(let user) = identity { session = try makeSession(user, generation) }
    self.identity = identity
    return change
  }

  /// Syncs as ``SyncSession/sync(_:)`` does. Throws ``SyncFailure/noAccount`` or ``SyncFailure/unresolvedAccount`` when
  /// there is nobody to sync for.
  @discardableResult
  public func sync(_ request: SyncRequest = SyncRequest()) throws -> SyncResult {
    try current().sync(request)
  }

  /// The session of the user who is signed in.
  public func current() throws -> SyncSession {
    guard let session else { throw identity == .none ? SyncFailure.noAccount : .unresolvedAccount }
    return session
  }

  private static func change(from old: Identity, to new: Identity) -> AccountChange? {
    switch (old, new) {
    case (.user(let previous), .user(let current)):
      previous == current ? nil : .switchAccounts(previous: previous, current: current)
    case (.user(let previous), _): .signOut(previous: previous)
    case (_, .user(let current)): .signIn(current: current)
    default: nil
    }
  }

  private func file(_ identity: Identity, _ change: AccountChange?) throws {
    var user: String?
    if case .user(let name) = identity { user = name }
    var rows: StateDelta = [SyncSession.sharedKey(StoredKeys.identity): user ?? ""]
    for category in categories {
      if let change { try category.accountChanged(change) }
      if let user, change != nil, category.asksToAdopt {
        rows[SyncSession.prefix(user) + StoredKeys.adopt(category.name)] = "1"
      }
      // Edits made before the first sync belong to the new identity, too.
      try category.begin(as: user)
    }
    try store.writeState(rows)
  }
}
