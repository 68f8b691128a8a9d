import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import Foundation
import Testing

@Suite("create, join, merge (tables L1–L6, 8.12)")
struct JoinMergeTests {
  let world: World

  init() throws { world = try World() }

  private static let base = """
    INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue');
    INSERT INTO items VALUES ('i1', 'l1', 'milk', 0, 1); INSERT INTO notes VALUES (1, 'n', 'b'), (2, 'm', NULL);
    INSERT INTO files VALUES (1, 2, 'f'); INSERT INTO labels VALUES (1, 'x'); INSERT INTO marks VALUES (1, 1);
    INSERT INTO employees VALUES (1, 'boss', 1), (2, 'worker', 1), (3, 'apprentice', 2);
    """

  private func message(_ body: () throws -> Void) -> String {
    do {
      try body()
      return ""
    } catch {
      return "\(error)"
    }
  }

  private func isPrepared(_ device: Device) throws -> Bool {
    try device.scalar("SELECT 1 FROM sqlite_master WHERE name LIKE 'cairn%'") != nil
  }

  @Test("TS176 L1 L6 create on a filled zone, no mode with rows on both sides: refused, with counts and modes")
  func refusedModes() throws {
    let a = try world.device("A")
    try a.sql(Self.base)
    try a.prepare(nil)
    let early = try world.device("E")
    try early.sql("INSERT INTO lists VALUES ('x', 'x', 'x')")
    // The schema is there, the rows are still on their way.
    #expect(message { try early.prepare(.create) }.contains("--mode join"))
    try a.sync()
    let b = try world.device("B")
    try b.sql("INSERT INTO lists VALUES ('l9', 'nine', NULL)")
    #expect(message { try b.prepare(.create) }.contains("--mode merge"))
    let words = message { try b.prepare(nil) }
    for part in ["1 row", "11 records", "join", "merge", "create"] { #expect(words.contains(part), "\(words)") }
    #expect(try !isPrepared(b) && !isPrepared(early))
    #expect(try b.picture("SELECT id FROM lists") == ["l9"])
  }

  @Test("L6 without a mode: create where the zone is empty, join where the tables are; a missing file is refused")
  func noMode() throws {
    let a = try world.device("A")
    try a.sql(Self.base)
    #expect(try a.prepare(nil).mode == .create)
    try a.sync()
    let b = try world.device("B")
    #expect(try b.prepare(nil).mode == .join)
    try world.expectConverged()
    let missing = Preparation.Options(
      path: world.folder.appendingPathComponent("none.db").path, mode: nil, place: world.place)
    #expect(throws: TablesError.missingFile(missing.path)) {
      try Preparation(missing, cloud: a.cloud, time: a.time, randomness: a.randomness).run()
    }
  }

  @Test("TS177 L3 join makes a missing file right after A's init: tables and indexes as on A, rows later")
  func joinMissingFile() throws {
    let schema =
      Schema.scenarios + "CREATE INDEX by_title ON lists(title); CREATE UNIQUE INDEX u ON items(title) WHERE done;"
    let a = try world.device("A", schema: schema)
    try a.sql(Self.base)
    try a.prepare(.create)
    let path = world.folder.appendingPathComponent("fresh.db").path
    let options = Preparation.Options(path: path, mode: .join, place: world.place)
    _ = try Preparation(options, cloud: a.cloud, time: a.time, randomness: a.randomness).run()
    let objects =
      "SELECT type || ' ' || name || ' ' || sql FROM sqlite_master WHERE name NOT LIKE 'cairn%' AND sql IS NOT NULL"
    let fresh = try Connection(path: path)
    #expect(try fresh.rows(objects).map { Device.text($0[0]) }.sorted() == a.picture(objects))
    #expect(try fresh.scalar("SELECT count(*) FROM lists") == .integer(0))
    try a.sync()
    let sync = try DatabaseSync(path: path, time: a.time, randomness: a.randomness) { _ in a.cloud }
    #expect(try sync.sync().quiet)
    #expect(
      try fresh.rows("SELECT * FROM lists ORDER BY id").map { $0.map(Device.text).joined(separator: "|") }
        == a.picture("SELECT * FROM lists"))
    #expect(try fresh.scalar("SELECT count(*) FROM employees") == .integer(3))
  }

  @Test(
    "TS177 L3 a hostile schema is refused, and nothing of it is run",
    arguments: [
      ["CREATE TABLE evil(id TEXT PRIMARY KEY) AS SELECT 1"], ["CREATE TABLE evil AS SELECT 1 AS id"],
      ["CREATE TABLE evil(id TEXT PRIMARY KEY)", "CREATE TRIGGER t AFTER INSERT ON evil BEGIN SELECT 1; END"],
      ["CREATE TABLE evil(id TEXT PRIMARY KEY); DROP TABLE evil"], ["CREATE VIEW evil AS SELECT 1"],
      ["CREATE VIRTUAL TABLE evil USING fts5(x)"],
      ["CREATE TABLE evil(id TEXT PRIMARY KEY DEFAULT (load_extension('x')))"],
      ["ATTACH 'x' AS y"], ["CREATE TABLE evil(id TEXT PRIMARY KEY)", "CREATE INDEX i ON sqlite_master(name)"], [],
    ])
  func hostileSchema(statements: [String]) throws {
    let a = try world.device("A", schema: "CREATE TABLE evil(id TEXT PRIMARY KEY)")
    try a.prepare(.create)
    let cloud = try world.server.cloud(user: world.user)
    let name = "cairn_table:evil"
    var record = try #require(cloud.lookup(in: world.zone, names: [name]).first).get()
    let json = String(decoding: try JSONEncoder().encode(statements), as: UTF8.self)
    record.fields.set("statements", .string(json))
    for case .failed(_, let error) in try cloud.modify(
      in: world.zone, [RecordOperation(.update, record)], atomic: false)
    {
      Issue.record("\(error)")
    }
    let path = world.folder.appendingPathComponent("victim.db").path
    let options = Preparation.Options(path: path, mode: .join, place: world.place)
    #expect(throws: (any Error).self) {
      try Preparation(options, cloud: a.cloud, time: a.time, randomness: a.randomness).run()
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("L2 join with rows: a backup beside the file, then the zone's rows; no deletes are sent; unsynced rows stay")
  func joinWithRows() throws {
    let schema = Schema.scenarios + "CREATE TABLE own(id TEXT PRIMARY KEY, l REFERENCES lists ON DELETE CASCADE);"
    let a = try world.device("A")
    try a.sql(Self.base)
    try a.prepare(.create)
    try a.sync()
    let b = try world.device("B", schema: schema)
    try b.sql(
      """
      INSERT INTO lists VALUES ('l1', 'mine', 'mine'), ('l9', 'nine', NULL); INSERT INTO own VALUES ('o', 'l1');
      INSERT INTO employees VALUES (1, 'B', 1), (2, 'C', 1); INSERT INTO kept VALUES ('k', 'l9');
      """)
    let outcome = try b.prepare(.join, exclude: ["own"])
    let backup = try Connection(path: try #require(outcome.backup), mode: .readOnly)
    #expect(try backup.scalar("SELECT count(*) FROM lists") == .integer(2))
    #expect(try b.rows("SELECT * FROM lists").isEmpty && b.rows("SELECT * FROM employees").isEmpty)
    try b.sync()
    #expect(b.sentSinceLastAsked().isEmpty)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|one|red", "l2|two|blue"])
    #expect(try b.picture("SELECT * FROM own") == ["o|l1"])
  }

  @Test("TS178 L4 merge: what the server has set wins, what it never set is filled, the rest is uploaded")
  func mergeNatural() throws {
    let a = try world.device("A", schema: "CREATE TABLE lists(id TEXT PRIMARY KEY, title)")
    try a.sql("INSERT INTO lists VALUES ('l1', 'of A')")
    try a.prepare(.create)
    try a.sync()
    world.clock.advance(seconds: 100)
    let b = try world.device("B", schema: "CREATE TABLE lists(id TEXT PRIMARY KEY, title, color)")
    try b.sql("INSERT INTO lists VALUES ('l1', 'of B', 'red'), ('l2', 'local', 'blue')")
    #expect(try b.prepare(.merge).rows == 2)
    try world.settle()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|of A|red", "l2|local|blue"])
    #expect(try a.picture("SELECT * FROM lists") == ["l1|of A", "l2|local"])
    let fields = try #require(world.serverRecords()["lists:l2"]).fields
    #expect(fields["cairn_life"] == .int64(World.start + 100_000))
    #expect(try a.status().pending == 0 && b.status().pending == 0)
  }

  @Test("TS179 L5 merge, mapped: equal rows are the same, whatever their integers and whatever they refer to")
  func mergeMapped() throws {
    let a = try world.device("A")
    try a.sql(Self.base)
    try a.prepare(.create)
    try a.sync()
    let names = try Set(world.serverRecords().keys)
    let b = try world.device("B")
    try b.sql(
      """
      INSERT INTO notes VALUES (12, 'm', NULL), (11, 'n', 'b'), (10, 'own', NULL); INSERT INTO files VALUES (5, 12, 'f');
      INSERT INTO labels VALUES (4, 'x'); INSERT INTO marks VALUES (11, 4);
      INSERT INTO employees VALUES (7, 'boss', 7), (8, 'worker', 7), (9, 'apprentice', 8);
      """)
    try b.prepare(.merge)
    try world.expectConverged()
    #expect(try b.picture("SELECT id, title FROM notes") == ["10|own", "11|n", "12|m"])
    #expect(try b.picture("SELECT * FROM marks") == ["11|4"])
    let after = try Set(world.serverRecords().keys)
    // The boss refers to itself, so its content names its own record, which pairing can't know before.
    #expect(after.isSuperset(of: names))
    #expect(after.subtracting(names).filter { !$0.hasPrefix("employees:") }.count == 1)
  }

  @Test("TS179 L5 the same integer with other content: the command stops with a count, and changes nothing")
  func mergeAmbiguous() throws {
    let schema = "CREATE TABLE notes(id INTEGER PRIMARY KEY, title)"
    let a = try world.device("A", schema: schema)
    try a.sql("INSERT INTO notes VALUES (1, 'of A'), (2, 'both'), (3, 'three')")
    try a.prepare(.create)
    try a.sync()
    let b = try world.device("B", schema: schema)
    try b.sql("INSERT INTO notes VALUES (1, 'of B'), (2, 'both'), (3, 'drei')")
    let words = message { try b.prepare(.merge) }
    #expect(words.contains("2 in notes") && words.contains("--match-integers") && words.contains("--new-integers"))
    #expect(try !isPrepared(b))
    #expect(try b.picture("SELECT * FROM notes") == ["1|of B", "2|both", "3|drei"])

    let c = try world.device("C", schema: schema)
    try c.sql("INSERT INTO notes VALUES (1, 'of C'), (2, 'both')")
    c.newIntegers = ["notes"]
    try c.prepare(.merge)
    b.matchIntegers = ["notes"]
    try b.prepare(.merge)
    try world.expectConverged()
    #expect(try b.picture("SELECT title FROM notes") == ["both", "of A", "of C", "three"])
    #expect(try b.picture("SELECT * FROM notes WHERE id < 4") == ["1|of A", "2|both", "3|three"])
    #expect(try c.picture("SELECT * FROM notes WHERE id < 3") == ["1|of C", "2|both"])
  }
}
