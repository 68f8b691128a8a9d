import Foundation
import ProcessSupport
import Testing

/// A user without the right to write to a folder of files.
final class ReadOnlyFolder {
  let path: String

  /// Not in the folder of other temporary files, which other users may not enter.
  init() throws {
    path = "/tmp/cairn-test-\(UUID())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    chmod(path, 0o755)
  }

  deinit {
    chmod(path, 0o755)
    // Nothing depends on it: the system cleans its temporary folder.
    try? FileManager.default.removeItem(atPath: path)
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Takes the right to write to the folder, and to its files unless `keepsFiles`, from everyone who is not root.
  func close(keepsFiles: Bool) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      chmod(file(name), keepsFiles ? 0o666 : 0o444)
    }
    chmod(path, 0o555)
  }

  /// Runs `cairn` as somebody who is not root.
  static func run(_ words: [String]) throws -> RunningProcess.Result {
    let cairn = try Programs.cairn()
    let user = geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    return try RunningProcess("/usr/bin/env", user + [cairn] + words, environment: ["CAIRN_TOKEN": ""])
      .waitUntilExit()
  }

  /// Why there can be none here; nil where there can.
  static let obstacle: String? = {
    #if os(Linux)
      do {
        let result = try run(["help"])
        return result.status == 0 ? nil : "cairn can't be run as another user: \(result.error)"
      } catch {
        return "\(error)"
      }
    #else
      return "needs Linux"
    #endif
  }()
}

/// Files, and folders, that the user may not write to: what only reads works, what writes is refused in one sentence.
@Suite(.enabled(if: ReadOnlyFolder.obstacle == nil, "cairn can't be run as a user who is not root here"))
struct ReadOnlyFileTests {
  private static func schema(_ journal: String) -> String {
    """
    PRAGMA journal_mode = \(journal); CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, v);
    INSERT INTO t VALUES ('a', 1), ('b', 2);
    """
  }

  private func object(_ words: String...) throws -> [String: Any] {
    let result = try ReadOnlyFolder.run(words)
    #expect(result.status == 0 && result.error.isEmpty, "\(words): \(result)")
    return try ProcessWorld.object(result.output)
  }

  @Test(
    "DESIGN 7: status, parked and log work on a file, or in a folder, that can't be written to; changes that no sync took up count",
    .timeLimit(.minutes(10)), arguments: ["wal", "delete"], [true, false])
  func reports(journal: String, keepsFiles: Bool) throws {
    let world = try ProcessWorld()
    let folder = try ReadOnlyFolder()
    let path = folder.file("a%20?b.db")
    try world.query(Self.schema(journal), in: path)
    try world.prepare(path, "create")
    try world.sync(path)
    try world.query("INSERT INTO t VALUES ('c', 3); UPDATE t SET v = 5 WHERE id <> 'b';", in: path)
    try folder.close(keepsFiles: keepsFiles)
    let before = try world.query("SELECT * FROM cairn_log;", in: path)

    let status = try object("status", "--json", "--", path)
    #expect(status["pending"] as? Int == 2 && status["parked"] as? Int == 0, "\(status)")
    #expect((status["reasons"] as? [[String: Any]])?.first?["count"] as? Int == 2, "\(status)")
    let words = try ReadOnlyFolder.run(["status", path])
    #expect(words.status == 0 && words.output.contains("can't be written to"), "\(words)")
    #expect(try (object("parked", "--json", "--", path)["parked"] as? [Any])?.isEmpty == true)
    #expect(try (object("log", "--json", "--", path)["events"] as? [Any])?.isEmpty == false)
    for refused in [["sync"], ["sync", "--watch"], ["deinit"], ["doctor"]] {
      expectRefusal(try ReadOnlyFolder.run(refused + ["--json", "--", path]), 1, "a%20?b.db", "writable")
    }
    #expect(try world.query("SELECT * FROM cairn_log;", in: path) == before)
    chmod(folder.path, 0o755)
    #expect(try world.sync(path)["saved"] as? Int == 2)
    try world.expectHealthy(path)
  }

  @Test("DESIGN 7: changes of a program that died lie beside a read-only file: read, or refused in one sentence")
  func changesBeside() throws {
    let world = try ProcessWorld()
    let folder = try ReadOnlyFolder()
    let path = folder.file("w.db")
    try world.query(Self.schema("wal"), in: path)
    try world.prepare(path, "create")
    try world.sync(path)
    let writer = try RunningProcess(
      Programs.sqlite3(), [path, "INSERT INTO t VALUES ('c', 3)", ".shell kill -9 $PPID"])
    #expect(try writer.waitUntilExit().status == -SIGKILL)
    #expect(FileManager.default.fileExists(atPath: path + "-wal"))
    try folder.close(keepsFiles: false)
    #expect(try object("status", "--json", "--", path)["pending"] as? Int == 1)
    chmod(folder.path, 0o755)
    try FileManager.default.removeItem(atPath: path + "-shm")
    try folder.close(keepsFiles: false)
    for command in ["status", "parked", "log"] {
      expectRefusal(try ReadOnlyFolder.run([command, "--json", "--", path]), 1, "w.db", "writable")
    }
  }

  @Test("DESIGN 7: a file that may not even be read is refused in one sentence")
  func unreadable() throws {
    let world = try ProcessWorld()
    let folder = try ReadOnlyFolder()
    let path = folder.file("u.db")
    try world.query(Self.schema("delete"), in: path)
    try world.prepare(path, "create")
    try folder.close(keepsFiles: false)
    chmod(path, 0)
    for command in ["status", "parked", "log", "sync"] {
      expectRefusal(try ReadOnlyFolder.run([command, "--json", "--", path]), 1, "u.db", "read")
    }
  }
}
