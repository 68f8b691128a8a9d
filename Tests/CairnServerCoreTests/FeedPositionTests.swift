import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// `feed-position` of web-services section 15: where a feed stood before and after a modification.
@Suite(.everyStore) struct FeedPositionTests {
  private func modify(
    _ world: World, _ operations: [RecordOperation], atomic: Bool = false, in zone: ZoneID? = nil
  ) throws -> ModifyReport {
    try world.cloud.modifyReportingPosition(in: zone ?? world.zone, operations, atomic: atomic)
  }

  private func save(_ world: World, _ name: String, _ fields: Fields = [:]) -> RecordOperation {
    RecordOperation(.forceReplace, world.note(name, fields))
  }

  @Test("W42: both tokens are those of a reader who has read everything; the first includes what others did")
  func tokens() throws {
    let world = try World()
    let start = try world.feed().token
    let first = try #require(try modify(world, [save(world, "a"), save(world, "b")]).position)
    #expect(first.before == start)
    #expect(first.after == (try world.feed().token))
    try world.save("by another")
    let second = try #require(try modify(world, [save(world, "a")]).position)
    #expect(second.before != first.after)
    #expect(try world.feed(since: first.after).records == ["by another", "a"])
    #expect(try world.feed(since: second.before).records == ["a"])
    #expect(try world.feed(since: second.after) == ([], [], second.after))
    try world.server.restart()
    #expect(try modify(world, [save(world, "a")]).position?.before == second.after)
  }

  @Test("W42: what stores nothing moves nothing; a missing zone has no tokens")
  func nothing() throws {
    let world = try World()
    try world.save("a")
    let end = try world.feed().token
    let create = RecordOperation(.create, world.note("a"))
    #expect(try modify(world, [create, save(world, "b")], atomic: true).position == FeedStep(before: end, after: end))
    let nothing = RecordOperation(.forceDelete, world.note("z"))
    #expect(try modify(world, [create, nothing]).position == FeedStep(before: end, after: end))
    let part = try #require(try modify(world, [create, save(world, "b")]).position)
    #expect(part.before == end)
    #expect(try world.feed(since: part.before).records == ["b"])
    #expect(try world.feed(since: part.after).token == part.after)
    #expect(try modify(world, [save(world, "a")], in: ZoneID(name: "Nowhere")).position == nil)
  }

  @Test("W42: records that went along by DELETE_SELF are still ahead of the second token")
  func cascade() throws {
    let world = try World()
    try world.save("target")
    for name in ["x", "y"] {
      try world.save(name, ["r": .reference(Reference(recordName: "target", action: .deleteSelf))])
    }
    let step = try #require(
      try modify(world, [save(world, "own"), RecordOperation(.forceDelete, world.note("target"))]).position)
    let ahead = try world.feed(since: step.after)
    #expect(ahead.records == [])
    #expect(ahead.deletions.sorted() == ["x", "y"])
    #expect(try modify(world, [save(world, "own")]).position?.before == ahead.token)
    // The same zone by two names in one request: what follows the records that went along is ahead too.
    for name in ["target", "x"] {
      let target: Fields = ["r": .reference(Reference(recordName: "target", action: .deleteSelf))]
      try world.save(name, name == "x" ? target : [:])
    }
    var late = world.note("late")
    late.id.zone.owner = world.cloud.caller.recordName
    let request = Modification(
      operations: [
        IncomingOperation(RecordOperation(.forceDelete, world.note("target"))),
        IncomingOperation(RecordOperation(.forceReplace, late)),
      ], positionZone: world.zone)
    let answer = try world.server.core.modify(world.cloud.caller, world.cloud.scope, request)
    let rest = try world.feed(since: try #require(answer.position).after)
    #expect(rest.records == ["late"])
    #expect(rest.deletions == ["x"])
  }

  @Test("W42: requests that share a commit each begin where the one before ended")
  func groupCommit() throws {
    let world = try World()
    let start = try world.feed().token
    let answers = (0..<40).map { i in
      let answer = Awaited<Result<ModificationOutcome, CloudError>>()
      let request = Modification(
        operations: [IncomingOperation(save(world, "r\(i)"))], positionZone: world.zone)
      world.server.core.modify(world.cloud.caller, world.cloud.scope, request, RequestOptions()) { answer.set($0) }
      return answer
    }
    var last = start
    for answer in answers {
      let step = try #require(try answer.wait().get().position)
      #expect(step.before == last)
      last = step.after
    }
    #expect(try world.feed().token == last)
  }
}
