import CairnRecords
import CairnServerCore
import CairnTesting
import Testing

/// Every cell of the table in web-services section 5: code, stored state and tag.
@Suite(.everyStore) struct ModifyTableTests {
  enum Stored: CaseIterable { case none, tombstone, equalTag, otherTag, noTag }

  struct Cell: Sendable, CustomStringConvertible {
    var kind: RecordOperation.Kind
    var stored: Stored
    var description: String { "\(kind) on \(stored)" }
    static let all = RecordOperation.Kind.allCases.flatMap { kind in
      Stored.allCases.map { Cell(kind: kind, stored: $0) }
    }
  }

  enum Expected: Equatable { case inserted, merged, replaced, deleted, nothing, failed(CloudError.Code, String) }

  private func expected(_ cell: Cell, tagGiven: Bool) -> Expected {
    let isLive = cell.stored != .none && cell.stored != .tombstone
    let missing = tagGiven ? "recordChangeTag specified, but record not found" : "Record not found"
    switch (cell.kind, isLive) {
    case (.create, false), (.forceUpdate, false), (.forceReplace, false): return .inserted
    case (.create, true): return .failed(.conflict, "record to insert already exists")
    case (.update, false), (.replace, false), (.delete, false): return .failed(.notFound, missing)
    case (.forceDelete, false): return .nothing
    case (.forceUpdate, true): return .merged
    case (.forceReplace, true): return .replaced
    case (.forceDelete, true): return .deleted
    case (.delete, true) where cell.stored == .noTag: return .deleted
    case (.update, true), (.replace, true), (.delete, true):
      guard cell.stored == .equalTag else { return .failed(.conflict, "client oplock error updating record") }
      return cell.kind == .update ? .merged : cell.kind == .replace ? .replaced : .deleted
    }
  }

  @Test("W8: every cell of the section 5 table", arguments: Cell.all, [false, true])
  func cell(_ cell: Cell, tagOnMissing: Bool) throws {
    let world = try World()
    var before: Record?
    if cell.stored != .none { before = try world.save("a", ["title": .string("old"), "body": .string("kept")]) }
    if cell.stored == .tombstone { try world.run(.forceDelete, world.note("a")) }
    let tag: ChangeTag? =
      switch cell.stored {
      case .none, .tombstone: tagOnMissing ? ChangeTag("1zzzzzz") : nil
      case .equalTag: before?.changeTag
      case .otherTag: ChangeTag("1zzzzzz")
      case .noTag: nil
      }
    let feedBefore = try world.feed().token

    let outcome = try world.run(cell.kind, world.note("a", ["title": .string("new")], tag: tag))

    let stored = try world.stored("a")
    let (records, deletions, feedAfter) = try world.feed(since: feedBefore)
    switch expected(cell, tagGiven: tag != nil) {
    case .failed(let code, let reason):
      #expect(outcome.error?.code == code)
      #expect(outcome.error?.reason == reason)
      #expect(stored == (cell.stored == .tombstone ? nil : before))
      #expect(feedAfter == feedBefore)
    case .nothing:
      #expect(outcome.isDeleted)
      #expect(stored == nil)
      #expect(feedAfter == feedBefore)
    case .deleted:
      #expect(outcome.isDeleted)
      #expect(stored == nil)
      #expect(records == [] && deletions == ["a"])
    case .inserted, .replaced:
      let saved = try outcome.saved()
      #expect(saved == stored)
      #expect(saved.fields == ["title": .string("new")])
      #expect(saved.changeTag != before?.changeTag)
      #expect(records == ["a"] && deletions == [])
    case .merged:
      let saved = try outcome.saved()
      #expect(saved == stored)
      #expect(saved.fields == ["title": .string("new"), "body": .string("kept")])
      #expect(saved.changeTag != before?.changeTag)
      #expect(records == ["a"])
    }
  }

  @Test("W8: create, forceUpdate and forceReplace need a record type", arguments: RecordOperation.Kind.allCases)
  func recordType(_ kind: RecordOperation.Kind) throws {
    let world = try World()
    let before = try world.save("a", ["title": .string("old")])
    let outcome = try world.run(kind, world.note("a", ["title": .string("new")], tag: before.changeTag, type: ""))
    switch kind {
    case .create: #expect(outcome.error?.code == .conflict)
    case .forceUpdate, .forceReplace: #expect(outcome.error?.code == .badRequest)
    case .update, .replace: #expect(try outcome.saved().type == "Note")
    case .delete, .forceDelete: #expect(outcome.isDeleted)
    }
  }

  @Test("W8: the type of a live record cannot change; over a tombstone it can")
  func changingType() throws {
    let world = try World()
    try world.save("a")
    #expect(try world.run(.forceReplace, world.note("a", type: "Other")).error?.code == .badRequest)
    try world.run(.forceDelete, world.note("a"))
    #expect(try world.run(.create, world.note("a", type: "Other")).saved().type == "Other")
  }

  @Test("W8: a missing record name becomes an upper-case UUID")
  func generatedName() throws {
    let world = try World()
    let name = try world.run(.create, world.note("")).saved().id.name
    #expect(name.count == 36)
    #expect(name == name.uppercased())
    #expect(try world.stored(name) != nil)
  }

  @Test("W8: creation stamps stay, modification stamps follow the clock")
  func stamps() throws {
    let world = try World()
    let first = try world.save("a")
    world.clock.advance(seconds: 5)
    let second = try world.save("a")
    #expect(second.created == first.created)
    #expect(second.modified?.timestamp == (first.modified?.timestamp ?? 0) + 5_000)
    #expect(second.modified?.userRecordName == world.cloud.caller.recordName)
  }
}
