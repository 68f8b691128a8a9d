import CairnEngine
import CairnRecords
import CairnSQLite

/// A database file that is prepared for sync, opened.
///
/// Opening brings capture up to date with the schema: tables and columns that were added, renamed or dropped since are
/// taken note of (tables T26–T30). Confined to one thread.
public final class SyncedDatabase {
  public let path: String
  public let category: TablesCategory
  public let store: any EngineStore
  /// The file, or its folder, can't be written to: only reports work.
  public let isReadOnly: Bool
  let file: FileContext

  /// What a file is opened for.
  public enum Purpose: Sendable {
    /// Everything.
    case work
    /// Reports: a file that can't be written to is opened too, as it is. Changes that programs made since are counted
    /// there, and not taken up; nor is the schema looked at.
    case reports
  }

  /// Opens a prepared file.
  ///
  /// - Throws: ``TablesError`` for a file that is missing, not a database, read-only, not prepared, or prepared by a
  ///   newer Cairn.
  public init(
    path: String, for purpose: Purpose = .work, time: any TimeSource, randomness: any Randomness
  ) throws(TablesError) {
    self.path = path
    let connection = try DatabaseOpener.open(path, for: purpose)
    isReadOnly = connection.isReadOnly
    do {
      guard try MetadataSchema.isInstalled(in: connection) else { throw TablesError.notPrepared(path) }
      try MetadataSchema.checkVersion(of: connection)
      file = try SchemaUpkeep.open(connection, time: time, randomness: randomness)
      file.openedSchemaVersion = try file.schemaVersion()
    } catch let error as TablesError {
      throw error
    } catch let error as SQLiteError {
      throw DatabaseOpener.explain(error, path)
    } catch {
      throw .damagedMetadata("\(error)")
    }
    category = TablesCategory(file)
    store = FileEngineStore(file)
  }

  public var zone: ZoneID { file.zone }

  /// Looks at what must be known before a sync.
  ///
  /// - Throws: ``TablesError/unfinished(_:)`` for a file whose preparation was cut off.
  public func beginSyncing() throws {
    if try file.settings.get(.takeUp) != nil { throw TablesError.unfinished(path) }
    try MissingRows(file).countAgain()
  }

  /// Whether rows may have changed while capture was off: then the next fetch must be of the whole zone (tables T29).
  public var hasGaps: Bool { !file.gaps.isEmpty }

  /// Notes that every record of the zone has been compared with its row.
  public func endGaps() throws { try GapComparison(file).end() }

  /// Where the file syncs to.
  public func place() throws(SQLiteError) -> SyncPlace {
    let settings = file.settings
    return SyncPlace(
      server: try settings.get(.server) ?? "", container: try settings.get(.container) ?? SyncPlace.defaultContainer,
      environment: try settings.get(.environment) ?? SyncPlace.defaultEnvironment, zone: file.zone.name,
      user: try settings.get(.user) ?? "")
  }

  /// Called before each commit of the engine; when it throws, nothing of the transaction is kept. For the simulation.
  package func setWillCommit(_ hook: (() throws -> Void)?) { file.connection.willCommit = hook }

  /// A number that changes when another program commits to the file.
  public func dataVersion() throws(SQLiteError) -> Int64 { try file.connection.dataVersion() }

  /// Notes that a sync did everything that it could (tables section 7, `lastSync`).
  ///
  /// - Parameter isPoll: nobody asked for the sync and it found nothing to do: noted once a minute, so that watching a
  ///   quiet file does not write to it.
  public func noteGoodSync(at now: Int64, isPoll: Bool = false) throws {
    if isPoll, let last = try file.settings.get(.lastSync).flatMap({ Int64($0) }), (0..<60_000).contains(now - last) {
      return
    }
    try file.transaction { try file.settings.set(.lastSync, String(now)) }
  }
}

/// The place on a server that a file syncs with.
public struct SyncPlace: Hashable, Sendable {
  public static let defaultContainer = "iCloud.cairn"
  public static let defaultEnvironment = "production"
  public static let defaultZone = "cairn"

  public var server: String
  public var container: String
  public var environment: String
  public var zone: String
  /// The user record name: the identity that the file's state belongs to.
  public var user: String

  public init(server: String, container: String, environment: String, zone: String, user: String) {
    self.server = server
    self.container = container
    self.environment = environment
    self.zone = zone
    self.user = user
  }
}
