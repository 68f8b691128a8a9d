import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

@Suite("Delete then reinsert (tables 8.7)")
struct ReinsertTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
  }

  private func expectRows(_ expected: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    try world.expectQuiet(sourceLocation: sourceLocation)
    for device in [a, b] {
      #expect(
        try device.picture("SELECT * FROM lists") == expected, "\(device.name)", sourceLocation: sourceLocation)
    }
  }

  /// One save with the tag of the server's version, no delete.
  private func expectOneSave(
    life: Int64, tag: ChangeTag?, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let sent = a.operations("lists:r")
    #expect(sent.map(\.kind) == [.replace], sourceLocation: sourceLocation)
    #expect(sent.first?.record.changeTag == tag && tag != nil, sourceLocation: sourceLocation)
    let clocks = try world.milliseconds("lists:r")
    #expect(clocks["life"] == life, sourceLocation: sourceLocation)
  }

  private func serverTag() throws -> ChangeTag? { try world.serverRecords()["lists:r"]?.changeTag }

  // MARK: What is sent

  @Test("TS98 insert, sync, delete, sync: one delete")
  func plainDelete() throws {
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["delete lists:r"])
    try expectRows([])
  }

  @Test(
    "TS99 TS100 edit then delete, or delete, reinsert, delete: one delete",
    arguments: [
      ["UPDATE lists SET title = 'x'", "DELETE FROM lists"],
      ["DELETE FROM lists", "INSERT INTO lists VALUES ('r', 'x', 'y')", "DELETE FROM lists"],
    ])
  func endsDeleted(_ statements: [String]) throws {
    for (i, statement) in statements.enumerated() { try a.sql(statement, at: Int64(10 + i)) }
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["delete lists:r"])
    try expectRows([])
  }

  @Test("TS101 a new row inserted, deleted, reinserted: one create", arguments: [true, false])
  func neverSynced(inOneTransaction: Bool) throws {
    let steps = [
      "INSERT INTO lists VALUES ('n', 'a', 'b')", "DELETE FROM lists WHERE id = 'n'",
      "INSERT INTO lists VALUES ('n', 'c', NULL)",
    ]
    if inOneTransaction {
      try a.sql("BEGIN; \(steps.joined(separator: "; ")); COMMIT", at: 10)
    } else {
      for (i, step) in steps.enumerated() {
        try a.sql(step, at: Int64(10 + i))
        try a.fold()
      }
    }
    try a.sync()
    #expect(a.operations("lists:n").map(\.kind) == [.create])
    try expectRows(["n|c|∅", "r|old|red"])
  }

  @Test("TS102 delete and reinsert in one transaction: one save with the old tag, all fields at the reinsert clock")
  func oneTransaction() throws {
    try a.sql("BEGIN; DELETE FROM lists; INSERT INTO lists VALUES ('r', 'new', NULL); COMMIT", at: 10)
    let tag = try serverTag()
    try a.sync()
    // One statement after the other at @10: the insert is later than the delete (F3).
    try expectOneSave(life: 10_001, tag: tag)
    try expectRows(["r|new|∅"])
    let clock = World.start + 10_001
    let fields = try #require(world.serverRecords()["lists:r"]).fields
    #expect(fields["cairn_clocks"] == .string("{\"\(clock)\":[\"color\",\"id\",\"title\"]}"))
    #expect(fields["cairn_cut"] == .int64(World.start + 10_000))
  }

  @Test("TS103 TS122 the same in two transactions of two programs, folded between or not", arguments: [true, false])
  func twoTransactions(foldsBetween: Bool) throws {
    let tag = try serverTag()
    try a.sql("DELETE FROM lists", at: 10)
    if foldsBetween {
      try a.fold()
      a.restart()
    }
    let other = try a.connection()
    try other.execute("INSERT INTO lists VALUES ('r', 'new', NULL)")
    try a.sync()
    let sent = a.operations("lists:r")
    #expect(sent.map(\.kind) == [.replace] && sent.first?.record.changeTag == tag)
    try expectRows(["r|new|∅"])
  }

  @Test("TS104 delete, reinsert@10, title@20: title 20, all others 10")
  func editedAfterReinsert() throws {
    let tag = try serverTag()
    try a.sql("DELETE FROM lists", at: 5)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 10)
    try a.sql("UPDATE lists SET title = 'newer'", at: 20)
    try a.sync()
    try expectOneSave(life: 10_000, tag: tag)
    #expect(
      try world.milliseconds("lists:r") == [
        "life": 10_000, "cut": 5_000, "id": 10_000, "color": 10_000, "title": 20_000,
      ])
    try expectRows(["r|newer|∅"])
  }

  @Test("TS105 edit, delete, reinsert: as one reinsert; the edit is forgotten")
  func editForgotten() throws {
    let tag = try serverTag()
    try a.sql("UPDATE lists SET color = 'blue'", at: 3)
    try a.sql("DELETE FROM lists", at: 5)
    try a.sql("INSERT INTO lists(id, title) VALUES ('r', 'new')", at: 10)
    try a.sync()
    try expectOneSave(life: 10_000, tag: tag)
    #expect(try world.milliseconds("lists:r")["color"] == 10_000)
    try expectRows(["r|new|∅"])
  }

  @Test("TS106 reinsert with the old values: still sent, all fields newest", arguments: Order.allCases)
  func sameValues(_ order: Order) throws {
    try a.sql("DELETE FROM lists", at: 15)
    try a.sql("INSERT INTO lists VALUES ('r', 'old', 'red')", at: 20)
    try b.sql("UPDATE lists SET title = 'B', color = 'B'", at: 10)
    try order.meet(a, b)
    try expectRows(["r|old|red"])
    #expect(try world.milliseconds("lists:r")["color"] == 20_000)
  }

  @Test("TS107 two delete–reinsert cycles, in one transaction and in two", arguments: [true, false])
  func twoCycles(inOneTransaction: Bool) throws {
    let tag = try serverTag()
    let cycles = [
      "DELETE FROM lists; INSERT INTO lists VALUES ('r', 'one', 'one')",
      "DELETE FROM lists; INSERT INTO lists VALUES ('r', 'two', NULL)",
    ]
    if inOneTransaction {
      try a.sql("BEGIN; \(cycles.joined(separator: "; ")); COMMIT", at: 10)
    } else {
      try a.sql(cycles[0], at: 9)
      try a.fold()
      try a.sql(cycles[1], at: 10)
    }
    try a.sync()
    try expectOneSave(life: inOneTransaction ? 10_003 : 10_001, tag: tag)
    try expectRows(["r|two|∅"])
  }

  @Test("TS108 changes of other records around it keep their state and order")
  func others() throws {
    try a.sql("INSERT INTO lists VALUES ('q', 1, 1), ('s', 1, 1)", at: 2)
    try a.sync()
    _ = a.sentSinceLastAsked()
    try a.sql("UPDATE lists SET title = 2 WHERE id = 'q'; DELETE FROM lists WHERE id = 's'", at: 9)
    try a.sql("BEGIN; DELETE FROM lists WHERE id = 'r'; INSERT INTO lists VALUES ('r', 'new', NULL); COMMIT", at: 10)
    try a.sql("INSERT INTO lists VALUES ('t', 1, 1)", at: 11)
    try a.fold()
    #expect(try ["q", "r", "s", "t"].map { try a.state($0) } == ["Edited", "Reinserted", "Deleted", "New"])
    #expect(try a.unconfirmed("q") == "title")
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["save lists:q", "save lists:r", "save lists:t", "delete lists:s"])
    try expectRows(["q|2|1", "r|new|∅", "t|1|1"])
  }

  // MARK: Meeting other edits

  @Test(
    "TS109 TS110 TS111 TS112 reinserted@20 meets the server's edit on fetch or on send", arguments: [true, false],
    [(10, "r|new|∅"), (30, "r|server|∅"), (20, "r|server|∅")])
  func meetsEdit(onFetch: Bool, _ edit: (Int64, String)) throws {
    try a.sql("DELETE FROM lists", at: 15)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    try b.sql("UPDATE lists SET title = 'server'", at: edit.0)
    try b.sync()
    a.stopSending()
    if onFetch {
      try a.sync(.fetchOnly)
    } else {
      a.cloud.heal()
      a.meanwhile(stops: true) { _ in }
      try a.sync(.sendOnly)
    }
    // The status is cleared by the merge; the rest of the row still has to go.
    #expect(try a.state("r").hasPrefix("Edited"))
    a.cloud.heal()
    world.clock.advance(seconds: 60)
    try expectRows([edit.1])
    let clocks = try world.milliseconds("lists:r")
    #expect(clocks["title"] == max(20, edit.0) * 1_000 && clocks["color"] == 20_000 && clocks["cut"] == 15_000)
  }

  @Test(
    "TS109 the mirror image: the other device's reinsert meets an older or later edit", arguments: Order.allCases,
    [10, 30])
  func meetsReinsert(_ order: Order, _ edit: Int64) throws {
    try a.sql("UPDATE lists SET title = 'A'", at: edit)
    try b.sql("DELETE FROM lists", at: 15)
    try b.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    try order.meet(a, b)
    try expectRows([edit == 10 ? "r|new|∅" : "r|A|∅"])
  }

  @Test("TS109 both devices delete and reinsert: the later row as a whole", arguments: Order.allCases)
  func bothReinsert(_ order: Order) throws {
    try a.sql("DELETE FROM lists", at: 15)
    try a.sql("INSERT INTO lists VALUES ('r', 'A', NULL)", at: 20)
    try b.sql("DELETE FROM lists", at: 17)
    try b.sql("INSERT INTO lists(id, color) VALUES ('r', 'B')", at: 19)
    try order.meet(a, b)
    try expectRows(["r|A|∅"])
    #expect(try world.milliseconds("lists:r")["cut"] == 17_000)
  }

  @Test("TS113 reinsert in flight, title edited, answer ok: status cleared; only the title is pending")
  func editedInFlight() throws {
    try a.sql("DELETE FROM lists; INSERT INTO lists VALUES ('r', 'new', NULL)", at: 10)
    a.meanwhile(stops: true) { try $0.sql("UPDATE lists SET title = 'newer'", at: 20) }
    try a.sync(.sendOnly)
    #expect(try a.state("r").hasPrefix("Edited"))
    #expect(try a.unconfirmed("r") == "title")
    a.cloud.heal()
    world.clock.advance(seconds: 60)
    try a.sync()
    let last = try #require(a.operations("lists:r").last)
    #expect(
      last.kind == .update && last.record.fields.contains(name: "title") && !last.record.fields.contains(name: "color"))
    try expectRows(["r|newer|∅"])
  }

  @Test("TS118 reinserted@20 meets a remote delete @10, @30 or unknown: alive; gone; alive", arguments: [10, 30, nil])
  func meetsDelete(_ clock: Int64?) throws {
    if clock == nil { world.alterations.hideDeleteTimes() }
    try a.sql("DELETE FROM lists", at: 15)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    try b.sql("DELETE FROM lists", at: clock ?? 30)
    try b.sync()
    world.clock.advance(seconds: 100)
    try a.sync(.fetchOnly)
    #expect(try a.state("r") == (clock == 30 ? "Gone" : "Reinserted without tag"))
    try expectRows(clock == 30 ? [] : ["r|new|∅"])
  }

  @Test("TS118 the same met on send", arguments: Order.allCases, [10, 30])
  func meetsDeleteInEveryOrder(_ order: Order, _ clock: Int64) throws {
    try a.sql("DELETE FROM lists", at: 15)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    try b.sql("DELETE FROM lists", at: clock)
    try order.meet(a, b)
    try expectRows(clock == 30 ? [] : ["r|new|∅"])
  }

  @Test(
    "TS119 a field without a column from before the delete: kept if edited elsewhere after it, else gone everywhere",
    arguments: Order.allCases, [true, false])
  func unknownField(_ order: Order, _ isEdited: Bool) throws {
    let old = World.start + 1_000
    try world.foreignReplace("lists:r") { fields in
      fields.set("future", .string("old"))
      fields.set("cairn_clocks", .string("{\"\(old)\":[\"color\",\"future\",\"id\",\"title\"]}"))
    }
    for device in [a, b] { try device.sync() }
    try a.sql("DELETE FROM lists", at: 10)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    if isEdited {
      try world.foreignReplace("lists:r") { fields in
        fields.set("future", .string("edited"))
        fields.set(
          "cairn_clocks",
          .string("{\"\(old)\":[\"color\",\"id\",\"title\"],\"\(World.start + 15_000)\":[\"future\"]}"))
      }
    }
    // B missed the delete and edits another field of the row of before.
    try b.sql("UPDATE lists SET color = 'B'", at: 5)
    try order.meet(a, b)
    try expectRows(["r|new|∅"])
    #expect(try world.serverRecords()["lists:r"]?.fields["future"] == (isEdited ? .string("edited") : nil))
    #expect(try world.milliseconds("lists:r")["future"] == (isEdited ? 15_000 : nil))
  }

  @Test("TS120 a confirmed reinsert, then delete: goes out as a delete; gone")
  func deletedAfterConfirmation() throws {
    try a.sql("DELETE FROM lists; INSERT INTO lists VALUES ('r', 'new', NULL)", at: 10)
    try a.sync()
    #expect(try a.state("r") == "Clean")
    _ = a.sentSinceLastAsked()
    try a.sql("DELETE FROM lists", at: 20)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["delete lists:r"])
    try expectRows([])
  }

  @Test("TS121 a pending delete, then REPLACE INTO: as reinsert", arguments: ["OFF", "ON"])
  func replaceOverDeleted(recursiveTriggers: String) throws {
    let tag = try serverTag()
    try a.sql("PRAGMA recursive_triggers = \(recursiveTriggers)")
    try a.sql("DELETE FROM lists", at: 9)
    try a.sql("REPLACE INTO lists VALUES ('r', 'new', NULL)", at: 10)
    try a.sync()
    try expectOneSave(life: 10_000, tag: tag)
    try expectRows(["r|new|∅"])
  }

  @Test("TS123 a cover replaced by delete and insert: the image everywhere")
  func cover() throws {
    try a.sql("INSERT INTO covers VALUES ('r', x'0102')", at: 2)
    try a.sync()
    try b.sync()
    let tag = try world.serverRecords()["covers:~flists%3Ar"]?.changeTag
    try a.sql("BEGIN; DELETE FROM covers; INSERT INTO covers VALUES ('r', x'030405'); COMMIT", at: 10)
    a.cloud.clearLog()
    try a.sync()
    let sent = a.operations("covers:~flists%3Ar")
    #expect(sent.map(\.kind) == [.replace] && sent.first?.record.changeTag == tag && tag != nil)
    try world.expectQuiet()
    for device in [a, b] { #expect(try device.picture("SELECT * FROM covers") == ["r|x'030405'"]) }
  }

  @Test(
    "TS124 a list with items deleted, list and one item reinserted: these saved, other items deleted",
    arguments: Order.allCases)
  func listWithItems(_ order: Order) throws {
    try a.sql("INSERT INTO items VALUES ('i1', 'r', 1, 1, 1), ('i2', 'r', 2, 2, 2), ('i3', 'r', 3, 3, 3)", at: 2)
    try a.sync()
    try b.sync()
    a.cloud.clearLog()
    try a.sql(
      """
      BEGIN; DELETE FROM lists; INSERT INTO lists VALUES ('r', 'new', NULL);
      INSERT INTO items VALUES ('i2', 'r', 'again', NULL, NULL); COMMIT
      """, at: 20)
    try b.sql("UPDATE lists SET title = 'B'; UPDATE items SET title = 'B'", at: 10)
    try order.meet(a, b)
    try expectRows(["r|new|∅"])
    for device in [a, b] { #expect(try device.picture("SELECT * FROM items") == ["i2|r|again|∅|∅"]) }
    #expect(try world.serverRecords().keys.sorted() == ["items:i2", "lists:r"])
  }
}
