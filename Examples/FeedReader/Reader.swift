import CairnAccounts
import CairnEngine
import CairnRecords
import Foundation

/// Release 2: several accounts, equal on all devices of a user, each with a private cache.
final class Reader {
  let accounts: AccountsCore
  private let cache: PrivateCache<[String]>
  private let service: any TimelineService

  init(folder: URL, service: any TimelineService, time: any TimeSource, randomness: any Randomness) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    accounts = try AccountsCore(
      AccountsConfiguration(
        path: folder.appendingPathComponent("accounts.sqlite").path, time: time, randomness: randomness),
      credentials: FileCredentialStore(directory: folder.appendingPathComponent("secrets")),
      keyValues: LegacyFlags(reader: LegacyReader(folder: folder)))
    cache = try PrivateCache(file: folder.appendingPathComponent("timelines.json"), store: accounts)
    self.service = service
    // Logins of release 1 become accounts as soon as it is sure that they are none already.
    try accounts.migrateLegacyLogins()
  }

  /// Signs in; a user who has an account there already keeps it.
  func logIn(to instance: Instance, as user: String, secret: String) async throws -> Account {
    _ = try await service.timeline(instance.kind, of: user, secret: secret)
    return try accounts.add(
      NewLogin(instanceID: instance.id, service: instance.kind.rawValue, instanceURL: instance.url, userName: user),
      credential: Credential(userName: user, secret: Data(secret.utf8)))
  }

  /// One line per account: `*` for the chosen one, and whether it asks to sign in.
  func overview() throws -> [String] {
    let snapshot = accounts.snapshot
    return try snapshot.accounts.map { account in
      let mark = snapshot.choices[.main] == account.id ? "*" : " "
      let badge = try accounts.needsCredentials(account.id) == .yes ? "  (sign in)" : ""
      return "\(mark) \(account.id)  \(account.userName ?? "?") at \(account.instanceURL)\(badge)"
    }
  }

  /// What an account shows: fresh where it can sign in, else what was kept.
  func timeline(of id: AccountID) async throws -> [String] {
    let account = try accounts.account(id)
    let key = PrivateCacheKey(account: id, name: "timeline")
    guard case .found(let credential) = try accounts.credential(for: id), let kind = Kind(rawValue: account.service)
    else {
      return try cache.value(for: key) ?? []
    }
    let user = account.userName ?? credential.userName ?? ""
    let secret = String(decoding: credential.secret, as: UTF8.self)
    let service = service
    return try await cache.refresh(key) { try await service.timeline(kind, of: user, secret: secret) } ?? []
  }

  /// Syncs as a user, and takes what was added before anybody had signed in along.
  func sync(as user: String, with cloud: any CloudDatabase, in zone: ZoneID = ZoneID(name: "reader")) throws
    -> AccountsReport
  {
    if try accounts.status().identity != .user(user) { try accounts.identityChanged(to: .user(user)) }
    let sync = try AccountsSync(accounts, cloud: cloud, zone: zone, user: user)
    var report = try sync.sync()
    if try accounts.status().isActivated, !(try accounts.adoptLocalAccounts().isEmpty) { report = try sync.sync() }
    try cache.reconcile()
    return report
  }
}
