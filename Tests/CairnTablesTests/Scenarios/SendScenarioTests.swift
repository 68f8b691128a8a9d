import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Synchronization
import Testing

@Suite("Sending (tables 8.4)")
struct SendScenarioTests {
  private func two(_ base: String) throws -> (World, Device, Device) {
    let world = try World()
    let devices = try world.devices(["A", "B"], base: base)
    return (world, devices[0], devices[1])
  }

  /// Runs SQL as another program while the next save is under way.
  private func during(_ device: Device, _ sql: String) {
    let path = device.path
    let done = Once()
    device.cloud.setAfter { call in
      guard case .modify = call, done.first() else { return }
      do {
        try Connection(path: path).execute(sql)
      } catch {
        Issue.record("\(error)")
      }
    }
  }

  @Test("TS54 list and item in one transaction: both saved, the list not after the item")
  func listAndItem() throws {
    let (world, a, _) = try two("")
    try a.sql(
      "BEGIN; INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO items(id, list_id) VALUES ('i1', 'l1'); COMMIT")
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:l1", "save items:i1"])
    try world.expectConverged()
  }

  @Test("TS55 insert, edit@60, delete with a sync after each: the clock is 60")
  func editClock() throws {
    let (world, a, _) = try two("")
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL)", at: 10)
    try a.sync()
    try a.sql("UPDATE lists SET title = 'y'", at: 60)
    try a.sync()
    #expect(try world.clocks("lists:l1") == ["id": 10, "title": 60, "color": 10])
    try a.sql("DELETE FROM lists", at: 70)
    try a.sync()
    #expect(try world.serverNames() == [])
    try world.expectConverged()
  }

  @Test("TS56 an edit while a save is under way: two saves, the first confirms its revision only")
  func editInFlight() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', '1', NULL)")
    try a.sql("UPDATE lists SET title = '2'", at: 10)
    during(a, "UPDATE lists SET title = '3'")
    try a.sync()
    try world.expectConverged()
    #expect(a.sentSinceLastAsked() == ["save lists:l1", "save lists:l1"])
    #expect(try b.scalar("SELECT title FROM lists") == .text("3"))
  }

  @Test("TS57 a delete while the save is under way: save confirmed, then deleted with the new tag")
  func deleteInFlight() throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', '1', NULL)")
    try a.sql("UPDATE lists SET title = '2'", at: 10)
    during(a, "DELETE FROM lists")
    try a.sync()
    try world.expectConverged()
    #expect(a.sentSinceLastAsked() == ["save lists:l1", "delete lists:l1"])
    #expect(try b.rows("SELECT * FROM lists").isEmpty)
    #expect(try world.serverNames() == [])
  }

  @Test("TS58 F7 insert and delete before any batch: nothing sent, nothing kept")
  func forgotten() throws {
    let (_, a, _) = try two("")
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL); INSERT INTO notes VALUES (1, 'n', NULL)")
    try a.sql("DELETE FROM lists; DELETE FROM notes")
    try a.sync()
    #expect(a.sentSinceLastAsked() == [])
    #expect(try a.scalar("SELECT count(*) FROM cairn_record") == .integer(0))
  }

  @Test("TS59 TS60 a refused save stores nothing of its request; merged and sent", arguments: ["insert", "delete"])
  func refused(other: String) throws {
    let (world, a, b) = try two("INSERT INTO lists VALUES ('l1', '1', 'red'), ('l2', 'x', NULL)")
    try b.sql("UPDATE lists SET color = 'blue' WHERE id = 'l1'", at: 10)
    try b.sync()
    try a.sql("UPDATE lists SET title = '2' WHERE id = 'l1'", at: 20)
    try a.sql(other == "insert" ? "INSERT INTO lists VALUES ('l3', 'y', NULL)" : "DELETE FROM lists WHERE id = 'l2'")
    try a.sync(.sendOnly)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists WHERE id = 'l1'") == ["l1|2|blue"])
    #expect(try world.serverNames() == (other == "insert" ? ["lists:l1", "lists:l2", "lists:l3"] : ["lists:l1"]))
  }

  @Test("TS61 the answer of a save is lost: no conflict, stored once")
  func lostAnswer() throws {
    let (world, a, _) = try two("")
    try a.sql("INSERT INTO lists VALUES ('l1', 'x', NULL)", at: 10)
    a.cloud.fail(.lostAnswer) { if case .modify = $0 { true } else { false } }
    try a.sync()
    let tag = try world.serverRecords()["lists:l1"]?.changeTag
    world.clock.advance(seconds: 60)
    let report = try a.sync()
    #expect(report.counts.conflicts == 0)
    #expect(try a.status().pending == 0)
    #expect(try world.serverRecords()["lists:l1"]?.changeTag == tag)
    try world.expectConverged()
  }

  @Test("TS63 children are deleted first; only tags remain")
  func deleteOrder() throws {
    var base = "INSERT INTO lists VALUES ('l1', NULL, NULL); INSERT INTO covers VALUES ('l1', x'01');"
    base += "INSERT INTO tags VALUES ('red'), ('blue');"
    for i in 1...4 {
      base += "INSERT INTO items(id, list_id) VALUES ('i\(i)', 'l1');"
      base += "INSERT INTO item_tags VALUES ('i\(i)', 'red'), ('i\(i)', 'blue');"
    }
    let (world, a, _) = try two(base)
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    let sent = a.sentSinceLastAsked()
    #expect(sent.count == 14 && sent.last == "delete lists:l1")
    let lastLink = sent.lastIndex { $0.hasPrefix("delete item_tags:") } ?? 0
    let firstItem = sent.firstIndex { $0.hasPrefix("delete items:") } ?? 0
    #expect(lastLink < firstItem)
    try world.expectConverged()
    #expect(try world.serverNames() == ["tags:blue", "tags:red"])
  }

  @Test("TS64 TS65 500 items with their list in batches of 200: no item before its list")
  func batches() throws {
    let (world, a, b) = try two("")
    try a.sql(
      """
      BEGIN; INSERT INTO lists VALUES ('l1', NULL, NULL);
      INSERT INTO items(id, list_id) WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 500)
        SELECT 'i' || v, 'l1' FROM n; COMMIT
      """)
    try a.sync()
    let requests = a.cloud.log.compactMap { request -> [RecordOperation]? in
      if case .modify(_, let operations, _) = request.call { operations } else { nil }
    }
    #expect(requests.first?.first?.record.id.name == "lists:l1")
    #expect(requests.allSatisfy { $0.count <= world.entriesPerRequest })
    try world.expectConverged()
    #expect(try b.scalar("SELECT count(*) FROM items") == .integer(500))
  }

  @Test("TS66 U5 without foreign keys: an item of a missing list is sent, a file of a missing note waits")
  func missingParents() throws {
    let (world, a, b) = try two("")
    try a.sql("PRAGMA foreign_keys = OFF")
    try a.sql("INSERT INTO items(id, list_id) VALUES ('i1', 'nowhere'); INSERT INTO files VALUES (1, 99, 'f')")
    try a.sync()
    #expect(try world.serverNames() == ["items:i1"])
    let status = try a.status()
    #expect(status.pending == 1)
    #expect(status.reasons.map(\.reason) == [.missingParent])
    try b.sync()
    #expect(try b.parked().map(\.reason) == [.missingParent])
  }

  @Test("TS67 rows of two tables that point at each other are saved and applied without parking")
  func cycle() throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"],
      schema: """
        CREATE TABLE x(id TEXT PRIMARY KEY NOT NULL, y TEXT REFERENCES y DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE y(id TEXT PRIMARY KEY NOT NULL, x TEXT REFERENCES x DEFERRABLE INITIALLY DEFERRED)
        """)
    try devices[0].sql("BEGIN; INSERT INTO x VALUES ('1', '2'); INSERT INTO y VALUES ('2', '1'); COMMIT")
    try devices[0].sync()
    try devices[1].sync()
    #expect(try devices[1].parked().isEmpty)
    try world.expectConverged()
    #expect(try devices[1].picture("SELECT * FROM x") == ["1|2"])
  }
}

/// True once.
private final class Once: Sendable {
  private let isDone = Mutex(false)

  func first() -> Bool {
    isDone.withLock { done in
      defer { done = true }
      return !done
    }
  }
}
