/// What belongs to the installation, not to an identity (accounts.md A59).
struct DeviceState: Hashable, Sendable {
  /// Names this installation in stamps; renewed after a restore or clone.
  var writer: String
  /// Tells an installation from its copy, as the host sees it.
  var marker: String
  /// Records may have been missed and the engine does not know it yet (accounts.md A56).
  var hasNeed = false
  var identity: CloudIdentity
  /// Legacy items and the scope that uses them (accounts.md A11, A16).
  var bindings: [InstanceID: LegacyBinding] = [:]
  /// Accounts of the local scope that were adopted, and by whom (accounts.md A66).
  var adopted: [AccountID: String] = [:]
}

struct LegacyBinding: Hashable, Sendable, Codable {
  /// Raw value of the scope.
  var scope: String
  /// The item's revision when it was bound.
  var revision: String?
}

/// The whole durable state.
struct AccountsState: Equatable, Sendable {
  var device: DeviceState
  var scopes: [ScopeID: ScopeState] = [:]

  var scope: ScopeID? { device.identity.scope }

  /// A state of the scope; empty where nothing is stored.
  subscript(scope: ScopeID) -> ScopeState {
    get { scopes[scope] ?? ScopeState() }
    set { scopes[scope] = newValue }
  }

  /// A bootstrap has finished for it once (accounts.md section 1). The local scope needs none (accounts.md A58).
  func isActivated(_ scope: ScopeID) -> Bool { scope == .local || self[scope].settings.isActivated }

  /// Activated, and nothing was missed since that bootstrap began (accounts.md A57).
  func isCurrent(_ scope: ScopeID) -> Bool {
    scope == .local || (self[scope].settings.isActivated && self[scope].settings.isCurrent)
  }
}
