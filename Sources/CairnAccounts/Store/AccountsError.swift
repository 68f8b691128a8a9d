/// Why a call on accounts failed. Holds no secret (accounts.md A4).
public enum AccountsError: Error, Hashable, Sendable, CustomStringConvertible {
  /// No live account has this ID: it was never there, or it is deleted for ever.
  case notFound(AccountID)
  /// The identity is not resolved: no scope's accounts are to be shown or changed (accounts.md A62).
  case unresolvedIdentity
  /// A newer release wrote it in a form that this one does not understand (accounts.md A6).
  case notEditable(AccountID)
  case invalid(String)
  /// The account is committed, its credential is not: sign in again under the same ID (accounts.md C19).
  case credentialNotStored(AccountID, String)
  /// The identity changed while the call waited: nothing was written (accounts.md A60).
  case identityChanged
  /// Local accounts are adopted only once the identity is activated (accounts.md A66).
  case notActivated
  /// The profile's file can't be used. Nothing was written.
  case store(String)
  /// The profile's file can't be read.
  case damaged(String)

  public var description: String {
    switch self {
    case .notFound(let id): "there is no account \(id)"
    case .unresolvedIdentity: "it is not known who is signed in: sign in first"
    case .notEditable(let id): "a newer release changed the account \(id): update this one to edit it"
    case .invalid(let text): text
    case .credentialNotStored(let id, let reason):
      "the account \(id) is added, but its credential can't be stored (\(reason)): sign in to it again"
    case .identityChanged: "another user has signed in meanwhile: nothing was written"
    case .notActivated: "the first sync has to finish before: run it"
    case .store(let text): "the profile can't be written (\(text)): nothing was changed"
    case .damaged(let text): text
    }
  }
}
