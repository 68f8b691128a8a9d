import CairnRecords

/// The engine's durable facts about its database and zones: the stored rows themselves with typed access, so that what
/// is in memory and what is on disk cannot say different things.
///
/// Nothing is changed in place: a writer makes a delta, commits it, and ``adopt(_:)``s it.
public struct ZoneRegistry: Hashable, Sendable {
  public private(set) var rows: [String: String]

  public init(rows: [String: String] = [:]) { self.rows = rows }

  /// Takes up a delta that was committed.
  public mutating func adopt(_ delta: StateDelta) {
    for (key, value) in delta { rows[key] = value }
  }

  // MARK: Zones

  /// Where the next fetch of a zone begins; nil for the beginning.
  public func token(_ zone: ZoneID) -> ChangeToken? { text(zone, .token).map { ChangeToken($0) } }
  /// Whether the server is known to have the zone, under the present identity.
  public func isConfirmed(_ zone: ZoneID) -> Bool { text(zone, .confirmed) != nil }
  /// Whether a fetch without token is under way (engine section 8).
  public func isInSnapshot(_ zone: ZoneID) -> Bool { text(zone, .snapshot) != nil }
  /// When a fetch of the zone last ended, ms since 1970.
  public func lastFetch(_ zone: ZoneID) -> Int64? { text(zone, .lastFetch).flatMap { Int64($0) } }
  /// Until when the zone is left alone, ms since 1970.
  public func hold(_ zone: ZoneID) -> Int64? { text(zone, .hold).flatMap { Int64($0) } }
  /// Whether the server has said that the zone has news that were not fetched yet.
  public func isUnfetched(_ zone: ZoneID) -> Bool { text(zone, .unfetched) != nil }

  /// Zones with a stored row, in order.
  public var knownZones: [ZoneID] {
    var found = Set<ZoneID>()
    for key in rows.keys where key.hasPrefix(StoredKeys.zonePrefix) {
      if let (zone, _) = StoredKeys.parse(path: key.dropFirst(StoredKeys.zonePrefix.count)) { found.insert(zone) }
    }
    return found.sorted()
  }

  /// How often in a row a record was tried and failed.
  public func tries(_ record: RecordID) -> Int {
    rows[StoredKeys.tries(record.zone, record.name)].flatMap { Int($0) } ?? 0
  }

  /// What clears everything that belonged to one incarnation of a zone (engine section 12). Answers and questions stay.
  func clearedZone(_ zone: ZoneID) -> StateDelta {
    let root = StoredKeys.zoneRoot(zone)
    let kept = root + "question/"
    var delta: StateDelta = [:]
    for key in rows.keys where key.hasPrefix(root) && !key.hasPrefix(kept) { delta[key] = .some(nil) }
    return delta
  }

  // MARK: Questions

  /// The state of a category in a zone that was lost.
  public func standing(of category: String, in zone: ZoneID) -> ZoneStanding {
    guard let value = rows[StoredKeys.question(zone, category)] else { return .open }
    if value == ZoneStanding.keptLocalValue { return .keptLocal }
    return .asked(ZoneQuestion.Cause(rawValue: value) ?? .deleted)
  }

  // MARK: The database

  public var databaseToken: ChangeToken? { rows[StoredKeys.databaseToken].map { ChangeToken($0) } }
  public var databaseHold: Int64? { rows[StoredKeys.databaseHold].flatMap { Int64($0) } }
  /// Wall time in ms of the last wholly good sync.
  public var lastSync: Int64? { rows[StoredKeys.lastSync].flatMap { Int64($0) } }
  public var isSignedOut: Bool { rows[StoredKeys.account] != nil }
  public var backoff: Wait? { Wait(rows[StoredKeys.backoff]) }
  public var quota: Wait? { Wait(rows[StoredKeys.quota]) }

  private func text(_ zone: ZoneID, _ attribute: StoredKeys.Zone) -> String? { rows[StoredKeys.zone(zone, attribute)] }
}

/// Failures so far and the wall time, ms since 1970, before which nothing is tried.
public struct Wait: Hashable, Sendable {
  public var tries: Int
  public var until: Int64
  /// Whether the network is the cause: then a reconnect ends the wait.
  public var isNetwork: Bool

  init(tries: Int, until: Int64, isNetwork: Bool = false) {
    self.tries = tries
    self.until = until
    self.isNetwork = isNetwork
  }

  init?(_ text: String?) {
    guard let parts = text?.split(separator: " "), parts.count >= 2, let tries = Int(parts[0]),
      let until = Int64(parts[1])
    else { return nil }
    self.init(tries: tries, until: until, isNetwork: parts.count > 2 && parts[2] == "network")
  }

  var text: String { "\(tries) \(until)" + (isNetwork ? " network" : "") }
}

/// What a category may do in a zone (engine section 12).
public enum ZoneStanding: Hashable, Sendable {
  case open
  /// A question is open: nothing is sent or fetched for the category.
  case asked(ZoneQuestion.Cause)
  /// The user chose to keep the rows here: nothing is sent or fetched until the app decides anew.
  case keptLocal

  static let keptLocalValue = "keptLocal"
}

/// A question to the user: a zone is gone, or its history cannot be trusted (engine section 12, tables L11, L12).
public struct ZoneQuestion: Hashable, Sendable {
  /// What happened to the zone.
  public enum Cause: String, Hashable, Sendable, CaseIterable {
    case deleted, purged
    /// The server was restored from a backup.
    case epoch
    /// The zone was deleted and made again.
    case incarnation
  }

  public var zone: ZoneID
  /// Name of the category that waits for the answer.
  public var category: String
  public var cause: Cause

  public init(zone: ZoneID, category: String, cause: Cause) {
    self.zone = zone
    self.category = category
    self.cause = cause
  }
}
