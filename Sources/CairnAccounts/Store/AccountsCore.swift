import CairnEngine
import CairnRecords
import Synchronization

/// The account store for callers with threads of their own: every call blocks for the file and the secure store.
///
/// Thread-safe. Not for Swift's cooperative pool; there, use ``AccountStore``.
public final class AccountsCore: Sendable {
  let file: AccountsFile
  let credentials: any CredentialStore
  public let keyValues: any KeyValueStore
  let time: any TimeSource
  let randomness: any Randomness
  private let published: Mutex<AccountsSnapshot>
  /// Parked records that were told of, or were there at the start.
  private let toldOf: Mutex<Set<String>>
  let snapshotStreams = Broadcast<AccountsSnapshot>()
  let eventStreams = Broadcast<AccountsEvent>()

  /// - Throws: ``AccountsError/store(_:)`` or ``AccountsError/damaged(_:)`` where the file can't be used.
  public convenience init(
    _ configuration: AccountsConfiguration, credentials: any CredentialStore, keyValues: any KeyValueStore = NoLegacy()
  ) throws(AccountsError) {
    try self.init(configuration, credentials: credentials, keyValues: keyValues, willCommit: nil)
  }

  /// - Parameter willCommit: called before each commit; for tests that end processes there.
  package init(
    _ configuration: AccountsConfiguration, credentials: any CredentialStore, keyValues: any KeyValueStore,
    willCommit: (() throws -> Void)?
  ) throws(AccountsError) {
    let randomness = configuration.randomness
    func newWriter() -> String { UUIDText.version4(randomness.next(), randomness.next()) }
    do {
      let initial = DeviceState(
        writer: newWriter(), marker: configuration.deviceMarker, identity: configuration.identity ?? .none)
      file = try AccountsFile(path: configuration.path, initial: initial, willCommit: willCommit)
      var state = try file.read()
      if state.device.marker != configuration.deviceMarker {
        try file.change { $0.becomeNewInstallation(writer: newWriter(), marker: configuration.deviceMarker) }
      }
      if let identity = configuration.identity, state.device.identity != identity {
        try file.change { $0.switchIdentity(to: identity) }
      }
      state = try file.read()
      published = Mutex(AccountsSnapshot(state, generation: 0))
      toldOf = Mutex(Set(state.scopes.values.flatMap { $0.parked.keys }))
    } catch { throw Self.described(error) }
    self.credentials = credentials
    self.keyValues = keyValues
    time = configuration.time
    self.randomness = configuration.randomness
    file.observe { [weak self] state in self?.publish(state) }
  }

  // MARK: What is shown

  /// The present state. Never waits for the file.
  public var snapshot: AccountsSnapshot { published.withLock { $0 } }

  /// Takes up what another process has written.
  public func refresh() throws(AccountsError) { try described { publish(try file.read()) } }

  private func publish(_ state: AccountsState) {
    let next = AccountsSnapshot(state, generation: file.generation)
    let isNew = published.withLock { present in
      defer { present = next }
      return present != next
    }
    if isNew { snapshotStreams.send(next) }
    for (name, record) in state.scopes.values.flatMap(\.parked).sorted(by: { $0.key < $1.key })
    where toldOf.withLock({ $0.insert(name).inserted }) {
      eventStreams.send(.recordParked(name: name, record.reason))
    }
  }

  // MARK: Helpers

  func described<Result>(_ body: () throws -> Result) throws(AccountsError) -> Result {
    do { return try body() } catch { throw Self.described(error) }
  }

  static func described(_ error: any Error) -> AccountsError { error as? AccountsError ?? .store("\(error)") }

  func moment(_ state: AccountsState) -> EditMoment { EditMoment(now: time.wallClock, writer: state.device.writer) }

  /// Changes the present scope in one commit.
  func edit<Result>(
    _ body: (inout AccountsState, ScopeID) throws -> Result
  ) throws(AccountsError) -> Result {
    try described {
      try file.change { state in
        guard let scope = state.scope else { throw AccountsError.unresolvedIdentity }
        return try body(&state, scope)
      }
    }
  }

  /// The scope and generation that a piece of work belongs to (accounts.md A60).
  struct Ticket: Sendable {
    var scope: ScopeID
    var generation: Int64
  }

  func ticket() throws(AccountsError) -> Ticket {
    // Before the state: a switch that comes between makes the ticket void.
    let generation = file.generation
    guard let scope = try described({ try file.read().scope }) else { throw .unresolvedIdentity }
    return Ticket(scope: scope, generation: generation)
  }

  /// Changes a scope, unless another identity has come meanwhile.
  func change<Result>(
    _ ticket: Ticket, _ body: (inout AccountsState) throws -> Result
  ) throws(AccountsError) -> Result {
    try described {
      try file.change { state in
        guard state.scope == ticket.scope, file.generation == ticket.generation else {
          throw AccountsError.identityChanged
        }
        return try body(&state)
      }
    }
  }
}

/// What an app may want to tell its user.
public enum AccountsEvent: Hashable, Sendable {
  /// The user erased the app's cloud data: nothing is uploaded until `resumeAfterPurge` (accounts.md A86).
  case uploadsPausedByPurge
  /// The server refused an account for good: it stays here, its marker and contexts wait (accounts.md A81).
  case saveFailed(AccountID, reason: String)
  /// A record came that can't be applied and is kept (accounts.md A5).
  case recordParked(name: String, UnreadableReason)
}

/// Hands values to every stream that was asked for.
final class Broadcast<Value: Sendable>: Sendable {
  private struct State {
    var next = 0
    var continuations: [Int: AsyncStream<Value>.Continuation] = [:]
  }

  private let state = Mutex(State())

  func send(_ value: Value) {
    for continuation in state.withLock({ Array($0.continuations.values) }) { continuation.yield(value) }
  }

  /// A stream of what is sent from now on. Delivers on the executor of the task that iterates.
  func stream(startingWith first: Value? = nil) -> AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
    if let first { continuation.yield(first) }
    let number = state.withLock { state in
      state.next += 1
      state.continuations[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.continuations[number] = nil } }
    return stream
  }
}
