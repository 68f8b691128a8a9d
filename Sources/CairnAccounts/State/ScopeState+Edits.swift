import CairnRecords

/// A login to add.
public struct NewLogin: Hashable, Sendable {
  public var instanceID: InstanceID
  public var service: String
  /// User info, query and fragment are left out (accounts.md A4).
  public var instanceURL: String
  public var userName: String?
  public var label: String?

  public init(
    instanceID: InstanceID, service: String, instanceURL: String, userName: String?, label: String? = nil
  ) {
    self.instanceID = instanceID
    self.service = service
    self.instanceURL = instanceURL
    self.userName = userName
    self.label = label
  }
}

/// What to change in an account. Nil leaves a property as it is.
public struct AccountEdit: Hashable, Sendable {
  /// An empty text clears it.
  public var label: String?
  public var position: Double?
  public var instanceURL: String?

  public init(label: String? = nil, position: Double? = nil, instanceURL: String? = nil) {
    self.label = label
    self.position = position
    self.instanceURL = instanceURL
  }
}

/// What a local write is stamped with.
struct EditMoment: Sendable {
  /// ms since 1970.
  var now: Int64
  var writer: String

  func stamp(after newest: Int64) -> Stamp {
    Stamp(time: StampClock.time(now: now, newestSeen: newest), writer: writer)
  }
}

/// The user's own edits. They are accepted in every state of the scope and wait in the outbox (accounts.md A45, A48).
extension ScopeState {
  /// The live account of a user on an instance, by name; the one with the smallest ID where there are several.
  func account(of userName: String?, on instance: InstanceID) -> AccountID? {
    guard let userName else { return nil }
    return accounts.filter {
      $0.value.content.instanceID == instance && $0.value.content.text(AccountContent.Name.userName) == userName
    }.keys.min()
  }

  /// Adds a login under an ID that was never used (accounts.md A8, A9).
  mutating func add(_ login: NewLogin, id: AccountID, _ moment: EditMoment) {
    var content = AccountContent(id: id, fields: [:])
    let stamp = moment.stamp(after: 0)
    content.set(AccountContent.Name.instanceID, .string(login.instanceID.rawValue), .zero)
    content.set(AccountContent.Name.service, .string(login.service), .zero)
    content.set(
      AccountContent.Name.instanceURL, .string(InstanceURL.cleaned(login.instanceURL) ?? ""), stamp)
    if let userName = login.userName { content.set(AccountContent.Name.userName, .string(userName), stamp) }
    if let label = login.label { content.set(AccountContent.Name.label, .string(label), stamp) }
    content.set(AccountContent.Name.position, .double(nextPosition), stamp)
    accounts[id] = AccountEntry(content: content, send: .new, isPendingCredential: true)
    recomputeChoices()
  }

  private var nextPosition: Double {
    let last = accounts.values.compactMap { $0.content.account?.position }.max()
    return last.map { $0.rounded(.up) + 1 } ?? 0
  }

  /// Whether the ID may be given to a new login: unknown in every way, and no instance's.
  func isFree(_ id: AccountID, instances: Set<InstanceID>) -> Bool {
    !isKnown(id) && !isDead(id, .outward) && !instances.contains { AccountID(migratedFrom: $0) == id }
      && !accounts.values.contains { $0.content.instanceID.map { AccountID(migratedFrom: $0) == id } ?? false }
  }

  /// Changes fields of a live account; false where nothing changes.
  mutating func edit(_ id: AccountID, _ edit: AccountEdit, _ moment: EditMoment) -> Bool {
    guard let entry = accounts[id] else { return false }
    var content = entry.content
    let stamp = moment.stamp(after: content.newestTime)
    func set(_ name: String, _ value: FieldValue?) {
      if !ValueKey.same(content.fields[name]?.value, value) { content.set(name, value, stamp) }
    }
    if let label = edit.label { set(AccountContent.Name.label, label.isEmpty ? nil : .string(label)) }
    if let position = edit.position, position.isFinite { set(AccountContent.Name.position, .double(position)) }
    if let url = edit.instanceURL.flatMap({ InstanceURL.cleaned($0) }) {
      set(AccountContent.Name.instanceURL, .string(url))
    }
    guard content != entry.content else { return false }
    accounts[id]?.content = content
    accounts[id]?.send.touch()
    return true
  }

  /// Gives a migrated account its user name, once it is known (accounts.md section 2: set once).
  mutating func setUserName(_ id: AccountID, _ name: String, _ moment: EditMoment) {
    guard let content = accounts[id]?.content, content.text(AccountContent.Name.userName) == nil else { return }
    accounts[id]?.content.set(
      AccountContent.Name.userName, .string(name), moment.stamp(after: content.newestTime))
    accounts[id]?.send.touch()
  }

  /// The user deletes an account (accounts.md A28, A30).
  mutating func remove(_ id: AccountID, bindings: [InstanceID: LegacyBinding], scope: ScopeID) {
    guard let entry = accounts[id] else { return }
    let mayBeElsewhere =
      entry.send.wasHandedOver || entry.send.isConfirmed || entry.content.isMigrated
      || contexts.values.contains {
        $0.server?.accountID == id
      }
    if mayBeElsewhere { tombstones[id] = .new }
    if entry.content.isMigrated, let instance = entry.content.instanceID, markers[instance] == nil {
      // The legacy login is dealt with for good (accounts.md A20).
      markers[instance] = .new
    }
    bury(id, bindings: bindings, scope: scope)
  }

  /// The user chooses an account, or none (accounts.md A36).
  mutating func select(_ id: AccountID?, in slot: ContextSlot, _ moment: EditMoment) {
    var entry = contexts[slot] ?? ContextEntry()
    if entry.value?.accountID == id, entry.value != nil { return }
    let stamp = moment.stamp(after: max(entry.newestTime, entry.value?.stamp.time ?? 0))
    entry.local = RegisterValue(accountID: id, stamp: stamp)
    entry.newestTime = stamp.time
    entry.send.touch()
    contexts[slot] = entry
    choices[slot] = id
    // What a choice depends on goes along where nothing else would send it (accounts.md A86).
    if let id, let send = accounts[id]?.send, !send.isConfirmed, !send.isPending { accounts[id]?.send.touch() }
  }

  /// Changes that the server has not confirmed.
  var pendingCount: Int {
    accounts.values.count { $0.send.isPending } + tombstones.values.count { $0.isPending }
      + markers.values.count { $0.isPending } + contexts.values.count { $0.send.isPending }
  }

  /// Deletions that no other device can know of yet (accounts.md A47).
  var unpublishedDeletions: Set<AccountID> { Set(tombstones.filter { !$0.value.isConfirmed }.keys) }

  /// Pending changes that wait for more than their turn, by name.
  var waiting: [String: String] {
    var result: [String: String] = [:]
    for (id, entry) in accounts { result["account-\(id)"] = entry.send.reason }
    for (id, send) in tombstones { result["tombstone-\(id)"] = send.reason }
    for (id, send) in markers { result["marker-\(id)"] = send.reason }
    for (slot, entry) in contexts { result["context-\(slot)"] = entry.send.reason }
    return result
  }
}
