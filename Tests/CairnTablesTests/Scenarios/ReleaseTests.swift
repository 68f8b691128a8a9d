import Cairn
import CairnTables
import Testing

@Suite("What a dropped engine gives back")
struct ReleaseTests {
  @Test("an engine that is dropped closes its file and ends what it made")
  func dropped() throws {
    weak var world: World?
    weak var device: Device?
    weak var sync: DatabaseSync?
    weak var category: TablesCategory?
    try {
      let living = try World()
      let a = try living.devices(["A", "B"], base: "INSERT INTO lists VALUES ('l', 1, 2)")[0]
      try a.sql("UPDATE lists SET title = 2; INSERT INTO notes(title) VALUES ('n')", at: 5)
      try living.expectConverged()
      (world, device, sync, category) = (living, a, try a.open(), try a.open().database.category)
    }()
    #expect(world == nil)
    #expect(device == nil)
    #expect(sync == nil)
    #expect(category == nil)
  }
}
