import Foundation
import ProcessSupport
import Testing

/// TLS, backups and restores with real processes.
@Suite struct ServerOperationTests {
  private static let schema = "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, name TEXT, photo BLOB);"
  private static let picture = "SELECT id, name, length(photo), hex(substr(photo, -20)) FROM t ORDER BY 1;"

  // MARK: TLS

  /// A certificate for this machine, signed by itself, and its key.
  private func certificate(_ folder: TemporaryFolder, _ name: String) throws -> (certificate: String, key: String) {
    let (certificate, key) = (folder.file("\(name).crt"), folder.file("\(name).key"))
    let made = try Programs.run(
      "openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ])
    #expect(made.status == 0, "\(made.error)")
    return (certificate, key)
  }

  @Test("TLS: devices sync rows and assets with a server whose authority they are told of, and with no other")
  func tls() throws {
    let folder = try TemporaryFolder()
    let files = try certificate(folder, "server")
    let world = try ProcessWorld(serve: ["--tls-cert", files.certificate, "--tls-key", files.key])
    #expect(world.url.hasPrefix("https://127.0.0.1:"))
    let a = try world.database("a.db", Self.schema + "INSERT INTO t VALUES ('x', 'one', randomblob(300000));")
    let b = world.folder.file("b.db")
    let trust = ["CAIRN_CA_FILE": files.certificate]
    // A certificate that nobody vouches for is no server.
    let refused = try world.run(world.initWords(a, "--mode", "create"))
    #expect(refused.status == 4, "\(refused)")
    for (path, mode) in [(a, "create"), (b, "join")] {
      let made = try world.run(world.initWords(path, "--mode", mode), environment: trust)
      #expect(made.status == 0, "\(made)")
      let synced = try world.run("sync", path, environment: ["SSL_CERT_FILE": files.certificate, "CURL_CA_BUNDLE": ""])
      #expect(synced.status == 0, "\(synced)")
    }
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
    #expect(try world.query("SELECT length(photo) FROM t", in: b) == "300000\n")
    #expect(try world.run("sync", a).status == 4)
    let other = try certificate(folder, "other")
    #expect(try world.run("sync", a, environment: ["CAIRN_CA_FILE": other.certificate]).status == 4)
    let missing = try world.run("sync", a, environment: ["CAIRN_CA_FILE": folder.file("none")])
    #expect(missing.status == 1 && missing.error.contains("CAIRN_CA_FILE"))
    try world.stopServer(SIGTERM)
  }

  @Test("TLS: files that are missing, no PEM or not a pair are refused with a remedy")
  func tlsRefusals() throws {
    let folder = try TemporaryFolder()
    let (one, other) = (try certificate(folder, "one"), try certificate(folder, "other"))
    try Data("no pem".utf8).write(to: URL(fileURLWithPath: folder.file("text")))
    for (certificate, key, status, part) in [
      (one.certificate, nil, 2, "--tls-key"), (nil, one.key, 2, "--tls-cert"),
      (folder.file("none"), one.key, 1, "does not exist"), (one.certificate, folder.file("none"), 1, "does not exist"),
      (folder.file("text"), one.key, 1, "no certificate"), (one.certificate, folder.file("text"), 1, "no private key"),
      (one.key, one.certificate, 1, "no certificate"), (one.certificate, other.key, 1, "not the key"),
    ] as [(String?, String?, Int32, String)] {
      var words = ["serve", "--data", folder.file("data"), "--listen", "127.0.0.1:0"]
      if let certificate { words += ["--tls-cert", certificate] }
      if let key { words += ["--tls-key", key] }
      let result = try Programs.runCairn(words)
      #expect(result.status == status && result.error.contains(part) && result.output == "", "\(result)")
      #expect(result.error.split(separator: "\n").count == 1)
    }
  }

  // MARK: Backups

  private func backup(_ world: ProcessWorld, _ more: String...) throws -> [String: Any] {
    let result = try world.run(
      ["server", "backup", "--data", world.data, "--to", world.folder.file("backup"), "--json"] + more)
    #expect(result.status == 0, "\(result)")
    return try ProcessWorld.object(result.output)
  }

  @Test(
    "web-services W23: devices that had synced past a backup converge after its restore, and lose no row",
    .timeLimit(.minutes(10)))
  func restore() throws {
    let world = try ProcessWorld()
    let a = try world.database(
      "a.db",
      Self.schema
        + "INSERT INTO t VALUES ('old', 'one', randomblob(200000)), ('gone', 'x', NULL), ('edit', 'before', NULL);")
    let (b, c) = (world.folder.file("b.db"), world.folder.file("c.db"))
    try world.prepare(a, "create")
    try world.sync(a)
    try world.prepare(b, "join")
    try world.sync(b)
    #expect(try backup(world)["copiedAssets"] as? Int == 1)
    // Past the backup: new rows with and without asset, an edit, a deletion; both devices know of them.
    try world.query(
      "INSERT INTO t VALUES ('late', 'two', randomblob(100000)), ('late2', 'three', NULL); DELETE FROM t WHERE id = 'gone'; UPDATE t SET name = 'after' WHERE id = 'edit';",
      in: a)
    try world.syncUntilQuiet(a, b)
    // Not sent yet when the server goes.
    try world.query("INSERT INTO t VALUES ('unsent', 'four', NULL);", in: b)
    try world.stopServer(SIGTERM)
    let refused = try world.run("server", "restore", "--from", world.folder.file("backup"), "--data", world.data)
    #expect(refused.status == 1 && refused.error.contains("--replace"))
    let restored = try world.run(
      "server", "restore", "--from", world.folder.file("backup"), "--data", world.data, "--replace")
    #expect(restored.status == 0, "\(restored)")
    #expect(FileManager.default.fileExists(atPath: world.data + "/cairn.db.replaced"))
    try world.startServer()
    // Each device notices, keeps its rows and asks (tables.md L12).
    for path in [b, a] {
      #expect(try world.sync(path, codes: [0, 3])["state"] as? String == "decision")
      // It says what has happened: no zone was deleted.
      #expect(try world.run("sync", path).output.contains("the server was restored from a backup"))
      #expect(try world.run("status", path).output.contains("restored from a backup"))
      #expect(try world.run("decide", path, "recreateAndReupload").status == 0)
    }
    try world.syncUntilQuiet(b, a, rounds: 10)
    try world.prepare(c, "join")
    try world.syncUntilQuiet(a, b, c, rounds: 10)
    let expected = "edit|after\nlate|two\nlate2|three\nold|one\nunsent|four\n"
    for path in [a, b, c] {
      #expect(try world.query("SELECT id, name FROM t WHERE id <> 'gone' ORDER BY 1", in: path) == expected)
      try world.expectHealthy(path)
    }
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: c))
  }

  @Test("a backup of a server under load is one moment: every record of a transaction or none, and it can be served")
  func online() throws {
    let world = try ProcessWorld()
    let a = try world.database("a.db", Self.schema)
    try world.prepare(a, "create")
    let busy = try world.start("sync", "--watch", a)
    for round in 0..<6 {
      try world.query(
        "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO t SELECT '\(round)-' || i, 'n', NULL FROM n;",
        in: a)
      if round % 2 == 0 { try world.query("INSERT INTO t VALUES ('p\(round)', 'photo', randomblob(90000));", in: a) }
      _ = try backup(world)
    }
    busy.signal(SIGINT)
    try busy.waitUntilExit()
    try world.sync(a)
    let last = try backup(world)
    #expect(last["assets"] as? Int == 3)
    #expect(try world.query("PRAGMA integrity_check", in: world.folder.file("backup") + "/cairn.db") == "ok\n")
    // Served from the copy, a new device has everything.
    try world.stopServer(SIGTERM)
    let other = try RunningProcess(
      Programs.cairn(), ["serve", "--data", world.folder.file("backup"), "--listen", "127.0.0.1:0"])
    let url = try other.waitForLine("listening on ")
    let b = world.folder.file("b.db")
    let made = try world.run(world.initWords(b, "--mode", "join", url: url))
    #expect(made.status == 0, "\(made)")
    let synced = try world.run("sync", b)
    #expect(synced.status == 0, "\(synced)")
    #expect(try world.query(Self.picture, in: a) == world.query(Self.picture, in: b))
    other.signal(SIGTERM)
    try other.waitUntilExit()
  }

  @Test("what backup and restore refuse, each in one line with a remedy")
  func backupRefusals() throws {
    let world = try ProcessWorld()
    _ = try backup(world)
    let copy = world.folder.file("backup")
    let folder = world.folder
    try FileManager.default.createDirectory(atPath: folder.file("bad"), withIntermediateDirectories: true)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: copy + "/cairn.db"))
    for i in stride(from: 5_000, to: min(bytes.count, 60_000), by: 7) { bytes[i] = 0xa5 }
    try bytes.write(to: URL(fileURLWithPath: folder.file("bad/cairn.db")))
    for (words, part) in [
      (["backup", "--data", folder.file("none"), "--to", folder.file("x")], "no data"),
      (["backup", "--data", world.data, "--to", world.data], "--to"),
      (["restore", "--from", folder.file("none"), "--data", folder.file("y")], "no copy"),
      (["restore", "--from", copy, "--data", world.data, "--replace"], "another server runs"),
      (["restore", "--from", folder.file("bad"), "--data", folder.file("z")], "copy"),
    ] {
      let result = try world.run(["server"] + words)
      #expect(result.status == 1 && result.error.contains(part), "\(words): \(result)")
      #expect(result.error.split(separator: "\n").count == 1)
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("z") + "/cairn.db"))
    let itself = try world.run("server", "restore", "--from", copy, "--data", copy + "/", "--replace")
    #expect(itself.status == 1 && itself.error.contains("own folder"), "\(itself)")
    // Into an empty folder it needs no word.
    #expect(try world.run("server", "restore", "--from", copy, "--data", folder.file("new")).status == 0)
  }

  @Test("a copy replaces nothing but an earlier copy of the same data: no running server, no other one, no later one")
  func backupKeepsOthers() throws {
    let world = try ProcessWorld()
    _ = try backup(world)
    let (copy, folder) = (world.folder.file("backup"), world.folder)
    func refused(_ data: String, _ target: String, _ part: String, _ line: Int = #line) throws {
      let before = try Data(contentsOf: URL(fileURLWithPath: target + "/cairn.db"))
      let result = try world.run("server", "backup", "--data", data, "--to", target)
      #expect(result.status == 1 && result.error.contains(part) && result.error.contains("--to"), "\(line): \(result)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: target + "/cairn.db")) == before, "\(line)")
    }
    // The folders swapped, while the server runs and when it has stopped: what it was given since would be gone.
    try refused(copy, world.data, "another server runs")
    try world.stopServer(SIGTERM)
    try refused(copy, world.data, "not just a copy")
    try refused(world.data, world.data + "/", "itself")
    #expect(
      try world.run("server", "backup", "--data", world.data, "--to", world.data + "/sub").error.contains("itself"))
    // The nightly copy goes on over starts, also of a server to which nothing was written.
    for _ in 0..<2 {
      try world.startServer()
      try world.stopServer(SIGTERM)
      _ = try backup(world)
    }
    try world.startServer()
    let a = try world.database("a.db", Self.schema + "INSERT INTO t VALUES ('x', 'one', NULL);")
    try world.prepare(a, "create")
    try world.sync(a)
    _ = try backup(world)
    try world.stopServer(SIGTERM)
    // Another server's copy, and one of what a restore has undone.
    let older = folder.file("older")
    #expect(try world.run("server", "backup", "--data", world.data, "--to", older).status == 0)
    try world.startServer()
    try world.query("INSERT INTO t VALUES ('y', 'two', NULL);", in: a)
    try world.sync(a)
    _ = try backup(world)
    try world.stopServer(SIGTERM)
    try refused(older, copy, "other data")
    #expect(try world.run("server", "restore", "--from", older, "--data", world.data, "--replace").status == 0)
    try refused(world.data, copy, "undone")
    // A copy that was served is a server's data.
    let served = try RunningProcess(Programs.cairn(), ["serve", "--data", older, "--listen", "127.0.0.1:0"])
    _ = try served.waitForLine("listening on ")
    served.signal(SIGTERM)
    try served.waitUntilExit()
    try refused(world.data, older, "not just a copy")
  }
}
