import Foundation
import ProcessSupport
import Testing

/// Every error is one line with a remedy on standard error, with the right exit code, and nothing on standard output.
@Suite struct ErrorTests {
  @Test("DESIGN 7: errors of the file, of the command line and of the server's address")
  func refusals() throws {
    let world = try ProcessWorld()
    let path = try world.database("d.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL); CREATE TABLE bad(x);")
    let text = world.folder.file("text.db")
    try Data("not a database at all, but long enough to be looked at".utf8).write(to: URL(fileURLWithPath: text))
    for command in ["sync", "status", "parked", "log", "doctor", "deinit"] {
      expectRefusal(try world.run(command, "--json", path), 1, "cairn init")
      expectRefusal(try world.run(command, "--json", world.folder.file("none.db")), 1, "none.db")
      expectRefusal(try world.run(command, "--json", text), 1, "not a SQLite database")
      expectRefusal(try world.run(command, "--json", world.folder.path), 1, "folder")
      expectRefusal(try world.run(command, "--json"), 2, "--help")
      expectRefusal(try world.run(command, "--json", path, "--frob"), 2, "--frob")
    }
    let refused = try world.run(world.initWords(path))
    #expect(refused.status == 1 && refused.error.contains("--exclude bad"), "\(refused)")
    #expect(try ProcessWorld.object(refused.output)["problems"] != nil)
    let good = try world.database("g.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL);")
    #expect(try world.run(world.initWords(good, "--table", "nope")).status == 2)
    let host = world.url.dropFirst("http://".count)
    for (url, code) in [
      ("\(host)", 2), ("ftp://\(host)", 2), ("http://", 2), ("http://user:pw@\(host)", 2), ("\(world.url)?a=b", 2),
      ("http://127.0.0.1:99999", 2), ("not a url", 2), ("http://127.0.0.1:1", 4), ("https://\(host)", 4),
      ("\(world.url)/elsewhere", 1),
    ] as [(String, Int32)] {
      expectRefusal(try world.run(world.initWords(good, url: url)), code)
    }
    for url in ["\(world.url)/", "HTTP://\(host)", " \(world.url)"] {
      #expect(try world.run(world.initWords(good, url: url)).status == 0)
    }
  }

  @Test("L8, L10: wrong tokens and another user's token; rows and pending stay")
  func tokens() throws {
    let world = try ProcessWorld()
    let path = try world.database("d.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL); INSERT INTO t VALUES ('a');")
    expectRefusal(try world.run(world.initWords(path, token: "wrong")), 1, "token")
    expectRefusal(try world.run(world.initWords(path, token: "has space")), 2, "token")
    try world.prepare(path, "create")
    let other = try world.addUser("bob")
    expectRefusal(try world.run(world.initWords(path, token: other)), 1, "another user")
    for (token, words) in [("wrong", "token"), (other, "another user")] {
      let result = try world.run("sync", path, environment: ["CAIRN_TOKEN": token])
      expectRefusal(result, 1, words)
      #expect(try world.status(path)["pending"] as? Int == 1)
    }
    #expect(try world.sync(path)["saved"] as? Int == 1)
    #expect(try world.query("SELECT * FROM t;", in: path) == "a\n")
  }

  @Test("the server is away: exit 4, nothing lost")
  func away() throws {
    let world = try ProcessWorld()
    let path = try world.database("d.db", "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL); INSERT INTO t VALUES ('a');")
    try world.prepare(path, "create")
    try world.stopServer()
    let result = try world.run("sync", path)
    expectRefusal(result, 4, "nothing is lost")
    #expect(try world.status(path)["pending"] as? Int == 1)
    try world.startServer()
    #expect(try world.sync(path)["saved"] as? Int == 1)
  }
}
