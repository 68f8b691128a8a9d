import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport

@testable import CairnAccounts

/// The server and the clock that the devices of a test share.
final class TestWorld: @unchecked Sendable {
  // Used on the test's own thread only.
  static let zone = ZoneID(name: "cairn")

  let clock = ManualClock()
  let server: InMemoryServer
  let folder: TemporaryFolder
  private var count = 0

  init() throws {
    folder = try TemporaryFolder()
    server = try InMemoryServer(clock: clock)
  }

  /// - Parameter entries: what the server allows per request, which is also the size of its pages.
  func device(_ user: String = "anna", skew: Int64 = 0, entries: Int = 200) throws -> TestDevice {
    count += 1
    return try TestDevice(self, number: count, user: user, skew: skew, entries: entries)
  }

  /// The name of a user who has signed in on some device.
  func name(of recordName: String) -> String? { names[recordName] }
  fileprivate var names: [String: String] = [:]

  func cloud(_ user: String = "anna") throws -> InMemoryCloud { try server.cloud(user: user) }

  /// What a user's zone holds, by name; empty where there is no zone.
  func records(_ user: String = "anna") throws -> [String: Record] {
    do {
      return Dictionary(uniqueKeysWithValues: try cloud(user).allRecords(in: Self.zone).map { ($0.id.name, $0) })
    } catch let error as CloudError where error.code == .zoneNotFound { return [:] }
  }

  func names(_ user: String = "anna") throws -> Set<String> { Set(try records(user).keys) }

  /// Stores a record as another program would, over whatever is there.
  func put(_ record: Record, _ user: String = "anna") throws {
    let cloud = try cloud(user)
    _ = try cloud.createZones([Self.zone])
    _ = try cloud.modify(in: Self.zone, [RecordOperation(.forceReplace, record)], atomic: false)
  }

  func delete(_ name: String, _ user: String = "anna") throws {
    let record = Record(id: RecordID(name: name, zone: Self.zone), type: "")
    _ = try cloud(user).modify(in: Self.zone, [RecordOperation(.forceDelete, record)], atomic: false)
  }

  /// Syncs until no device has anything left to do.
  func settle(_ devices: [TestDevice], rounds: Int = 6) throws {
    for _ in 0..<rounds {
      clock.advance(seconds: 1)
      for device in devices { try device.sync() }
    }
  }
}

/// The key-value store of older releases.
final class TestKeyValues: KeyValueStore, @unchecked Sendable {
  // Used on the test's own thread only.
  var instances: [LegacyInstance] = []
  func legacyInstances() -> [LegacyInstance] { instances }
  func changes() -> AsyncStream<KeyValueChange> { AsyncStream { $0.finish() } }
}

/// Where a test ends a device's process: before a commit of the profile's file.
final class CommitBorder {
  struct Death: Error {}
  /// Dies at this commit, counted from 1; nil: lives.
  var diesAt: Int?
  private(set) var commits = 0

  func pass() throws {
    commits += 1
    if let diesAt, commits >= diesAt { throw Death() }
  }
}

/// One device: a profile's file, a secure store, an older release's flags, a network that can fail.
final class TestDevice {
  let world: TestWorld
  let number: Int
  let credentials = InMemoryCredentialStore()
  let keyValues = TestKeyValues()
  let border = CommitBorder()
  let time: any TimeSource
  private(set) var user: String
  private(set) var cloud: FaultInjector
  private(set) var entryFaults: EntryFaults
  private(set) var core: AccountsCore
  private(set) var syncer: AccountsSync?
  var marker = "1"
  private let randomness: SeededRandomness
  private let entries: Int

  init(_ world: TestWorld, number: Int, user: String, skew: Int64, entries: Int) throws {
    self.world = world
    self.number = number
    self.user = user
    self.entries = entries
    time = world.clock.skewed(byMilliseconds: skew)
    randomness = SeededRandomness(seed: UInt64(number) * 7_919)
    entryFaults = EntryFaults(try world.server.cloud(user: user, limits: CloudLimits(entriesPerRequest: entries)))
    cloud = FaultInjector(entryFaults)
    world.names[try cloud.currentUser()] = user
    core = try Self.core(
      path: world.folder.file("device\(number).sqlite"), .user(try cloud.currentUser()), credentials, keyValues, time,
      randomness, border, marker)
    try open()
  }

  private static func core(
    path: String, _ identity: CloudIdentity?, _ credentials: any CredentialStore, _ keyValues: any KeyValueStore,
    _ time: any TimeSource, _ randomness: SeededRandomness, _ border: CommitBorder, _ marker: String
  ) throws -> AccountsCore {
    try AccountsCore(
      AccountsConfiguration(path: path, identity: identity, deviceMarker: marker, time: time, randomness: randomness),
      credentials: credentials, keyValues: keyValues, willCommit: { [unowned border] in try border.pass() })
  }

  var path: String { world.folder.file("device\(number).sqlite") }

  private func open() throws {
    guard case .user(let name) = try core.status().identity else {
      syncer = nil
      return
    }
    syncer = try AccountsSync(core, cloud: cloud, zone: TestWorld.zone, user: name)
  }

  /// What a crash or a quit leaves: the file, the secure store, the older release's values.
  func relaunch(identity: CloudIdentity? = nil) throws {
    border.diesAt = nil
    syncer = nil
    core = try Self.core(path: path, identity, credentials, keyValues, time, randomness, border, marker)
    if case .user(let stored) = try core.status().identity, let name = world.name(of: stored), name != user {
      // The process died right after another user had signed in.
      connect(name, try world.server.cloud(user: name, limits: CloudLimits(entriesPerRequest: entries)))
    }
    try open()
  }

  /// Another user signs in.
  func signIn(_ name: String) throws {
    // A process that dies here is still the user's of before.
    let recordName = try world.server.caller(name).recordName
    world.names[recordName] = name
    try core.identityChanged(to: .user(recordName))
    connect(name, try world.server.cloud(user: name, limits: CloudLimits(entriesPerRequest: entries)))
    try open()
  }

  private func connect(_ name: String, _ cloud: InMemoryCloud) {
    user = name
    entryFaults = EntryFaults(cloud)
    self.cloud = FaultInjector(entryFaults)
  }

  func signOut() throws {
    try core.identityChanged(to: .none)
    try open()
  }

  @discardableResult
  func sync(_ scope: SyncRequest.Scope = .all, manual: Bool = true) throws -> AccountsReport {
    guard let syncer else { throw AccountsError.unresolvedIdentity }
    return try syncer.sync(SyncRequest(scope, isManual: manual))
  }

  // MARK: Shorthands

  static let instance = InstanceID("00000000-0000-4000-8000-00000000000a")!
  static let otherInstance = InstanceID("00000000-0000-4000-8000-00000000000b")!

  @discardableResult
  func add(
    _ name: String = "ada", on instance: InstanceID = TestDevice.instance, secret: String = "s3cret"
  ) throws -> AccountID {
    try core.add(
      NewLogin(instanceID: instance, service: "mastodon", instanceURL: "https://x.example", userName: name),
      credential: Credential(userName: name, secret: Data(secret.utf8))
    ).id
  }

  func state() throws -> ScopeState {
    let state = try core.file.read()
    return state.scope.map { state[$0] } ?? ScopeState()
  }

  func device() throws -> DeviceState { try core.file.read().device }

  var live: Set<AccountID> { Set(core.snapshot.accounts.map(\.id)) }
  var choice: AccountID? { core.snapshot.choices[.main] }

  /// Names of the records that this device asked the server to save, in order.
  var sentNames: [String] { cloud.sentOperations.map(\.record.id.name) }

  /// The modify requests, each with the names that it saved.
  var sentBatches: [[String]] {
    cloud.log.compactMap {
      if case .modify(_, let operations, _) = $0.call { operations.map(\.record.id.name) } else { nil }
    }
  }

  /// Fetches of the zone from a nil token.
  var fullFetches: Int {
    cloud.log.count { if case .zoneChanges(_, nil) = $0.call { true } else { false } }
  }

  var scope: ScopeID { get throws { try core.ticket().scope } }
}

extension InMemoryCredentialStore {
  func has(_ key: CredentialKey) -> Bool { keys.contains(key) }
}
