import CairnRecords
import CairnTesting
import Foundation
import Synchronization
import Testing

@testable import CairnAccounts

@Suite struct PrivateCacheTests {
  /// Remembers what it was told to remove.
  private final class Widget: DerivedCopy {
    let purged = Mutex<[PrivateCachePurge]>([])
    func purge(_ what: PrivateCachePurge) { purged.withLock { $0.append(what) } }
  }

  private func filled() async throws -> (TestWorld, TestDevice, URL, PrivateCacheKey, PrivateCacheKey) {
    let world = try TestWorld()
    let device = try world.device("anna")
    let (a, b) = (try device.add("a"), try device.add("b"))
    let file = URL(fileURLWithPath: world.folder.file("cache.json"))
    let keys = (PrivateCacheKey(account: a, name: "home"), PrivateCacheKey(account: b, name: "home"))
    let cache = try PrivateCache<String>(file: file, store: device.core)
    #expect(try await cache.refresh(keys.0) { "a's" } == "a's")
    #expect(try await cache.refresh(keys.1) { "b's" } == "b's")
    return (world, device, file, keys.0, keys.1)
  }

  private func exists(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }

  @Test("accounts.md S57, A69, A68, C17: a cache of another owner is empty at the first read, and its file is gone")
  func s57AnotherOwner() async throws {
    let (_, device, file, key, _) = try await filled()
    try device.signIn("bob")
    let cache = try PrivateCache<String>(file: file, store: device.core)
    #expect(try cache.value(for: key) == nil)
    #expect(!exists(file))
  }

  @Test("accounts.md S58, A70: a purge before or during the load ends empty, the file gone")
  func s58PurgeThenLoad() async throws {
    let (_, device, file, key, _) = try await filled()
    let cache = try PrivateCache<String>(file: file, store: device.core)
    try cache.purge(.all)
    #expect(try cache.value(for: key) == nil)
    #expect(!exists(file))
  }

  @Test("accounts.md S59, A69, A75: without owner it is purged, with the same owner kept, while unresolved not shown")
  func s59Owners() async throws {
    let (_, device, file, key, _) = try await filled()
    try device.relaunch()
    #expect(try PrivateCache<String>(file: file, store: device.core).value(for: key) == "a's")
    let anna = device.core.snapshot.scope
    try device.relaunch(identity: .unresolved)
    #expect(try PrivateCache<String>(file: file, store: device.core).value(for: key) == nil)
    #expect(exists(file))
    guard case .identity(let user)? = anna else { return }
    try device.relaunch(identity: .user(user))
    #expect(try PrivateCache<String>(file: file, store: device.core).value(for: key) == "a's")
    try Data(#"{"entries": []}"#.utf8).write(to: file)
    #expect(try PrivateCache<String>(file: file, store: device.core).value(for: key) == nil)
    #expect(!exists(file))
  }

  @Test("accounts.md S60, A71, A60: an answer that lands after a switch, a purge or a deletion fills nothing")
  func s60LateAnswer() async throws {
    let (_, device, file, key, other) = try await filled()
    let core = device.core
    let cache = try PrivateCache<String>(file: file, store: core)
    let late = try await cache.refresh(key) {
      try core.identityChanged(to: .user("bob"))
      return "late"
    }
    #expect(late == nil)
    try cache.reconcile()
    #expect(!exists(file))
    try device.signIn("anna")
    let purged = try await cache.refresh(key) {
      try cache.purge(.account(key.account))
      return "late"
    }
    #expect(purged == nil)
    #expect(try cache.value(for: key) == nil)
    let deleted = try await cache.refresh(other) {
      try core.remove(other.account)
      return "late"
    }
    #expect(deleted == nil)
  }

  @Test("accounts.md S61, A72, C18: a purge that was cut off is finished at launch")
  func s61CutOffPurge() async throws {
    let (_, device, file, key, other) = try await filled()
    try Data(key.account.rawValue.utf8).write(to: URL(fileURLWithPath: file.path + ".purge"))
    var cache = try PrivateCache<String>(file: file, store: device.core)
    #expect(try cache.value(for: key) == nil)
    #expect(try cache.value(for: other) == "b's")
    try Data("all".utf8).write(to: URL(fileURLWithPath: file.path + ".purge"))
    cache = try PrivateCache<String>(file: file, store: device.core)
    #expect(try cache.value(for: other) == nil)
    #expect(!exists(file) && !FileManager.default.fileExists(atPath: file.path + ".purge"))
  }

  @Test(
    "accounts.md S62, A73, A74: a purge of one account leaves others, before a load too, and takes derived copies along"
  )
  func s62OneAccount() async throws {
    let (_, device, file, key, other) = try await filled()
    let widget = Widget()
    let cache = try PrivateCache<String>(file: file, store: device.core, derivedCopies: [widget])
    try cache.purge(.account(key.account))
    #expect(try cache.value(for: key) == nil)
    #expect(try cache.value(for: other) == "b's")
    try cache.purge(.all)
    #expect(widget.purged.withLock { $0 } == [.account(key.account), .all])
  }

  @Test("accounts.md A15, S30: a deleted account's entries go with it")
  func deletedAccount() async throws {
    let (_, device, file, key, other) = try await filled()
    let cache = try PrivateCache<String>(file: file, store: device.core)
    #expect(try cache.value(for: key) == "a's")
    try device.core.remove(key.account)
    #expect(try cache.value(for: key) == nil)
    #expect(try cache.value(for: other) == "b's")
    #expect(!(try String(contentsOf: file, encoding: .utf8)).contains("a's"))
  }
}
