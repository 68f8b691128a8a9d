import CairnRecords

/// What a user has on the server, for the console.
public struct AccountOverview: Sendable {
  public var user: Caller
  public var usage: StoredUsage
  public var databases: [Database]
  /// The one that was here last first.
  public var devices: [StoredDevice]
  /// Oldest day first; days without a visit are missing.
  public var days: [StoredUsageDay]

  public struct Database: Sendable {
    public var scope: DatabaseScope
    /// Live zones, by name.
    public var zones: [Zone]
  }

  public struct Zone: Sendable {
    public var name: String
    /// What its records count for in the user's usage.
    public var bytes: Int64
    /// When the record that changed last was changed, in ms since 1970; nil in an empty zone.
    public var newestChange: Int64?
  }
}

extension CloudServer {
  /// Everything of the caller's own, of one snapshot. Nothing is made by asking.
  public func overview(_ caller: Caller) throws(CloudError) -> AccountOverview {
    try caller.checkIsUser()
    return try read { reader in
      let databases = try reader.databases(of: caller.key).map { owned in
        let zones = try reader.zones(owned.database.key, after: -1, limit: .max).filter { !$0.isDeleted }
        return AccountOverview.Database(
          scope: owned.scope,
          zones: try zones.sorted { $0.name < $1.name }.map { zone in
            AccountOverview.Zone(name: zone.name, bytes: zone.bytes, newestChange: try newestChange(zone.key, reader))
          })
      }
      return AccountOverview(
        user: caller, usage: try reader.usage(of: caller.key), databases: databases,
        devices: try reader.devices(of: caller.key), days: try reader.usageByDay(of: caller.key))
    }
  }

  private func newestChange(_ zone: Int64, _ reader: any StorageReader) throws -> Int64? {
    var found: Int64?
    try reader.scan(zone, after: 0, before: .max, newestFirst: true) { row in
      found = row.modified
      return false
    }
    return found
  }

  /// The types of records in a zone of the caller's own, by name, with their numbers.
  ///
  /// - Throws: `zoneNotFound` where there is none of that name.
  public func typeCounts(
    _ caller: Caller, _ scope: DatabaseScope, zone name: String
  ) throws(CloudError) -> [StoredTypeCount] {
    try caller.checkIsUser()
    return try read { reader in
      guard let database = try reader.database(caller.key, scope),
        let zone = try reader.zone(database.key, named: name), !zone.isDeleted
      else { throw CloudError(.zoneNotFound, "Zone '\(name)' does not exist") }
      return try reader.typeCounts(zone.key)
    }
  }

  /// How often a device's visits are noted, in ms.
  static let visitInterval: Int64 = 60_000

  /// Notes that a user was here, at most once a minute for each device, without waiting for it.
  ///
  /// - Parameter device: what it calls itself; names that are none are taken for no name.
  public func noteVisit(_ caller: Caller, device: String?, container: String) {
    guard caller.role == .user else { return }
    let now = clock.now
    let name = device.flatMap { CloudServer.isDeviceName($0) ? $0 : nil }
    let isDue = memory.withLock { memory in
      var noted = memory.visits[caller.key] ?? [:]
      // A clock that was set back notes anew.
      if let last = noted[name ?? ""], now >= last, now - last < CloudServer.visitInterval { return false }
      if noted.count > VisitLimits.devices { noted = noted.filter { now - $0.value < CloudServer.visitInterval } }
      guard noted.count <= VisitLimits.devices else { return false }
      noted[name ?? ""] = now
      memory.visits[caller.key] = noted
      return true
    }
    guard isDue else { return }
    let seen = name.map { StoredDevice(name: $0, container: container, firstSeen: now, lastSeen: now) }
    storage.submit { writer in
      try writer.noteVisit(of: caller.key, seen, day: now / 86_400_000)
      return {}
    } failed: { _ in
      // The next minute notes it.
    }
  }

  /// 1 to 100 bytes without control characters.
  static func isDeviceName(_ name: String) -> Bool {
    (1...100).contains(name.utf8.count)
      && !name.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }
  }
}
