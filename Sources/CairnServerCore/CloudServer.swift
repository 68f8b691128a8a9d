import CairnRecords
import Synchronization

/// The record server without HTTP: what the requests of web-services mean, over a ``Storage``.
///
/// All calls may be made from any thread and block until the answer is there, except those that take a completion.
/// Errors are ``CloudError``s of the codes of web-services section 4; an expired token is `changeTokenExpired` with its
/// cause, which the HTTP layer spells as each client understands it.
///
/// Invariants:
/// 1. Whatever was answered as stored is durable.
/// 2. Every stored change of a record takes a new position; tag and token derive from positions and epochs alone.
public final class CloudServer: Sendable {
  public let settings: ServerSettings
  let storage: any Storage
  let assets: any AssetStore
  let clock: any ServerClock
  let randomness: any ServerRandomness
  /// Who waits for news.
  public let notifications: NotificationHub

  /// What is remembered of the store, guarded by the mutex. Only caches: losing it costs time. Of a shared store it
  /// holds what never changes: a database's incarnation, a user's name, the secret; and a schema with its version.
  struct Memory: Sendable {
    var databases: [DatabaseKey: StoredDatabase] = [:]
    /// By database; not of a shared store, where others begin epochs.
    var epochs: [Int64: Epochs] = [:]
    var schemas: [SchemaKey: (version: Int64, schema: SchemaMemory)] = [:]
    var userNames: [Int64: String] = [:]
    var lastPruning: Int64 = .min
    var assetSecret: [UInt8]?
    /// When the store was last told that an address is in use.
    var courierUse: [String: Int64] = [:]
    /// By user, where requests are limited.
    var allowances: [Int64: RequestAllowance] = [:]
    /// When visits were last noted, by user and device; empty for requests that name none.
    var visits: [Int64: [String: Int64]] = [:]
  }

  struct DatabaseKey: Hashable, Sendable {
    var user: Int64
    var scope: DatabaseScope
  }

  struct SchemaKey: Hashable, Sendable {
    var container: String
    var environment: ServerEnvironment

    init(_ scope: DatabaseScope) {
      container = scope.container
      environment = scope.environment
    }
  }

  let memory = Mutex(Memory())

  static let defaultZoneName = "_defaultZone"

  /// Starts a server on a store and with it a new epoch (web-services section 8).
  public init(
    storage: any Storage, assets: any AssetStore = MemoryAssetStore(), clock: any ServerClock = SystemServerClock(),
    randomness: any ServerRandomness = SystemServerRandomness(), settings: ServerSettings = ServerSettings()
  ) throws(CloudError) {
    self.storage = storage
    self.assets = assets
    self.clock = clock
    self.randomness = randomness
    self.settings = settings
    notifications = NotificationHub(settings)
    let name = UInt32(truncatingIfNeeded: randomness.next() >> 33)
    try CloudServer.write(storage) { try $0.beginEpoch(name) }
    try startExchange()
    removeGarbage()
    removeAssetLeftovers(assets.parts[...])
  }

  /// Ends waiting polls, finishes queued writes and closes the store.
  public func close() {
    notifications.close()
    storage.exchange?.stop()
    storage.close()
  }

  // MARK: Store access

  /// Writes that wait or are under way.
  public var queuedWrites: Int { storage.queuedWrites }

  /// Fails when the store can't be read.
  public func checkStore() throws(CloudError) { _ = try read { try $0.user(key: 0) } }

  func read<Result>(_ body: (any StorageReader) throws -> Result) throws(CloudError) -> Result {
    do { return try storage.read(body) } catch { throw CloudServer.cloudError(error) }
  }

  func write<Result: Sendable>(
    in database: Int64? = nil, _ body: @escaping @Sendable (any StorageWriter) throws -> Result
  ) throws(CloudError) -> Result {
    try CloudServer.write(storage, in: database, body)
  }

  /// Runs a write and waits until it is durable.
  static func write<Result: Sendable>(
    _ storage: any Storage, in database: Int64? = nil,
    _ body: @escaping @Sendable (any StorageWriter) throws -> Result
  ) throws(CloudError) -> Result {
    let outcome = Awaited<Swift.Result<Result, CloudError>>()
    storage.submit(
      in: database,
      {
        let result = try body($0)
        return { outcome.set(.success(result)) }
      }, failed: { outcome.set(.failure(cloudError($0))) })
    return try outcome.wait().get()
  }

  static func cloudError(_ error: any Error) -> CloudError {
    switch error {
    case let error as CloudError: error
    case let error as StorageFailure where error.isTemporary:
      CloudError(.tryAgainLater, "The server's store can't be used now", retryAfter: 1, detail: error.reason)
    default: CloudError(.internalError, "\(error)")
    }
  }

  /// Removes the records of zones that are gone, in short transactions, without waiting for the end.
  func removeGarbage() {
    storage.submit { [weak self] writer in
      let isMore = try writer.removeGarbage(limit: 2_000)
      return { [weak self] in if isMore { self?.removeGarbage() } }
    } failed: { _ in
      // The garbage stays where it is: the next start, or the next zone that goes, tries again.
    }
  }

  // MARK: Databases and zones

  /// The database that a request is about, and the caller as one of its users.
  ///
  /// - Throws: `authenticationRequired` where a user is needed and nobody is signed in, `authenticationFailed` where a
  ///   server-to-server key does not open the database (web-services section 3).
  func open(
    _ caller: Caller, _ scope: DatabaseScope, toWrite: Bool = false
  ) throws(CloudError) -> (StoredDatabase, Caller) {
    switch (scope.kind, caller.role) {
    case (_, .user), (.public, .server): break
    case (.public, .anonymous) where !toWrite: break
    case (_, .server): throw CloudServer.publicOnly
    case (_, .anonymous): throw CloudError(.authenticationRequired, "request needs authorization")
    }
    var caller = caller
    caller.isInPublic = scope.kind == .public
    caller.ownersScope = scope.kind == .shared ? scope.of(.private) : nil
    return (try database(caller.storageOwner, scope), caller)
  }

  /// What a server-to-server key meets outside the public database.
  public static let publicOnly = CloudError(
    .authenticationFailed, "A server-to-server key opens the public database only")

  /// A database, made with its default zone when it is used first.
  func database(_ owner: Int64, _ scope: DatabaseScope) throws(CloudError) -> StoredDatabase {
    let key = DatabaseKey(user: owner, scope: scope)
    if let known = memory.withLock({ $0.databases[key] }) { return known }
    let stored = try read { try $0.database(owner, scope) }
    let database: StoredDatabase
    if let stored {
      database = stored
    } else {
      let incarnations = (newIncarnation(), newIncarnation())
      database = try write { writer in
        if let stored = try writer.database(owner, scope) { return stored }
        let database = try writer.addDatabase(owner, scope, incarnation: incarnations.0)
        // The shared database has the zones of others only.
        guard scope.kind != .shared else { return database }
        _ = try writer.addZone(
          database.key, name: CloudServer.defaultZoneName, incarnation: incarnations.1,
          position: try writer.takePosition(database.key))
        return database
      }
    }
    memory.withLock { $0.databases[key] = database }
    return database
  }

  func newIncarnation() -> Int64 { Int64(bitPattern: randomness.next()) }

  /// The live zone that a request names.
  func zone(
    _ id: ZoneID, _ caller: Caller, _ database: StoredDatabase, _ reader: any StorageReader
  ) throws -> StoredZone {
    if caller.isInShared {
      // The owner's zone first: a job takes the owner's database before those of participants.
      guard let (zone, owner, home) = try ownersZone(id, caller, reader),
        let row = try reader.zone(database.key, named: ShareView.rowName(owner: id.owner, zone: id.name)),
        let zone = try sharedZone(row, zone, of: owner, home, caller, reader)
      else { throw CloudError(.zoneNotFound, "Zone '\(id.name)' does not exist") }
      return zone
    }
    guard CloudServer.owns(caller, id), let zone = try reader.zone(database.key, named: id.name), !zone.isDeleted else {
      throw CloudError(.zoneNotFound, "Zone '\(id.name)' does not exist")
    }
    return try withEpochs(zone, database, reader)
  }

  /// All zones of a database, oldest change first, deleted ones included.
  func zones(_ database: StoredDatabase, _ reader: any StorageReader) throws -> [StoredZone] {
    try reader.zones(database.key, after: -1, limit: .max).map { try withEpochs($0, database, reader) }
  }

  func withEpochs(_ zone: StoredZone, _ database: StoredDatabase, _ reader: any StorageReader) throws -> StoredZone {
    var zone = zone
    zone.epochs = try epochs(database, reader)
    return zone
  }

  func epochs(_ database: StoredDatabase, _ reader: any StorageReader) throws -> Epochs {
    if storage.isShared { return Epochs(try reader.epochs(database.key)) }
    if let known = memory.withLock({ $0.epochs[database.key] }) { return known }
    let epochs = Epochs(try reader.epochs(database.key))
    memory.withLock { $0.epochs[database.key] = epochs }
    return epochs
  }

  /// Whether the zone's owner is the caller, by name or by one of the words for it.
  public static func owns(_ caller: Caller, _ id: ZoneID) -> Bool {
    id.owner == caller.zoneOwner || meansCaller(id.owner) || id.owner.isEmpty
  }

  /// Whether a user's name is one of the words for whoever asks (web-services section 6).
  static func meansCaller(_ name: String) -> Bool { name == ZoneID.currentOwner || name == "__defaultOwner__" }

  /// The lesser of what the client asked for, what the server gives and what `page=N` raised that to.
  func pageLimit(_ requested: Int?, _ options: RequestOptions) -> Int {
    let most = requestLimit(options)
    guard let requested, requested > 0 else { return most }
    return min(requested, most)
  }

  /// Operations and look-ups per request.
  func requestLimit(_ options: RequestOptions) -> Int {
    guard let page = options.page, page > 0 else { return settings.entriesPerRequest }
    return min(page, settings.announcedMaximum)
  }

  // MARK: Records as answers

  /// A stored row as the client sees it.
  func record(
    _ row: StoredRecord, in id: ZoneID, of zone: StoredZone, fields: Fields, _ caller: Caller,
    _ reader: any StorageReader
  ) throws -> Record {
    var fields = fields
    if row.hasAssets { try addAddresses(to: &fields, caller, reader) }
    var record = Record(
      id: RecordID(name: row.name, zone: id), type: row.type, changeTag: zone.epochs.tag(row.position), fields: fields,
      created: RecordStamp(timestamp: row.created, userRecordName: try userName(row.createdBy, caller, reader)),
      modified: RecordStamp(timestamp: row.modified, userRecordName: try userName(row.modifiedBy, caller, reader)),
      parent: row.parent)
    if row.isShared { record.sharing = try sharing(of: row, in: id, of: zone, caller, reader) }
    return record
  }

  func record(
    _ row: StoredRecord, in id: ZoneID, of zone: StoredZone, keys: [String]?, _ types: YieldedTypes,
    _ caller: Caller, _ reader: any StorageReader
  ) throws -> Record {
    var fields = try FieldBlob.decode(row.fields, keys: keys)
    if !types.isEmpty { fields.adapt(types[row.type]) }
    return try record(row, in: id, of: zone, fields: fields, caller, reader)
  }

  /// The record name of a user or of a server-to-server key: in a private database nearly always the caller.
  func userName(_ key: Int64, _ caller: Caller, _ reader: any StorageReader) throws -> String? {
    if key == caller.key { return caller.recordName }
    if let name = memory.withLock({ $0.userNames[key] }) { return name }
    let found =
      try key < 0
      ? reader.appCredentials().first { $0.kind == .serverKey && $0.number == -key }?.caller.recordName
      : reader.user(key: key)?.recordName
    guard let found else { return nil }
    memory.withLock { $0.userNames[key] = found }
    return found
  }
}
