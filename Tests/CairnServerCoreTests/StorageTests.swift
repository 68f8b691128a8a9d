import CairnRecords
import CairnSQLite
import CairnTesting
import Foundation
import Testing

@testable import CairnServerCore

/// The store in a file: durability, group commit, what a crash leaves.
@Suite struct StorageTests {
  /// A folder of its own, removed when the test ends.
  final class Folder {
    let path = NSTemporaryDirectory() + "cairn-storage-\(UUID().uuidString)"
    init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: path) }
    func file(_ name: String) -> String { path + "/" + name }
  }

  private let scope = DatabaseScope(container: "iCloud.test")
  private let zone = ZoneID(name: "Notes")

  private func server(_ path: String) throws -> (CloudServer, SQLiteStorage) {
    let storage = try SQLiteStorage(path: path)
    return (try CloudServer(storage: storage), storage)
  }

  private func save(_ server: CloudServer, _ caller: Caller, _ names: [String]) throws {
    let operations = names.map {
      IncomingOperation(
        RecordOperation(
          .forceReplace, Record(id: RecordID(name: $0, zone: zone), type: "Note", fields: ["n": .string($0)])))
    }
    let outcome = try server.modify(caller, scope, Modification(operations: operations))
    #expect(outcome.outcomes.allSatisfy { $0.error == nil })
  }

  private func names(_ server: CloudServer, _ caller: Caller, since token: ChangeToken? = nil) throws -> (
    [String], ChangeToken
  ) {
    let page = try server.changes(caller, scope, [ZoneFeedQuery(zone: zone, token: token)])[0].get()
    return (page.entries.compactMap { if case .record(let record) = $0 { record.id.name } else { nil } }, page.token)
  }

  @Test("W19: data and tokens outlive a clean restart")
  func reopen() throws {
    let folder = try Folder()
    let (first, storage) = try server(folder.file("cairn.db"))
    let caller = try UserDirectory(storage: storage).add("anna")
    _ = try first.modifyZones(caller, scope, [.create(zone)])
    try save(first, caller, ["a", "b"])
    let before = try names(first, caller)
    first.close()
    let (second, _) = try server(folder.file("cairn.db"))
    #expect(try names(second, caller) == before)
    try save(second, caller, ["c"])
    #expect(try names(second, caller, since: before.1).0 == ["c"])
    second.close()
  }

  @Test("what was answered as stored survives a crash at any moment: files copied under way open clean")
  func crash() throws {
    let folder = try Folder()
    let (running, storage) = try server(folder.file("cairn.db"))
    let caller = try UserDirectory(storage: storage).add("anna")
    _ = try running.modifyZones(caller, scope, [.create(zone)])
    let token = try names(running, caller).1
    for round in 0..<10 {
      try save(running, caller, (0..<20).map { "r\(round)-\($0)" })
      let copy = folder.file("copy\(round).db")
      // The log after the file, as a crash leaves them: commits are in the log.
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(atPath: folder.file("cairn.db") + suffix, toPath: copy + suffix)
      }
      let (after, _) = try server(copy)
      let (found, _) = try names(after, caller, since: token)
      #expect(Set(found).count == min(200, (round + 1) * 20))
      try save(after, caller, ["new"])
      after.close()
      #expect(
        try Connection(path: copy, mode: .readOnly).scalar("PRAGMA integrity_check") == .text("ok"))
    }
    running.close()
  }

  @Test("W23: a data folder that was copied back makes tokens of the undone time expire")
  func copiedBack() throws {
    let folder = try Folder()
    let path = folder.file("cairn.db")
    let (first, storage) = try server(path)
    let caller = try UserDirectory(storage: storage).add("anna")
    _ = try first.modifyZones(caller, scope, [.create(zone)])
    try save(first, caller, ["a"])
    let kept = try names(first, caller).1
    first.close()
    try FileManager.default.copyItem(atPath: path, toPath: folder.file("backup"))
    let (second, _) = try server(path)
    try save(second, caller, ["b"])
    let undone = try names(second, caller).1
    second.close()
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.copyItem(atPath: folder.file("backup"), toPath: path)
    let (third, _) = try server(path)
    try save(third, caller, ["c", "d"])
    #expect(failure { _ = try names(third, caller, since: undone) }?.expiryCause == .epoch)
    #expect(try names(third, caller, since: kept).0 == ["c", "d"])
    third.close()
  }

  @Test("W24: writers on many threads while a reader pages: the union of the pages is the final state")
  func concurrentWriters() throws {
    let folder = try Folder()
    let (server, storage) = try server(folder.file("cairn.db"))
    let caller = try UserDirectory(storage: storage).add("anna")
    _ = try server.modifyZones(caller, scope, [.create(zone)])
    var known: Set<String> = []
    var token: ChangeToken?
    let group = DispatchGroup()
    for worker in 0..<4 {
      DispatchQueue.global().async(group: group) {
        for i in 0..<50 { try? save(server, caller, ["w\(worker)-\(i)"]) }
      }
    }
    var isDone = false
    while true {
      isDone = group.wait(timeout: .now()) == .success
      let (found, next) = try names(server, caller, since: token)
      #expect(known.isDisjoint(with: found))
      known.formUnion(found)
      token = next
      if isDone, found.isEmpty { break }
    }
    #expect(known.count == 200)
    server.close()
  }

  @Test("jobs that share a commit do not share their failures")
  func groupCommit() throws {
    let folder = try Folder()
    let storage = try SQLiteStorage(path: folder.file("cairn.db"))
    let users = UserDirectory(storage: storage)
    struct Refused: Error {}
    let reports = Reports()
    let done = DispatchSemaphore(value: 0)
    // The first job holds the writer until all are queued, so that the others share one commit.
    let gate = DispatchSemaphore(value: 0)
    storage.submit(
      { _ in
        gate.wait()
        return { done.signal() }
      }, failed: { _ in done.signal() })
    for i in 0..<10 {
      storage.submit(
        { writer in
          _ = try writer.addUser(name: "u\(i)", recordName: "_\(i)", created: 0)
          if i % 2 == 1 { throw Refused() }
          return {
            reports.add("stored \(i)")
            done.signal()
          }
        },
        failed: { _ in
          reports.add("failed \(i)")
          done.signal()
        })
    }
    gate.signal()
    for _ in 0..<11 { done.wait() }
    #expect(reports.all == (0..<10).map { $0 % 2 == 1 ? "failed \($0)" : "stored \($0)" })
    #expect(try users.list().map(\.name) == ["u0", "u2", "u4", "u6", "u8"])
    storage.close()
    #expect(failure { _ = try users.add("late") }?.code == .tryAgainLater)
  }

  @Test("a store of a newer format is refused")
  func newerFormat() throws {
    let folder = try Folder()
    try Connection(path: folder.file("cairn.db"), mode: .create).execute("PRAGMA user_version = 99")
    #expect(throws: StorageFailure.self) { try SQLiteStorage(path: folder.file("cairn.db")) }
  }

  @Test(
    "web-services W39: a store of an older format gets what it lacks, and what it has is counted",
    arguments: [2, 3] as [Int64])
  func olderFormat(_ format: Int64) throws {
    let folder = try Folder()
    let old = try Connection(path: folder.file("cairn.db"), mode: .create)
    try SQLiteTables.prepare(old, upTo: format)
    try old.execute(
      """
      INSERT INTO user (name, record_name, created) VALUES ('anna', '_0a', 0), ('berta', '_0b', 0);
      INSERT INTO database (user, container, environment, kind, incarnation) VALUES (1, 'iCloud.test', 'production', 'private', 7);
      INSERT INTO zone (database, name, incarnation, position, deleted) VALUES (1, 'Notes', 1, 3, 0), (1, 'Gone', 2, 4, 1);
      INSERT INTO record (zone, position, name, type, created, created_by, modified, modified_by, died, has_references, fields)
      VALUES (1, 1, 'a', 'Note', 0, 1, 0, 1, NULL, 2, zeroblob(20)), (1, 2, 'b', 'Note', 0, 1, 0, 1, NULL, 0, zeroblob(5)),
        (1, 3, 'c', 'Note', 0, 1, 0, 1, 9, 0, x''), (2, 4, 'd', 'Note', 0, 1, 0, 1, NULL, 0, zeroblob(50));
      INSERT INTO asset (digest, size, keep_until, suspect) VALUES (x'01', 1000, 0, 0);
      INSERT INTO asset_use (zone, source, digest) VALUES (1, 'a', x'01');
      UPDATE store SET position = 4;
      """)
    #expect(try old.scalar("PRAGMA user_version") == .integer(format))
    let second = try SQLiteStorage(path: folder.file("cairn.db"))
    let usages = try UserDirectory(storage: second).usages()
    #expect(usages.map(\.user.name) == ["anna", "berta"])
    #expect(usages.map(\.usage.bytes) == [1_225, 0])
    #expect(try second.read { try $0.subscriptions(1).isEmpty && $0.appCredentials().isEmpty })
    second.close()
  }

  private final class Reports: @unchecked Sendable {
    // `list` is guarded by `lock`.
    private let lock = NSLock()
    private var list: [String] = []
    func add(_ text: String) { lock.withLock { list.append(text) } }
    var all: [String] { lock.withLock { list } }
  }
}
