/// One piece of a store on its way into another. Keys are those of the store that it comes from.
public enum StoreCopyPart: Sendable {
  /// The first part.
  case head(StoreCopyHead)
  case user(Caller, created: Int64, StoredUsage)
  /// Of a user whom others may learn something of.
  case profile(user: Int64, UserProfile)
  case visits(user: Int64, [StoredDevice], [StoredUsageDay])
  case token(hash: [UInt8], user: Int64, created: Int64)
  case credential(AppCredential)
  case schemaField(container: String, ServerEnvironment, StoredSchemaField)
  case database(StoreCopyDatabase)
  case subscription(database: Int64, StoredSubscription)
  /// Zones that were deleted are marks without records.
  case zone(database: Int64, StoredZone)
  case records(zone: Int64, [StoredRecord])
  case references(zone: Int64, [StoredReference])
  case assetUses(zone: Int64, [StoreCopyAssetUse])
  case share(StoredShare, [StoredParticipant])
  /// A piece of the feed of one share or more.
  case shareEntries(zone: Int64, [StoredShareEntry])
  case asset(AssetSummary, keepUntil: Int64, isSuspect: Bool)
}

extension StoreCopyPart {
  /// Why a target refuses an entry.
  public static var shareIsMissing: StorageFailure {
    StorageFailure("The copy has entries of a share that it does not have")
  }
}

/// What belongs to a store as a whole.
public struct StoreCopyHead: Hashable, Sendable {
  /// What signs addresses of assets; nil in a store that never had one.
  public var secret: [UInt8]?
  /// The greatest key that a user or a database ever had; keys are not given out again.
  public var lastKey: Int64
  /// The greatest number that a credential ever had.
  public var lastCredential: Int64
  /// The greatest position of any database.
  public var lastPosition: Int64

  public init(secret: [UInt8]?, lastKey: Int64, lastCredential: Int64, lastPosition: Int64) {
    self.secret = secret
    self.lastKey = lastKey
    self.lastCredential = lastCredential
    self.lastPosition = lastPosition
  }
}

/// A database and where its history stands.
public struct StoreCopyDatabase: Hashable, Sendable {
  public var key: Int64
  public var user: Int64
  public var scope: DatabaseScope
  public var incarnation: Int64
  /// New positions are greater.
  public var position: Int64
  public var epochs: [Epoch]

  public init(
    key: Int64, user: Int64, scope: DatabaseScope, incarnation: Int64, position: Int64, epochs: [Epoch]
  ) {
    self.key = key
    self.user = user
    self.scope = scope
    self.incarnation = incarnation
    self.position = position
    self.epochs = epochs
  }
}

/// That a record has an asset.
public struct StoreCopyAssetUse: Hashable, Sendable {
  public var source: String
  public var digest: [UInt8]

  public init(source: String, digest: [UInt8]) {
    self.source = source
    self.digest = digest
  }
}

/// How much of a store is on its way at a time.
public enum StoreCopyBatch {
  public static let records = 1_000
  public static let bytes = 4 << 20
}

extension RawRepresentable {
  /// A stored word. A copy leaves out nothing without a word about it: what this version does not know ends it.
  public init(copying stored: RawValue) throws {
    guard let value = Self(rawValue: stored) else {
      throw StorageFailure(
        "The store holds '\(stored)', which this version does not know: update cairn, or see its log")
    }
    self = value
  }
}

/// A reader whose store can be copied.
public protocol StoreCopyReader: StorageReader {
  /// Calls `body` with everything that the store holds, of one snapshot, owners before what they own.
  func copyParts(_ body: (StoreCopyPart) throws -> Void) throws
}

extension StoreCopyReader {
  /// The records of a zone, as many at a time as fit in memory.
  public func copyRecords(_ zone: Int64, _ body: (StoreCopyPart) throws -> Void) throws {
    var batch: [StoredRecord] = []
    var bytes = 0
    try scan(zone, after: -1, before: .max, newestFirst: false) { record in
      batch.append(record)
      bytes += record.fields.count
      if batch.count == StoreCopyBatch.records || bytes > StoreCopyBatch.bytes {
        try body(.records(zone: zone, batch))
        (batch, bytes) = ([], 0)
      }
      return true
    }
    if !batch.isEmpty { try body(.records(zone: zone, batch)) }
  }

  /// The shares of a zone with all that belongs to them.
  public func copyShares(_ zone: Int64, _ body: (StoreCopyPart) throws -> Void) throws {
    for share in try shares(.inZone(zone)) {
      try body(.share(share, try participants(of: share.key)))
      var position: Int64 = -1
      while true {
        let entries = try shareEntries(of: share.key, after: position, limit: StoreCopyBatch.records)
        guard let last = entries.last else { break }
        try body(.shareEntries(zone: zone, entries))
        position = last.position
      }
    }
  }
}

/// A writer into whose store a copy can be put.
public protocol StoreCopyWriter: StorageWriter {
  /// Whether there is no user and no database yet.
  func isEmptyStore() throws -> Bool
  /// Begins a copy: what the writer remembers of one that was broken off is forgotten.
  func beginCopy() throws
  func putCopy(_ part: StoreCopyPart) throws
}
