/// Migrating legacy logins (accounts.md A17–A23).
extension AccountsCore {
  /// What a look at the legacy logins came to.
  public struct MigrationReport: Hashable, Sendable {
    /// Accounts made now.
    public var migrated: [AccountID] = []
    /// Instances whose flag is set and whose evidence is not strong yet.
    public var waiting: [InstanceID] = []
  }

  /// Looks at every legacy login and migrates those with strong evidence, each in one commit. Safe to call at any time
  /// and any number of times.
  ///
  /// - Parameter reason: why, where a change of the key-value store is it. An account change is ignored: the values may
  ///   be another user's (accounts.md A23).
  @discardableResult
  public func migrateLegacyLogins(_ reason: KeyValueChange = .other) throws(AccountsError) -> MigrationReport {
    reason == .accountChange ? MigrationReport() : try lookAtLegacyLogins(decides: true)
  }

  /// Takes down which flags are seen, before a fetch begins that may make them evidence (accounts.md A18 b).
  func recordLegacyFlags() throws(AccountsError) { _ = try lookAtLegacyLogins(decides: false) }

  private func lookAtLegacyLogins(decides: Bool) throws(AccountsError) -> MigrationReport {
    var report = MigrationReport()
    let ticket = try ticket()
    for instance in keyValues.legacyInstances() {
      let item = legacyItem(instance.id)
      let result = try change(ticket) { state in
        state.migrate(instance, item: item, in: ticket.scope, decides: decides, moment(state))
      }
      switch result {
      case .migrated: report.migrated.append(AccountID(migratedFrom: instance.id))
      case .waits: report.waiting.append(instance.id)
      case .settled: break
      }
    }
    return report
  }
}
