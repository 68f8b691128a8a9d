/// Where the server keeps its data. Semantics live in ``CloudServer``; an implementation only stores and finds rows.
///
/// Invariants that every implementation keeps, in a shared store for the jobs of all its processes together:
/// 1. Write jobs of one database run one after the other, each against the state that the jobs before it left. Jobs of
///    different databases, and jobs of none, may run at the same time; the result is that of some order.
/// 2. Positions of a database grow in commit order: a reader that sees one of them sees every smaller one of that
///    database (web-services section 8). Positions of different databases say nothing about each other.
/// 3. A job's commit handler runs after its writes are durable; a job that throws leaves nothing behind.
/// 4. A read sees one snapshot.
/// 5. Bodies may be run more than once, until one run commits: what they do outside of the store must bear that.
public protocol Storage: AnyObject, Sendable {
  /// Whether other processes change the store too. Then nothing may be remembered of it but what never changes.
  var isShared: Bool { get }

  /// How the servers of a shared store tell each other; nil where there is only one.
  var exchange: (any NewsExchange)? { get }

  /// Runs `body` against a snapshot. Reads must not nest.
  func read<Result>(_ body: (any StorageReader) throws -> Result) throws -> Result

  /// Queues a write. Jobs that wait together share one commit.
  ///
  /// - Parameters:
  ///   - database: the one that the job is about; nil for jobs about the store. It may read and change others too, but
  ///     such jobs may have to be run again.
  ///   - body: does the writes; what it returns is called once they are durable.
  ///   - failed: called instead when `body` threw or the commit failed.
  func submit(
    in database: Int64?, _ body: @escaping @Sendable (any StorageWriter) throws -> @Sendable () -> Void,
    failed: @escaping @Sendable (any Error) -> Void)

  /// Writes that wait or are under way, of this process.
  var queuedWrites: Int { get }

  /// Finishes queued writes and closes. Later calls fail.
  func close()
}

/// One queued write: the arguments of ``Storage/submit(in:_:failed:)``.
public struct WriteJob: Sendable {
  public var body: @Sendable (any StorageWriter) throws -> @Sendable () -> Void
  public var failed: @Sendable (any Error) -> Void

  public init(
    body: @escaping @Sendable (any StorageWriter) throws -> @Sendable () -> Void,
    failed: @escaping @Sendable (any Error) -> Void
  ) {
    self.body = body
    self.failed = failed
  }
}

extension Storage {
  public var isShared: Bool { false }
  public var exchange: (any NewsExchange)? { nil }
  public var queuedWrites: Int { 0 }

  /// Queues a write that is about the store.
  public func submit(
    _ body: @escaping @Sendable (any StorageWriter) throws -> @Sendable () -> Void,
    failed: @escaping @Sendable (any Error) -> Void
  ) { submit(in: nil, body, failed: failed) }
}

/// Finds rows. Confined to the body that it was given to.
public protocol StorageReader: ShareStorageReader {
  /// The epochs of a database, oldest first (web-services section 8).
  func epochs(_ database: Int64) throws -> [Epoch]

  func user(named name: String) throws -> Caller?
  func user(key: Int64) throws -> Caller?
  func user(tokenHash: [UInt8]) throws -> Caller?
  func users() throws -> [Caller]
  /// Kept up to date with every write; nothing for a user who is not there.
  func usage(of user: Int64) throws -> StoredUsage
  /// The one that was here last first.
  func devices(of user: Int64) throws -> [StoredDevice]
  /// Oldest day first; days without a visit are missing.
  func usageByDay(of user: Int64) throws -> [StoredUsageDay]

  func appCredential(id: [UInt8]) throws -> AppCredential?
  /// All of them, by kind and name.
  func appCredentials() throws -> [AppCredential]

  func database(_ user: Int64, _ scope: DatabaseScope) throws -> StoredDatabase?
  /// By container, environment and kind.
  func databases(of user: Int64) throws -> [OwnedDatabase]
  /// By type. Looks at every record of the zone, without their fields.
  func typeCounts(_ zone: Int64) throws -> [StoredTypeCount]
  func zone(_ database: Int64, named name: String) throws -> StoredZone?
  /// Zones whose newest change is after `position`, oldest change first, deleted ones included.
  func zones(_ database: Int64, after position: Int64, limit: Int) throws -> [StoredZone]

  func record(_ zone: Int64, named name: String) throws -> StoredRecord?
  /// Says which records ``record(_:named:)`` will be asked for, and whose referrers, so that a store far away finds
  /// them in one step.
  func prefetch(_ zone: Int64, named names: [String], referrersOf targets: [String]) throws
  /// Calls `body` with the rows of a zone after `position` and before `end`, in the order of positions (or newest
  /// first), until it returns false.
  func scan(
    _ zone: Int64, after position: Int64, before end: Int64, newestFirst: Bool,
    _ body: (StoredRecord) throws -> Bool) throws
  /// Calls `body` with the live records of one type whose names come after `name`, in the order of the bytes of names,
  /// until it returns false.
  func scanNames(_ zone: Int64, type: String, after name: String, _ body: (StoredRecord) throws -> Bool) throws
  func referrers(_ zone: Int64, of target: String, limit: Int) throws -> [StoredReference]
  func deleteSelfReferrerCount(_ zone: Int64, of target: String) throws -> Int

  func schema(_ container: String, _ environment: ServerEnvironment) throws -> [StoredSchemaField]
  /// In a shared store, a number that is another one after each change of the schema; else 0.
  func schemaVersion(_ container: String, _ environment: ServerEnvironment) throws -> Int64

  /// The subscriptions of a database, by name.
  func subscriptions(_ database: Int64) throws -> [StoredSubscription]

  /// What signs addresses and receipts of assets; nil before the first upload.
  func assetSecret() throws -> [UInt8]?
  /// Nil for bytes that are not kept.
  func asset(_ digest: [UInt8]) throws -> AssetSummary?
  /// Whether a live record in a database of the user has the asset.
  func isAssetInUse(_ digest: [UInt8], user: Int64) throws -> Bool

  /// Addresses for notifications: a shared store keeps them, so that every server knows them.
  func couriers() throws -> [StoredCourier]
  func courier(_ token: String) throws -> StoredCourier?
}

extension StorageReader {
  public func couriers() throws -> [StoredCourier] { [] }
  public func courier(_ token: String) throws -> StoredCourier? { nil }
  public func prefetch(_ zone: Int64, named names: [String], referrersOf targets: [String]) throws {}
  public func schemaVersion(_ container: String, _ environment: ServerEnvironment) throws -> Int64 { 0 }
}

/// Changes rows. Confined to the job that it was given to.
public protocol StorageWriter: StorageReader, ShareStorageWriter {
  /// The next position of a database; each is given out once.
  func takePosition(_ database: Int64) throws -> Int64
  /// Positions that are taken from now on belong to a new epoch of this name, in every database.
  func beginEpoch(_ name: UInt32) throws

  func addUser(name: String, recordName: String, created: Int64) throws -> Caller
  /// Removes the user with tokens and databases. What was in their zones becomes garbage.
  func removeUser(_ user: Int64) throws
  func addToken(hash: [UInt8], user: Int64, created: Int64) throws
  func removeTokens(of user: Int64) throws
  /// Puts one token in the place of another; false when there is no such token.
  func replaceToken(hash: [UInt8], with next: [UInt8], created: Int64) throws -> Bool

  /// Nil ends the limit.
  func setQuota(of user: Int64, _ bytes: Int64?) throws
  /// Adds to what the records of a zone take, and to the usage of `user`; less than 0 takes away. A user who is not
  /// there has no usage.
  func addUsage(_ bytes: Int64, user: Int64, zone: Int64) throws
  /// Notes that a user was here: the usage of the day, and the device where it has said its name. A device that is
  /// there keeps its first time. What is beyond ``VisitLimits`` goes. Does nothing for a user who is not there.
  func noteVisit(of user: Int64, _ device: StoredDevice?, day: Int64) throws

  /// Stores a credential under a new number, which is never used again.
  func addAppCredential(_ credential: AppCredential) throws
  func removeAppCredential(id: [UInt8]) throws

  /// Public databases belong to user 0, of whom there is no row; records there may be by users below 0, which are
  /// server-to-server keys by number.
  func addDatabase(_ user: Int64, _ scope: DatabaseScope, incarnation: Int64) throws -> StoredDatabase
  func addZone(_ database: Int64, name: String, incarnation: Int64, position: Int64) throws -> StoredZone
  func setZonePosition(_ zone: Int64, _ position: Int64) throws
  /// Turns the zone into a mark in the database's feed. What it held becomes garbage.
  func markZoneDeleted(_ zone: Int64, position: Int64) throws
  /// Removes the mark of a deleted zone.
  func removeZone(_ zone: Int64) throws
  /// Removes up to `limit` records of zones that are gone; returns whether more are left. A large zone is removed in
  /// many short transactions, so that others need not wait for it.
  func removeGarbage(limit: Int) throws -> Bool

  /// Stores a row under its position; `previous` is the position of the row of that name which it replaces.
  func put(_ record: StoredRecord, in zone: Int64, replacing previous: Int64?) throws
  /// The references of `source` become exactly these.
  func setReferences(_ zone: Int64, source: String, _ references: [StoredReference]) throws
  /// Removes up to `limit` tombstones of records that died before `time`, and as many entries of shares' feeds about
  /// records that left before it, and notes per zone and per share how far that went. Returns whether there may be
  /// more.
  func pruneTombstones(before time: Int64, limit: Int) throws -> Bool

  func setSchemaField(_ container: String, _ environment: ServerEnvironment, _ field: StoredSchemaField) throws

  /// Stores a subscription in place of the one of that name, if there is one.
  func putSubscription(_ database: Int64, _ subscription: StoredSubscription) throws
  /// Returns whether there was one.
  func removeSubscription(_ database: Int64, id: String) throws -> Bool
  /// Removes the subscriptions that look at one zone.
  func removeSubscriptions(_ database: Int64, zone: String) throws

  func setAssetSecret(_ secret: [UInt8]) throws
  /// The bytes are kept at least until `time`, ms since 1970.
  func keepAsset(_ asset: AssetSummary, until time: Int64) throws
  /// The assets of the record `source` become exactly these.
  func setAssetUses(_ zone: Int64, source: String, _ digests: Set<[UInt8]>) throws
  /// Assets that no record has and that need not be kept any longer.
  func unusedAssets(before time: Int64, limit: Int) throws -> [[UInt8]]
  func forgetAsset(_ digest: [UInt8]) throws

  /// Stores an address in place of the one of that token, if there is one.
  func putCourier(_ courier: StoredCourier) throws
  func removeCourier(_ token: String) throws
  /// Removes addresses that were last used before `time`, ms since 1970.
  func removeCouriers(before time: Int64) throws
}

extension StorageWriter {
  public func putCourier(_ courier: StoredCourier) throws {}
  public func removeCourier(_ token: String) throws {}
  public func removeCouriers(before time: Int64) throws {}
}

/// A stretch of a database's history between two starts of the server (web-services section 8).
public struct Epoch: Hashable, Sendable {
  /// 31 random bits.
  public var name: UInt32
  /// The database's newest position when the epoch began; its own positions are greater.
  public var start: Int64

  public init(name: UInt32, start: Int64) {
    self.name = name
    self.start = start
  }
}

/// A database row.
public struct StoredDatabase: Hashable, Sendable {
  public var key: Int64
  public var incarnation: Int64

  public init(key: Int64, incarnation: Int64) {
    self.key = key
    self.incarnation = incarnation
  }
}

/// A zone row.
public struct StoredZone: Hashable, Sendable {
  public var key: Int64
  public var name: String
  public var incarnation: Int64
  /// Those of its database, where the server has looked them up.
  var epochs = Epochs([])
  /// The position of the newest change in the zone.
  public var position: Int64
  public var isDeleted: Bool
  /// The position of the newest tombstone that was pruned; 0 when none was.
  public var pruned: Int64
  /// What the records in it count for (``StorageWriter/addUsage(_:user:zone:)``).
  public var bytes: Int64
  /// Whether rows of shares belong to records in it.
  public var hasShares: Bool
  /// What the caller sees of a zone of another user's; nil in the caller's own databases.
  var view: ShareView?

  public init(
    key: Int64, name: String, incarnation: Int64, position: Int64, isDeleted: Bool = false, pruned: Int64 = 0,
    bytes: Int64 = 0, hasShares: Bool = false
  ) {
    self.key = key
    self.name = name
    self.incarnation = incarnation
    self.position = position
    self.isDeleted = isDeleted
    self.pruned = pruned
    self.bytes = bytes
    self.hasShares = hasShares
  }
}

/// A record row, live or a tombstone.
public struct StoredRecord: Sendable {
  public var name: String
  public var position: Int64
  public var type: String
  /// Times in ms since 1970; users by storage key. A tombstone's `modified` is the time of its delete.
  public var created: Int64
  public var createdBy: Int64
  public var modified: Int64
  public var modifiedBy: Int64
  /// When the server received the delete; nil while the record lives.
  public var died: Int64?
  public var parent: String?
  /// Whether rows of the reference index belong to this record.
  public var hasReferences: Bool
  /// Whether rows of the index of assets belong to this record.
  public var hasAssets: Bool
  /// Whether a row of shares belongs to this record: it is a share, or the root of one.
  public var isShared: Bool
  /// Fields in the form of ``FieldBlob``; empty in a tombstone.
  public var fields: [UInt8]

  public var isLive: Bool { died == nil }

  public init(
    name: String, position: Int64, type: String, created: Int64, createdBy: Int64, modified: Int64, modifiedBy: Int64,
    died: Int64? = nil, parent: String? = nil, hasReferences: Bool = false, hasAssets: Bool = false,
    isShared: Bool = false, fields: [UInt8]
  ) {
    self.name = name
    self.position = position
    self.type = type
    self.created = created
    self.createdBy = createdBy
    self.modified = modified
    self.modifiedBy = modifiedBy
    self.died = died
    self.parent = parent
    self.hasReferences = hasReferences
    self.hasAssets = hasAssets
    self.isShared = isShared
    self.fields = fields
  }
}

extension StoredRecord {
  /// How storage keeps what belongs to the record elsewhere: bit 0 references, bit 1 assets, bit 2 shares.
  public var flags: Int64 { (hasReferences ? 1 : 0) | (hasAssets ? 2 : 0) | (isShared ? 4 : 0) }

  /// A row with its ``flags``.
  public init(
    name: String, position: Int64, type: String, created: Int64, createdBy: Int64, modified: Int64, modifiedBy: Int64,
    died: Int64?, parent: String?, flags: Int64, fields: [UInt8]
  ) {
    self.init(
      name: name, position: position, type: type, created: created, createdBy: createdBy, modified: modified,
      modifiedBy: modifiedBy, died: died, parent: parent, hasReferences: flags & 1 != 0, hasAssets: flags & 2 != 0,
      isShared: flags & 4 != 0, fields: fields)
  }
}

/// A reference that the server enforces. References with action NONE are not indexed.
public struct StoredReference: Hashable, Sendable {
  public enum Kind: Int64, Hashable, Sendable { case deleteSelf = 1, validate = 2, parent = 3 }

  public var source: String
  public var field: String
  public var target: String
  public var kind: Kind

  public init(source: String, field: String, target: String, kind: Kind) {
    self.source = source
    self.field = field
    self.target = target
    self.kind = kind
  }
}

/// One remembered field of a record type. An empty `field` remembers that the type exists.
public struct StoredSchemaField: Hashable, Sendable {
  public var recordType: String
  public var field: String
  /// A wire type, `X` or `X_LIST`.
  public var kind: String
  public var isFirm: Bool
  /// Whether values of an earlier, provisional type may be stored.
  public var hasYielded: Bool

  public init(recordType: String, field: String, kind: String, isFirm: Bool, hasYielded: Bool) {
    self.recordType = recordType
    self.field = field
    self.kind = kind
    self.isFirm = isFirm
    self.hasYielded = hasYielded
  }
}
