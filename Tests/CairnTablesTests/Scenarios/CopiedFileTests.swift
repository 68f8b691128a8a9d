import CairnRecords
import CairnTables
import Foundation
import Testing

@Suite("Copies, old files, no engine (tables L13–L16, 8.12)")
struct CopiedFileTests {
  let world: World
  let a: Device

  init() throws {
    world = try World()
    a = try world.devices(
      ["A"],
      base: """
        INSERT INTO lists VALUES ('l1', 'one', 'red'), ('l2', 'two', 'blue'); INSERT INTO notes VALUES (1, 'n', 'b');
        """)[0]
  }

  private func copy(_ device: Device, to path: String) throws {
    if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    try device.sql("VACUUM INTO '\(path)'")
  }

  /// A device on a copy of another's file.
  private func twin(_ name: String, of device: Device) throws -> Device {
    try copy(device, to: world.folder.appendingPathComponent("\(name).db").path)
    return try world.device(name, schema: "")
  }

  @Test("TS181 L13 no engine runs: insert, edit, delete; then all is sent, with one delete")
  func noEngine() throws {
    a.restart()
    try a.sql("INSERT INTO lists VALUES ('l3', 'three', NULL)", at: 10)
    try a.sql("UPDATE lists SET title = 'eins' WHERE id = 'l1'", at: 20)
    try a.sql("DELETE FROM lists WHERE id = 'l2'", at: 30)
    try a.sql("INSERT INTO lists VALUES ('l4', 'four', NULL); DELETE FROM lists WHERE id = 'l4'", at: 30)
    try a.sync()
    #expect(a.sentSinceLastAsked().sorted() == ["delete lists:l2", "save lists:l1", "save lists:l3"])
    #expect(try Set(world.serverRecords().keys.filter { $0.hasPrefix("lists:") }) == ["lists:l1", "lists:l3"])
  }

  @Test("TS182 L15 a copied file is just another device")
  func copied() throws {
    try a.sql("UPDATE lists SET color = 'pending' WHERE id = 'l2'", at: 5)
    _ = try a.status()
    a.restart()
    let b = try twin("B", of: a)
    try a.sql("INSERT INTO notes VALUES (2, 'of A', NULL); UPDATE lists SET title = 'A' WHERE id = 'l1'", at: 10)
    try b.sql("INSERT INTO notes VALUES (2, 'of B', NULL); UPDATE lists SET color = 'B' WHERE id = 'l1'", at: 20)
    try world.expectConverged()
    #expect(try a.picture("SELECT * FROM lists") == ["l1|A|B", "l2|two|pending"])
    #expect(try a.picture("SELECT title FROM notes") == ["n", "of A", "of B"])
    #expect(try a.picture("SELECT title FROM notes WHERE id = 2") == ["of A"])
    #expect(try b.picture("SELECT title FROM notes WHERE id = 2") == ["of B"])
  }

  @Test(
    "L16 a file restored from an old backup takes up what came later, its own changes too; deleted rows stay deleted")
  func restored() throws {
    let old = try twin("O", of: a)
    let b = try world.device("B")
    try b.prepare(.join)
    try world.settle()
    try old.sql("UPDATE lists SET title = 'old edit', color = 'old' WHERE id = 'l1'", at: 10)
    old.restart()
    let backup = world.folder.appendingPathComponent("old").path
    try copy(old, to: backup)
    // Its own later life, which the backup does not know.
    try old.sql("INSERT INTO lists VALUES ('l3', 'later', NULL); UPDATE notes SET title = 'later'", at: 30)
    try old.sync()
    try b.sync()
    try b.sql("UPDATE lists SET title = 'newer' WHERE id = 'l1'; DELETE FROM lists WHERE id = 'l2'", at: 40)
    try world.settle()
    old.restart()
    let restored = try Device.restore(backup, as: "R", world)
    #expect(try restored.picture("SELECT id FROM lists") == ["l1", "l2"])
    try restored.sync()
    try world.settle()
    #expect(try restored.picture("SELECT * FROM lists") == ["l1|newer|old", "l3|later|∅"])
    try world.expectConverged()
  }

  @Test("TS180 L12 an expired token whose deletions were pruned: deleted rows go, edited ones live")
  func prunedTombstones() throws {
    let b = try world.device("B")
    try b.prepare(.join)
    try b.sync()
    try b.sql("DELETE FROM lists; DELETE FROM notes", at: 10)
    try b.sync()
    try a.sql("UPDATE lists SET title = 'edited' WHERE id = 'l1'", at: 5)
    world.clock.advance(seconds: 200 * 86_400)
    try world.server.core.pruneTombstones()
    try a.sync()
    #expect(try a.picture("SELECT id, title FROM lists") == ["l1|edited"])
    #expect(try a.rows("SELECT * FROM notes").isEmpty)
    try world.expectConverged()
    let rows = try b.picture("SELECT * FROM lists")
    #expect(rows == ["l1|edited|red"])
  }

  @Test("L12 a snapshot asks only for what it has not shown")
  func snapshotLookups() throws {
    let b = try world.device("B")
    try b.prepare(.join)
    try b.sync()
    try b.sql("DELETE FROM notes", at: 10)
    try b.sync()
    world.clock.advance(seconds: 200 * 86_400)
    try world.server.core.pruneTombstones()
    let gone = try a.rows("SELECT 1 FROM notes").count
    a.cloud.clearLog()
    try a.sync()
    let asked = a.cloud.log.flatMap { request -> [String] in
      if case .lookup(_, let names) = request.call { names } else { [] }
    }
    #expect(gone > 0 && asked.count == gone && asked.allSatisfy { $0.hasPrefix("notes:") }, "\(asked)")
    try world.expectConverged()
  }
}

extension Device {
  /// A device on a copy of a file.
  static func restore(_ file: String, as name: String, _ world: World) throws -> Device {
    try FileManager.default.copyItem(
      atPath: file, toPath: world.folder.appendingPathComponent("\(name).db").path)
    return try world.device(name, schema: "")
  }
}
