/// One instance of the host's list, as older releases kept it (accounts.md section 6).
public struct LegacyInstance: Hashable, Sendable {
  public var id: InstanceID
  public var service: String
  public var url: String
  /// An older release is logged in there.
  public var flag: Bool
  /// What the older release knew of the user, where it did.
  public var userName: String?

  public init(id: InstanceID, service: String, url: String, flag: Bool, userName: String? = nil) {
    self.id = id
    self.service = service
    self.url = url
    self.flag = flag
    self.userName = userName
  }
}

/// What the secure store says of a legacy item.
enum LegacyItem: Hashable, Sendable {
  case present(revision: String?, userName: String?)
  case absent
  /// Locked: nothing may be concluded (accounts.md A13).
  case unknown
}

/// Migrating legacy logins (accounts.md A17–A23): the flag is only ever read.
extension AccountsState {
  /// What became of one instance.
  enum Migration: Equatable, Sendable {
    case migrated
    /// The evidence is not there yet.
    case waits
    /// Dealt with before: known account, marker or tombstone.
    case settled
  }

  /// Takes what is known of one instance and decides. Check and creation are one step of one commit (accounts.md A18).
  ///
  /// - Parameter decides: false only takes down that the flag was seen.
  mutating func migrate(
    _ instance: LegacyInstance, item: LegacyItem, in scope: ScopeID, decides: Bool = true, _ moment: EditMoment
  ) -> Migration {
    let id = AccountID(migratedFrom: instance.id)
    guard instance.flag else { return .settled }
    let state = self[scope]
    if state.isDead(id, .outward) {
      // The login is dealt with; other devices shall know it, too (accounts.md A20).
      if !state.isMarked(instance.id), state.tombstones[id] != nil { self[scope].markers[instance.id] = .new }
      return .settled
    }
    guard !state.isMarked(instance.id), !state.isKnown(id) else { return .settled }
    guard decides, isCurrent(scope), state.settings.isEnabled else {
      recordFlag(instance.id, in: scope)
      return .waits
    }
    guard hasStrongEvidence(instance.id, item, scope) else {
      recordFlag(instance.id, in: scope)
      return .waits
    }
    if case .present(let revision, _) = item, device.bindings[instance.id] == nil {
      device.bindings[instance.id] = LegacyBinding(scope: scope.rawValue, revision: revision)
    }
    var login = NewLogin(
      instanceID: instance.id, service: instance.service, instanceURL: instance.url, userName: instance.userName)
    if login.userName == nil, case .present(_, let userName) = item { login.userName = userName }
    self[scope].add(login, id: id, moment)
    self[scope].accounts[id]?.isPendingCredential = false
    self[scope].markers[instance.id] = .new
    return .migrated
  }

  private func hasStrongEvidence(_ instance: InstanceID, _ item: LegacyItem, _ scope: ScopeID) -> Bool {
    if case .present = item, device.bindings[instance].map({ $0.scope == scope.rawValue }) ?? true { return true }
    guard scope != .local, let seenAt = self[scope].flagsSeen[instance] else { return false }
    let knowsAccount = self[scope].accounts.values.contains { $0.content.instanceID == instance }
    return self[scope].settings.lastAppliedFetch > seenAt && !knowsAccount
  }

  /// The flag was seen under this identity before any fetch that begins from now on (accounts.md A18 b).
  private mutating func recordFlag(_ instance: InstanceID, in scope: ScopeID) {
    if self[scope].flagsSeen[instance] == nil { self[scope].flagsSeen[instance] = self[scope].settings.fetchesBegun }
  }
}
