import CairnEngine
import CairnRecords
import CairnTesting

/// One device with the settings category, made of public API alone.
final class SettingsDevice {
  static let zone = ZoneID(name: "cairn")

  let clock: ManualClock
  let cloud: FaultInjector
  let plain: InMemoryCloud
  let file: SettingsFile
  let user: String?
  let events = EventLog()
  let generation = EngineGeneration()
  var deviceName: String?
  let makeCategories: (SettingsFile) -> [SettingsCategory]
  private(set) var categories: [SettingsCategory]
  private(set) var session: SyncSession

  var settings: SettingsCategory { categories[0] }

  init(
    _ server: InMemoryServer, _ clock: ManualClock, user: String? = nil, page: Int = 200, file: SettingsFile? = nil,
    _ makeCategories: @escaping (SettingsFile) -> [SettingsCategory] = { [SettingsCategory($0)] }
  ) throws {
    self.clock = clock
    self.makeCategories = makeCategories
    let plain = try server.cloud(user: user ?? "anna", limits: CloudLimits(entriesPerRequest: page))
    self.plain = plain
    cloud = FaultInjector(plain)
    self.file = try file ?? SettingsFile()
    self.user = try user.map { _ in try plain.currentUser() }
    categories = makeCategories(self.file)
    session = Self.session(cloud, self.file, categories, self.user, nil, generation, clock, events)
  }

  private static func session(
    _ cloud: FaultInjector, _ file: SettingsFile, _ categories: [SettingsCategory], _ user: String?, _ device: String?,
    _ generation: EngineGeneration, _ clock: ManualClock, _ events: EventLog
  ) -> SyncSession {
    SyncSession(
      cloud: cloud, store: file, categories: categories, zones: [zone], expectedUser: user, device: device,
      generation: generation, time: clock, randomness: SeededRandomness(seed: 7), observer: events)
  }

  /// What a crash or a quit leaves is the file; everything else is made again.
  func relaunch() {
    file.diesAt = nil
    categories = makeCategories(file)
    session = Self.session(cloud, file, categories, user, deviceName, generation, clock, events)
    // The scope is known once a session has begun; tests look at it before.
    for category in categories { (try? category.begin(as: user)) ?? () }
    settings.clearCalls()
  }

  @discardableResult
  func sync(_ scope: SyncRequest.Scope = .all, manual: Bool = true) throws -> SyncResult {
    try session.sync(SyncRequest(scope, isManual: manual))
  }

  var token: ChangeToken? { get throws { try session.registry().token(Self.zone) } }

  func status(_ category: SettingsCategory? = nil) throws -> BootstrapStatus {
    let category = category ?? settings
    return try SyncSession.registry(in: file, expectedUser: user)
      .bootstrapStatus(of: category.name, category.bootstrap, in: Self.zone)
  }

  /// What the server holds, by key.
  var serverValues: [String: String] {
    get throws {
      var out: [String: String] = [:]
      for record in try plain.allRecords(in: Self.zone) where record.type == SettingsCategory.type {
        if case .string(let text)? = record.fields["value"] { out[SettingsCategory.key(record.id.name)] = text }
      }
      return out
    }
  }

  /// Fetches from a nil token, which are bootstraps or first fetches.
  var fullFetches: Int {
    cloud.log.count { if case .zoneChanges(_, nil) = $0.call { true } else { false } }
  }

  static func isFetch(_ call: FaultInjector.Call) -> Bool { if case .zoneChanges = call { true } else { false } }
  static func isSend(_ call: FaultInjector.Call) -> Bool { if case .modify = call { true } else { false } }
}
