import Foundation
import ProcessSupport
import Testing

/// Connections that break at random bytes.
@Suite struct CutConnectionTests {
  @Test(
    "TS61, TS194: connections cut at random bytes in both directions: nothing lost, nothing twice, right exit codes",
    .timeLimit(.minutes(10)), arguments: ProcessWorld.isSoak ? Array(1...12) as [UInt64] : [1, 2])
  func cut(seed: UInt64) throws {
    let rows = ProcessWorld.isSoak ? 5_000 : 600
    let world = try ProcessWorld()
    let proxy = try CuttingProxy(to: world.url, seed: seed)
    defer { proxy.stop() }
    proxy.cut(percent: 0)
    let fill = """
      CREATE TABLE tree(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree(id), name TEXT);
      CREATE TABLE note(id TEXT PRIMARY KEY NOT NULL, title TEXT);
      WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < \(rows))
      INSERT INTO tree SELECT x, nullif(x / 2, 0), 'row ' || x || hex(zeroblob(100)) FROM c;
      INSERT INTO note SELECT 'n' || id, name FROM tree;
      """
    let a = try world.database("a.db", fill)
    let b = world.folder.file("b.db")
    #expect(try world.run(world.initWords(a, "--mode", "create", url: proxy.url)).status == 0)
    #expect(try world.run(world.initWords(b, "--mode", "join", url: proxy.url)).status == 0)
    proxy.cut(percent: 80)
    for round in 0..<(ProcessWorld.isSoak ? 30 : 8) {
      let path = round % 2 == 0 ? a : b
      let result = try world.run("sync", "--json", path)
      #expect([0, 3, 4].contains(result.status), "seed \(seed): \(result)")
      #expect(result.error.split(separator: "\n").count == (result.status == 4 ? 1 : 0), "seed \(seed): \(result)")
      try world.query(
        "INSERT INTO note VALUES ('r\(round)', 'x'); UPDATE note SET title = '\(round)' WHERE id = 'n\(round)';",
        in: a)
      try world.expectHealthy(path)
    }
    #expect(proxy.cutCount > 3)
    // Half of the connections go on breaking until all is through.
    proxy.cut(percent: 50)
    let isThrough = try (0..<60).contains { _ in
      let reports = try [a, b].map { path -> [String: Any] in
        let result = try world.run("sync", "--json", path)
        #expect([0, 3, 4].contains(result.status), "seed \(seed): \(result)")
        return result.status == 0 ? try ProcessWorld.object(result.output) : [:]
      }
      return reports.allSatisfy { report in
        ["saved", "deleted", "fetched", "removed", "pending"].allSatisfy { report[$0] as? Int == 0 }
      }
    }
    #expect(isThrough, "seed \(seed): not through after 60 rounds")
    proxy.cut(percent: 0)
    let picture = """
      SELECT t.name, p.name FROM tree t LEFT JOIN tree p ON p.id = t.parent ORDER BY 1; SELECT * FROM note ORDER BY id;
      """
    #expect(try world.query(picture, in: a) == world.query(picture, in: b), "seed \(seed)")
    let count = try world.query("SELECT (SELECT count(*) FROM tree) + (SELECT count(*) FROM note);", in: b)
    #expect(try world.recordNames().count == Int(count.dropLast()), "seed \(seed)")
    try world.expectHealthy(b)
  }
}
