import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer

/// `cairn serve` and `cairn user` as programs.
@Suite struct ProcessTests {
  private func addUser(_ name: String, _ data: String) throws -> String {
    let result = try Programs.runCairn(["user", "add", name, "--data", data, "--json"])
    let json = try JSONValue(parsing: Array(result.output.utf8))
    #expect(result.status == 0 && json["user"]?.string == name)
    return try #require(json["token"]?.string)
  }

  private func serve(_ data: String) throws -> (RunningProcess, UInt16) {
    let process = try RunningProcess(Programs.cairn(), ["serve", "--data", data, "--listen", "127.0.0.1:0"])
    let url = try process.waitForLine("listening on ")
    return (process, try #require(url.split(separator: ":").last.flatMap { UInt16($0) }))
  }

  private func post(_ connection: RawConnection, _ operation: String, _ token: String, _ body: String) throws -> String
  {
    try connection.send(
      "POST /database/1/iCloud.test/production/private/\(operation)?ckWebAuthToken=\(token) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    )
    return String(decoding: try connection.answer().body, as: UTF8.self)
  }

  @Test("kill -9 under load: the server comes up clean, and everything that was answered as stored is there")
  func killed() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    let token = try addUser("anna", data)
    var (process, port) = try serve(data)
    let zone = #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Z"}}}]}"#
    _ = try post(try RawConnection(port: port), "zones/modify", token, zone)
    var stored: Set<String> = []
    for round in 0..<3 {
      let connection = try RawConnection(port: port)
      let limit = 20 + round * 17
      for i in 0..<1_000 {
        let name = "r\(round)-\(i)"
        let body =
          #"{"zoneID":{"zoneName":"Z"},"desiredKeys":[],"operations":[{"operationType":"create","record":{"recordName":"\#(name)","recordType":"Note"}}]}"#
        guard let answer = try? post(connection, "records/modify", token, body) else { break }
        if answer.contains("recordChangeTag") { stored.insert(name) }
        // The request after this one may be under way when the signal comes.
        if i == limit { process.signal(SIGKILL) }
      }
      #expect(try process.waitUntilExit().status != 0)
      (process, port) = try serve(data)
      let feed = try post(
        try RawConnection(port: port), "changes/zone", token, #"{"zones":[{"zoneID":{"zoneName":"Z"}}]}"#)
      for name in stored { #expect(feed.contains("\"\(name)\"")) }
    }
    #expect(stored.count > 100)
    process.signal(SIGTERM)
    #expect(try process.waitUntilExit().status == 0)
    #expect(
      try Programs.runSQL("PRAGMA integrity_check", in: data + "/cairn.db").output == "ok\n")
  }

  @Test("users: add, token, list, remove, and their errors")
  func users() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    let first = try addUser("anna", data)
    #expect(!first.hasPrefix("-"))
    let again = try Programs.runCairn(["user", "add", "anna", "--data", data])
    #expect(again.status == 1 && again.error.contains("cairn user token"))
    let second = try Programs.runCairn(["user", "token", "anna", "--data", data, "--json"])
    let token = try JSONValue(parsing: Array(second.output.utf8))["token"]?.string
    #expect(token != nil && token != first)
    #expect(
      try Programs.runCairn(["user", "list", "--data", data]).output == "user  bytes  quota  email\nanna      0\n")
    #expect(try Programs.runCairn(["user", "remove", "anna", "--data", data]).status == 0)
    #expect(try Programs.runCairn(["user", "remove", "anna", "--data", data]).status == 1)
    let list = try Programs.runCairn(["user", "list", "--data", data, "--json"]).output
    #expect(try JSONValue(parsing: Array(list.utf8)) == .object([JSONMember("users", .array([]))]))
  }

  @Test("a mistyped folder is no empty server: nothing is made there but by what adds, which tells so")
  func mistyped() throws {
    let folder = try TemporaryFolder()
    let (none, data) = (folder.file("none"), folder.file("data"))
    for words in [
      ["user", "list"], ["user", "token", "anna"], ["user", "set", "anna"], ["user", "quota", "anna", "1M"],
      ["user", "remove", "anna"], ["server", "token", "list"], ["server", "token", "remove", "web"],
      ["server", "key", "list"], ["server", "key", "remove", "job"],
    ] {
      let result = try Programs.runCairn(words + ["--data", none])
      #expect(result.status == 1 && result.error.contains("there is no server's data in"), "\(words): \(result)")
      #expect(result.error.contains("--data") && result.output == "")
      #expect(!FileManager.default.fileExists(atPath: none))
    }
    let added = try Programs.runCairn(["user", "add", "anna", "--data", data])
    #expect(added.status == 0 && added.error.contains("is new"))
    #expect(try Programs.runCairn(["user", "add", "berta", "--data", data]).error == "")
    for words in [["serve"], ["user", "list"]] {
      let wrong = try Programs.runCairn(words + ["--data", "postgres://localhost/x"])
      #expect(wrong.status == 2 && wrong.error.contains("--postgres"), "\(wrong)")
    }
  }

  @Test("data that can't be used is one short sentence with a remedy, and another program's database stays as it was")
  func unusable() throws {
    let folder = try TemporaryFolder()
    for (name, sql, part) in [
      ("newer", "PRAGMA user_version = 99", "update cairn"),
      ("other", "CREATE TABLE notes(x); INSERT INTO notes VALUES (1)", "another program"),
    ] {
      let data = folder.file(name)
      try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
      _ = try Programs.runSQL(sql, in: data + "/cairn.db")
      let before = try Programs.runSQL(".dump", in: data + "/cairn.db").output
      for words in [["serve", "--listen", "127.0.0.1:0"], ["user", "list"], ["user", "add", "anna"]] {
        let result = try Programs.runCairn(words + ["--data", data])
        #expect(result.status == 1 && result.error.contains(part), "\(result)")
        #expect(result.error.split(separator: "\n").count == 1 && result.error.utf8.count < 300)
      }
      #expect(try Programs.runSQL(".dump", in: data + "/cairn.db").output == before)
    }
    let data = folder.file("text")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    try Data(String(repeating: "no database", count: 100).utf8).write(to: URL(fileURLWithPath: data + "/cairn.db"))
    let text = try Programs.runCairn(["user", "list", "--data", data])
    #expect(text.status == 1 && text.error.contains("not a database") && !text.error.contains("PRAGMA"), "\(text)")
  }

  @Test("a database that was cut off to nothing is no new one: it is neither served nor copied")
  func emptied() throws {
    let folder = try TemporaryFolder()
    let (data, copy) = (folder.file("data"), folder.file("copy"))
    _ = try addUser("anna", data)
    let (process, _) = try serve(data)
    process.signal(SIGTERM)
    _ = try process.waitUntilExit()
    #expect(try Programs.runCairn(["server", "backup", "--data", data, "--to", copy]).status == 0)
    for ending in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: data + "/cairn.db" + ending) }
    try Data().write(to: URL(fileURLWithPath: data + "/cairn.db"))
    for words in [
      ["serve", "--data", data, "--listen", "127.0.0.1:0"], ["user", "list", "--data", data],
      ["user", "add", "ben", "--data", data], ["server", "backup", "--data", data, "--to", copy],
      ["server", "backup", "--data", data, "--to", folder.file("new")],
    ] {
      let result = try Programs.runCairn(words)
      #expect(result.status == 1 && result.error.contains("is empty: what it held is lost"), "\(words) \(result)")
    }
    #expect(try Programs.runCairn(["server", "restore", "--from", copy, "--data", data, "--replace"]).status == 0)
    #expect(try Programs.runCairn(["user", "list", "--data", data]).output.contains("\nanna "))
    // A copy of nothing is none; a file that a first start has left is a new one.
    let none = folder.file("none")
    try FileManager.default.createDirectory(atPath: none, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: none + "/cairn.db"))
    let restored = try Programs.runCairn(["server", "restore", "--from", none, "--data", data, "--replace"])
    #expect(restored.status == 1 && restored.error.contains("holds no copy"), "\(restored)")
    _ = try addUser("anna", none)
    // Without the file the server begins anew.
    try FileManager.default.removeItem(atPath: data + "/cairn.db")
    for ending in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: data + "/cairn.db" + ending) }
    _ = try addUser("ben", data)
  }

  @Test("names that can't be told apart by reading are refused, as are origins that no browser sends")
  func names() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    for name in [" ", "anna ", "\u{a0}anna", "an\u{200b}na", "\u{202e}anna", "\u{feff}anna", "an\u{2028}na"] {
      let user = try Programs.runCairn(["user", "add", name, "--data", data])
      #expect(user.status == 2 && user.error.contains("invisible"), "\(user)")
      #expect(try Programs.runCairn(["server", "token", "add", name, "--data", data]).status == 2)
    }
    #expect(try Programs.runCairn(["user", "add", "Åsa Ólafsdóttir 👩‍🚀", "--data", data]).status == 0)
    for origin in [
      "https://*.example.org", "https://app.example.org:443", "http://app.example.org:80", "app.example.org",
    ] {
      let token = try Programs.runCairn(["server", "token", "add", "web", "--data", data, "--origin", origin])
      #expect(token.status == 2 && token.error.contains("no origin"), "\(token)")
    }
  }

  @Test("starting where it cannot: one sentence on standard error, exit code 1 or 2")
  func refusals() throws {
    let folder = try TemporaryFolder()
    let (running, port) = try serve(folder.file("a"))
    let taken = try Programs.runCairn(["serve", "--data", folder.file("b"), "--listen", "127.0.0.1:\(port)"])
    #expect(taken.status == 1 && taken.error.contains("--listen") && taken.output == "")
    let locked = try Programs.runCairn(["serve", "--data", folder.file("a"), "--listen", "127.0.0.1:0"])
    #expect(locked.status == 1 && locked.error.contains("another server"))
    #expect(try Programs.runCairn(["serve", "--data", folder.file("c"), "--listen", "nowhere"]).status == 2)
    #expect(locked.error.split(separator: "\n").count == 1)
    running.signal(SIGINT)
    #expect(try running.waitUntilExit().status == 0)
  }
}
