/// Credentials: who has one, who needs one, and what the secure store still owes (accounts.md A11–A16).
extension AccountsCore {
  /// The credential to sign in with; `absent` also where one is there that must not be used (accounts.md A16).
  ///
  /// A legacy item that is used for the first time is bound to this scope (accounts.md A11).
  public func credential(for id: AccountID) throws(AccountsError) -> CredentialLookup {
    let ticket = try ticket()
    let state = try described { try file.read() }
    return try lookUp(id, state, ticket, binds: true)
  }

  /// Whether an account asks the user to sign in. Unknown IDs do.
  public func needsCredentials(_ id: AccountID) throws(AccountsError) -> CredentialNeed {
    let ticket = try ticket()
    let state = try described { try file.read() }
    switch try lookUp(id, state, ticket, binds: false) {
    case .found: return .no
    case .absent: return .yes
    case .unavailable: return .unknown
    }
  }

  /// Whether an instance asks the user to sign in (accounts.md A12).
  public func needsCredentials(on instance: InstanceID) throws(AccountsError) -> CredentialNeed {
    let ticket = try ticket()
    let state = try described { try file.read() }
    let scoped = state[ticket.scope]
    let ids = scoped.accounts.filter { $0.value.content.instanceID == instance }.keys
    if !ids.isEmpty {
      var need = CredentialNeed.no
      for id in ids {
        switch try lookUp(id, state, ticket, binds: false) {
        case .absent: return .yes
        case .unavailable: need = .unknown
        case .found: break
        }
      }
      return need
    }
    let isFlagged = keyValues.legacyInstances().contains { $0.id == instance && $0.flag }
    let isSettled = scoped.isMarked(instance) || scoped.isDead(AccountID(migratedFrom: instance), .outward)
    guard isFlagged, !isSettled else { return .no }
    switch legacyItem(instance) {
    case .present: return .no
    case .absent: return .yes
    case .unknown: return .unknown
    }
  }

  /// Looks under the account's own key, and only for a migrated account, and only where that is empty, under the legacy
  /// one (accounts.md A11).
  private func lookUp(
    _ id: AccountID, _ state: AccountsState, _ ticket: Ticket, binds: Bool
  ) throws(AccountsError) -> CredentialLookup {
    guard let account = state[ticket.scope].accounts[id]?.content.account else { return .absent }
    switch find(.account(ticket.scope, id)) {
    case .found(let credential):
      let isOther = credential.userName != nil && account.userName != nil && credential.userName != account.userName
      return isOther ? .absent : .found(credential)
    case .unavailable: return .unavailable
    case .absent: break
    }
    if let rekey = state[ticket.scope].rekeys[id], let from = ScopeID(rawValue: rekey.from) {
      // Adopted, its credential not yet moved.
      return find(.account(from, id))
    }
    guard account.isMigrated else { return .absent }
    return try lookUpLegacy(account, state, ticket, binds: binds)
  }

  private func lookUpLegacy(
    _ account: Account, _ state: AccountsState, _ ticket: Ticket, binds: Bool
  ) throws(AccountsError) -> CredentialLookup {
    let binding = state.device.bindings[account.instanceID]
    guard binding.map({ $0.scope == ticket.scope.rawValue }) ?? true else { return .absent }
    guard case .found(let credential) = find(.legacy(account.instanceID)) else {
      return find(.legacy(account.instanceID))
    }
    if let theirs = credential.userName {
      if let mine = account.userName, mine != theirs { return .absent }
    } else if let binding, binding.revision != credential.revision {
      return .absent
    }
    if binding == nil, binds {
      try change(ticket) { state in
        if state.device.bindings[account.instanceID] == nil {
          state.device.bindings[account.instanceID] = LegacyBinding(
            scope: ticket.scope.rawValue, revision: credential.revision)
        }
      }
    }
    return .found(credential)
  }

  /// A store that fails is one that can't be asked now.
  private func find(_ key: CredentialKey) -> CredentialLookup {
    do { return try credentials.credential(for: key) } catch { return .unavailable }
  }

  func legacyItem(_ instance: InstanceID) -> LegacyItem {
    switch find(.legacy(instance)) {
    case .found(let credential): .present(revision: credential.revision, userName: credential.userName)
    case .absent: .absent
    case .unavailable: .unknown
    }
  }

  // MARK: What is owed

  /// Deletes the credentials of deleted accounts and moves those of adopted ones, as far as the secure store lets
  /// (accounts.md A15, A66). Called after every change that may owe something; call it at launch and after unlocking.
  public func runIntents() throws(AccountsError) {
    let state = try described { try file.read() }
    for (scope, scoped) in state.scopes.sorted(by: { $0.key < $1.key }) {
      let cleaned = scoped.cleanups.sorted { $0.key < $1.key }.filter { id, intent in
        let isDone = delete(.account(scope, id))
        return intent.boundLegacyItem.map { delete(.legacy($0)) && isDone } ?? isDone
      }.map(\.key)
      let moved = scoped.rekeys.sorted { $0.key < $1.key }.filter { id, intent in
        ScopeID(rawValue: intent.from).map { rekey(id, $0, scope) } ?? true
      }.map(\.key)
      guard !cleaned.isEmpty || !moved.isEmpty else { continue }
      try described {
        try file.change { state in
          for id in cleaned { state[scope].cleanups[id] = nil }
          for id in moved { state[scope].rekeys[id] = nil }
        }
      }
    }
  }

  private func delete(_ key: CredentialKey) -> Bool {
    do { return try credentials.delete(key) == .done } catch { return false }
  }

  private func rekey(_ id: AccountID, _ from: ScopeID, _ to: ScopeID) -> Bool {
    switch find(.account(from, id)) {
    case .absent: return true
    case .unavailable: return false
    case .found(let credential):
      do {
        if case .absent = try credentials.credential(for: .account(to, id)) {
          guard try credentials.replace(credential, for: .account(to, id)) == .done else { return false }
        }
      } catch { return false }
      return delete(.account(from, id))
    }
  }
}
