import CairnSQLite
import Testing

@Suite("Foreign keys and parking (tables 8.8)")
struct ParkingTests {
  private func pair(_ base: String = "", names: [String] = ["A", "B"], perRequest: Int = 200) throws -> (
    World, [Device]
  ) {
    let world = try World(entriesPerRequest: perRequest)
    return (world, try world.devices(names, base: base))
  }

  @Test("TS128 A deletes a list@30, B adds an item@60: list and item on both", arguments: [true, false])
  func laterChild(aFirst: Bool) throws {
    let (world, d) = try pair("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try d[0].sql("DELETE FROM lists", at: 30)
    try d[1].sql("INSERT INTO items(id, list_id) VALUES ('i1', 'l1')", at: 60)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged()
    #expect(try d[0].picture("SELECT l.id, l.title, i.id FROM lists l JOIN items i ON list_id = l.id") == ["l1|x|i1"])
  }

  @Test("TS129 A deletes a list@60, B added an item@30: both gone everywhere", arguments: [true, false])
  func earlierChild(aFirst: Bool) throws {
    let (world, d) = try pair("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try d[0].sql("DELETE FROM lists", at: 60)
    try d[1].sql("INSERT INTO items(id, list_id) VALUES ('i1', 'l1')", at: 30)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged()
    #expect(try world.serverRecords().isEmpty)
    #expect(try d[0].scalar("SELECT count(*) FROM items") == .integer(0))
  }

  @Test(
    "TS130 A moves an item to l2, B deletes l2@20: later wins",
    arguments: [(10, true), (10, false), (30, true), (30, false)])
  func moveIntoDeleted(move: Int64, aFirst: Bool) throws {
    let (world, d) = try pair(
      "INSERT INTO lists(id) VALUES ('l1'), ('l2'); INSERT INTO items(id, list_id) VALUES ('i1', 'l1')")
    try d[0].sql("UPDATE items SET list_id = 'l2'", at: move)
    try d[1].sql("DELETE FROM lists WHERE id = 'l2'", at: 20)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged()
    #expect(try d[1].picture("SELECT list_id FROM items") == (move == 10 ? [] : ["l2"]))
    #expect(try d[1].picture("SELECT id FROM lists") == (move == 10 ? ["l1"] : ["l1", "l2"]))
  }

  @Test(
    "TS131 the same for SET NULL and SET DEFAULT: l2 gone, NULL and 'inbox'",
    arguments: [(10, true), (10, false), (30, true), (30, false)])
  func moveDetached(move: Int64, aFirst: Bool) throws {
    let (world, d) = try pair(
      """
      INSERT INTO lists(id) VALUES ('l1'), ('l2'), ('inbox'); INSERT INTO opt VALUES ('o', 'l1');
      INSERT INTO dflt VALUES ('d', 'l1')
      """)
    try d[0].sql("UPDATE opt SET list_id = 'l2'; UPDATE dflt SET list_id = 'l2'", at: move)
    try d[1].sql("DELETE FROM lists WHERE id = 'l2'", at: 20)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged()
    #expect(try d[1].picture("SELECT list_id FROM opt UNION ALL SELECT list_id FROM dflt") == ["inbox", "∅"])
    #expect(try d[1].picture("SELECT id FROM lists") == ["inbox", "l1"])
  }

  @Test(
    "TS132 A deletes a list, B adds a kept row before or after: list and row on both", arguments: [10, 60] as [Int64],
    [true, false])
  func restrict(time: Int64, aFirst: Bool) throws {
    let (world, d) = try pair("INSERT INTO lists VALUES ('l1', 'x', NULL)")
    try d[0].sql("DELETE FROM lists", at: 30)
    try d[1].sql("INSERT INTO kept VALUES ('k', 'l1')", at: time)
    for device in aFirst ? d : d.reversed() { try device.sync() }
    try world.expectConverged()
    #expect(try d[0].picture("SELECT l.title FROM kept JOIN lists l ON l.id = list_id") == ["x"])
  }

  @Test(
    "TS134 a list fetched and deleted at once, then its item: older dies, newer keeps both",
    arguments: [10, 60] as [Int64])
  func deletedAtOnce(time: Int64) throws {
    let (world, d) = try pair(names: ["A", "B", "C"])
    try d[1].sql("INSERT INTO lists(id) VALUES ('l1')", at: 5)
    try d[1].sync()
    try d[2].sync()
    try d[0].sync()
    try d[2].sql("INSERT INTO items(id, list_id) VALUES ('i1', 'l1')", at: time)
    try d[0].sql("DELETE FROM lists", at: 30)
    try d[0].sync()
    try d[2].sync()
    try world.expectConverged()
    #expect(try d[0].picture("SELECT id FROM items") == (time == 10 ? [] : ["i1"]))
  }

  @Test("TS135 a tag deleted on A, B's unsent link older: the link's delete reaches the server")
  func link() throws {
    let (world, d) = try pair(
      "INSERT INTO lists(id) VALUES ('l'); INSERT INTO items(id, list_id) VALUES ('i', 'l'); INSERT INTO tags VALUES ('Red')"
    )
    try d[0].sql("DELETE FROM tags", at: 60)
    try d[1].sql("INSERT INTO item_tags VALUES ('i', 'Red')", at: 30)
    try d[1].sync()
    try world.expectConverged()
    #expect(try world.serverRecords().keys.sorted() == ["items:i", "lists:l"])
  }

  @Test("TS136 two lists and their items deleted in one event: all gone, nothing parked")
  func deletedTogether() throws {
    let (world, d) = try pair(
      "INSERT INTO lists(id) VALUES ('l1'), ('l2'); INSERT INTO items(id, list_id) VALUES ('i1', 'l1'), ('i2', 'l2')")
    try d[0].sql("DELETE FROM lists", at: 30)
    try world.expectConverged()
    #expect(try world.serverRecords().isEmpty)
  }

  @Test("TS138 a tag renamed on A@30, B links the old name@60: the old tag lives with B's link")
  func renamedTag() throws {
    let (world, d) = try pair(
      "INSERT INTO lists(id) VALUES ('l'); INSERT INTO items(id, list_id) VALUES ('i', 'l'); INSERT INTO tags VALUES ('red')"
    )
    try d[0].sql("UPDATE tags SET name = 'rot'", at: 30)
    try d[1].sql("INSERT INTO item_tags VALUES ('i', 'red')", at: 60)
    try world.expectConverged()
    #expect(try d[0].picture("SELECT name FROM tags") == ["red", "rot"])
    #expect(try d[0].picture("SELECT tag FROM item_tags") == ["red"])
  }

  @Test("TS65 M8 items fetched before their lists, two to a page: parked, then all there", arguments: [1, 2, 200])
  func pages(perRequest: Int) throws {
    let (world, d) = try pair(perRequest: perRequest)
    try d[0].sql(
      "INSERT INTO lists(id) VALUES ('z1'), ('z2'); INSERT INTO items(id, list_id) VALUES ('a1', 'z1'), ('a2', 'z2')",
      at: 5)
    try d[0].sync()
    try d[0].sql("UPDATE lists SET title = 'later'", at: 6)
    try world.expectConverged()
    #expect(try d[1].scalar("SELECT count(*) FROM items") == .integer(2))
  }
}
