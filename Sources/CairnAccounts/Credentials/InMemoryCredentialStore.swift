import Synchronization

/// Keeps credentials in memory, for tests and previews.
public final class InMemoryCredentialStore: CredentialStore {
  private struct State {
    var items: [CredentialKey: Credential] = [:]
    var isAvailable = true
  }

  private let state = Mutex(State())

  public init() {}

  /// False: as if the store were locked.
  public func setAvailable(_ available: Bool) { state.withLock { $0.isAvailable = available } }

  public var keys: Set<CredentialKey> { state.withLock { Set($0.items.keys) } }

  public func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup {
    state.withLock { state in
      guard state.isAvailable else { return .unavailable }
      return state.items[key].map { .found($0) } ?? .absent
    }
  }

  public func replace(
    _ credential: Credential, for key: CredentialKey
  ) throws(CredentialStoreError) -> CredentialWrite {
    state.withLock { state in
      guard state.isAvailable else { return .unavailable }
      state.items[key] = credential
      return .done
    }
  }

  public func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite {
    state.withLock { state in
      guard state.isAvailable else { return .unavailable }
      state.items[key] = nil
      return .done
    }
  }
}
