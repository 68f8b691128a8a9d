import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Foundation
import Testing

@Suite("Crashes, processes (tables 8.14)")
struct CrashTests {
  /// Two devices with something of everything under way between them.
  private struct Story {
    let world: World
    let a: Device
    let b: Device

    init() throws {
      world = try World(entriesPerRequest: 3)
      let devices = try world.devices(
        ["A", "B"], schema: Schema.lists,
        base: """
          INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'red'), ('l3', 'three', 'red'), ('l4', 'four', 'red');
          INSERT INTO items VALUES ('i1', 'l1', 'milk', 0, 1), ('i2', 'l2', 'bread', 0, 1), ('i3', 'l3', 'eggs', 0, 1);
          INSERT INTO notes VALUES (1, 'note', 'body');
          """)
      (a, b) = (devices[0], devices[1])
      try b.sql("UPDATE lists SET title = 'B' WHERE id = 'l1'", at: 20)
      try b.sql("UPDATE lists SET color = 'B' WHERE id = 'l2'", at: 20)
      try b.sql("DELETE FROM items WHERE id = 'i3'", at: 20)
      try b.sql("DELETE FROM lists WHERE id = 'l4'", at: 20)
      try b.sql("INSERT INTO lists VALUES ('b', 'of B', NULL); INSERT INTO items VALUES ('ib', 'b', 1, 1, 1)", at: 20)
      try b.sql("INSERT INTO notes VALUES (2, 'B', NULL); UPDATE notes SET body = 'B' WHERE id = 1", at: 20)
      try b.sync()
      try a.sql("UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 30)
      try a.sql(
        "BEGIN; DELETE FROM lists WHERE id = 'l2'; INSERT INTO lists VALUES ('l2', 'reborn', NULL); COMMIT", at: 30)
      try a.sql("DELETE FROM lists WHERE id = 'l3'", at: 10)
      try a.sql("INSERT INTO lists VALUES ('a', 'of A', NULL); INSERT INTO items VALUES ('ia', 'a', 1, 1, 1)", at: 30)
      try a.sql("INSERT INTO notes VALUES (2, 'A', NULL); UPDATE notes SET title = 'A' WHERE id = 1", at: 30)
      world.alterations.clearStored()
    }

    /// Rows and server records without tags, at rest.
    func end() throws -> [String] {
      try world.expectQuiet()
      let rows = try a.picture("SELECT 'lists', * FROM lists") + a.picture("SELECT 'items', * FROM items")
      let notes = try a.picture("SELECT title, body FROM notes")
      let server = try world.serverRecords().filter { !$0.key.hasPrefix("notes:") }.sorted { $0.key < $1.key }.map {
        name, record in
        "\(name): \(record.fields.filter { $0.value != nil }.map { "\($0.name)=\($0.value.map { "\($0)" } ?? "")" }.sorted())"
      }
      return rows + notes + server
    }
  }

  @Test("TS194 G2 G3 killed at every border: the same end, each record stored once")
  func everyBorder() throws {
    let reference = try Story()
    let borders = try reference.a.sync(dyingAt: .max)
    let count = borders.names.count
    #expect(count > 40)
    let end = try reference.end()
    let stored = reference.world.alterations.stored
    for border in 1...count {
      let story = try Story()
      let died = try story.a.sync(dyingAt: border)
      #expect(died.hasCrashed)
      let place = "died at \(border), \(died.names.suffix(3))"
      #expect(try story.end() == end, "\(place)")
      let notes = story.world.alterations.stored.filter { $0.key.hasPrefix("notes:") }.map(\.value)
      #expect(notes.sorted() == stored.filter { $0.key.hasPrefix("notes:") }.map(\.value).sorted(), "\(place)")
      for (name, times) in story.world.alterations.stored where !name.hasPrefix("notes:") {
        #expect(times == stored[name], "\(name), \(place)")
      }
    }
  }

  @Test("TS194 killed again and again, at every k-th border, until it gets through", arguments: [2, 3, 5, 7, 11, 13])
  func againAndAgain(_ step: Int) throws {
    let reference = try Story()
    let end = try reference.end()
    let story = try Story()
    var border = step
    // Each try comes a little further.
    while try story.a.sync(dyingAt: border).hasCrashed { border += step }
    #expect(try story.end() == end)
  }

  @Test("TS195 a power loss leaves any prefix of the WAL: row, log, metadata and token agree", arguments: 1...12)
  func powerLoss(_ seed: Int) throws {
    let random = SeededRandomness(seed: UInt64(seed))
    let story = try Story()
    let a = story.a
    // The preparation is in the file itself: what is cut off is what this sync writes.
    try a.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    let died = try a.sync(dyingAt: 20 + random.below(60))
    guard died.hasCrashed else { return }
    let source = a.path + ".crash"
    let size = try FileManager.default.attributesOfItem(atPath: source + "-wal")[.size] as? Int ?? 0
    try a.takeFile(from: source, walBytes: random.below(max(1, size)))
    _ = try story.end()
  }

  @Test("TS196 another program writes the row between batch and answer: the later revision is sent next")
  func writtenInFlight() throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
    let (a, b) = (devices[0], devices[1])
    try a.sql("UPDATE lists SET title = '1', color = '1'", at: 10)
    a.meanwhile { try $0.sql("UPDATE lists SET title = '2', color = '2'", at: 20) }
    try a.sync()
    let titles = a.operations("lists:r").map { $0.record.fields["title"] }
    #expect(titles == [.string("1"), .string("2")])
    try world.expectQuiet()
    #expect(try b.picture("SELECT * FROM lists") == ["r|2|2"])
  }

  @Test("TS61 the answer of a save is lost: conflicts 0, pending 0, not stored twice", arguments: [false, true])
  func answerLost(restarts: Bool) throws {
    let world = try World()
    let a = try world.devices(["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")[0]
    world.alterations.clearStored()
    try a.sql("UPDATE lists SET title = 'A'; INSERT INTO lists VALUES ('n', 1, 1)", at: 10)
    a.failModify(.lostAnswer)
    try a.sync(.sendOnly)
    if restarts { a.restart() }
    world.clock.advance(seconds: 60)
    let report = try a.sync(.sendOnly)
    #expect(report.counts.conflicts == 0 && report.pending == 0)
    #expect(world.alterations.stored == ["lists:r": 1, "lists:n": 1])
    try world.expectQuiet()
  }

  @Test("TS62 an edit is pending; the known record comes again: an echo, and the edit is sent")
  func echo() throws {
    let world = try World()
    let a = try world.devices(["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")[0]
    try a.sql("DELETE FROM lists", at: 5)
    try a.sql("INSERT INTO lists VALUES ('r', 'A', NULL)", at: 10)
    try a.fold()
    let record = try #require(try world.serverRecords()["lists:r"])
    let page = ZonePage(
      zone: world.zone, records: [record], deletions: [], token: ChangeToken("t"), moreComing: false)
    try a.open().database.category.apply(page, now: world.clock.wallClock)
    #expect(try a.state("r") == "Reinserted")
    #expect(try a.sync().counts.saved == 1)
    try world.expectQuiet()
    #expect(try a.picture("SELECT * FROM lists") == ["r|A|∅"])
  }
}
