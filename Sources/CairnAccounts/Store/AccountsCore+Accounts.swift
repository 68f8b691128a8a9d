import CairnRecords

/// The user's own changes.
extension AccountsCore {
  /// Adds a login: the account is committed first, as pending its credential, then the credential is stored
  /// (accounts.md A8, C19). A login of a user whom a live account on the instance has already is a new sign-in to that
  /// one (accounts.md A10).
  ///
  /// - Throws: ``AccountsError/credentialNotStored(_:_:)``: the account is there and needs credentials. After any other
  ///   error nothing was changed.
  public func add(_ login: NewLogin, credential: Credential) throws(AccountsError) -> Account {
    guard InstanceURL.cleaned(login.instanceURL) != nil else {
      throw .invalid("the instance's address is no URL with scheme and host")
    }
    let ticket = try ticket()
    let instances = Set(keyValues.legacyInstances().map(\.id))
    let id = try change(ticket) { state in
      let scope = ticket.scope
      if let known = state[scope].account(of: login.userName, on: login.instanceID) { return known }
      var id = AccountID(random: randomness.next(), randomness.next())
      while !state[scope].isFree(id, instances: instances) {
        id = AccountID(random: randomness.next(), randomness.next())
      }
      state[scope].add(login, id: id, moment(state))
      return id
    }
    try store(credential, for: id, ticket)
    return try account(id)
  }

  /// Replaces a live account's credential in place; the ID stays (accounts.md A10).
  public func reauthenticate(_ id: AccountID, credential: Credential) throws(AccountsError) {
    let ticket = try ticket()
    _ = try account(id)
    try store(credential, for: id, ticket)
  }

  private func store(_ credential: Credential, for id: AccountID, _ ticket: Ticket) throws(AccountsError) {
    let key = CredentialKey.account(ticket.scope, id)
    var credential = credential
    let known = try account(id)
    if credential.userName == nil { credential.userName = known.userName }
    if let mine = known.userName, let theirs = credential.userName, mine != theirs {
      throw .invalid("the credential is of another user than the account")
    }
    do {
      guard try credentials.replace(credential, for: key) == .done else {
        throw AccountsError.credentialNotStored(id, "the secure store is locked")
      }
    } catch let error as CredentialStoreError {
      throw .credentialNotStored(id, error.description)
    } catch { throw Self.described(error) }
    do {
      try change(ticket) { state in
        guard state[ticket.scope].accounts[id] != nil else { throw AccountsError.notFound(id) }
        state[ticket.scope].accounts[id]?.isPendingCredential = false
        state[ticket.scope].rekeys[id] = nil
        if let name = credential.userName { state[ticket.scope].setUserName(id, name, moment(state)) }
      }
    } catch .notFound(let id) {
      // It was deleted meanwhile: what was just stored goes with it (accounts.md A15).
      try change(ticket) { state in
        if state[ticket.scope].cleanups[id] == nil { state[ticket.scope].cleanups[id] = CleanupIntent() }
      }
      try runIntents()
      throw .notFound(id)
    }
  }

  /// The live account of an ID.
  public func account(_ id: AccountID) throws(AccountsError) -> Account {
    let state = try described { try file.read() }
    guard let scope = state.scope else { throw .unresolvedIdentity }
    guard let account = state[scope].accounts[id]?.content.account else { throw .notFound(id) }
    return account
  }

  /// Changes what the user may change of an account.
  public func edit(_ id: AccountID, _ edit: AccountEdit) throws(AccountsError) {
    if let url = edit.instanceURL, InstanceURL.cleaned(url) == nil {
      throw .invalid("the instance's address is no URL with scheme and host")
    }
    try self.edit { state, scope in
      guard state[scope].accounts[id] != nil else { throw AccountsError.notFound(id) }
      guard !state[scope].isWithheld(id) else { throw AccountsError.notEditable(id) }
      _ = state[scope].edit(id, edit, moment(state))
    }
  }

  /// Deletes an account, on every device, for ever (accounts.md A28). Needs neither the service nor the credential.
  public func remove(_ id: AccountID) throws(AccountsError) {
    try edit { state, scope in
      guard state[scope].accounts[id] != nil else { throw AccountsError.notFound(id) }
      let bindings = state.device.bindings
      state[scope].remove(id, bindings: bindings, scope: scope)
    }
    try runIntents()
  }

  /// The user's explicit choice of an account, or of none (accounts.md A36).
  public func select(_ id: AccountID?, in slot: ContextSlot = .main) throws(AccountsError) {
    try edit { state, scope in
      if let id, state[scope].accounts[id] == nil { throw AccountsError.notFound(id) }
      state[scope].select(id, in: slot, moment(state))
    }
  }

  /// Moves accounts made without an identity into the present one (accounts.md A66).
  public func adoptLocalAccounts() throws(AccountsError) -> [Account] {
    let ids = try edit { state, scope in
      guard scope != .local else { throw AccountsError.notActivated }
      guard state.isActivated(scope) else { throw AccountsError.notActivated }
      return state.adoptLocal(into: scope, moment(state))
    }
    try runIntents()
    var adopted: [Account] = []
    for id in ids { adopted.append(try account(id)) }
    return adopted
  }

  /// Switches the category on or off in the present scope (accounts.md A44–A47).
  public func setEnabled(_ enabled: Bool) throws(AccountsError) {
    try edit { state, scope in
      state[scope].settings.isEnabled = enabled
      if enabled { _ = state.applySealed(scope, now: time.wallClock) }
    }
    try runIntents()
  }

  /// Another user has signed in, or nobody (accounts.md A63). Outbound work of the old identity ends at its next write.
  public func identityChanged(to identity: CloudIdentity) throws(AccountsError) {
    file.raiseGeneration()
    try described { try file.change { $0.switchIdentity(to: identity) } }
    try refresh()
    try runIntents()
  }
}

extension AccountsState {
  /// Applies what is sealed, where this scope may (accounts.md A40, A44, A48).
  mutating func applySealed(_ scope: ScopeID, now: Int64) -> ScopeState.Applied {
    guard isActivated(scope), self[scope].settings.isEnabled else { return ScopeState.Applied() }
    guard self[scope].staged.values.contains(where: \.isSealed) else { return ScopeState.Applied() }
    let bindings = device.bindings
    return self[scope].applySealed(bindings: bindings, scope: scope, now: now)
  }
}
