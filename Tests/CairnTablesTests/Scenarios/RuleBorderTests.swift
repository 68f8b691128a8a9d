import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Testing

/// Outcomes at the edge of a rule: equal clocks, the same integer twice, the one commit that matters.
@Suite("Where rules begin and end (tables 2–4)")
struct RuleBorderTests {
  private func pair(_ base: String = "", schema: String = Schema.lists) throws -> (World, Device, Device) {
    let world = try World()
    let d = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, d[0], d[1])
  }

  private static let list = "INSERT INTO lists VALUES ('l1', 'base', 'red')"

  // MARK: Fold

  @Test("F3 T31 a row that was removed unseen and is inserted again is another row, whatever the clock shows")
  func removedUnseen() throws {
    let (world, a, b) = try pair(Self.list)
    let ours = "FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'lists' AND name LIKE 'cairn%'"
    let statements =
      try a.texts("SELECT 'DROP TRIGGER ' || name \(ours)") + ["DELETE FROM lists"] + a.texts("SELECT sql \(ours)")
    try a.sql((["BEGIN"] + statements + ["COMMIT"]).joined(separator: ";\n"))
    try a.sql("INSERT INTO lists VALUES ('l1', 'again', NULL)", at: -3_600)
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|again|∅"])
  }

  // MARK: Sending

  @Test("3.2 an unknown item of which the fetch tells nothing is sent as a create with all fields")
  func unknownItem() throws {
    let (world, a, b) = try pair(Self.list)
    try a.sql("UPDATE lists SET title = 'A'", at: 10)
    // Once: the server knows the record all the same.
    world.alterations.refuse { [alterations = world.alterations] _ in
      alterations.refuse(nil)
      return CloudError(.notFound, "no such record")
    }
    try a.sync()
    let sent = a.operations("lists:l1")
    #expect(sent.prefix(2).map(\.kind) == [.update, .create])
    #expect(sent.dropFirst().first?.record.fields["color"] == .string("red"))
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|A|red"])
  }

  @Test("3.2 F8 a refusal belongs to the refused revision: what was edited meanwhile is sent without being asked for")
  func refusedRevision() throws {
    let (world, a, b) = try pair(Self.list)
    world.alterations.refuse { $0.record.id.name == "lists:l1" ? CloudError(.badRequest, "no") : nil }
    try a.sql("UPDATE lists SET title = 'A'", at: 20)
    let hook = a.meanwhile(stops: true) { try $0.sql("UPDATE lists SET color = 'later'", at: 30) }
    try a.sync(.sendOnly)
    #expect(hook.happened)
    a.cloud.heal()
    world.alterations.refuse(nil)
    world.clock.advance(seconds: 7_200)
    _ = try a.open().sync(SyncRequest(isManual: false))
    #expect(try a.state("l1") == "Clean")
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["l1|A|later"])
  }

  @Test("U4 U6 a row is not sent while the row that it refers to waits")
  func waitingParent() throws {
    let (world, a, b) = try pair(Self.list)
    world.alterations.refuse { $0.record.id.name == "lists:n" ? CloudError(.badRequest, "no") : nil }
    try a.sql("INSERT INTO lists VALUES ('n', 1, 1)", at: 10)
    try a.sync()
    #expect(try a.state("n") == "New, rejected")
    _ = a.sentSinceLastAsked()
    try a.sql("INSERT INTO items(id, list_id) VALUES ('i', 'n'), ('j', 'l1')", at: 20)
    _ = try a.open().sync(SyncRequest(isManual: false))
    #expect(a.sentSinceLastAsked() == ["save items:j"])
    world.alterations.refuse(nil)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:n", "save items:i"])
    try world.expectQuiet()
    #expect(try b.picture("SELECT id FROM items") == ["i", "j"])
  }

  // MARK: Merge

  @Test("M2 a field at the cut belongs to the dead row, one above it to the living", arguments: [50, 51])
  func cut(_ edit: Int64) throws {
    let (world, a, b) = try pair(Self.list)
    a.restart()
    try a.sql("ALTER TABLE lists ADD COLUMN own DEFAULT 7")
    try a.sync()
    try a.sql("UPDATE lists SET own = 8", at: edit)
    try b.sql("DELETE FROM lists", at: 50)
    try b.sql("INSERT INTO lists VALUES ('l1', 'again', NULL)", at: 60)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT title, own FROM lists") == [edit == 50 ? "again|7" : "again|8"])
    try world.settle()
  }

  @Test("M2 M4 M5 of two revivals the later life wins, also where the other's edit does")
  func laterLife() throws {
    let (world, a, b) = try pair(Self.list)
    world.alterations.hideDeleteTimes()
    try a.sql("UPDATE lists SET title = 'A'", at: 10)
    try b.sql("UPDATE lists SET title = 'B'", at: 20)
    try world.foreignDelete("lists:l1", at: 5)
    world.clock.advance(seconds: 100)
    try b.sync(.fetchOnly)
    world.clock.advance(seconds: 100)
    try a.sync(.fetchOnly)
    try b.sync()
    try world.expectQuiet()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|B|red"])
    #expect(try world.milliseconds("lists:l1")["life"] == 200_000)
  }

  @Test("M5 a row never sent that a deletion removes is remembered as gone: an older copy does not bring it back")
  func remembered() throws {
    let (world, a, b) = try pair()
    try a.sql("INSERT INTO lists VALUES ('n', 'A', NULL)", at: 10)
    try b.sql("INSERT INTO lists VALUES ('n', 'B', NULL)", at: 20)
    try b.sync()
    try b.sql("DELETE FROM lists", at: 40)
    try b.sync()
    try a.sync(.fetchOnly)
    #expect(try a.state("n") == "Gone")
    let clock = World.start + 30_000
    let fields: Fields = [
      "id": .string("n"), "title": .string("old"), "cairn_life": .int64(clock), "cairn_format": .int64(1),
      "cairn_clocks": .string("{\"\(clock)\":[\"color\",\"id\",\"title\"]}"),
    ]
    let record = Record(id: RecordID(name: "lists:n", zone: world.zone), type: "lists", fields: fields)
    _ = try world.foreign().modify(in: world.zone, [RecordOperation(.create, record)], atomic: false)
    try a.sync()
    try world.expectQuiet()
    #expect(try a.rows("SELECT * FROM lists").isEmpty && world.serverNames().isEmpty)
  }

  @Test("M8 a parked child is applied by the commit that brings its parent")
  func parentWithChild() throws {
    let (world, a, b) = try pair()
    try b.sql("INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO items(id, list_id) VALUES ('i', 'l1')", at: 10)
    try b.sync()
    world.alterations.set { page in
      var page = page
      page.records.removeAll { $0.id.name == "lists:l1" }
      return page
    }
    try a.sync()
    #expect(try a.parked().map(\.record) == ["items:i"])
    world.alterations.set(nil)
    try b.sql("UPDATE lists SET title = 'there'", at: 20)
    try b.sync()
    a.restart()
    for border in 1...50 {
      let (commits, _) = CommitBorders.dying(at: border, in: world.folder) { () throws in try a.sync() }
      a.restart()
      #expect(try a.scalar("SELECT count(*) FROM items") == a.scalar("SELECT count(*) FROM lists"), "at \(border)")
      if commits < border {
        #expect(border > 1)
        break
      }
    }
    #expect(try a.picture("SELECT id FROM items") == ["i"])
    try world.expectQuiet()
  }

  @Test("M9 a parked version that is applied later does not bring back the tag that it came with")
  func retriedVersion() throws {
    let (world, a, b) = try pair(Self.list)
    try b.sql("CREATE TRIGGER no BEFORE UPDATE ON lists WHEN NEW.title = 'A' BEGIN SELECT RAISE(ABORT, 'no'); END")
    try a.sql("UPDATE lists SET title = 'A'", at: 10)
    try a.sync()
    try b.sync()
    #expect(try b.parked().map(\.reason) == [.trigger])
    // The save is confirmed, and its own version does not come back before the trigger is gone.
    b.cloud.fail(.offline, times: .max) { if case .zoneChanges = $0 { true } else { false } }
    try b.sql("UPDATE lists SET color = 'blue'", at: 20)
    #expect(try b.sync(.sendOnly).counts.saved == 1)
    try b.sql("DROP TRIGGER no")
    b.restart()
    try SyncedDatabase(path: b.path, time: b.time, randomness: b.randomness).retryParked(now: b.time.wallClock)
    try b.sql("UPDATE lists SET color = 'green'", at: 30)
    let report = try b.sync(.sendOnly)
    #expect(report.counts.saved == 1 && report.counts.conflicts == 0)
    b.cloud.heal()
    world.clock.advance(seconds: 7_200)
    try world.expectQuiet()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|A|green"])
  }

  @Test("M12 M13 a child as old as the delete keeps its parent", arguments: [true, false])
  func childAtTheDelete(aFirst: Bool) throws {
    let (world, a, b) = try pair(Self.list)
    try a.sql("DELETE FROM lists", at: 60)
    try b.sql("INSERT INTO items(id, list_id) VALUES ('i', 'l1')", at: 60)
    for device in aFirst ? [a, b] : [b, a] { try device.sync() }
    // At once, and not because the other brings it back.
    #expect(try (aFirst ? b : a).picture("SELECT id FROM items") == ["i"])
    try world.expectConverged()
    #expect(try a.picture("SELECT l.id, i.id FROM lists l JOIN items i ON list_id = l.id") == ["l1|i"])
  }

  @Test("M12 a reference that is set to NULL by an older delete gets a clock above its own")
  func detached() throws {
    let (world, a, b) = try pair(
      "INSERT INTO lists(id) VALUES ('l1'); INSERT INTO opt VALUES ('o', NULL)", schema: Schema.scenarios)
    try a.sql("DELETE FROM lists", at: 60)
    try b.sql("UPDATE opt SET list_id = 'l1'", at: 70)
    try a.sync()
    try b.sync()
    #expect(try world.milliseconds("opt:o")["list_id"] == 70_001)
    try world.expectQuiet()
    #expect(try a.picture("SELECT * FROM opt") == ["o|∅"])
  }

  @Test("M12 rows deleted together go together, also where SET NULL could not be done")
  func deletedTogether() throws {
    let (world, a, b) = try pair(
      "INSERT INTO lists VALUES ('l1'); INSERT INTO pins VALUES ('p', 'l1')",
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL);
        CREATE TABLE pins(id TEXT PRIMARY KEY NOT NULL, list_id TEXT NOT NULL REFERENCES lists ON DELETE SET NULL);
        """)
    try a.sql("DELETE FROM pins; DELETE FROM lists", at: 30)
    try a.sync()
    try b.sync()
    #expect(b.sentSinceLastAsked().isEmpty)
    #expect(try b.rows("SELECT id FROM lists UNION SELECT id FROM pins").isEmpty)
    try world.expectConverged()
    #expect(try world.serverNames().isEmpty)
  }

  @Test("1.2 two rows of a circle with one wish get an integer each")
  func sameWish() throws {
    let (world, a, b) = try pair(schema: Schema.scenarios)
    try a.sql("INSERT INTO employees VALUES (1, 'a', NULL)", at: 10)
    try b.sql("INSERT INTO employees VALUES (1, 'b', NULL)", at: 10)
    try world.settle()
    try a.sql(
      "UPDATE employees SET boss_id = (SELECT e.id FROM employees e WHERE e.name <> employees.name)", at: 20)
    try world.expectConverged()
    let c = try world.device("C")
    try c.prepare(.join)
    #expect(try c.sync().result.failure == nil)
    #expect(
      try c.picture("SELECT e.name, b.name FROM employees e JOIN employees b ON b.id = e.boss_id") == ["a|b", "b|a"])
    try world.expectConverged()
  }
}
