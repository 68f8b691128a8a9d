import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import StoreSupport
import Synchronization
import Testing

@testable import CairnServerCore

/// What must not go with assets that nobody wants any more (web-services section 11).
@Suite struct AssetRemovalTests {
  private struct Broken: Error {}

  @Test("an asset stays where the deletion of its record is undone, though it was removed in the same commit")
  func undoneTogether() throws {
    let world = try EveryStore.$kind.withValue(.file) { try World() }
    let core = world.server.core
    let target = AssetTarget(record: "a", type: "Note", field: "f")
    try world.save("a", ["f": .asset(try world.upload([1, 2, 3], for: target))])
    world.clock.advance(milliseconds: core.settings.receiptLife + 1)
    // All of this waits for one transaction: a deletion, the removal of what has become unused, and a job that breaks
    // both.
    #expect(eventually { core.queuedWrites == 0 })
    let gate = DispatchSemaphore(value: 0)
    let ended = Mutex<[String]>([])
    let isRunning = DispatchSemaphore(value: 0)
    core.storage.submit { _ in
      isRunning.signal()
      gate.wait()
      return {}
    } failed: { _ in
    }
    // From now on whatever is queued waits for the next transaction.
    isRunning.wait()
    let operation = IncomingOperation(RecordOperation(.forceDelete, world.note("a")))
    core.modify(world.cloud.caller, world.cloud.scope, Modification(operations: [operation]), RequestOptions()) {
      result in
      if case .failure = result { ended.withLock { $0.append("delete") } }
    }
    Thread.detachNewThread {
      #expect(throws: CloudError.self) { try core.removeUnusedAssets() }
      ended.withLock { $0.append("remove") }
    }
    #expect(eventually { core.queuedWrites == 3 })
    core.storage.submit { writer in
      try (writer as? SQLiteSession)?.connection.execute("ROLLBACK")
      throw Broken()
    } failed: { _ in
    }
    gate.signal()
    #expect(eventually { ended.withLock { $0.count } == 2 })
    let stored = try #require(try world.stored("a"))
    guard case .asset(let asset)? = stored.fields["f"], let path = asset.downloadURL else {
      Issue.record("no address")
      return
    }
    let token = String(path.dropFirst(CloudServer.downloadPath.utf8.count))
    var found: [UInt8] = []
    try core.download(token).forEachPiece { found += $0 }
    #expect(found == [1, 2, 3])
    // Undisturbed, both go.
    try world.run(.forceDelete, world.note("a"))
    try core.removeUnusedAssets()
    #expect(world.server.assets.count == 0)
  }
}
