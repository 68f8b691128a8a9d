import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation
import Testing

/// Requirements of engine section 14 that are about rows of tables, on files and the whole engine.
@Suite struct RowTests {
  final class File {
    let path: String
    let program: Connection
    let cloud: FaultInjector
    let clock: ManualClock
    let randomness: SeededRandomness
    private var engine: DatabaseSync?
    private let folder: URL
    static let place = SyncPlace(
      server: "http://world", container: "iCloud.cairn", environment: "production", zone: "cairn", user: "")

    init(_ server: InMemoryServer, _ clock: ManualClock, seed: UInt64, _ schema: String) throws {
      self.clock = clock
      randomness = SeededRandomness(seed: seed)
      cloud = FaultInjector(try server.cloud(user: "anna"))
      folder = FileManager.default.temporaryDirectory.appendingPathComponent("cairn-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      path = folder.appendingPathComponent("a.db").path
      program = try Connection(path: path, mode: .create)
      try program.execute("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON")
      try program.execute(schema)
    }

    deinit {
      engine = nil
      // A leftover of a test harms nobody.
      try? FileManager.default.removeItem(at: folder)
    }

    func prepare(_ mode: Preparation.Mode) throws {
      let options = Preparation.Options(
        path: path, selection: SelectionOptions(tables: [], exclude: [], naturalKeys: []), mode: mode,
        place: File.place)
      _ = try Preparation(options, cloud: cloud, time: clock, randomness: randomness).run()
    }

    func restart() { engine = nil }

    @discardableResult
    func sync() throws -> SyncReport {
      clock.advance(seconds: 1)
      if let engine { return try engine.sync() }
      let opened = try DatabaseSync(path: path, time: clock, randomness: randomness) { [cloud] _ in cloud }
      engine = opened
      return try opened.sync()
    }

    func sql(_ text: String) throws {
      clock.advance(seconds: 1)
      try program.execute(text)
    }

    func picture(_ query: String) throws -> [String] {
      try program.rows(query).map { $0.map { "\($0)" }.joined(separator: "|") }.sorted()
    }

    var sent: [RecordOperation] {
      cloud.sentOperations.filter { !$0.record.id.name.hasPrefix("cairn_table:") }
    }
  }

  static let schema = """
    CREATE TABLE list(id TEXT PRIMARY KEY, title TEXT);
    CREATE TABLE item(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id) ON DELETE CASCADE, text TEXT, weight REAL);
    """

  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  func pair(_ schema: String = Self.schema, other: String? = nil) throws -> (File, File) {
    let a = try File(server, clock, seed: 1, schema)
    let b = try File(server, clock, seed: 2, other ?? schema)
    try a.prepare(.create)
    try a.sync()
    try b.prepare(.join)
    try b.sync()
    return (a, b)
  }

  func settle(_ files: File...) throws {
    for _ in 0..<3 { for file in files { try file.sync() } }
  }

  static let items = "SELECT id, list, text, weight FROM item"

  @Test func e15ARolledBackTransactionSendsNothingAndACommittedOneWholeRows() throws {
    let (a, b) = try pair()
    a.cloud.clearLog()
    try a.sql("BEGIN; INSERT INTO list VALUES('l', 'phantom'); ROLLBACK")
    try a.sync()
    #expect(a.sent.isEmpty)
    // Synced before the commit: what is not committed is not seen. The file may be locked; then the sync is tried
    // again.
    try a.program.execute("BEGIN; INSERT INTO item(id, text) VALUES('i', 'half')")
    do { try a.sync() } catch is SQLiteError {}
    #expect(a.sent.isEmpty)
    try a.program.execute("UPDATE item SET text = 'whole', weight = 2 WHERE id = 'i'; COMMIT")
    try settle(a, b)
    #expect(a.sent.compactMap { $0.record.fields["text"] } == [.string("whole")])
    #expect(try b.picture(Self.items) == a.picture(Self.items))
  }

  @Test func e17ARowOfAnotherConnectionIsSent() throws {
    let (a, b) = try pair()
    let other = try Connection(path: a.path, mode: .readWrite)
    try other.execute("INSERT INTO list VALUES('l', 'from elsewhere')")
    #expect(try a.sync().counts.saved == 1)
    try b.sync()
    #expect(try b.picture("SELECT * FROM list") == a.picture("SELECT * FROM list"))
  }

  @Test func e26ExistingRowsGoInBatchesWithoutTriggersAndKeepTheirTimes() throws {
    let count = 2_000
    let a = try File(
      server, clock, seed: 1,
      Self.schema + """
        CREATE TABLE audit(n INTEGER PRIMARY KEY);
        CREATE TRIGGER seen AFTER UPDATE ON item BEGIN INSERT INTO audit VALUES(NULL); END;
        CREATE TRIGGER made AFTER INSERT ON item BEGIN INSERT INTO audit VALUES(NULL); END;
        """)
    try a.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO item(id, text) SELECT 'i' || i, 'x' FROM n
      """)
    let before = try a.program.scalar("SELECT count(*) FROM audit")
    let rows = try a.picture(Self.items)
    let options = Preparation.Options(
      path: a.path, selection: SelectionOptions(tables: ["list", "item"], exclude: [], naturalKeys: []),
      mode: .create, place: File.place)
    _ = try Preparation(options, cloud: a.cloud, time: clock, randomness: a.randomness).run()
    #expect(try a.sync().counts.saved == count)
    #expect(try a.program.scalar("SELECT count(*) FROM audit") == before)
    #expect(try a.picture(Self.items) == rows)
    for case .modify(_, let operations, _) in a.cloud.log.map(\.call) { #expect(operations.count <= 200) }
    // Once they are there nothing is sent again: no clock has moved.
    a.cloud.clearLog()
    try a.sync()
    #expect(a.sent.isEmpty)
  }

  /// A batch that tables fill to the cap travels in one request: none is a remainder of the one before.
  @Test func e9LargeRowsFillRequestsEvenly() throws {
    let (a, _) = try pair()
    try a.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO item(id, text) SELECT 'i' || i, hex(zeroblob(10000)) FROM n
      """)
    a.cloud.clearLog()
    #expect(try a.sync().counts.saved == 400)
    var sizes: [Int] = []
    for case .modify(_, let operations, _) in a.cloud.log.map(\.call) { sizes.append(operations.count) }
    #expect(sizes.count < 9 && sizes.dropLast().allSatisfy { $0 > 50 }, "\(sizes)")
  }

  @Test func e28DeletesThatARemoteDeleteCascadesToReachTheServer() throws {
    let (a, b) = try pair()
    try a.sql("INSERT INTO list VALUES('l', 'x'); INSERT INTO item(id, list) VALUES('i', 'l'), ('j', 'l')")
    try settle(a, b)
    // The deleting program does not enforce foreign keys: only the list's delete is sent.
    try a.sql("PRAGMA foreign_keys = OFF; DELETE FROM list; PRAGMA foreign_keys = ON")
    a.cloud.clearLog()
    try a.sync()
    #expect(a.sent.count == 1)
    try b.sync()
    #expect(try b.picture(Self.items).isEmpty)
    try settle(b, a)
    let names = try server.cloud(user: "anna").allRecords(in: ZoneID(name: "cairn")).map(\.id.name)
    #expect(names.filter { !$0.hasPrefix("cairn_table:") }.isEmpty)
    #expect(try a.picture(Self.items).isEmpty)
  }

  @Test(arguments: [false, true], ["INSERT", "REPLACE"])
  func e32DeleteThenReinsertIsAliveEverywhere(isSent: Bool, verb: String) throws {
    let (a, b) = try pair()
    try a.sql("INSERT INTO list VALUES('l', 'old')")
    try settle(a, b)
    if verb == "INSERT" { try a.sql("DELETE FROM list WHERE id = 'l'") }
    if isSent { try a.sync() }
    try a.sql("\(verb) INTO list VALUES('l', 'new')")
    try settle(a, b)
    #expect(try a.picture("SELECT * FROM list") == [#"text("l")|text("new")"#])
    #expect(try b.picture("SELECT * FROM list") == a.picture("SELECT * FROM list"))
  }

  @Test func e39AnUnknownTypeWaitsForItsTableAndAnOldDeviceKeepsNewFields() throws {
    let old = "CREATE TABLE list(id TEXT PRIMARY KEY, title TEXT);"
    let new = "CREATE TABLE list(id TEXT PRIMARY KEY, title TEXT, color TEXT); CREATE TABLE tag(id TEXT PRIMARY KEY);"
    let (b, a) = try pair(old, other: new)
    try a.sql("INSERT INTO list VALUES('l', 'x', 'red'); INSERT INTO tag VALUES('t')")
    try settle(a, b)
    try b.sql("UPDATE list SET title = 'edited by the old one'")
    try settle(b, a)
    #expect(try a.picture("SELECT title, color FROM list") == [#"text("edited by the old one")|text("red")"#])
    // The upgrade: what was kept is applied.
    b.restart()
    try b.sql("ALTER TABLE list ADD COLUMN color TEXT; CREATE TABLE tag(id TEXT PRIMARY KEY)")
    try settle(b, a)
    #expect(try b.picture("SELECT * FROM tag") == a.picture("SELECT * FROM tag"))
    #expect(try b.picture("SELECT title, color FROM list") == a.picture("SELECT title, color FROM list"))
  }

  @Test func e45ValuesThatDifferOnlyInEncodingAreNoEdit() throws {
    let (a, b) = try pair()
    try a.sql("INSERT INTO item(id, text, weight) VALUES('i', 'x', 0.1 + 0.2), ('j', 'y', 3), ('k', 'z', 1e300)")
    try settle(a, b)
    a.cloud.clearLog()
    b.cloud.clearLog()
    // The same values, written as other texts: nothing that another device could see has changed.
    try b.sql("UPDATE item SET weight = 3.0 WHERE id = 'j'; UPDATE item SET weight = weight, text = text")
    try settle(b, a)
    #expect(b.sent.isEmpty)
    #expect(a.sent.isEmpty)
    #expect(try a.picture(Self.items) == b.picture(Self.items))
  }
}
