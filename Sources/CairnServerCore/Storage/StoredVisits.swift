/// A device that has spoken to the server (web-services section 17).
public struct StoredDevice: Hashable, Sendable {
  /// What it calls itself; unique among the devices of its user.
  public var name: String
  /// The container of its newest request.
  public var container: String
  /// Times in ms since 1970; the newer one is up to a minute late.
  public var firstSeen: Int64
  public var lastSeen: Int64

  public init(name: String, container: String, firstSeen: Int64, lastSeen: Int64) {
    self.name = name
    self.container = container
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
  }
}

/// What a user's records took on a day, at the last visit of it.
public struct StoredUsageDay: Hashable, Sendable {
  /// Days since 1970, UTC.
  public var day: Int64
  public var bytes: Int64

  public init(day: Int64, bytes: Int64) {
    self.day = day
    self.bytes = bytes
  }
}

/// A database of a user.
public struct OwnedDatabase: Hashable, Sendable {
  public var database: StoredDatabase
  public var scope: DatabaseScope

  public init(database: StoredDatabase, scope: DatabaseScope) {
    self.database = database
    self.scope = scope
  }
}

/// How many records of a type a zone has.
public struct StoredTypeCount: Hashable, Sendable {
  public var type: String
  public var live: Int64
  /// Tombstones that are still kept.
  public var deleted: Int64

  public init(type: String, live: Int64, deleted: Int64) {
    self.type = type
    self.live = live
    self.deleted = deleted
  }
}

/// What is kept of visits.
public enum VisitLimits {
  /// Devices of a user; beyond them the one goes that was away longest.
  public static let devices = 100
  /// Days of usage of a user.
  public static let days = 400
}
