import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// Feeds of shared zones (web-services sections 8 and 12).
@Suite(.everyStore) struct VisibilityTests {
  @Test(
    "web-services section 12: records that come into a share reach tokens older than that, those that leave are deleted"
  )
  func comingAndLeaving() throws {
    let world = try ShareWorld()
    for (name, parent) in [("root", nil), ("a", nil), ("b", "a"), ("c", "b")] as [(String, String?)] {
      try world.save(world.anna, name, parent: parent)
    }
    try world.share("root", accepted: [(world.ben, .readOnly)])
    let first = try world.feed(world.ben)
    #expect(first.records.sorted() == ["S-root", "root"])
    let tag = try world.stored(world.anna, "c")?.changeTag
    // Only `a` is written, yet all that is below it comes along.
    try world.save(world.anna, "a", parent: "root")
    let second = try world.feed(world.ben, since: first.token)
    #expect(second.records.sorted() == ["a", "b", "c"])
    // For the owner they have not changed.
    #expect(try world.stored(world.anna, "c")?.changeTag == tag)
    #expect(try world.stored(world.ben, "c")?.changeTag == tag)
    // `b` is written without parent and goes, `c` with it.
    try world.save(world.anna, "b", kind: .forceReplace)
    let third = try world.feed(world.ben, since: second.token)
    #expect(third.records == [])
    #expect(third.deletions.sorted() == ["b", "c"])
    #expect(try world.feed(world.ben, since: first.token).records == ["a"])
    // Who begins now is told of no deletion.
    #expect(try world.feed(world.ben).deletions == [])
    // What was never shared leaves no trace.
    try world.save(world.anna, "never")
    try world.delete(world.anna, "never")
    let fourth = try world.feed(world.ben, since: third.token)
    #expect(fourth.records.isEmpty && fourth.deletions.isEmpty)
    #expect(fourth.token == third.token)
    try world.checkInvariants()
  }

  @Test(
    "web-services section 12: another set of accepted shares in a zone ends tokens, so that older records are not missed"
  )
  func secondShare() throws {
    let world = try ShareWorld()
    for name in ["one", "two"] { try world.save(world.anna, name) }
    try world.share("two", with: [world.invitation(world.ben)])
    try world.share("one", accepted: [(world.ben, .readOnly)])
    let token = try world.feed(world.ben).token
    let database = try world.zones(world.ben).token
    try world.accept(world.ben, try #require(try world.stored(world.anna, "two")?.sharing?.shortGUID))
    #expect(failure { try world.feed(world.ben, since: token) }?.expiryCause == .incarnation)
    #expect(try world.zones(world.ben, since: database).zones == ["Notes"])
    let both = try world.feed(world.ben)
    #expect(both.records.sorted() == ["S-one", "S-two", "one", "two"])
    try world.delete(world.ben, "S-one")
    #expect(failure { try world.feed(world.ben, since: both.token) }?.expiryCause == .incarnation)
    #expect(try world.feed(world.ben).records.sorted() == ["S-two", "two"])
  }

  @Test("web-services section 8: a token of an empty shared database outlives starts of the server")
  func emptyDatabase() throws {
    let world = try ShareWorld()
    let token = try world.zones(world.ben).token
    for _ in 0..<2 { try world.server.restart() }
    try world.save(world.anna, "root")
    try world.share("root", accepted: [(world.ben, .readOnly)])
    #expect(try world.zones(world.ben, since: token).zones == ["Notes"])
  }

  @Test("web-services section 8: entries of what left a share are pruned after the retention, and older tokens expire")
  func retention() throws {
    let world = try ShareWorld()
    try world.save(world.anna, "root")
    try world.save(world.anna, "child", parent: "root")
    try world.share("root", accepted: [(world.ben, .readOnly)])
    let token = try world.feed(world.ben).token
    try world.save(world.anna, "child", kind: .forceReplace)
    let after = try world.feed(world.ben, since: token).token
    world.clock.advance(milliseconds: world.core.settings.tombstoneRetention + 1)
    try world.core.pruneTombstones()
    #expect(failure { try world.feed(world.ben, since: token) }?.expiryCause == .retention)
    #expect(try world.feed(world.ben, since: after).token == after)
    #expect(try world.feed(world.ben).records.sorted() == ["S-root", "root"])
  }

  @Test(
    "web-services section 12: after random trees, shares, moves and deletes the union of feed pages is what may be seen",
    arguments: 0..<24)
  func random(seed: Int) throws {
    var run = try VisibilityRun(seed: UInt64(seed) &* 7_919 &+ 11)
    for _ in 0..<120 {
      try run.step()
      if run.random.below(4) == 0 { try run.check() }
    }
    try run.check()
    try run.world.checkInvariants()
  }
}
