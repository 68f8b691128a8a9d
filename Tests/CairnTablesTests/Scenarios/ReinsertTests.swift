import CairnSQLite
import Testing

@Suite("Delete then reinsert (tables 8.7)")
struct ReinsertTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    world = try World()
    let devices = try world.devices(["A", "B"], base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
    (a, b) = (devices[0], devices[1])
  }

  @Test("TS98 insert, sync, delete, sync: one delete")
  func plainDelete() throws {
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    #expect(a.sentSinceLastAsked() == ["delete lists:r"])
    try world.expectConverged()
    #expect(try b.rows("SELECT * FROM lists").isEmpty)
  }

  @Test("TS102 delete and reinsert in one transaction: one save with the old tag, all fields at the reinsert clock")
  func oneTransaction() throws {
    try a.sql("BEGIN; DELETE FROM lists; INSERT INTO lists VALUES ('r', 'new', NULL); COMMIT", at: 10)
    let before = try world.serverRecords()["lists:r"]
    try a.sync()
    let sent = a.cloud.sentOperations.filter { $0.record.id.name == "lists:r" }
    #expect(sent.count == 1 && sent[0].kind == .replace && sent[0].record.changeTag == before?.changeTag)
    try world.expectConverged()
    #expect(try b.picture("SELECT * FROM lists") == ["r|new|∅"])
    // One statement after the other at @10: the insert is later than the delete (F3).
    let clock = World.start + 10_001
    let fields = try #require(world.serverRecords()["lists:r"]).fields
    #expect(fields["cairn_life"] == .int64(clock))
    #expect(fields["cairn_clocks"] == .string("{\"\(clock)\":[\"color\",\"id\",\"title\"]}"))
  }
}
