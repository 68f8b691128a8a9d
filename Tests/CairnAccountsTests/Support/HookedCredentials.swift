import CairnTesting
import Foundation
import Synchronization

@testable import CairnAccounts

/// A secure store in which something happens while a credential is on its way into it.
final class HookedCredentials: CredentialStore {
  let inner = InMemoryCredentialStore()
  private let hook = Mutex<(@Sendable () -> Void)?>(nil)

  /// Once, before the next credential is stored.
  func beforeReplace(_ body: @escaping @Sendable () -> Void) { hook.withLock { $0 = body } }

  func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup {
    try inner.credential(for: key)
  }

  func replace(
    _ credential: Credential, for key: CredentialKey
  ) throws(CredentialStoreError) -> CredentialWrite {
    let body = hook.withLock { hook in
      defer { hook = nil }
      return hook
    }
    body?()
    return try inner.replace(credential, for: key)
  }

  func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite { try inner.delete(key) }
}
