import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

/// Every cell of the three tables of tables.md section 3.2.
@Suite("States of records (tables 3.2)")
struct StateTableTests {
  let world: World
  let a: Device
  let b: Device

  init() throws {
    (world, a, b) = try World.pair(
      schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red'), ('other', 1, 1)")
  }

  private func bring(to state: String) throws {
    switch state {
    case "Absent": try a.sql("DELETE FROM lists WHERE id = 'none'", at: 3)
    case "Clean": break
    case "Edited": try a.sql("UPDATE lists SET title = 'A' WHERE id = 'r'", at: 4)
    case "Deleted": try a.sql("DELETE FROM lists WHERE id = 'r'", at: 4)
    case "Reinserted":
      try a.sql("DELETE FROM lists WHERE id = 'r'", at: 4)
      try a.sql("INSERT INTO lists VALUES ('r', 'reborn', NULL)", at: 5)
    case "Gone":
      try a.sql("DELETE FROM lists WHERE id = 'r'", at: 4)
      try a.sync()
    default: Issue.record("no such state")
    }
    try a.fold()
    #expect(try a.state(state == "Absent" ? "n" : "r") == state)
    _ = a.sentSinceLastAsked()
  }

  // MARK: Local changes

  @Test(
    "3.2 local changes of every state",
    arguments: [
      ("Clean", "update", "Edited"), ("Clean", "delete", "Deleted"), ("Clean", "replace", "Edited"),
      ("Clean", "replaceEqual", "Clean"), ("Edited", "update", "Edited"), ("Edited", "delete", "Deleted"),
      ("Edited", "replace", "Edited"), ("Deleted", "insert", "Reinserted"), ("Deleted", "replace", "Reinserted"),
      ("Deleted", "update", "Deleted"), ("Deleted", "delete", "Deleted"), ("Reinserted", "update", "Reinserted"),
      ("Reinserted", "replace", "Reinserted"), ("Reinserted", "delete", "Deleted"),
      ("Gone", "insert", "Reinserted without tag"), ("Gone", "update", "Gone"), ("Gone", "delete", "Gone"),
    ])
  func localChange(_ cell: (String, String, String)) throws {
    let (state, change, expected) = cell
    try bring(to: state)
    let revision = try self.revision("r")
    let statement =
      switch change {
      case "insert": "INSERT INTO lists VALUES ('r', 'ins', NULL)"
      case "replace": "REPLACE INTO lists VALUES ('r', 'rep', 'red')"
      case "replaceEqual": "REPLACE INTO lists VALUES ('r', 'old', 'red')"
      case "update": "UPDATE lists SET color = 'blue' WHERE id = 'r'"
      default: "DELETE FROM lists WHERE id = 'r'"
      }
    try a.sql(statement, at: 10)
    try a.fold()
    #expect(try a.state("r") == expected)
    // Each transition raises the revision.
    let isNothing =
      state == expected && (change == "delete" || change == "replaceEqual" || state == "Deleted" || state == "Gone")
    #expect(try self.revision("r") > revision || isNothing)
    try world.expectQuiet()
    let isAlive = !expected.hasPrefix("Deleted") && expected != "Gone"
    for device in [a, b] {
      #expect(try device.rows("SELECT * FROM lists WHERE id = 'r'").count == (isAlive ? 1 : 0))
    }
  }

  private func revision(_ key: String) throws -> Int64 {
    try a.scalar("SELECT max(revision) FROM \(RecordView.sql) WHERE key = '\(key)'")?.integerForTests ?? 0
  }

  @Test("3.2 F7 Absent to New, New edited, New deleted: Absent, nothing sent; Deleted if ever in a batch")
  func newRecords() throws {
    try a.sql("INSERT INTO lists VALUES ('n', 1, 1)", at: 5)
    try a.fold()
    #expect(try a.state("n") == "New")
    try a.sql("UPDATE lists SET title = 2 WHERE id = 'n'", at: 6)
    try a.fold()
    #expect(try a.state("n") == "New")
    try a.sql("DELETE FROM lists WHERE id = 'n'", at: 7)
    try a.fold()
    #expect(try a.state("n") == "Absent")
    try a.sync()
    #expect(a.sentSinceLastAsked().isEmpty)

    try a.sql("INSERT INTO lists VALUES ('n', 1, 1)", at: 8)
    a.failModify(.lostRequest)
    try a.sync()
    try a.sql("DELETE FROM lists WHERE id = 'n'", at: 9)
    try a.fold()
    #expect(try a.state("n").hasPrefix("Deleted without tag"))
    world.clock.advance(seconds: 60)
    a.cloud.clearLog()
    try a.sync()
    #expect(a.operations("lists:n").map(\.kind) == [.delete])
    #expect(try a.state("n") == "Gone")
    try world.expectQuiet()
  }

  // MARK: Result of a save in flight

  enum SaveResult: CaseIterable {
    case ok, conflict, conflictLost, unknownOlder, unknownNewer, quota, throttled, network, signedOut, permission
    case reference, rejected, noAnswer, crash
  }

  enum Meanwhile: CaseIterable {
    case nothing, edited, deleted, reborn

    func run(_ device: Device) throws {
      switch self {
      case .nothing: break
      case .edited: try device.sql("UPDATE lists SET color = 'later' WHERE id = 'r'", at: 30)
      case .deleted: try device.sql("DELETE FROM lists WHERE id = 'r'", at: 30)
      case .reborn:
        try device.sql("DELETE FROM lists WHERE id = 'r'", at: 30)
        try device.sql("INSERT INTO lists VALUES ('r', 'reborn', NULL)", at: 31)
      }
    }

    /// The state of a record that was in flight and stays as it is.
    var unchanged: String {
      ["Edited", "Edited", "Deleted", "Reinserted"][Meanwhile.allCases.firstIndex(of: self) ?? 0]
    }
  }

  @Test("3.2 results of a save in flight", arguments: SaveResult.allCases, Meanwhile.allCases)
  func saveInFlight(_ result: SaveResult, _ meanwhile: Meanwhile) throws {
    try a.sql("UPDATE lists SET title = 'A' WHERE id = 'r'", at: 20)
    try prepareServer(for: result)
    let hook = a.meanwhile(stops: true) { try meanwhile.run($0) }
    try a.sync(.sendOnly)
    // A request that never arrives has no answer to come before.
    a.cloud.setAfter(nil)
    if !hook.happened { try meanwhile.run(a) }
    try a.fold()
    let state = try a.state("r")
    #expect(state.hasPrefix(expected(result, meanwhile)), "is \(state)")
    if result == .ok && meanwhile == .edited { #expect(try a.unconfirmed("r") == "color") }
    a.cloud.heal()
    if result == .crash || result == .noAnswer { a.restart() }
    world.clock.advance(seconds: 7_200)
    try world.expectQuiet()
    let row: [String] =
      switch meanwhile {
      case .nothing where result == .unknownNewer: []
      case .nothing where result == .conflictLost: ["r|B|red"]
      case .nothing: ["r|A|red"]
      case .edited where result == .conflictLost: ["r|B|later"]
      case .edited: ["r|A|later"]
      case .deleted where result == .conflictLost: ["r|B|red"]
      case .deleted: []
      case .reborn where result == .conflictLost: ["r|B|∅"]
      case .reborn: ["r|reborn|∅"]
      }
    for device in [a, b] { #expect(try device.picture("SELECT * FROM lists WHERE id = 'r'") == row, "\(device.name)") }
  }

  private func prepareServer(for result: SaveResult) throws {
    switch result {
    case .ok, .crash: break
    case .conflict:
      try b.sql(
        "UPDATE lists SET color = 'red' || '' WHERE id = 'r'; UPDATE lists SET title = 'B' WHERE id = 'r'", at: 10)
      try b.sync()
    case .conflictLost:
      try b.sql("UPDATE lists SET title = 'B' WHERE id = 'r'", at: 40)
      try b.sync()
    case .unknownOlder: try world.foreignDelete("lists:r", at: 15)
    case .unknownNewer: try world.foreignDelete("lists:r", at: 25)
    case .quota: a.failModify(.quotaExceeded)
    case .throttled: a.failModify(.throttled(retryAfter: 30))
    case .network: a.failModify(.lostRequest)
    case .signedOut: a.failModify(.authenticationFailed)
    case .permission: a.failModify(.error(CloudError(.accessDenied, "no")))
    case .reference: a.failModify(.error(CloudError(.validatingReferenceError, "no")))
    case .rejected: a.failModify(.error(CloudError(.badRequest, "no")))
    case .noAnswer: a.failModify(.lostAnswer)
    }
  }

  private func expected(_ result: SaveResult, _ meanwhile: Meanwhile) -> String {
    switch (result, meanwhile) {
    case (.ok, .nothing), (.crash, .nothing), (.conflictLost, .nothing): "Clean"
    case (.conflict, .reborn), (.conflictLost, .reborn): "Edited"
    case (.conflictLost, .deleted): "Clean"
    case (.unknownOlder, .nothing), (.unknownOlder, .edited), (.unknownNewer, .edited): "New"
    case (.unknownNewer, .nothing): "Gone"
    case (.unknownOlder, .deleted), (.unknownNewer, .deleted): "Gone"
    case (.unknownOlder, .reborn), (.unknownNewer, .reborn): "Reinserted without tag"
    default: meanwhile.unchanged
    }
  }

  // MARK: Result of a delete in flight

  enum DeleteResult: CaseIterable {
    case ok, unknown, conflictOlder, conflictNewer, quota, permission, rejected, network
  }

  @Test("3.2 results of a delete in flight", arguments: DeleteResult.allCases, [false, true])
  func deleteInFlight(_ result: DeleteResult, reinserted: Bool) throws {
    try a.sql("DELETE FROM lists WHERE id = 'r'", at: 20)
    switch result {
    case .ok: break
    case .unknown: try world.foreignDelete("lists:r", at: 3)
    case .conflictOlder, .conflictNewer:
      try b.sql("UPDATE lists SET title = 'B', color = 'B' WHERE id = 'r'", at: result == .conflictOlder ? 10 : 25)
      try b.sync()
    case .quota: a.failModify(.error(CloudError(.quotaExceeded, "full")))
    case .permission: a.failModify(.error(CloudError(.accessDenied, "no")))
    case .rejected: a.failModify(.error(CloudError(.badRequest, "no")))
    case .network: a.failModify(.lostRequest)
    }
    let insert = "INSERT INTO lists VALUES ('r', 'reborn', NULL)"
    let hook = a.meanwhile(stops: true) { if reinserted { try $0.sql(insert, at: 30) } }
    try a.sync(.sendOnly)
    a.cloud.setAfter(nil)
    if reinserted && !hook.happened { try a.sql(insert, at: 30) }
    try a.fold()
    let expected: String =
      switch (result, reinserted) {
      case (.ok, false), (.unknown, false): "Gone"
      case (.ok, true), (.unknown, true): "Reinserted without tag"
      case (.conflictOlder, false): "Deleted"
      case (.conflictNewer, false): "Clean"
      case (.conflictOlder, true), (.conflictNewer, true): "Edited"
      case (_, false): "Deleted"
      case (_, true): "Reinserted"
      }
    let state = try a.state("r")
    #expect(state.hasPrefix(expected), "is \(state)")
    a.cloud.heal()
    world.clock.advance(seconds: 7_200)
    try world.expectQuiet()
    let row = reinserted ? ["r|reborn|∅"] : result == .conflictNewer ? ["r|B|B"] : []
    for device in [a, b] { #expect(try device.picture("SELECT * FROM lists WHERE id = 'r'") == row, "\(device.name)") }
  }
}

extension Value {
  var integerForTests: Int64? { if case .integer(let integer) = self { integer } else { nil } }
}
