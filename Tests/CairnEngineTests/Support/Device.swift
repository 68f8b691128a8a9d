import CairnRecords
import CairnTesting

@testable import CairnEngine

/// Remembers what it was told.
final class EventLog: EngineObserver {
  var events: [Event] = []
  var onEvent: ((Event) -> Void)?
  func handle(_ event: Event) {
    events.append(event)
    onEvent?(event)
  }
}

/// One device of the tests: a session on a store in memory, against a cloud that can fail.
final class Device {
  static let zone = ZoneID(name: "cairn")

  let clock: ManualClock
  let cloud: FaultInjector
  let plain: InMemoryCloud
  let store = MemoryStore()
  let notes: NotesCategory
  let others: [NotesCategory]
  let events = EventLog()
  var settings: SyncSettings
  var isAutomatic: Bool
  var expectedUser: String?
  private(set) var session: SyncSession

  init(
    _ server: InMemoryServer, _ clock: ManualClock, delivery: CategoryDelivery = .pages, others: [NotesCategory] = [],
    settings: SyncSettings = SyncSettings(), limits: CloudLimits = CloudLimits(), allZones: Bool = false,
    expectedUser: String? = nil
  ) throws {
    self.clock = clock
    self.settings = settings
    self.others = others
    self.expectedUser = expectedUser
    isAutomatic = allZones
    plain = try server.cloud(user: "anna", limits: limits)
    cloud = FaultInjector(plain)
    notes = NotesCategory(delivery: delivery, zone: Device.zone)
    store.members = [notes] + others
    session = Device.makeSession(cloud, store, [notes] + others, settings, clock, allZones, events, expectedUser)
  }

  private static func makeSession(
    _ cloud: FaultInjector, _ store: MemoryStore, _ categories: [NotesCategory], _ settings: SyncSettings,
    _ clock: ManualClock, _ allZones: Bool, _ events: EventLog, _ user: String?
  ) -> SyncSession {
    SyncSession(
      cloud: cloud, store: store, categories: categories, zones: allZones ? nil : [zone], settings: settings,
      expectedUser: user, time: clock, randomness: SeededRandomness(seed: 7), observer: events)
  }

  /// What a crash or a quit leaves: the store and the category's durable state, and a new session on them.
  func relaunch() {
    session = Device.makeSession(
      cloud, store, [notes] + others, settings, clock, isAutomatic, events, expectedUser)
  }

  @discardableResult
  func sync(_ scope: SyncRequest.Scope = .all, manual: Bool = true) throws -> SyncResult {
    try session.sync(SyncRequest(scope, isManual: manual))
  }

  func registry() throws -> ZoneRegistry { try session.registry() }

  var serverTexts: [String: String] {
    get throws {
      var out: [String: String] = [:]
      for record in try plain.allRecords(in: Device.zone) {
        if case .string(let text)? = record.fields["text"] { out[String(record.id.name.dropFirst(5))] = text }
      }
      return out
    }
  }
}
