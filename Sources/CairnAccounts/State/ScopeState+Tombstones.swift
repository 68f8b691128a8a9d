/// What kills an account, and the one question whether one is dead that every path asks (accounts.md A25).
extension ScopeState {
  enum Path: Sendable {
    /// What is shown and applied: facts count. While the category is off, staged ones wait.
    case view
    /// What is sent, inserted, migrated or adopted: a tombstone that is only staged, or that can't be read, counts too.
    case outward
  }

  /// Whether the account is deleted for ever. No time matters.
  func isDead(_ id: AccountID, _ path: Path) -> Bool {
    if tombstones[id] != nil { return true }
    return path == .outward && isKnownUnapplied(.tombstone(id))
  }

  /// Whether a record of this key waits in staging or is parked.
  func isKnownUnapplied(_ key: RecordKey) -> Bool {
    staged.values.contains { $0.record != nil && RecordKey(name: $0.name) == key }
      || parked.keys.contains { RecordKey(name: $0) == key }
  }

  /// Whether the account is known in any way, staged and unreadable records included (accounts.md A18).
  func isKnown(_ id: AccountID) -> Bool { accounts[id] != nil || isKnownUnapplied(.account(id)) }

  func isMarked(_ id: InstanceID) -> Bool { markers[id] != nil || isKnownUnapplied(.marker(id)) }

  /// A newer release's version of it is kept: not editable here (accounts.md A6).
  func isWithheld(_ id: AccountID) -> Bool {
    staged.values.contains { item in
      guard let record = item.record, RecordKey(name: item.name) == .account(id) else { return false }
      if case .notUnderstood = AccountRecordCodec.read(record) { return true }
      return false
    } || parked["account-\(id)"] != nil
  }

  /// Takes the account from the live set and all that hangs on it. The tombstone itself is the caller's.
  mutating func bury(_ id: AccountID, bindings: [InstanceID: LegacyBinding], scope: ScopeID) {
    if let entry = accounts.removeValue(forKey: id) {
      var intent = CleanupIntent()
      if entry.content.isMigrated, let instance = entry.content.instanceID,
        bindings[instance]?.scope == scope.rawValue
      {
        intent.boundLegacyItem = instance
      }
      cleanups[id] = intent
    } else if cleanups[id] == nil {
      // A credential may have come before its record, or outlived it.
      cleanups[id] = CleanupIntent()
    }
    rekeys[id] = nil
    dropPendingContexts(naming: id)
    recomputeChoices()
  }

  /// A choice that was never sent goes with its account: the register is again what the server has (accounts.md A82).
  private mutating func dropPendingContexts(naming id: AccountID) {
    for (slot, entry) in contexts where entry.local?.accountID == id {
      contexts[slot]?.local = nil
      contexts[slot]?.send.rest()
      contexts[slot]?.send.revision += 1
    }
  }

  /// What the registers mean with the facts at hand (accounts.md A27, A35).
  mutating func recomputeChoices() {
    for (slot, entry) in contexts {
      guard let id = entry.value?.accountID, !isDead(id, .view) else {
        choices[slot] = nil
        continue
      }
      if accounts[id] != nil {
        choices[slot] = id
      } else if let present = choices[slot], accounts[present] == nil {
        choices[slot] = nil
      }
    }
  }
}
