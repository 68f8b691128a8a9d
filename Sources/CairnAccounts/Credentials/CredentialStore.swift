import Foundation

/// Where a secret lies in the secure store.
public enum CredentialKey: Hashable, Sendable {
  /// Of an account in a scope: equal on all devices of the identity (accounts.md A11).
  case account(ScopeID, AccountID)
  /// As releases older than this module kept it.
  case legacy(InstanceID)
}

/// A secret and whose it is. Prints nothing of the secret.
public struct Credential: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  public var userName: String?
  public var secret: Data
  /// Tells one version of a legacy item from another, where the store has such a mark.
  public var revision: String?

  public init(userName: String?, secret: Data, revision: String? = nil) {
    self.userName = userName
    self.secret = secret
    self.revision = revision
  }

  public var description: String { "Credential(\(userName ?? "no user name"))" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["userName": userName as Any]) }
}

/// What a secure store knows of a credential.
public enum CredentialLookup: Sendable, Equatable {
  case found(Credential)
  case absent
  /// Locked or not to be reached now: says nothing about whether it is there (accounts.md A13).
  case unavailable
}

/// Whether a secure store has done what it was asked to, or could not be reached.
public enum CredentialWrite: Sendable, Equatable {
  case done
  case unavailable
}

/// Why a secure store refused, without anything secret.
public struct CredentialStoreError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

/// A Keychain-like store of secrets.
///
/// Calls may block; they are made on the account store's own queue or on the caller's thread, never on Swift's
/// cooperative pool. From any thread, also at the same time.
public protocol CredentialStore: Sendable {
  func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup

  /// Stores a credential in place of what was there, at once: never delete then add, never an empty value between.
  func replace(_ credential: Credential, for key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite

  /// Removes it; done where there is none. Removes synced copies too, so on every device.
  func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite
}
