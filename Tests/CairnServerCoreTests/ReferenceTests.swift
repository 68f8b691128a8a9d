import CairnRecords
import CairnServerCore
import CairnTesting
import Testing

/// W12: references of web-services section 5.
@Suite(.everyStore) struct ReferenceTests {
  private func child(
    _ world: World, _ name: String, of target: String, _ action: Reference.Action, kind: RecordOperation.Kind = .create
  ) -> RecordOperation {
    RecordOperation(
      kind, world.note(name, ["up": .reference(Reference(recordName: target, action: action))]))
  }

  private func underParent(_ world: World, _ name: String, _ parent: String) -> RecordOperation {
    var record = world.note(name)
    record.parent = parent
    return RecordOperation(.create, record)
  }

  @Test("W12: a live target of VALIDATE cannot be deleted; the reason names field and record")
  func validate() throws {
    let world = try World()
    try world.save("list")
    _ = try world.cloud.modify(in: world.zone, [child(world, "item", of: "list", .validate)], atomic: true)
    let error = try world.run(.delete, world.note("list")).error
    #expect(error?.code == .validatingReferenceError)
    #expect(error?.reason.contains("'up'") == true && error?.reason.contains("'item'") == true)
    #expect(try world.stored("list") != nil)
    let both = try world.cloud.modify(
      in: world.zone,
      [RecordOperation(.delete, world.note("list")), RecordOperation(.delete, world.note("item"))], atomic: true)
    #expect(both.allSatisfy { $0.isDeleted })
  }

  @Test("W12: VALIDATE and parent need a live target, NONE and DELETE_SELF do not")
  func missingTarget() throws {
    let world = try World()
    for action in [Reference.Action.validate, .none, .deleteSelf] {
      let outcome = try world.cloud.modify(
        in: world.zone, [child(world, "item-\(action)", of: "nowhere", action)], atomic: true)[0]
      #expect(outcome.error?.code == (action == .validate ? .validatingReferenceError : nil))
    }
    let orphan = try world.cloud.modify(in: world.zone, [underParent(world, "c", "nowhere")], atomic: true)[0]
    #expect(orphan.error?.code == .validatingReferenceError)
  }

  @Test("W12: a child before its parent in one request works")
  func order() throws {
    let world = try World()
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        child(world, "item", of: "list", .validate), underParent(world, "c", "list"),
        RecordOperation(.create, world.note("list")),
      ], atomic: true)
    #expect(outcomes.allSatisfy { $0.error == nil })
    #expect(try world.run(.delete, world.note("list")).error?.code == .validatingReferenceError)
  }

  @Test("W12: an operation whose target failed fails too")
  func failedTarget() throws {
    let world = try World()
    try world.run(.create, world.note("list", type: "List"))
    try world.run(.forceDelete, world.note("list", type: "List"))
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        child(world, "a", of: "b", .validate), child(world, "b", of: "c", .validate),
        RecordOperation(.update, world.note("c")), RecordOperation(.create, world.note("d")),
      ], atomic: false)
    #expect(
      outcomes.map { $0.error?.code } == [.validatingReferenceError, .validatingReferenceError, .notFound, nil])
    #expect(try world.cloud.allRecords(in: world.zone).map(\.id.name) == ["d"])
  }

  @Test("W12: DELETE_SELF referrers go with their target, each leaving a tombstone")
  func cascade() throws {
    let world = try World()
    try world.save("list")
    _ = try world.cloud.modify(
      in: world.zone,
      [
        child(world, "a", of: "list", .deleteSelf), child(world, "b", of: "a", .deleteSelf),
        child(world, "c", of: "b", .none),
      ],
      atomic: true)
    let token = try world.feed().token
    #expect(try world.run(.delete, world.note("list")).isDeleted)
    #expect(try world.cloud.allRecords(in: world.zone).map(\.id.name) == ["c"])
    #expect(try world.feed(since: token).deletions == ["list", "a", "b"])
  }

  @Test("W12: a VALIDATE referrer of a record that would go with the target keeps both")
  func cascadeStopped() throws {
    let world = try World()
    try world.save("list")
    _ = try world.cloud.modify(
      in: world.zone,
      [child(world, "a", of: "list", .deleteSelf), child(world, "b", of: "a", .validate)], atomic: true)
    #expect(try world.run(.delete, world.note("list")).error?.code == .validatingReferenceError)
    #expect(try world.cloud.allRecords(in: world.zone).map(\.id.name) == ["a", "b", "list"])
  }

  @Test("W12: a referrer that lets go in the same request does not hold its target")
  func released() throws {
    let world = try World()
    try world.save("list")
    try world.save("other")
    _ = try world.cloud.modify(
      in: world.zone, [child(world, "a", of: "list", .validate), child(world, "b", of: "list", .deleteSelf)],
      atomic: true)
    let outcomes = try world.cloud.modify(
      in: world.zone,
      [
        RecordOperation(.delete, world.note("list")), child(world, "a", of: "other", .validate, kind: .forceReplace),
        child(world, "b", of: "other", .deleteSelf, kind: .forceUpdate),
      ], atomic: true)
    #expect(outcomes.allSatisfy { $0.error == nil })
    #expect(try world.cloud.allRecords(in: world.zone).map(\.id.name) == ["a", "b", "other"])
    #expect(try world.run(.delete, world.note("other")).error?.code == .validatingReferenceError)
  }

  @Test("W12: at most 750 DELETE_SELF references to one target")
  func limit() throws {
    var settings = ServerSettings()
    settings.deleteSelfReferrers = 3
    let world = try World(settings: settings)
    try world.save("list")
    let outcomes = try world.cloud.modify(
      in: world.zone, (0..<4).map { child(world, "i\($0)", of: "list", .deleteSelf) }, atomic: false)
    #expect(outcomes.map { $0.error?.code } == [nil, nil, nil, .badRequest])
    #expect(
      try world.cloud.modify(
        in: world.zone, [child(world, "i0", of: "list", .deleteSelf, kind: .forceReplace)], atomic: true)[0].error
        == nil)
  }
}
