import CairnRecords
import CairnTesting
import Testing

@testable import CairnEngine

@Suite struct SyncTests {
  let clock = ManualClock()
  let server: InMemoryServer

  init() throws { server = try InMemoryServer(clock: clock) }

  @Test func e5FirstSaveCreatesTheZoneWithoutAppCode() throws {
    let device = try Device(server, clock)
    device.notes.set("a", "one", at: 1)
    let result = try device.sync()
    #expect(result.saved == 1)
    #expect(result.endedQuiet)
    #expect(result.condition == .ready)
    #expect(try device.serverTexts == ["a": "one"])
    #expect(try device.registry().lastSync == clock.wallClock)
  }

  @Test func anIdlePollWritesNothing() throws {
    let device = try Device(server, clock)
    device.notes.set("a", "one", at: 1)
    try device.sync()
    try device.sync()
    let written = device.store.bytesWritten
    for _ in 0..<10 {
      clock.advance(seconds: 1)
      #expect(try device.sync(manual: false).endedQuiet)
    }
    #expect(device.store.bytesWritten == written)
    clock.advance(seconds: 60)
    try device.sync(manual: false)
    #expect(try device.registry().lastSync == clock.wallClock)
  }

  @Test func lastSyncMovesOnlyWithAGoodSync() throws {
    let device = try Device(server, clock)
    try device.sync()
    let first = try device.registry().lastSync
    clock.advance(seconds: 5)
    device.notes.set("a", "one", at: 1)
    device.cloud.fail(.lostRequest)
    try device.sync()
    #expect(try device.registry().lastSync == first)
    try device.sync()
    #expect(try device.registry().lastSync == clock.wallClock)
  }

  @Test func twoDevicesExchange() throws {
    let a = try Device(server, clock)
    let b = try Device(server, clock)
    a.notes.set("a", "one", at: 1)
    try a.sync()
    let fetched = try b.sync()
    #expect(fetched.received == 1)
    #expect(b.notes.notes == ["a": "one"])
    b.notes.delete("a", at: 2)
    #expect(try b.sync().deleted == 1)
    try a.sync()
    #expect(a.notes.notes.isEmpty)
  }
}
