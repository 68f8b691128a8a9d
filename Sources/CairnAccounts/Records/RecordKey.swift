/// What a record's name says: its kind and key (accounts.md section 2). Names are pure functions of the key.
enum RecordKey: Hashable, Sendable {
  case account(AccountID)
  case marker(InstanceID)
  case tombstone(AccountID)
  case context(ContextSlot)

  enum Kind {
    static let account = "Account"
    static let marker = "AccountMigrationMarker"
    static let tombstone = "AccountTombstone"
    static let context = "AccountContext"
    static let all = [account, marker, tombstone, context]
  }

  /// Reads a name; case of UUIDs is ignored. Nil where it is none of this category.
  init?(name: String) {
    if let rest = Self.rest(of: name, after: "account-"), let id = AccountID(rest) {
      self = .account(id)
    } else if let rest = Self.rest(of: name, after: "marker-"), let id = InstanceID(rest) {
      self = .marker(id)
    } else if let rest = Self.rest(of: name, after: "tombstone-"), let id = AccountID(rest) {
      self = .tombstone(id)
    } else if let rest = Self.rest(of: name, after: "context-"), let slot = ContextSlot(rest) {
      self = .context(slot)
    } else {
      return nil
    }
  }

  private static func rest(of name: String, after prefix: String) -> Substring? {
    name.hasPrefix(prefix) ? name.dropFirst(prefix.count) : nil
  }

  /// The record's name as this release writes it.
  var name: String {
    switch self {
    case .account(let id): "account-\(id)"
    case .marker(let id): "marker-\(id)"
    case .tombstone(let id): "tombstone-\(id)"
    case .context(let slot): "context-\(slot)"
    }
  }

  var type: String {
    switch self {
    case .account: Kind.account
    case .marker: Kind.marker
    case .tombstone: Kind.tombstone
    case .context: Kind.context
    }
  }
}
