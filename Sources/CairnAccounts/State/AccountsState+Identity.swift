/// Identities come and go; each has its own scope, which stays stored (accounts.md A59–A68).
extension AccountsState {
  /// Another identity, or none. Nothing moves between scopes.
  mutating func switchIdentity(to identity: CloudIdentity) {
    device.identity = identity
    guard let scope = identity.scope else { return }
    // Needs belong to all identities: one may have been raised under another (accounts.md A55).
    self[scope].settings.isCurrent = false
  }

  /// A copy or a restored backup: a new writer, and records may have been missed (accounts.md A56).
  mutating func becomeNewInstallation(writer: String, marker: String) {
    device.writer = writer
    device.marker = marker
    device.hasNeed = true
    for scope in scopes.keys { self[scope].settings.isCurrent = false }
  }

  /// Moves the accounts made without an identity into one (accounts.md A66). One step of one commit.
  ///
  /// Each account is adopted once, never by two identities: it leaves the local scope. Local tombstones stay. Contexts
  /// follow their accounts where the identity has made no choice in the slot.
  mutating func adoptLocal(into scope: ScopeID, _ moment: EditMoment) -> [AccountID] {
    guard scope != .local else { return [] }
    var adopted: [AccountID] = []
    for (id, entry) in self[.local].accounts.sorted(by: { $0.key < $1.key }) where device.adopted[id] == nil {
      guard !self[scope].isDead(id, .outward), !self[scope].isKnownUnapplied(.account(id)) else { continue }
      take(entry, id, into: scope)
      adopted.append(id)
    }
    adoptContexts(of: adopted, into: scope, moment)
    for id in adopted {
      self[.local].accounts[id] = nil
      device.adopted[id] = scope.rawValue
    }
    self[.local].recomputeChoices()
    self[scope].recomputeChoices()
    return adopted
  }

  private mutating func take(_ entry: AccountEntry, _ id: AccountID, into scope: ScopeID) {
    if var known = self[scope].accounts[id] {
      known.content = known.content.merged(with: entry.content)
      known.send.touch()
      self[scope].accounts[id] = known
    } else {
      var entry = entry
      entry.send = .new
      self[scope].accounts[id] = entry
      self[scope].rekeys[id] = RekeyIntent(from: ScopeID.local.rawValue)
    }
    guard entry.content.isMigrated, let instance = entry.content.instanceID else { return }
    if self[scope].markers[instance] == nil { self[scope].markers[instance] = .new }
    if device.bindings[instance]?.scope == ScopeID.local.rawValue {
      device.bindings[instance]?.scope = scope.rawValue
    }
  }

  private mutating func adoptContexts(of adopted: [AccountID], into scope: ScopeID, _ moment: EditMoment) {
    for (slot, id) in self[.local].choices.sorted(by: { $0.key < $1.key }) where adopted.contains(id) {
      if self[scope].contexts[slot] == nil { self[scope].select(id, in: slot, moment) }
      self[.local].contexts[slot] = nil
      self[.local].choices[slot] = nil
    }
  }
}
