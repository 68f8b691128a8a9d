import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Foundation
import Testing

@Suite("Delete then reinsert: failures, crashes and every kind of key (tables 8.7)")
struct ReinsertFailureTests {
  enum Failure: CaseIterable {
    case quota, throttle, lostRequest, lostAnswer, restartBefore, badRequest, accessDenied

    func set(_ device: Device) {
      switch self {
      case .quota: device.failModify(.quotaExceeded)
      case .throttle: device.failModify(.throttled(retryAfter: 30))
      case .lostRequest: device.failModify(.lostRequest)
      case .lostAnswer: device.failModify(.lostAnswer)
      case .restartBefore: break
      case .badRequest: device.failModify(.error(CloudError(.badRequest, "no")))
      case .accessDenied: device.failModify(.error(CloudError(.accessDenied, "no")))
      }
    }
  }

  @Test(
    "TS114 TS115 a send fails, restart, success later: replace with all fields and the reinsert's clocks",
    arguments: Failure.allCases, [true, false])
  func sendFails(_ failure: Failure, restarts: Bool) throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
    let (a, b) = (devices[0], devices[1])
    let tag = try world.serverRecords()["lists:r"]?.changeTag
    world.alterations.clearStored()
    try a.sql("DELETE FROM lists", at: 5)
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 10)
    failure.set(a)
    if failure != .restartBefore { try a.sync() } else { try a.fold() }
    if restarts || failure == .restartBefore { a.restart() }
    a.cloud.heal()
    world.clock.advance(seconds: 7_200)
    try a.sync()
    if failure != .badRequest && failure != .accessDenied { try a.sync() }
    let sent = a.operations("lists:r")
    #expect(!sent.isEmpty)
    for operation in sent {
      #expect(operation.kind == .replace && operation.record.changeTag == tag)
      #expect(operation.record.fields["cairn_life"] == .int64(World.start + 10_000))
    }
    #expect(world.alterations.stored == ["lists:r": 1], "stored once")
    try world.expectQuiet()
    for device in [a, b] { #expect(try device.picture("SELECT * FROM lists") == ["r|new|∅"]) }
    #expect(
      try world.milliseconds("lists:r") == [
        "life": 10_000, "cut": 5_000, "id": 10_000, "color": 10_000, "title": 10_000,
      ])
  }

  enum DeleteResult: CaseIterable { case ok, lostAnswer, lostRequest, conflict, unknown }

  @Test(
    "TS116 a delete is in flight, the row is reinserted: alive everywhere with the reinserted values",
    arguments: DeleteResult.allCases, [true, false])
  func reinsertedInFlight(_ result: DeleteResult, restarts: Bool) throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
    let (a, b) = (devices[0], devices[1])
    try a.sql("DELETE FROM lists", at: 10)
    switch result {
    case .conflict:
      try b.sql("UPDATE lists SET title = 'B', color = 'B'", at: 5)
      try b.sync()
    case .unknown:
      try world.foreignDelete("lists:r", at: 3)
    case .lostAnswer: a.failModify(.lostAnswer)
    case .lostRequest: a.failModify(.lostRequest)
    case .ok: break
    }
    if result == .lostRequest {
      // Lost before it arrived: the row is reinserted after the call.
      try a.sync(.sendOnly)
      try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20)
    } else {
      a.meanwhile(stops: true) { try $0.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: 20) }
      try a.sync(.sendOnly)
      let expected =
        switch result {
        case .ok, .unknown: "Reinserted without tag"
        case .conflict: "Edited"
        default: "Reinserted"
        }
      try a.fold()
      let state = try a.state("r")
      #expect(state.hasPrefix(expected), "is \(state)")
    }
    a.cloud.heal()
    if restarts { a.restart() }
    world.clock.advance(seconds: 60)
    try world.expectQuiet()
    for device in [a, b] { #expect(try device.picture("SELECT * FROM lists") == ["r|new|∅"]) }
    let clocks = try world.milliseconds("lists:r")
    #expect(clocks["life"] == 20_000 && clocks["color"] == 20_000 && clocks["cut"] == 10_000)
  }

  @Test("TS117 delete confirmed, reinsert: create; clocks above the delete's", arguments: [5, 20])
  func afterConfirmation(_ time: Int64) throws {
    let world = try World()
    let devices = try world.devices(
      ["A", "B"], schema: Schema.lists, base: "INSERT INTO lists VALUES ('r', 'old', 'red')")
    let (a, b) = (devices[0], devices[1])
    try a.sql("DELETE FROM lists", at: 10)
    try a.sync()
    a.cloud.clearLog()
    try a.sql("INSERT INTO lists VALUES ('r', 'new', NULL)", at: time)
    try a.sync()
    #expect(a.operations("lists:r").map(\.kind) == [.create])
    try world.expectQuiet()
    for device in [a, b] { #expect(try device.picture("SELECT * FROM lists") == ["r|new|∅"]) }
    #expect(try world.milliseconds("lists:r")["life"] == max(10_001, time * 1_000))
  }

  // MARK: Kinds of keys

  struct Kind: CustomTestStringConvertible {
    var name: String
    var base: String
    var delete: String
    /// Columns and values of the row that comes back.
    var values: String
    var query: String
    var expected: [String]
    var testDescription: String { name }

    static let long = String(repeating: "k", count: 300)
    static let all = [
      Kind(
        name: "text", base: "", delete: "lists", values: "('r', 'new', NULL)", query: "lists", expected: ["r|new|∅"]),
      Kind(
        name: "composite", base: "INSERT INTO pairs VALUES ('x', 7, 'old')", delete: "pairs", values: "('x', 7, 'new')",
        query: "pairs", expected: ["x|7|new"]),
      Kind(
        name: "links",
        base:
          "INSERT INTO tags VALUES ('t'); INSERT INTO items VALUES ('i', 'r', 1, 1, 1); INSERT INTO item_tags VALUES ('i', 't')",
        delete: "item_tags", values: "('i', 't')", query: "item_tags", expected: ["i|t"]),
      Kind(
        name: "by parent", base: "INSERT INTO covers VALUES ('r', x'01')", delete: "covers", values: "('r', x'0203')",
        query: "covers", expected: ["r|x'0203'"]),
      Kind(
        name: "by mapped parent", base: "INSERT INTO notes VALUES (5, 'n', 'b'); INSERT INTO details VALUES (5, 'old')",
        delete: "details", values: "(5, 'new')", query: "details", expected: ["5|new"]),
      Kind(
        name: "by two mapped parents",
        base:
          "INSERT INTO notes VALUES (5, 'n', 'b'); INSERT INTO labels VALUES (6, 'l'); INSERT INTO marks VALUES (5, 6)",
        delete: "marks", values: "(5, 6)", query: "marks", expected: ["5|6"]),
      Kind(
        name: "nocase", base: "INSERT INTO words VALUES ('Red', 'old')", delete: "words", values: "('rED', 'new')",
        query: "words", expected: ["rED|new"]),
      Kind(
        name: "blob without rowid", base: "INSERT INTO blobs VALUES (x'00ff', 'old')", delete: "blobs",
        values: "(x'00ff', 'new')", query: "blobs", expected: ["x'00ff'|new"]),
      Kind(
        name: "hashed", base: "INSERT INTO words VALUES ('\(long)', 'old')", delete: "words",
        values: "('\(long)', 'new')", query: "words", expected: ["\(long)|new"]),
    ]
  }

  static let schema =
    Schema.scenarios + """

      CREATE TABLE pairs(a TEXT NOT NULL, b INTEGER NOT NULL, note, PRIMARY KEY (a, b));
      CREATE TABLE words(name TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, note);
      CREATE TABLE blobs(k BLOB PRIMARY KEY NOT NULL, note) WITHOUT ROWID;
      CREATE TABLE details(note_id INTEGER PRIMARY KEY REFERENCES notes ON DELETE CASCADE, body);
      """

  enum Way: CaseIterable {
    case oneTransaction, twoTransactions, replace, replaceRecursive, confirmedDelete, restartBetween, inFlight

    func run(_ device: Device, _ kind: Kind) throws {
      let insert = "INSERT INTO \(kind.query) VALUES \(kind.values)"
      let delete = "DELETE FROM \(kind.delete)"
      switch self {
      case .oneTransaction: try device.sql("BEGIN; \(delete); \(insert); COMMIT", at: 20)
      case .twoTransactions:
        try device.sql(delete, at: 15)
        try device.sql(insert, at: 20)
      case .replace, .replaceRecursive:
        try device.sql("PRAGMA recursive_triggers = \(self == .replace ? "OFF" : "ON")")
        try device.sql(delete, at: 15)
        try device.sql("INSERT OR REPLACE INTO \(kind.query) VALUES \(kind.values)", at: 20)
      case .confirmedDelete:
        try device.sql(delete, at: 15)
        try device.sync(.sendOnly)
        try device.sql(insert, at: 20)
      case .restartBetween:
        try device.sql(delete, at: 15)
        try device.fold()
        device.restart()
        try device.sql(insert, at: 20)
      case .inFlight:
        try device.sql(delete, at: 15)
        device.meanwhile { try $0.sql(insert, at: 20) }
        try device.sync(.sendOnly)
      }
    }
  }

  @Test(
    "TS102 TS116 TS117 TS121 every kind of key, every way to reinsert, in turns every order", arguments: Kind.all,
    Way.allCases)
  func everyKey(_ kind: Kind, _ way: Way) throws {
    for order in Self.orders(kind, way) {
      let world = try World()
      let devices = try world.devices(
        ["A", "B"], schema: Self.schema, base: "INSERT INTO lists VALUES ('r', 'old', 'red'); " + kind.base)
      let (a, b) = (devices[0], devices[1])
      try way.run(a, kind)
      // B touches another row, so that there is something to meet.
      try b.sql("INSERT INTO lists VALUES ('other', 1, 1)", at: 12)
      try order.meet(a, b)
      if way != .confirmedDelete && way != .inFlight {
        try a.sync()
        let sent = a.sentSinceLastAsked().filter { !$0.hasSuffix("lists:other") }
        #expect(sent.count == 1 && sent[0].hasPrefix("save "), "\(order): \(sent)")
      }
      try world.expectQuiet()
      for device in [a, b] {
        #expect(
          try device.picture("SELECT * FROM \(kind.query)" + (kind.query == "lists" ? " WHERE id = 'r'" : ""))
            == kind.expected, "\(order) \(device.name)")
      }
    }
  }

  /// One order for each pair of a kind and a way, another for each; all of them with CAIRN_SOAK.
  private static func orders(_ kind: Kind, _ way: Way) -> [Order] {
    if ProcessInfo.processInfo.environment["CAIRN_SOAK"] != nil { return Order.allCases }
    let place = (Kind.all.firstIndex { $0.query == kind.query } ?? 0) + (Way.allCases.firstIndex(of: way) ?? 0)
    return [Order.allCases[place % Order.allCases.count]]
  }
}
