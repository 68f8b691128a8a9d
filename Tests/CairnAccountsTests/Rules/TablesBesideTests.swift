import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Testing

@testable import CairnAccounts

@Suite("Accounts beside tables, one engine (accounts.md A1)")
struct TablesBesideTests {
  /// An app with a database of its own and logins, on one device.
  private final class App {
    let device: TestDevice
    let path: String
    private(set) var sync: DatabaseSync

    init(_ world: TestWorld, _ mode: Preparation.Mode) throws {
      let device = try world.device()
      self.device = device
      path = world.folder.file("app\(device.number).db")
      let connection = try Connection(path: path, mode: .create)
      try connection.execute("CREATE TABLE notes(id TEXT PRIMARY KEY NOT NULL, body)")
      let randomness = SeededRandomness(seed: UInt64(device.number))
      let place = SyncPlace(
        server: "http://world", container: "iCloud.cairn", environment: "production", zone: "cairn", user: "")
      _ = try Preparation(
        Preparation.Options(path: path, selection: SelectionOptions(), mode: mode, place: place), cloud: device.cloud,
        time: device.time, randomness: randomness
      ).run()
      sync = try DatabaseSync(
        path: path, time: device.time, randomness: randomness,
        categories: { [AccountsCategory(device.core, zone: TestWorld.zone, store: $0)] },
        connect: { _ in device.cloud })
    }

    func sql(_ text: String) throws { try Connection(path: path, mode: .readWrite).execute(text) }
    func notes() throws -> [[Value]] {
      try Connection(path: path, mode: .readOnly).rows("SELECT * FROM notes ORDER BY id")
    }
  }

  @Test("A1 rows and logins travel by one engine in one zone, also after the schema has changed")
  func both() throws {
    let world = try TestWorld()
    let a = try App(world, .create)
    let id = try a.device.add()
    try a.sql("INSERT INTO notes VALUES ('n', 'text')")
    for _ in 0..<3 { _ = try a.sync.sync() }
    #expect(try world.names().contains("notes:n"))
    let b = try App(world, .join)
    for _ in 0..<3 { _ = try b.sync.sync() }
    #expect(try b.notes() == [[.text("n"), .text("text")]])
    #expect(b.device.live == [id])
    try b.sql("ALTER TABLE notes ADD COLUMN color")
    try b.device.core.remove(id)
    try b.sql("UPDATE notes SET color = 'red'")
    for _ in 0..<3 { _ = try b.sync.sync() }
    #expect(try world.names().contains("tombstone-\(id)"))
    for _ in 0..<3 { _ = try a.sync.sync() }
    #expect(a.device.live.isEmpty)
    #expect(try a.notes() == [[.text("n"), .text("text")]])
  }
}
