import Foundation
import ProcessSupport
import Testing

/// One file that two users of a server sync in turn, by the built binary.
@Suite struct OtherUserTests {
  private func setAside(_ object: [String: Any]) -> [[String: Any]] { object["setAside"] as? [[String: Any]] ?? [] }

  @Test("L10, L14: a file changes users only with a mode and while nobody syncs it; each user's state comes back")
  func twoUsers() throws {
    let world = try ProcessWorld()
    let path = try world.database(
      "d.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v); INSERT INTO t VALUES ('a', 1), ('b', 2);")
    let adas = try world.prepare(path, "create")["identity"] as? String
    #expect(try world.sync(path)["saved"] as? Int == 2)
    try world.query("UPDATE t SET v = 10 WHERE id = 'a'; DELETE FROM t WHERE id = 'b';", in: path)
    let bob = try world.addUser("bob")

    let watch = try world.start("sync", "--watch", path)
    _ = try watch.waitForLine("in sync")
    expectRefusal(try world.run(world.initWords(path, "--mode", "create", token: bob)), 1, "is being synced by process")
    watch.signal(SIGTERM)
    try watch.waitUntilExit()
    try world.query("INSERT INTO t VALUES ('c', 3);", in: path)

    expectRefusal(try world.run(world.initWords(path, token: bob)), 1, "another user")
    let changed = try world.run(world.initWords(path, "--mode", "merge", token: bob))
    #expect(changed.status == 0, "\(changed)")
    #expect(try ProcessWorld.object(changed.output)["setAside"] as? String == adas)
    #expect(try world.sync(path)["saved"] as? Int == 2)
    let status = try world.status(path)
    #expect(status["identity"] as? String != adas)
    #expect(setAside(status).first?["identity"] as? String == adas)
    #expect(setAside(status).first?["pending"] as? Int == 1)
    try world.query("DELETE FROM t; INSERT INTO t VALUES ('bob', 1);", in: path)

    let back = try world.run(world.initWords(path))
    #expect(back.status == 0, "\(back)")
    #expect(try world.query("SELECT * FROM t ORDER BY id;", in: path) == "a|10\nc|3\n")
    #expect(try world.sync(path)["saved"] as? Int == 1)
    #expect(try world.recordNames() == ["t:a", "t:a", "t:c", "t:c"])
    #expect(try setAside(world.status(path)).first?["pending"] as? Int == 3)
    let gone = try world.run("deinit", "--json", path)
    #expect(try ProcessWorld.object(gone.output)["unsent"] as? Int == 3)
    #expect(try world.query("SELECT count(*) FROM sqlite_master WHERE name LIKE '%cairn%';", in: path) == "0\n")
  }
}
