import CairnEngine
import CairnSQLite
import CairnTables
import Foundation
import Testing

@Suite("doctor and damaged files (DESIGN 7)")
struct DamagedFileTests {
  let world: World
  let a: Device

  init() throws {
    world = try World()
    a = try world.device(
      "A", schema: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v, w); CREATE INDEX tv ON t(v)", journal: "DELETE")
    try a.prepare(.create)
    try a.sql(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
      INSERT INTO t SELECT 'r' || i, i, 'same' || hex(zeroblob(50)) FROM n
      """, at: 1)
    try a.sync()
    a.restart()
  }

  private func open() throws -> SyncedDatabase {
    try SyncedDatabase(path: a.path, time: a.time, randomness: a.randomness)
  }

  /// The index is built on other columns than its declaration says.
  private func mislead(_ declaration: String) throws {
    try a.sql("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '\(declaration)' WHERE name = 'tv'")
    try a.reconnect {}
  }

  @Test("DESIGN 7 an index that does not agree with its table is found and built again; rows are unharmed")
  func index() throws {
    let before = try a.picture("SELECT * FROM t")
    try mislead("CREATE INDEX tv ON t(w, id)")
    let database = try open()
    let findings = try database.examine()
    #expect(findings.map(\.kind) == [.damagedIndex] && findings[0].text.contains("cairn doctor --repair"))
    let repaired = try database.repair(findings, cloud: nil)
    #expect(repaired.count == 1 && repaired[0].isRepaired)
    #expect(try open().examine().isEmpty)
    #expect(try a.scalar("PRAGMA integrity_check") == .text("ok"))
    #expect(try a.picture("SELECT * FROM t NOT INDEXED") == before)
    try world.expectConverged()
  }

  @Test("DESIGN 7 a unique index that can't be built again is told, with what to do, and not repaired")
  func uniqueIndex() throws {
    try mislead("CREATE UNIQUE INDEX tv ON t(w)")
    let database = try open()
    let findings = try database.examine()
    #expect(findings.map(\.kind) == [.damagedIndex])
    let left = try database.repair(findings, cloud: nil)
    #expect(left.map(\.kind) == [.damagedFile] && !left[0].isRepaired)
    #expect(left[0].text.contains("backup") && left[0].text.contains(".recover"))
  }

  @Test("DESIGN 7 damaged pages are told, with what to do; nothing is read or written beyond")
  func pages() throws {
    let pages = try a.rows("SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'leaf' ORDER BY pageno")
    let size = try #require(a.scalar("PRAGMA page_size")?.integerForTests)
    try a.reconnect {
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: a.path))
      for page in pages.prefix(2) {
        try file.seek(toOffset: UInt64((page[0].integerForTests ?? 1) - 1) * UInt64(size))
        try file.write(contentsOf: Data(repeating: 0xa5, count: Int(size)))
      }
      try file.close()
    }
    let content = try Data(contentsOf: URL(fileURLWithPath: a.path))
    let database = try open()
    let findings = try database.examine()
    #expect(findings.map(\.kind) == [.damagedFile])
    #expect(findings[0].text.contains("backup") && findings[0].text.contains(".recover"))
    #expect(try database.repair(findings, cloud: nil).allSatisfy { !$0.isRepaired })
    #expect(try Data(contentsOf: URL(fileURLWithPath: a.path)) == content)
  }
}
