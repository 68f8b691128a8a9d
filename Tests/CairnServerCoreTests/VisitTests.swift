import CairnRecords
import CairnTesting
import Foundation
import StoreSupport
import Testing

@testable import CairnServerCore

/// What is noted of visits (web-services W46).
@Suite(.everyStore) struct VisitTests {
  private let world: World
  private var core: CloudServer { world.server.core }
  private var anna: Caller { world.cloud.caller }

  init() throws { world = try World() }

  /// Nobody waits for the note of a visit but this test.
  private func visit(_ device: String?) {
    core.noteVisit(anna, device: device, container: "iCloud.test")
    while core.queuedWrites > 0 { sched_yield() }
  }

  @Test("web-services W46: a user keeps the 100 devices that were here last, however many names come")
  func manyDevices() throws {
    for i in 0..<130 {
      visit("d\(i)")
      world.clock.advance(milliseconds: 60_001)
    }
    let names = try core.overview(anna).devices.map(\.name)
    #expect(names == (30..<130).reversed().map { "d\($0)" })
    // Within one minute new names beyond the limit are not even noted.
    for i in 0..<300 { visit("e\(i)") }
    #expect(try core.overview(anna).devices.filter { $0.name.hasPrefix("e") }.count <= VisitLimits.devices)
  }

  @Test("web-services W46: each day keeps its last usage; old days go; a user who is removed leaves nothing")
  func days() throws {
    for _ in 0..<(VisitLimits.days + 5) {
      visit("laptop")
      world.clock.advance(milliseconds: 86_400_000)
    }
    #expect(try core.overview(anna).days.count == VisitLimits.days)
    let today = world.clock.now / 86_400_000
    visit("laptop")
    let before = try #require(try core.overview(anna).days.last)
    #expect(before.day == today)
    try world.save("a", ["t": .string("12345")])
    world.clock.advance(milliseconds: 60_000)
    visit("laptop")
    let after = try #require(try core.overview(anna).days.last)
    #expect(after.day == today && after.bytes > before.bytes)
    #expect(after.bytes == (try core.overview(anna)).usage.bytes)

    let users = UserDirectory(storage: core.storage, clock: world.clock)
    try users.remove("anna")
    world.clock.advance(milliseconds: 60_000)
    visit("laptop")
    #expect(try core.storage.read { try $0.devices(of: anna.key) }.isEmpty)
    #expect(try core.storage.read { try $0.usageByDay(of: anna.key) }.isEmpty)
  }

  @Test("web-services W45: asking for an overview makes nothing, and knows the newest change of each zone")
  func overview() throws {
    world.clock.advance(milliseconds: 5_000)
    try world.save("a")
    world.clock.advance(milliseconds: 5_000)
    let found = try core.overview(anna)
    let zone = try #require(found.databases.first?.zones.first { $0.name == "Notes" })
    #expect(zone.newestChange == world.clock.now - 5_000)
    #expect(zone.bytes == found.usage.bytes)
    let other = try UserDirectory(storage: core.storage, clock: world.clock).add("eve")
    #expect(try core.overview(other).databases.isEmpty)
    #expect(throws: CloudError.self) { try core.overview(.anonymous) }
    #expect(try core.overview(other).databases.isEmpty)
  }
}
