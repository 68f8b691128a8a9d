import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import Testing

@Suite("Devices with different schemas (tables section 6, 8.11)")
struct DifferentSchemasTests {
  let world: World

  init() throws { world = try World() }

  private static let old = "CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title)"
  private static let new = "CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title, c DEFAULT 7)"

  /// B has the column `c`, A does not yet; both have the rows l1, l2, l3, which A wrote.
  private func oldAndNew() throws -> (a: Device, b: Device) {
    let a = try world.device("A", schema: Self.old)
    let b = try world.device("B", schema: Self.new)
    try a.prepare(.create)
    try a.sql("INSERT INTO lists VALUES ('l1', 'one'), ('l2', 'two'), ('l3', 'three')", at: 1)
    try a.sync()
    try b.prepare(.join)
    try b.sync()
    return (a, b)
  }

  private func database(_ device: Device) throws -> SyncedDatabase {
    try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness)
  }

  /// Quiet, and nothing waits; the devices' tables differ.
  private func expectQuiet() throws {
    try world.settle()
    for device in world.devices {
      let status = try device.status()
      #expect(status.pending == 0, "\(device.name): \(status.reasons)")
      #expect(try device.parked().isEmpty, "\(device.name)")
    }
  }

  @Test("TS160 V1 V2 values of a future column are kept, survive edits here, and fill the column when it comes")
  func futureColumn() throws {
    let (a, b) = try oldAndNew()
    try b.sql("UPDATE lists SET c = id", at: 10)
    try b.sync()
    try a.sync()
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 20)
    try a.sync()
    a.restart()
    _ = a.sentSinceLastAsked()
    try a.sql("ALTER TABLE lists ADD COLUMN c DEFAULT 7")
    #expect(try a.status().pending == 0)
    #expect(try a.picture("SELECT * FROM lists") == ["l1|eins|l1", "l2|two|l2", "l3|three|l3"])
    try world.expectConverged()
    #expect(a.sentSinceLastAsked().isEmpty)
  }

  @Test("TS161 V2 records of an older schema leave the default, nullable or not")
  func defaults() throws {
    let (a, b) = try oldAndNew()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|one|7", "l2|two|7", "l3|three|7"])
    try b.sql("ALTER TABLE lists ADD COLUMN d NOT NULL DEFAULT 'd'")
    try a.sql("INSERT INTO lists VALUES ('l4', 'four'); UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 10)
    try a.sync()
    try b.sync()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|eins|7|d", "l2|two|7|d", "l3|three|7|d", "l4|four|7|d"])
    #expect(try b.status().pending == 0)
  }

  @Test("TS162 V2 an explicit NULL is NULL, not the default")
  func explicitNull() throws {
    let (a, b) = try oldAndNew()
    try b.sql("UPDATE lists SET c = NULL WHERE id = 'l1'", at: 10)
    try b.sync()
    try a.sync()
    a.restart()
    try a.sql("ALTER TABLE lists ADD COLUMN c DEFAULT 7")
    #expect(try a.status().pending == 0)
    #expect(try a.picture("SELECT * FROM lists") == ["l1|one|∅", "l2|two|7", "l3|three|7"])
    try world.expectConverged()
  }

  @Test("V2 an edit of the new column that is made before the first open wins over the kept value only by its clock")
  func editBeforeOpen() throws {
    let (a, b) = try oldAndNew()
    try b.sql("UPDATE lists SET c = 'kept' WHERE id <> 'l3'", at: 10)
    try b.sync()
    try a.sync()
    a.restart()
    try a.sql("ALTER TABLE lists ADD COLUMN c; UPDATE lists SET c = 'filled'")
    _ = try a.status()
    try a.sql("UPDATE lists SET c = 'edited' WHERE id = 'l2'", at: 20)
    try world.expectConverged()
    #expect(try b.picture("SELECT id, c FROM lists") == ["l1|kept", "l2|edited", "l3|filled"])
  }

  @Test("TS164 M7 V4 records of an unknown table wait, follow deletions, and appear with the table")
  func unknownTable() throws {
    let (a, b) = try oldAndNew()
    let table = "CREATE TABLE more(id INTEGER PRIMARY KEY, v); CREATE TABLE sub(k TEXT PRIMARY KEY, m REFERENCES more)"
    try b.sql(table)
    try b.sql("INSERT INTO more VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO sub VALUES ('s1', 1), ('s2', 3)")
    b.restart()
    try b.sync()
    try a.sync()
    #expect(try a.parked().map(\.reason) == Array(repeating: .unknownTable, count: 5))
    try b.sql("DELETE FROM more WHERE id = 2")
    try b.sync()
    try a.sync()
    #expect(try a.parked().count == 4)
    a.restart()
    try a.sql(table)
    try expectQuiet()
    #expect(try a.picture("SELECT * FROM more") == ["1|a", "3|c"])
    #expect(try a.picture("SELECT * FROM sub") == ["s1|1", "s2|3"])
  }

  @Test("V4 L4 L5 rows that a schema upgrade seeds meet the parked ones, and never beat a user's edit")
  func seededRows() throws {
    let (a, b) = try oldAndNew()
    let seed = """
      CREATE TABLE kinds(name TEXT PRIMARY KEY, color); INSERT INTO kinds VALUES ('x', 'grey'), ('y', 'grey');
      CREATE TABLE units(id INTEGER PRIMARY KEY, name, base REFERENCES units);
      INSERT INTO units VALUES (1, 'm', NULL), (2, 'cm', 1), (3, 'mm', 2);
      """
    try b.sql(seed)
    b.restart()
    try b.sync()
    try b.sql("UPDATE kinds SET color = 'red' WHERE name = 'x'; UPDATE units SET name = 'metre' WHERE id = 1", at: 10)
    try b.sync()
    try a.sync()
    world.clock.advance(seconds: 3_600)
    a.restart()
    try a.sql(seed + "INSERT INTO kinds VALUES ('z', 'own'); INSERT INTO units VALUES (9, 'ell', NULL)")
    try expectQuiet()
    #expect(try a.picture("SELECT * FROM kinds") == ["x|red", "y|grey", "z|own"])
    // 'm' was edited elsewhere, so its row here is another one; what refers to it can't be told to be the same either.
    #expect(try b.scalar("SELECT count(*) FROM units WHERE name = 'ell'") == .integer(1))
    #expect(try b.scalar("SELECT count(*) FROM units WHERE name = 'metre'") == .integer(1))
  }

  @Test("V4 seeded rows with equal content are the same rows, whatever refers to them")
  func seededMappedRows() throws {
    let (a, b) = try oldAndNew()
    let seed = """
      CREATE TABLE units(id INTEGER PRIMARY KEY, name, base REFERENCES units);
      INSERT INTO units VALUES (1, 'm', NULL), (2, 'cm', 1), (3, 'mm', 2);
      """
    try b.sql(seed)
    b.restart()
    try b.sync()
    try a.sync()
    a.restart()
    try a.sql(seed)
    _ = a.sentSinceLastAsked()
    try expectQuiet()
    #expect(a.sentSinceLastAsked().isEmpty)
    #expect(try a.picture("SELECT * FROM units") == ["1|m|∅", "2|cm|1", "3|mm|2"])
  }

  @Test("TS167 V5 a renamed column passes between old, new and fresh devices")
  func renamedColumn() throws {
    let (a, b) = try oldAndNew()
    a.restart()
    world.clock.advance(seconds: 60)
    try a.sql("ALTER TABLE lists RENAME COLUMN title TO name")
    try a.sync()
    let c = try world.device("C", schema: "")
    try c.prepare(.join)
    try world.settle()
    try a.sql("UPDATE lists SET name = 'A' WHERE id = 'l1'", at: 10)
    try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l2'", at: 10)
    try c.sql("UPDATE lists SET name = 'C' WHERE id = 'l3'", at: 10)
    try world.settle()
    for (device, column) in [(a, "name"), (b, "title"), (c, "name")] {
      #expect(try device.picture("SELECT id, \(column) FROM lists") == ["l1|A", "l2|B", "l3|C"])
      #expect(try device.status().pending == 0)
    }
  }

  @Test("TS168 V8 a record of a newer format is parked and not overwritten")
  func newerFormat() throws {
    let (a, _) = try oldAndNew()
    let cloud = try world.server.cloud(user: world.user)
    var record = try #require(world.serverRecords()["lists:l1"])
    record.fields.set("cairn_format", .int64(2))
    record.fields.set("title", .string("of the future"))
    _ = try cloud.modify(in: world.zone, [RecordOperation(.update, record)], atomic: false)
    try a.sync()
    #expect(try a.parked().map(\.reason) == [.newerFormat])
    #expect(try a.picture("SELECT title FROM lists WHERE id = 'l1'") == ["one"])
    try a.sync()
    #expect(try world.serverRecords()["lists:l1"]?.fields["title"] == .string("of the future"))
  }

  @Test("TS169 V3 a column that is gone here: edits of it elsewhere pass by unharmed")
  func columnGone() throws {
    let (a, b) = try oldAndNew()
    try world.settle()
    a.restart()
    try a.sql("ALTER TABLE lists ADD COLUMN c DEFAULT 7")
    try a.sync()
    a.restart()
    try database(a).alter("ALTER TABLE lists DROP COLUMN c")
    try b.sql("UPDATE lists SET c = 'B' WHERE id = 'l1'", at: 10)
    try b.sync()
    try a.sync()
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 20)
    try a.sync()
    try b.sync()
    #expect(try b.picture("SELECT * FROM lists WHERE id = 'l1'") == ["l1|A|B"])
    #expect(try world.serverRecords()["lists:l1"]?.fields["c"] == .string("B"))
    #expect(try a.status().pending == 0 && b.status().pending == 0)
  }

  @Test("TS166 M14 foreign records of a synced type are applied, those of another left alone")
  func foreignRecords() throws {
    let (a, _) = try oldAndNew()
    let cloud = try world.server.cloud(user: world.user)
    let records = [
      Record(
        id: RecordID(name: "lists:f1", zone: world.zone), type: "lists",
        fields: ["id": .string("f1"), "title": .string("foreign")]),
      Record(id: RecordID(name: "whatever", zone: world.zone), type: "Other", fields: ["x": .int64(1)]),
      Record(id: RecordID(name: "plain", zone: world.zone), type: "plain", fields: ["x": .int64(1)]),
    ]
    let outcomes = try cloud.modify(in: world.zone, records.map { RecordOperation(.create, $0) }, atomic: false)
    for case .failed(_, let error) in outcomes { Issue.record("\(error)") }
    try a.sync()
    #expect(try a.picture("SELECT * FROM lists WHERE id = 'f1'") == ["f1|foreign"])
    #expect(try a.parked().isEmpty)
    #expect(try a.status().pending == 0)
  }
}
