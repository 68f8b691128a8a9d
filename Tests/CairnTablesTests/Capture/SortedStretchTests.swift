import CairnEngine
import CairnSQLite
import CairnTesting
import Foundation
import FuzzSupport
import Testing

@testable import CairnTables

/// Long logs are folded in the order of their keys; what comes out must be what the order of the log gives.
@Suite("F2–F7 long logs (tables 3.1)")
struct SortedStretchTests {
  private static let schema = """
    CREATE TABLE texts(id TEXT PRIMARY KEY NOT NULL, a, b);
    CREATE TABLE mixed(id PRIMARY KEY NOT NULL, a, b) WITHOUT ROWID;
    CREATE TABLE spelled(id TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, a, b);
    CREATE TABLE pairs(id, other, a, b, PRIMARY KEY (id, other)) WITHOUT ROWID;
    CREATE TABLE narrow(id TEXT PRIMARY KEY NOT NULL, a) WITHOUT ROWID;
    CREATE TABLE swapped(a, id TEXT PRIMARY KEY NOT NULL);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, a, b);
    """
  private static let tables = ["texts", "mixed", "spelled", "pairs"]
  /// What `cairn_record` holds, and the counts of rows.
  private static let state = """
    SELECT tbl, typeof(key), hex(key), key, name, pending, state, tag, clock, shape, rest FROM cairn_record
    UNION ALL SELECT number, 'live', live, null_keys, 0, 0, 0, 0, 0, 0, 0 FROM cairn_table ORDER BY 1, 2, 3
    """

  /// A device whose log is long, with records of every state below it, and a copy of its file for each way of folding.
  private final class Story {
    let world: World
    let device: Device
    private let original: String
    private var chance: Mutator

    /// - Parameters:
    ///   - first: SQL that runs before the first sync.
    ///   - last: SQL that runs after all others.
    init(seed: UInt64, statements: Int, encoding: String = "UTF-8", first: String = "", last: String = "") throws {
      chance = Mutator(seed: seed)
      world = try World()
      // In WAL mode a file has its encoding before there is a table.
      device = try world.device(
        "A", schema: "PRAGMA encoding = '\(encoding)'; \(SortedStretchTests.schema)", journal: "DELETE")
      try device.prepare(.create)
      try #require(try device.scalar("PRAGMA encoding") == .text(encoding))
      original = world.folder.appendingPathComponent("original.db").path
      try write(300, to: try device.connection())
      try device.sql("INSERT INTO notes(a) SELECT 'n' FROM texts, texts LIMIT 900")
      // Confirmed records that most edits find: near each other, and with many others between them.
      try device.sql(
        """
        WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
        INSERT INTO texts(id, a) SELECT 's' || i, 's' FROM n UNION ALL SELECT 'near ' || i, 'n' FROM n WHERE i < 400;
        WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 399)
        INSERT INTO mixed(id, a) SELECT i + 1000, 'm' FROM n UNION ALL SELECT i + 1000.5, 'r' FROM n
        UNION ALL SELECT CAST('near ' || i AS BLOB), 'b' FROM n;
        INSERT INTO narrow(id, a) SELECT id, a FROM texts WHERE id LIKE 'near%';
        INSERT INTO swapped(id, a) SELECT id, a FROM narrow;
        """)
      try device.sql(first)
      try device.sync()
      // Unsent and dead records as well.
      try write(300, to: try device.connection())
      _ = try device.status()
      try write(statements, to: try device.connection())
      try device.sql(last)
      try Connection(path: device.path, mode: .readOnly).run("VACUUM INTO ?", .text(original))
    }

    func begin() throws {
      device.restart()
      try device.takeFile(from: original)
    }

    /// Writes rows in all tables, with times that do not follow each other.
    func write(_ statements: Int, to program: Connection) throws {
      let last = try program.scalar("SELECT coalesce(max(id), 0) FROM cairn_log") ?? .integer(0)
      try program.transaction {
        for _ in 0..<statements { try writeOne(program) }
        try program.run(
          "UPDATE cairn_log SET time = 2440587.5 + (?1 + id * 7919 % 10007) / 86400000.0 WHERE id > ?2",
          .integer(World.start), last)
      }
    }

    private func writeOne(_ program: Connection) throws {
      let value = Value.integer(Int64(chance.index(1_000)))
      if chance.index(8) == 0 {
        return try program.run(
          "UPDATE notes SET \(column()) = ?1 WHERE id = ?2", value, .integer(Int64(chance.index(1_000))))
      }
      if chance.index(3) == 0 { return try editConfirmed(program, value) }
      let table = chance.one(of: SortedStretchTests.tables)
      let key = chance.one(of: [text(), text(), number(), odd()])
      let isPair = table == "pairs"
      let keys = isPair ? [key, .integer(Int64(chance.index(3)))] : [key]
      let found = isPair ? "id = ?1 AND other = ?2" : "id = ?1"
      let next = "?\(keys.count + 1)"
      switch chance.index(4) {
      case 0:
        try program.prepare("DELETE FROM \(table) WHERE \(found)").run(keys)
      case 1:
        let columns = chance.one(of: ["a = \(next)", "b = \(next)", "b = \(next), a = \(next)"])
        try program.prepare("UPDATE \(table) SET \(columns) WHERE \(found)").run(keys + [value])
      default:
        // One that is there already is skipped: no statement that replaces a row, which would need the order of the
        // log.
        try program.prepare(
          """
          INSERT INTO \(table)(\(isPair ? "id, other, a" : "id, a")) SELECT \(isPair ? "?1, ?2, ?3" : "?1, ?2")
          WHERE NOT EXISTS (SELECT 1 FROM \(table) WHERE \(found))
          """
        ).run(keys + [value])
      }
    }

    private func editConfirmed(_ program: Connection, _ value: Value) throws {
      let key = Int64(chance.index(400))
      let (table, id) = chance.one(of: [
        ("texts", Value.text("near \(key)")), ("texts", .text("s\(key * 7)")), ("mixed", .integer(key + 1_000)),
        ("mixed", .real(Double(key) + 1_000.5)), ("mixed", .blob(Array("near \(key)".utf8))),
      ])
      let single = chance.one(of: ["narrow", "swapped", "", ""])
      if !single.isEmpty {
        return try program.run("UPDATE \(single) SET a = ?2 WHERE id = ?1", .text("near \(key)"), value)
      }
      let columns = chance.one(of: ["a = ?2", "b = ?2", "a = ?2, b = ?2"])
      try program.run("UPDATE \(table) SET \(columns) WHERE id = ?1", id, value)
    }

    private func column() -> String { chance.one(of: ["a", "b"]) }

    private func text() -> Value {
      let letters = chance.one(of: ["k", "K", "é", "e\u{301}", "ключ", "key of some length ", "", "~", "%"])
      return .text(letters + String(chance.index(150)))
    }

    private func number() -> Value {
      let number = Int64(chance.index(120)) - 60
      return chance.one(of: [
        Value.integer(number), .integer(number << 40), .real(Double(number)), .real(Double(number) / 3),
      ])
    }

    private func odd() -> Value {
      let byte = UInt8(chance.index(256))
      return chance.one(of: [Value.blob([]), .blob([byte]), .blob([0, byte]), .text("a\0\(byte)")])
    }

    func state() throws -> [String] {
      _ = try device.status()
      #expect(try device.scalar("SELECT count(*) FROM cairn_log") == .integer(0))
      #expect(try device.scalar("SELECT 1 FROM cairn_setting WHERE key = 'foldMark'") == nil)
      return try device.picture(SortedStretchTests.state)
    }

    /// The log's entries are folded a few at a time, so that their own order is all there is.
    func stateInOrderOfLog() throws -> [String] {
      let program = try device.connection()
      let entries = try program.rows("SELECT * FROM cairn_log ORDER BY id")
      try program.execute("DELETE FROM cairn_log")
      let places = Array(repeating: "?", count: entries.first?.count ?? 0).joined(separator: ", ")
      for start in stride(from: 0, to: entries.count, by: 500) {
        try program.transaction {
          let insert = try program.prepare("INSERT INTO cairn_log VALUES (\(places))")
          for entry in entries[start..<min(start + 500, entries.count)] { try insert.run(entry) }
        }
        _ = try device.status()
      }
      return try state()
    }
  }

  @Test("F2–F7 a long log in the order of its keys gives what the order of the log gives", arguments: UInt64(1)...6)
  func order(seed: UInt64) throws {
    let story = try Story(seed: seed, statements: 4_000)
    try story.begin()
    let expected = try story.stateInOrderOfLog()
    try story.begin()
    let found = try story.state()
    #expect(found == expected, "seed \(seed): \(Set(found).symmetricDifference(expected).sorted().prefix(6))")
  }

  @Test(
    "G3 F2 a fold of a long log dies at each of its commits, and programs write on: nothing is folded twice or left out"
  )
  func borders() throws {
    let story = try Story(seed: 5, statements: 20_000)
    try story.begin()
    var border = 1
    var marks = 0
    var reference: [String] = []
    while true {
      try story.begin()
      let (commits, _) = CommitBorders.dying(at: border, in: story.world.folder) { _ = try story.device.status() }
      if try story.device.scalar("SELECT 1 FROM cairn_setting WHERE key = 'foldMark'") != nil { marks += 1 }
      // The same statements each time, after the rest of the log.
      try story.device.sql(
        "UPDATE texts SET a = 'later'; DELETE FROM mixed WHERE typeof(id) = 'real'; DELETE FROM texts WHERE id > 'k5'")
      try story.device.sql("UPDATE cairn_log SET time = 2500000 WHERE time > 2460500")
      let state = try story.state()
      if commits < border {
        #expect(marks > 1)
        return
      }
      if border == 1 { reference = state }
      #expect(state == reference, "died at commit \(border)")
      border += 1
    }
  }

  @Test(
    "F2–F7 a long log of a UTF-16 file, where SQLite compares text by other bytes", arguments: ["UTF-16le", "UTF-16be"])
  func encoding(_ encoding: String) throws {
    let story = try Story(seed: 6, statements: 4_000, encoding: encoding)
    try story.begin()
    let expected = try story.stateInOrderOfLog()
    try story.begin()
    #expect(try story.state() == expected)
  }

  @Test("F2–F7 a long log with numbers that SQLite takes for one key, though Cairn does not")
  func hugeNumbers() throws {
    let story = try Story(
      seed: 9, statements: 4_000,
      first: "INSERT INTO mixed(id, a) VALUES (9007199254740994.0, 'real'), (9007199254740998, 'integer')",
      last: """
        BEGIN; DELETE FROM mixed WHERE id = 9007199254740994; INSERT INTO mixed(id, a) VALUES (9007199254740994, 'integer');
        DELETE FROM mixed WHERE id = 9007199254740998; INSERT INTO mixed(id, a) VALUES (9007199254740998.0, 'real'); COMMIT
        """)
    try story.begin()
    let expected = try story.stateInOrderOfLog()
    try story.begin()
    #expect(try story.state() == expected)
    #expect(
      try story.device.scalar(
        "SELECT count(*) FROM cairn_record WHERE typeof(key) <> 'text' AND key > 9007199254740990 AND typeof(key) <> 'blob'"
      ) == .integer(2))
  }

  @Test("G3 F2 two processes fold one long log: what one has folded the other leaves alone, and what came since")
  func twoFolders() throws {
    let story = try Story(seed: 7, statements: 20_000)
    func other() throws -> SyncedDatabase {
      try SyncedDatabase(path: story.device.path, time: story.device.time, randomness: story.device.randomness)
    }
    try story.begin()
    let expected = try story.state()

    // One has folded everything since the other has read the log, and as many entries as before have come.
    try story.begin()
    do {
      let late = try other()
      let stretch = try #require(try SortedStretch.first(of: late.file))
      #expect(try story.state() == expected)
      try story.write(20_000, to: try story.device.connection())
      let entries = try story.device.scalar("SELECT count(*) FROM cairn_log")
      let records = try story.device.picture(SortedStretchTests.state)
      try stretch.fold(late.file)
      #expect(try story.device.scalar("SELECT count(*) FROM cairn_log") == entries)
      #expect(try story.device.picture(SortedStretchTests.state) == records)
    }

    // One has died in the middle since the other has read the log.
    try story.begin()
    do {
      let late = try other()
      let stretch = try #require(try SortedStretch.first(of: late.file))
      _ = CommitBorders.dying(at: 3, in: story.world.folder) { _ = try story.device.status() }
      let mark = try #require(try story.device.scalar("SELECT value FROM cairn_setting WHERE key = 'foldMark'"))
      try stretch.fold(late.file)
      #expect(try story.device.scalar("SELECT value FROM cairn_setting WHERE key = 'foldMark'") == mark)
      try late.foldForTests()
    }
    #expect(try story.state() == expected)
  }

  @Test("G3 F2 a fold dies in the middle of a long log, and the table that it was at is dropped")
  func droppedTable() throws {
    let story = try Story(seed: 8, statements: 20_000)
    let others = "SELECT * FROM (\(Self.state)) WHERE tbl <> (SELECT number FROM cairn_table WHERE name = 'texts')"
    try story.begin()
    _ = try story.state()
    let expected = try story.device.picture(others)
    try story.begin()
    _ = CommitBorders.dying(at: 3, in: story.world.folder) { _ = try story.device.status() }
    try #require(try story.device.scalar("SELECT 1 FROM cairn_setting WHERE key = 'foldMark'") != nil)
    try story.device.sql("DROP TABLE texts")
    _ = try story.state()
    #expect(try story.device.picture(others) == expected)
  }
}
