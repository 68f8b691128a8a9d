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
