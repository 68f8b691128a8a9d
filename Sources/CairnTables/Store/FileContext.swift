import CairnEngine
import CairnRecords
import CairnSQLite

/// What the parts of the tables category share: one open file with its catalog and stores, and the injected sources of
/// time and chance. Confined to the engine's thread.
final class FileContext {
  let connection: Connection
  let catalog: TableCatalog
  let records: RecordStore
  let inbox: Inbox
  let outcomes: OutcomeLog
  let settings: FileSettings
  let published: PublishedTables
  private(set) lazy var names = RecordNames(self)
  private(set) lazy var large = LargeStore(self)
  var rowStatements: [Int: RowStatements] = [:]
  var codecs: [Int: RecordBodyCodec] = [:]
  /// Stored names of the records that lost their integers in the fold that runs, by table: rows of `foreign_keys = OFF`
  /// may outlive the parents that name them.
  var endedNames: [Int: [Int64: Value]] = [:]
  /// What SQLite does with triggers on this connection.
  var triggersEnabled = true
  /// Tables whose rows may have changed unseen, with the time when that was found: fetched records are compared with
  /// the rows (tables T29).
  var gaps: [Int: FieldClock] = [:]
  /// The schema version that the catalog was made for.
  var openedSchemaVersion: Int64 = 0
  /// What `cairn_setting` said of the last renewal of capture when the catalog was made (``isOutdated()``).
  private var renewal: String?
  let zone: ZoneID
  let clock: any TimeSource
  let randomness: any Randomness

  init(
    connection: Connection, catalog: TableCatalog, zone: ZoneID, clock: any TimeSource, randomness: any Randomness
  ) {
    self.connection = connection
    self.catalog = catalog
    self.zone = zone
    self.clock = clock
    self.randomness = randomness
    records = RecordStore(connection, catalog)
    inbox = Inbox(connection, zone)
    outcomes = OutcomeLog(connection, clock)
    settings = FileSettings(connection)
    published = PublishedTables(settings)
  }

  /// SQLite's counter of schema changes.
  func schemaVersion() throws -> Int64 {
    try connection.scalar("PRAGMA schema_version")?.integer ?? 0
  }

  /// Writes that rolled the whole transaction back when they were tried: a trigger said RAISE(ROLLBACK). They are
  /// refused when the transaction is run again.
  private(set) var refusedWrites: Set<RowWrite> = []

  /// Runs `body` in one short write transaction; counts are flushed before it commits.
  ///
  /// `body` runs again from the beginning when a trigger of the user has rolled it back, each time without one more of
  /// the writes that did so: nothing of a fetched set is lost to such a trigger (DESIGN G6).
  ///
  /// - Parameter confirmsAttempts: whether `body` sees to what is noted of the batch that was taken last
  ///   (``AttemptedRange``).
  func transaction<Result>(confirmsAttempts: Bool = false, _ body: () throws -> Result) throws -> Result {
    func whole() throws -> Result {
      try transactionOnce {
        if !confirmsAttempts { try records.writeAttempts() }
        return try body()
      }
    }
    if connection.isInTransaction { return try whole() }
    refusedWrites.removeAll()
    while true {
      do {
        return try whole()
      } catch let undone as TransactionUndone where refusedWrites.insert(undone.write).inserted {
        continue
      } catch let error as SQLiteError where error.isDiskFailure {
        // Said in the end by a command that knows the failure only as a text: with its remedy, then.
        throw DatabaseOpener.explain(error, connection.path)
      }
    }
  }

  /// Whether another program has renewed capture since the catalog was made: its triggers may log entries that the
  /// catalog does not know, which must not be taken for those of tables that are synced no more.
  func isOutdated() throws -> Bool { try settings.get(.schemaVersion) != renewal }

  /// Notes which renewal the catalog knows.
  func setRenewal(_ value: String?) { renewal = value }

  /// Called between the transactions of long work: a writer that does not wait for the lock finds it free at last.
  func letOthersWrite() {
    if !connection.isInTransaction { clock.pause(milliseconds: 1) }
  }

  private func transactionOnce<Result>(_ body: () throws -> Result) throws -> Result {
    let (known, isWhole) = (renewal, !connection.isInTransaction)
    do {
      return try connection.transaction(.immediate) {
        if isWhole, try isOutdated() { throw TablesError.outdated(connection.path) }
        let result = try body()
        try records.flushCounts()
        return result
      }
    } catch {
      records.discardCounts()
      endedNames = [:]
      renewal = known
      throw error
    }
  }

  /// Runs `body` in a savepoint. If it throws, the counts of live records go back with the rows.
  func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    let mark = records.countsMark
    do {
      return try connection.savepoint(body)
    } catch {
      records.restoreCounts(mark)
      throw error
    }
  }

  /// A new record name of a mapped table.
  func newUUID(_ plan: TablePlan, _ key: Value) -> [UInt8] {
    records.prefixes.newUUID(plan.number, key.integer ?? -1, randomness)
  }
}

/// One write of a row, as ``FileContext/refusedWrites`` remembers it.
struct RowWrite: Hashable {
  var table: Int
  var key: Value
  var operation: LogLayout.Operation
}

/// A trigger of the user rolled the whole transaction back.
struct TransactionUndone: Error {
  var write: RowWrite
}
