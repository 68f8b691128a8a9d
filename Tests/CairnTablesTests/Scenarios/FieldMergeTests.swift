import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

@Suite("Field merges (tables 8.5)")
struct FieldMergeTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      schema: Schema.lists,
      base: """
        INSERT INTO lists VALUES ('l1', 'base', 'red'), ('l2', 'two', NULL), ('l3', 'three', NULL);
        INSERT INTO items VALUES ('i1', 'l1', 'milk', 0, NULL);
        """)
  }

  private func list(_ device: Device) throws -> [String] { try device.picture("SELECT * FROM lists WHERE id = 'l1'") }

  /// Each device writes at its second, then they meet and come to rest.
  private func meet(_ order: Order, a inA: (sql: String, at: Int64), b inB: (sql: String, at: Int64)) throws {
    try a.sql(inA.sql, at: inA.at)
    try b.sql(inB.sql, at: inB.at)
    try order.meet(a, b)
    try world.expectQuiet()
  }

  @Test("TS68 A title@60, B color@30: both", arguments: Order.allCases)
  func differentFields(_ order: Order) throws {
    try meet(
      order, a: ("UPDATE lists SET title = 'A' WHERE id = 'l1'", 60),
      b: ("UPDATE lists SET color = 'B' WHERE id = 'l1'", 30))
    #expect(try list(a) == ["l1|A|B"])
    let clocks = try world.milliseconds("lists:l1")
    #expect(clocks["title"] == 60_000 && clocks["color"] == 30_000)
  }

  @Test("TS69 A title@30, B color@60: both", arguments: Order.allCases)
  func differentFieldsOlder(_ order: Order) throws {
    try meet(
      order, a: ("UPDATE lists SET title = 'A' WHERE id = 'l1'", 30),
      b: ("UPDATE lists SET color = 'B' WHERE id = 'l1'", 60))
    #expect(try list(a) == ["l1|A|B"])
  }

  @Test("TS70 A title@60, B title@30: A's", arguments: Order.allCases)
  func sameField(_ order: Order) throws {
    try meet(
      order, a: ("UPDATE lists SET title = 'A' WHERE id = 'l1'", 60),
      b: ("UPDATE lists SET title = 'B' WHERE id = 'l1'", 30))
    #expect(try list(a) == ["l1|A|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == 60_000)
  }

  @Test("TS71 A title@30 unsent, B title@60 sent: B's; A sends no title", arguments: [true, false])
  func loserIsNotSent(fetchesFirst: Bool) throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 30)
    try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l1'", at: 60)
    try b.sync()
    try a.sync(fetchesFirst ? .fetchOnly : .sendOnly)
    // The first request of the one that sends first is refused; after it nothing may follow.
    let sent = a.operations("lists:l1")
    #expect(sent.count == (fetchesFirst ? 0 : 1))
    try a.sync()
    #expect(a.operations("lists:l1").isEmpty)
    try world.expectQuiet()
    #expect(try list(a) == ["l1|B|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == 60_000)
  }

  @Test("TS72 title 'x' and 'y', both @30: 'y'", arguments: Order.allCases, [("x", "y"), ("y", "x")])
  func tie(_ order: Order, _ titles: (String, String)) throws {
    try meet(
      order, a: ("UPDATE lists SET title = '\(titles.0)' WHERE id = 'l1'", 30),
      b: ("UPDATE lists SET title = '\(titles.1)' WHERE id = 'l1'", 30))
    #expect(try list(a) == ["l1|y|red"])
  }

  @Test(
    "TS72 M2 ties between storage classes: NULL < INTEGER < REAL < TEXT < BLOB", arguments: Order.allCases,
    [
      ("NULL", "-5"), ("7", "1.5"), ("1e300", "'a'"), ("'zz'", "x'00'"), ("'a'", "'B' || 'x' || char(233)"),
      ("1", "1.0"),
    ])
  func tieBetweenClasses(_ order: Order, _ values: (String, String)) throws {
    try meet(
      order, a: ("UPDATE lists SET title = \(values.0) WHERE id = 'l1'", 30),
      b: ("UPDATE lists SET title = \(values.1) WHERE id = 'l1'", 30))
    let greater = values.0 == "'a'" ? values.0 : values.1
    for device in [a, b] {
      #expect(
        try device.scalar(
          "SELECT typeof(title) = typeof(\(greater)) AND title IS \(greater) FROM lists WHERE id = 'l1'") == .integer(1)
      )
    }
  }

  @Test("TS73 same title, both @30: nothing sent again after the merge", arguments: Order.allCases)
  func equalEdit(_ order: Order) throws {
    for device in [a, b] { try device.sql("UPDATE lists SET title = 'same' WHERE id = 'l1'", at: 30) }
    try order.meet(a, b)
    let second = order == .aFirstThenSend || order == .aFirstThenFetch ? b : a
    let isMetOnSend = order == .aFirstThenSend || order == .bFirstThenSend
    #expect(second.operations("lists:l1").count == (isMetOnSend ? 1 : 0))
    #expect(try second.state("l1") == "Clean")
    try second.sync()
    #expect(second.operations("lists:l1").isEmpty)
    try world.expectQuiet()
  }

  @Test("TS74 NULL@30 and NULL@60: NULL, clock 60", arguments: Order.allCases)
  func nulls(_ order: Order) throws {
    try meet(
      order, a: ("UPDATE lists SET color = NULL WHERE id = 'l1'", 30),
      b: ("UPDATE lists SET color = NULL WHERE id = 'l1'", 60))
    #expect(try list(a) == ["l1|base|∅"])
    #expect(try world.milliseconds("lists:l1")["color"] == 60_000)
  }

  @Test("TS75 F4 A title@10 and color@50 in one sync, B both@30: B's title, A's color", arguments: Order.allCases)
  func ownTimes(_ order: Order) throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 10)
    try meet(
      order, a: ("UPDATE lists SET color = 'A' WHERE id = 'l1'", 50),
      b: ("UPDATE lists SET title = 'B', color = 'B' WHERE id = 'l1'", 30))
    #expect(try list(a) == ["l1|B|A"])
  }

  @Test("TS76 a clock an hour fast: B fetches A's edit and edits a minute later: B's")
  func fastClock() throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 3_600)
    try a.sync()
    try b.sync()
    try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l1'", at: 60)
    try b.sync()
    try world.expectQuiet()
    #expect(try list(a) == ["l1|B|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == 3_600_001)
  }

  @Test("TS77 a clock an hour slow: A fetches B's edit and edits: A's")
  func slowClock() throws {
    try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l1'", at: 10)
    try b.sync()
    try a.sync()
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: -3_600)
    try a.sync()
    try world.expectQuiet()
    #expect(try list(b) == ["l1|A|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == 10_001)
  }

  @Test("TS79 M4 an unsent edit that wins on fetch, and a clean one that the server lost, are re-asserted")
  func reasserted() throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 60)
    try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l1'", at: 30)
    try b.sync()
    try a.sync(.fetchOnly)
    #expect(try a.state("l1") == "Edited")
    try world.expectQuiet()
    #expect(try list(b) == ["l1|A|red"])
    #expect(try world.milliseconds("lists:l1")["title"] == 60_000)

    #expect(try a.state("l1") == "Clean")
    try world.foreignReplace("lists:l1") { fields in
      let old = World.start + 5_000
      fields.set("title", .string("stale"))
      fields.set("cairn_clocks", .string("{\"\(old)\":[\"color\",\"id\",\"title\"]}"))
    }
    try a.sync(.fetchOnly)
    #expect(try a.state("l1") == "Edited")
    try a.sync()
    try world.expectQuiet()
    for device in [a, b] { #expect(try list(device) == ["l1|A|red"]) }
    let clocks = try world.milliseconds("lists:l1")
    #expect(clocks["title"] == 60_000 && clocks["color"] == 5_000)
  }

  @Test("TS81 B moves the item to l2@10, A done@20: in l2, done", arguments: Order.allCases)
  func moved(_ order: Order) throws {
    try meet(order, a: ("UPDATE items SET done = 1", 20), b: ("UPDATE items SET list_id = 'l2'", 10))
    #expect(try b.picture("SELECT * FROM items") == ["i1|l2|milk|1|∅"])
  }

  @Test("TS82 B moves the item to l2@10, A to l3 with title@20: l3, title", arguments: Order.allCases)
  func movedTwice(_ order: Order) throws {
    try meet(
      order, a: ("UPDATE items SET list_id = 'l3', title = 'bread'", 20), b: ("UPDATE items SET list_id = 'l2'", 10))
    #expect(try b.picture("SELECT * FROM items") == ["i1|l3|bread|0|∅"])
  }

  @Test("TS83 A and B insert one key with different fields: one row, merged", arguments: Order.allCases)
  func sameInsert(_ order: Order) throws {
    try meet(
      order, a: ("INSERT INTO lists VALUES ('l9', 'A', NULL)", 10),
      b: ("INSERT INTO lists(id, color) VALUES ('l9', 'B')", 20))
    // An insert sets every column (T10): the later one wins as a whole.
    #expect(try a.picture("SELECT * FROM lists WHERE id = 'l9'") == ["l9|∅|B"])
  }

  @Test("TS85 a field without a column is untouched by an edit of another")
  func unknownField() throws {
    let clock = World.start + 5_000
    try world.foreignReplace("lists:l1") { fields in
      fields.set("future", .string("kept"))
      fields.set(
        "cairn_clocks", .string("{\"\(World.start + 1_000)\":[\"color\",\"id\",\"title\"],\"\(clock)\":[\"future\"]}"))
    }
    for device in [a, b] { try device.sync() }
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 30)
    try b.sql("UPDATE lists SET color = 'B' WHERE id = 'l1'", at: 40)
    try a.sync()
    try world.expectQuiet()
    #expect(try world.serverRecords()["lists:l1"]?.fields["future"] == .string("kept"))
    #expect(try world.milliseconds("lists:l1")["future"] == 5_000)
    #expect(try list(a) == ["l1|A|B"])
  }

  @Test("TS86 clock 2^53: parked undecodable; the row keeps its values and goes on when the record is sound again")
  func clockOutOfRange() throws {
    try world.foreignReplace("lists:l1") { fields in
      fields.set("cairn_clocks", .string("{\"9007199254740992\":[\"color\",\"id\",\"title\"]}"))
    }
    for device in [a, b] {
      try device.sync()
      #expect(try device.parked().map(\.reason) == [.undecodable])
      #expect(try list(device) == ["l1|base|red"])
    }
    try world.foreignReplace("lists:l1") { fields in
      fields.set("title", .string("sound"))
      fields.set("cairn_clocks", .string("{\"\(World.start + 7_000)\":[\"color\",\"id\",\"title\"]}"))
    }
    try world.expectQuiet()
    #expect(try list(a) == ["l1|sound|red"])
  }

  @Test("F3 after the greatest clock comes the greatest clock: edits, deletes and reinserts stay readable everywhere")
  func greatestClock() throws {
    func setGreatest() throws {
      try world.foreignReplace("lists:l1") { fields in
        fields.set("title", .string("greatest"))
        fields.set("cairn_clocks", .string("{\"9007199254740991\":[\"color\",\"id\",\"title\"]}"))
      }
    }
    try setGreatest()
    try world.expectQuiet()
    try a.sql("UPDATE lists SET title = 'higher' WHERE id = 'l1'")
    try world.expectConverged()
    #expect(try list(b) == ["l1|higher|red"])
    // Of equal clocks the greater value wins: this edit comes to nothing, but nothing is parked for it.
    try a.sql("UPDATE lists SET title = 'a' WHERE id = 'l1'")
    try world.expectConverged()
    try a.sql("DELETE FROM lists WHERE id = 'l1'")
    try a.sync()
    try b.sync()
    try a.sql("INSERT OR REPLACE INTO lists VALUES ('l1', 'again', 'blue')")
    try world.expectConverged()
    #expect(try list(b).count == 1)
  }
}
