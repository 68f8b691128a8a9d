import CairnEngine
import CairnSQLite
import CairnTables
import Testing

/// `cairn log` names every local value and row that lost a merge, with both times (tables section 7).
@Suite("The log of what lost a merge (tables 7)")
struct LossLogTests {
  /// @30, @50 and @60 as people read them.
  private static let (at30, at50, at60) = (
    "2023-11-14T22:13:50.000Z", "2023-11-14T22:14:10.000Z", "2023-11-14T22:14:20.000Z"
  )

  private func pair(_ base: String, schema: String = Schema.scenarios) throws -> (World, Device, Device) {
    let world = try World()
    let d = try world.devices(["A", "B"], schema: schema, base: base)
    return (world, d[0], d[1])
  }

  /// What A's log says of merges: record and sentence.
  private func merges(_ device: Device) throws -> [String] {
    try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness).events(limit: 1_000)
      .filter { $0.kind == "merged" }.map { "\($0.table ?? "") \($0.record ?? "") \($0.detail)" }
  }

  @Test("7 an edit that lost against a later one, on fetch and on conflict", arguments: [true, false])
  func edit(sendsFirst: Bool) throws {
    let (world, a, b) = try pair("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    try a.sql("UPDATE lists SET title = 'A', color = 'blue'", at: 30)
    try b.sql("UPDATE lists SET title = 'B'", at: 60)
    try b.sync()
    try a.sync(sendsFirst ? .sendOnly : .all)
    try world.expectConverged()
    #expect(
      try merges(a) == ["lists lists:l1 title: the edit made here at \(Self.at30) lost against the one of \(Self.at60)"]
    )
    // Where nothing was edited, nothing was lost.
    #expect(try merges(b).isEmpty)
  }

  @Test("7 an edit that lost against a delete; a delete that lost against an edit", arguments: [true, false])
  func editAndDelete(deleteWins: Bool) throws {
    let (world, a, b) = try pair("INSERT INTO lists VALUES ('l1', 'x', 'red')")
    let (edit, delete) = ("UPDATE lists SET title = 'A'", "DELETE FROM lists")
    try a.sql(deleteWins ? edit : delete, at: 30)
    try b.sql(deleteWins ? delete : edit, at: 60)
    try b.sync()
    try world.expectConverged()
    let sentence = deleteWins ? "the edit made here at" : "the delete made here at"
    let winner = deleteWins ? "the delete of" : "the edit of"
    #expect(try merges(a) == ["lists lists:l1 \(sentence) \(Self.at30) lost against \(winner) \(Self.at60)"])
  }

  @Test("7 edits of children that went, or were detached, with a parent that was deleted elsewhere")
  func children() throws {
    let (world, a, b) = try pair(
      """
      INSERT INTO lists(id) VALUES ('l1'), ('l2'); INSERT INTO opt VALUES ('o', 'l2');
      """)
    try a.sql("INSERT INTO items(id, list_id) VALUES ('i', 'l1'); UPDATE opt SET list_id = 'l1'", at: 30)
    try b.sql("DELETE FROM lists WHERE id = 'l1'", at: 60)
    try b.sync()
    try world.expectConverged()
    let loss = "made here at \(Self.at30) lost against the delete of its parent of \(Self.at60)"
    #expect(try Set(merges(a)) == ["items items:i the edit \(loss)", "opt opt:o list_id: the edit \(loss)"])
  }

  @Test(
    "7 an edit of a row that was deleted and inserted again elsewhere, also of a field that the other does not know")
  func reinserted() throws {
    let (world, a, b) = try pair(
      "INSERT INTO t VALUES ('r', 'x')", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, title)")
    a.restart()
    try a.sql("ALTER TABLE t ADD COLUMN own DEFAULT 7")
    try a.sync()
    try a.sql("UPDATE t SET own = 8, title = 'A'", at: 30)
    try b.sql("DELETE FROM t", at: 50)
    try b.sql("INSERT INTO t VALUES ('r', 'again')", at: 60)
    try b.sync()
    try a.sync()
    #expect(try a.picture("SELECT * FROM t") == ["r|again|7"])
    #expect(
      try Set(merges(a)) == [
        "t t:r title: the edit made here at \(Self.at30) lost against the one of \(Self.at60)",
        "t t:r own: the edit made here at \(Self.at30) lost against the delete of \(Self.at50)",
      ])
    try world.settle()
  }
}
