import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Testing

@Suite("Life of records (tables 8.6, M5)")
struct LifeTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      schema: Schema.lists, base: "INSERT INTO lists VALUES ('l1', 'base', 'red')")
  }

  private func rows(_ device: Device) throws -> [String] { try device.picture("SELECT * FROM lists") }

  private func expectRows(_ expected: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    try world.expectQuiet(sourceLocation: sourceLocation)
    for device in [a, b] {
      #expect(try rows(device) == expected, "\(device.name)", sourceLocation: sourceLocation)
    }
    #expect(try world.serverRecords().count == expected.count, sourceLocation: sourceLocation)
  }

  @Test("TS87 A deletes@60, B edited@30: gone", arguments: Order.allCases)
  func deleteLater(_ order: Order) throws {
    try a.sql("DELETE FROM lists", at: 60)
    try b.sql("UPDATE lists SET title = 'B'", at: 30)
    try order.meet(a, b)
    try expectRows([])
  }

  @Test("TS88 A deletes@30, B edited@30 or later: alive", arguments: Order.allCases, [30, 40])
  func editLater(_ order: Order, _ edit: Int64) throws {
    try a.sql("DELETE FROM lists", at: 30)
    try b.sql("UPDATE lists SET title = 'B'", at: edit)
    try order.meet(a, b)
    try expectRows(["l1|B|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == edit * 1_000)
  }

  @Test("TS89 a delete without time: an unsent edit lives everywhere, a clean row goes", arguments: [true, false])
  func deleteWithoutTime(hasEdit: Bool) throws {
    world.alterations.hideDeleteTimes()
    try a.sql("DELETE FROM lists", at: 60)
    try a.sync()
    if hasEdit { try b.sql("UPDATE lists SET title = 'B'", at: 30) }
    world.clock.advance(seconds: 100)
    try b.sync(.fetchOnly)
    try expectRows(hasEdit ? ["l1|B|red"] : [])
  }

  @Test("TS91 a pending delete@60 meets a fetched edit@30: it goes with the new tag")
  func deleteStays() throws {
    try a.sql("DELETE FROM lists", at: 60)
    try b.sql("UPDATE lists SET title = 'B'", at: 30)
    try b.sync()
    try a.sync(.fetchOnly)
    #expect(try a.state("l1") == "Deleted")
    let tag = try world.serverRecords()["lists:l1"]?.changeTag
    try a.sync(.sendOnly)
    let sent = a.operations("lists:l1")
    #expect(sent.map(\.kind) == [.delete] && sent.first?.record.changeTag == tag)
    #expect(sent.first?.deleteTime == World.start + 60_000)
    try expectRows([])
  }

  @Test("TS92 both delete: gone", arguments: Order.allCases)
  func bothDelete(_ order: Order) throws {
    try a.sql("DELETE FROM lists", at: 60)
    try b.sql("DELETE FROM lists", at: 30)
    try order.meet(a, b)
    try expectRows([])
  }

  @Test("TS93 the deletion of a record never known here: nothing")
  func unknownDeletion() throws {
    try a.sql("INSERT INTO lists VALUES ('l9', 'x', NULL)", at: 10)
    try a.sync()
    try a.sql("DELETE FROM lists WHERE id = 'l9'", at: 20)
    try a.sync()
    let report = try b.sync()
    #expect(report.counts.removed == 0 && report.counts.fetched == 0)
    #expect(try b.state("l9") == "Absent")
    try expectRows(["l1|base|red"])
  }

  @Test("TS94 A's clock is an hour slow; A fetches B's edit and deletes: gone")
  func slowDelete() throws {
    try b.sql("UPDATE lists SET title = 'B'", at: 10)
    try b.sync()
    try a.sync()
    try a.sql("DELETE FROM lists", at: -3_600)
    try a.sync()
    try expectRows([])
  }

  @Test("TS95 another client deletes a confirmed row: removed 1")
  func foreignDelete() throws {
    try world.foreignDelete("lists:l1", at: 50)
    #expect(try a.sync().counts.removed == 1)
    #expect(try a.state("l1") == "Gone")
    try expectRows([])
  }

  @Test("TS96 deleted and created again between two fetches: the new values, never absent")
  func replacedBetweenFetches() throws {
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    try a.sql("INSERT INTO lists VALUES ('l1', 'new', NULL)", at: 20)
    try a.sync()
    let report = try b.sync()
    #expect(report.counts.removed == 0)
    #expect(try rows(b) == ["l1|new|∅"])
    try expectRows(["l1|new|∅"])
  }

  @Test("TS97 created, edited and deleted between two fetches: nothing")
  func passing() throws {
    for (statement, time) in [
      ("INSERT INTO lists VALUES ('l9', 'x', NULL)", 10), ("UPDATE lists SET title = 'y' WHERE id = 'l9'", 20),
      ("DELETE FROM lists WHERE id = 'l9'", 30),
    ] {
      try a.sql(statement, at: Int64(time))
      try a.sync()
    }
    let report = try b.sync()
    #expect(report.counts == TablesCounts())
    try expectRows(["l1|base|red"])
  }

  @Test("M5 Gone at 30 meets a record of 10, 30 or 40: deleted again, or back", arguments: [10, 30, 40])
  func goneMeetsRecord(_ touch: Int64) throws {
    try a.sql("DELETE FROM lists", at: 30)
    try a.sync()
    try b.sync()
    for device in [a, b] { #expect(try device.state("l1") == "Gone") }
    let clock = World.start + touch * 1_000
    let fields: Fields = [
      "id": .string("l1"), "title": .string("again"), "cairn_life": .int64(clock), "cairn_format": .int64(1),
      "cairn_clocks": .string("{\"\(clock)\":[\"color\",\"id\",\"title\"]}"),
    ]
    let record = Record(id: RecordID(name: "lists:l1", zone: world.zone), type: "lists", fields: fields)
    _ = try world.foreign().modify(in: world.zone, [RecordOperation(.create, record)], atomic: false)
    try a.sync()
    #expect(try a.state("l1") == (touch >= 30 ? "Clean" : "Gone"))
    try expectRows(touch >= 30 ? ["l1|again|∅"] : [])
  }

  @Test("M5 a clean row edited at 60 meets a delete of 30: alive everywhere", arguments: Order.allCases)
  func confirmedEditOutlivesDelete(_ order: Order) throws {
    try b.sql("UPDATE lists SET title = 'B'", at: 60)
    try b.sync()
    try a.sql("DELETE FROM lists", at: 30)
    // A had not seen the edit: its delete is older than the edit.
    try order.meet(a, b)
    try expectRows(["l1|B|red"])
  }

  @Test("M5 a re-asserted row that is deleted before it is sent stays deleted against an older copy of C")
  func reassertedThenDeleted() throws {
    let c = try world.device("C", schema: Schema.lists)
    try c.prepare(.join)
    try c.sync()
    try b.sql("UPDATE lists SET title = 'B'", at: 60)
    try a.sql("DELETE FROM lists", at: 30)
    try c.sql("UPDATE lists SET title = 'C'", at: 70)
    try a.sync()
    try b.sync(.fetchOnly)
    #expect(try b.state("l1") == "New")
    try b.sql("DELETE FROM lists", at: 80)
    try c.sync()
    try expectRows([])
    #expect(try rows(c) == [])
  }

  @Test("M5 each state meets a deletion", arguments: [10, 40, 60])
  func statesMeetDeletion(_ clock: Int64) throws {
    // Clean, edited@50, reinserted@50, deleted, gone; and one that was never there.
    try a.sql(
      "INSERT INTO lists VALUES ('clean', 1, 1), ('edited', 1, 1), ('reborn', 1, 1), ('dead', 1, 1), ('gone', 1, 1)",
      at: 20)
    try a.sync()
    try b.sync()
    try a.sql("DELETE FROM lists WHERE id = 'gone'", at: 30)
    try a.sync()
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'edited'", at: 50)
    try a.sql("DELETE FROM lists WHERE id IN ('reborn', 'dead')", at: 45)
    try a.sql("INSERT INTO lists VALUES ('reborn', 'A', 'A')", at: 50)
    try a.fold()
    for name in ["clean", "edited", "reborn", "dead"] { try world.foreignDelete("lists:\(name)", at: clock) }
    try a.sync(.fetchOnly)
    #expect(try a.state("clean") == (clock > 20 ? "Gone" : "New"))
    #expect(try a.state("edited") == (clock > 50 ? "Gone" : "New"))
    #expect(try a.state("reborn") == (clock > 50 ? "Gone" : "Reinserted without tag"))
    #expect(try a.state("dead") == "Gone")
    #expect(try a.state("gone") == "Gone")
    var expected = ["l1|base|red"]
    if clock < 20 { expected.append("clean|1|1") }
    if clock < 50 { expected += ["edited|A|1", "reborn|A|A"] }
    try expectRows(expected.sorted())
  }
}
