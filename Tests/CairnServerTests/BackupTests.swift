import CairnServerCore
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer

/// Copies of data folders, and what must not happen to the folders that are there already.
@Suite struct BackupTests {
  private let folder: TemporaryFolder
  private var data: String { folder.file("data") }
  private var copy: String { folder.file("copy") }

  init() throws {
    folder = try TemporaryFolder()
    try add("anna", to: data)
  }

  private func add(_ user: String, to path: String) throws {
    let users = try UserAdministration(data: path)
    defer { users.close() }
    _ = try users.add(user)
  }

  private func users(_ path: String) throws -> [String] {
    let users = try UserAdministration(data: path)
    defer { users.close() }
    return try users.list().map(\.name)
  }

  private func serving(_ path: String, _ body: () throws -> Void) throws {
    let server = try RunningServer.start(data: path, listen: ListenAddress(port: 0))
    defer { server.stop() }
    try body()
  }

  /// Leaves in a folder what a command leaves there that is killed after `body`.
  private func killed(in path: String, after body: () throws -> Void) throws {
    let files = ["cairn.db", "cairn.db-wal", "cairn.db-shm"]
    let kept = folder.file("kept")
    try FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: true)
    let users = try UserAdministration(data: path)
    try body()
    for name in files { try FileManager.default.copyItem(atPath: "\(path)/\(name)", toPath: "\(kept)/\(name)") }
    users.close()
    for name in files {
      unlink("\(path)/\(name)")
      try FileManager.default.moveItem(atPath: "\(kept)/\(name)", toPath: "\(path)/\(name)")
    }
    #expect(try (Data(contentsOf: URL(fileURLWithPath: path + "/cairn.db-wal"))).count > 0)
  }

  private func sentence(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return (error as? ServerStartError)?.sentence ?? "\(error)" }
  }

  @Test("a copy is not made in the folder itself, by whatever path, nor where a server runs")
  func ownFolder() throws {
    let link = folder.file("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: data)
    try serving(data) {
      for path in [data, data + "/", data + "/.", link] {
        #expect(sentence { _ = try StoreBackup.make(data: data, to: path) }?.contains("the folder itself") == true)
      }
    }
    _ = try StoreBackup.make(data: data, to: copy)
    try serving(copy) {
      #expect(sentence { _ = try StoreBackup.make(data: data, to: copy) }?.contains("server runs on") == true)
    }
    #expect(try users(data) == ["anna"])
  }

  @Test("the log of a command that was killed on a copy is not taken for the log of the next copy")
  func logOfCopy() throws {
    _ = try StoreBackup.make(data: data, to: copy)
    try killed(in: copy) { try add("lost", to: copy) }
    for name in ["b", "c", "d"] { try add(name, to: data) }
    _ = try StoreBackup.make(data: data, to: copy)
    #expect(try users(copy) == ["anna", "b", "c", "d"])
  }

  @Test("a restore keeps what gives way with its log, and never takes a log that it finds for that of the copy")
  func logOfData() throws {
    _ = try StoreBackup.make(data: data, to: copy)
    try killed(in: data) { for name in ["b", "c"] { try add(name, to: data) } }
    _ = try StoreBackup.restore(from: copy, data: data, replacing: true)
    #expect(try users(data) == ["anna"])
    let kept = folder.file("replaced")
    try FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: true)
    for ending in ["", "-wal", "-shm"]
    where FileManager.default.fileExists(atPath: data + "/cairn.db.replaced" + ending) {
      try FileManager.default.copyItem(
        atPath: data + "/cairn.db.replaced" + ending, toPath: kept + "/cairn.db" + ending)
    }
    #expect(try users(kept) == ["anna", "b", "c"])
    // A restore that was killed between moving the file and its log, as earlier versions did it.
    try killed(in: data) { for name in ["e", "f"] { try add(name, to: data) } }
    try FileManager.default.removeItem(atPath: data + "/cairn.db")
    _ = try StoreBackup.restore(from: copy, data: data, replacing: true)
    #expect(try users(data) == ["anna"])
  }

  @Test("a damaged store gives way to a copy, log and all")
  func damaged() throws {
    _ = try StoreBackup.make(data: data, to: copy)
    try Data("no database, but long enough to be looked at as one".utf8).write(
      to: URL(fileURLWithPath: data + "/cairn.db"))
    _ = try StoreBackup.restore(from: copy, data: data, replacing: true)
    #expect(try users(data) == ["anna"])
  }

  @Test("a copy of a newer format is refused before anything gives way to it")
  func newerFormat() throws {
    _ = try StoreBackup.make(data: data, to: copy)
    try add("late", to: data)
    let made = try Programs.run("sqlite3", [copy + "/cairn.db", "PRAGMA user_version = 99"])
    #expect(made.status == 0, "\(made)")
    let refused = sentence { _ = try StoreBackup.restore(from: copy, data: data, replacing: true) }
    #expect(refused?.contains("newer version") == true)
    #expect(try users(data) == ["anna", "late"])
  }

  @Test("a folder in which putting a first copy was interrupted is refused by servers, and filled by the next try")
  func interrupted() throws {
    _ = try StoreBackup.make(data: data, to: copy)
    let target = folder.file("target")
    let directory = try DataDirectory(target)
    try Data().write(to: URL(fileURLWithPath: directory.incomingPath))
    #expect(sentence { try serving(target) {} }?.contains("not whole") == true)
    _ = try StoreBackup.restore(from: copy, data: target, replacing: false)
    #expect(try users(target) == ["anna"])
  }
}
