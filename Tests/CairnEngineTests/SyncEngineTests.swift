import CairnRecords
import CairnTesting
import Synchronization
import Testing

@testable import CairnEngine

/// The engine on its own thread (engine sections 1, 5 and 9).
@Suite struct SyncEngineTests {
  /// Everything of one engine. Made here, used on the engine's thread, looked at by the test between calls.
  final class Box: @unchecked Sendable {
    // The test touches it only while no call runs.
    let store = MemoryStore()
    let notes = NotesCategory(zone: Device.zone)
    let events = EventLog()
    let cloud: FaultInjector
    let plain: InMemoryCloud
    let clock: ManualClock

    init(_ server: InMemoryServer, _ clock: ManualClock) throws {
      plain = try server.cloud(user: "anna")
      cloud = FaultInjector(plain)
      self.clock = clock
      store.members = [notes]
    }

    func engine(automatic: Bool) -> SyncEngine {
      SyncEngine(
        settings: .watch, automaticallySync: automatic, time: clock, randomness: SeededRandomness(seed: 1)
      ) { [self] in
        SyncSession(
          cloud: cloud, store: store, categories: [notes], zones: [Device.zone], settings: .watch, time: clock,
          randomness: SeededRandomness(seed: 2), observer: events)
      }
    }
  }

  /// Calls the engine once from a task started inside a callback, and keeps what came of it.
  final class Seen: Sendable {
    private let isFirst = Mutex(true)
    private let stream = AsyncStream<SyncFailure?>.makeStream()

    func callOnce(_ engine: SyncEngine) {
      guard
        isFirst.withLock({ value in
          defer { value = false }; return value
        })
      else { return }
      let continuation = stream.continuation
      Task {
        do {
          try await engine.sync()
          continuation.yield(nil)
        } catch {
          continuation.yield(error as? SyncFailure)
        }
      }
    }

    func failure() async -> SyncFailure? {
      for await failure in stream.stream { return failure }
      return nil
    }
  }

  let clock = ManualClock()
  let box: Box

  init() throws { box = try Box(try InMemoryServer(clock: clock), clock) }

  @Test func syncReturnsWhenEverythingIsDone() async throws {
    let engine = box.engine(automatic: false)
    box.notes.set("a", "one", at: 1)
    let result = try await engine.sync()
    #expect(result.saved == 1)
    #expect(try box.plain.allRecords(in: Device.zone).count == 1)
    engine.close()
  }

  @Test func e3AwaitingInsideACallbackThrowsAtOnce() async throws {
    let engine = box.engine(automatic: false)
    let seen = Seen()
    box.events.onEvent = { _ in seen.callOnce(engine) }
    box.notes.set("a", "one", at: 1)
    let result = try await engine.sync()
    #expect(await seen.failure() == .reentrantCall)
    #expect(result.saved == 1)
    box.events.onEvent = nil
    engine.close()
  }

  @Test func aThrottledCallThrowsTheDate() async throws {
    let engine = box.engine(automatic: false)
    box.cloud.fail(.throttled(retryAfter: 30))
    await #expect(throws: SyncFailure.self) { try await engine.fetchChanges() }
    do {
      try await engine.fetchChanges()
      Issue.record("a retry-after was shortened")
    } catch SyncFailure.rateLimited(let until) {
      #expect(until >= clock.wallClock + 30_000)
    }
    engine.close()
  }

  @Test func cancellingStopsNewRequestsAndKeepsChanges() async throws {
    let engine = box.engine(automatic: false)
    box.notes.set("a", "one", at: 1)
    box.cloud.setAfter { _ in engine.cancelOperations() }
    await #expect(throws: SyncFailure.cancelled) { try await engine.sync() }
    #expect(box.cloud.log.count == 1)
    #expect(box.notes.pendingCount == 1)
    #expect(EventOrder.faults(box.events.events).isEmpty)
    box.cloud.setAfter(nil)
    #expect(try await engine.sync().saved == 1)
    engine.close()
  }

  @Test func anAutomaticEngineSyncsAtLaunchAndAfterAChange() async throws {
    let (ended, continuation) = AsyncStream<Void>.makeStream()
    box.events.onEvent = { if case .didSendChanges = $0 { continuation.yield() } }
    var ends = ended.makeAsyncIterator()
    let engine = box.engine(automatic: true)
    _ = await ends.next()
    // Waits behind the launch's call.
    try await engine.add([.saveZone(Device.zone)])
    clock.advance(milliseconds: 60)
    engine.noteHint()
    _ = await ends.next()
    #expect(try box.plain.zoneExists(Device.zone))
    engine.close()
  }

  @Test func aClosedEngineAnswers() async throws {
    let engine = box.engine(automatic: false)
    engine.close()
    await #expect(throws: SyncFailure.cancelled) { try await engine.sync() }
  }
}
