import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation
import Testing

/// A kill at each commit and each request of what must go on afterwards. Every case is a world of its own.
@Suite("Cut off and gone on with (tables 1.1, T26–T29)")
struct CutOffTests {
  private static let base = """
    INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue'); INSERT INTO notes VALUES (1, 'n', 'b');
    INSERT INTO files VALUES (1, 1, 'f'); INSERT INTO employees VALUES (1, 'boss', 1), (2, 'worker', 1);
    """

  private static let schema = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title, color);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title, body);
    CREATE TABLE files(id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes, name);
    CREATE TABLE employees(id INTEGER PRIMARY KEY, name, boss_id INTEGER REFERENCES employees ON DELETE RESTRICT);
    """

  /// A device that is about to be prepared, and another that has filled the zone.
  private func world(_ rows: String, filled: Bool) throws -> (World, Device) {
    let world = try World()
    if filled {
      let a = try world.device("A", schema: Self.schema)
      try a.sql(Self.base)
      try a.prepare(.create)
      try a.sync()
    }
    let b = try world.device("B", schema: Self.schema)
    try b.sql(rows)
    world.clock.advance(seconds: 100)
    return (world, b)
  }

  private static let mine = """
    INSERT INTO lists VALUES ('l1', 'mine', NULL), ('l9', 'nine', NULL); INSERT INTO notes VALUES (7, 'n', 'b');
    INSERT INTO files VALUES (3, 7, 'f'); INSERT INTO employees VALUES (5, 'boss', 5), (6, 'worker', 5);
    """

  @Test(
    "1.1 init that is cut off at any commit or request is finished by the next",
    arguments: [Preparation.Mode.create, .join, .merge])
  func preparation(mode: Preparation.Mode) throws {
    func fresh() throws -> (World, Device) { try world(Self.mine, filled: mode != .create) }
    let (reference, device) = try fresh()
    try device.prepare(mode)
    let requests = device.cloud.log.count
    try reference.expectConverged()
    let end = try device.picture("SELECT * FROM lists") + device.picture("SELECT title FROM notes")
    let names = try reference.serverRecords().keys.filter { $0.hasPrefix("lists:") }.sorted()

    func expectFinished(_ world: World, _ device: Device, _ place: String) throws {
      device.cloud.heal()
      device.restart()
      if try device.scalar("SELECT 1 FROM sqlite_master WHERE name = 'cairn_setting'") != nil,
        try device.scalar("SELECT 1 FROM cairn_setting WHERE key = 'takeUp'") != nil
      {
        #expect(throws: TablesError.unfinished(device.path), "\(place)") { try device.sync() }
      }
      try device.prepare(mode)
      try world.expectConverged()
      #expect(
        try device.picture("SELECT * FROM lists") + device.picture("SELECT title FROM notes") == end, "\(place)")
      #expect(try world.serverRecords().keys.filter { $0.hasPrefix("lists:") }.sorted() == names, "\(place)")
    }

    var border = 1
    while true {
      let (world, device) = try fresh()
      let (commits, failure) = CommitBorders.dying(at: border, in: world.folder) { _ = try device.prepare(mode) }
      if commits < border {
        #expect(failure == nil && border > 3)
        break
      }
      try expectFinished(world, device, "\(mode), commit \(border)")
      border += 1
    }
    for request in 0..<requests {
      for fault in [FaultInjector.Fault.lostRequest, .lostAnswer] {
        let (world, device) = try fresh()
        device.cloud.script(Array(repeating: nil, count: request) + [fault])
        #expect(throws: (any Error).self) { try device.prepare(mode) }
        try expectFinished(world, device, "\(mode), request \(request) \(fault)")
      }
    }
  }

  @Test("T26–T29 V2 V4 a schema change that is cut off at any commit is finished by the next open")
  func schemaChange() throws {
    /// B has kept values of `c`, parked records of `more`, and a rebuilt table.
    func fresh() throws -> (World, Device) {
      let world = try World()
      let more = "ALTER TABLE lists ADD COLUMN c; CREATE TABLE more(id INTEGER PRIMARY KEY, v);"
      let devices = try world.devices(["A", "B"], schema: Self.schema, base: Self.base)
      let (a, b) = (devices[0], devices[1])
      try a.sql(more + "INSERT INTO more VALUES (1, 'a'), (2, 'b')")
      try a.sync()
      try a.sql("UPDATE lists SET c = 'kept' WHERE id = 'l1'", at: 10)
      try a.sync()
      try b.sync()
      b.restart()
      try b.sql(more + "UPDATE lists SET c = 'filled'; INSERT INTO more VALUES (1, 'a'), (3, 'own')")
      try b.sql(
        """
        PRAGMA foreign_keys = OFF; CREATE TABLE new(id INTEGER PRIMARY KEY, title, body); INSERT INTO new SELECT * FROM notes; DROP TABLE notes;
        ALTER TABLE new RENAME TO notes; UPDATE notes SET title = 'edited'; INSERT INTO notes VALUES (9, 'added', NULL)
        """)
      world.clock.advance(seconds: 100)
      return (world, b)
    }
    func expectFinished(_ world: World, _ device: Device, _ place: String) throws {
      try world.expectConverged()
      #expect(try device.picture("SELECT id, c FROM lists") == ["l1|kept", "l2|filled"], "\(place)")
      #expect(try device.picture("SELECT v FROM more") == ["a", "b", "own"], "\(place)")
      #expect(try device.picture("SELECT title FROM notes") == ["added", "edited"], "\(place)")
    }

    let (reference, device) = try fresh()
    _ = try device.status()
    try expectFinished(reference, device, "not cut off")
    var border = 1
    while true {
      let (world, device) = try fresh()
      let (commits, _) = CommitBorders.dying(at: border, in: world.folder) { _ = try device.status() }
      if commits < border { break }
      try expectFinished(world, device, "commit \(border)")
      border += 1
    }
    #expect(border > 5)
  }
}
