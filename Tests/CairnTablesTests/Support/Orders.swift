import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

/// The four orders in which two devices can meet over one record (tables section 8): who syncs first, and whether the
/// other finds out when it sends or when it fetches.
enum Order: CaseIterable, CustomTestStringConvertible {
  case aFirstThenSend, aFirstThenFetch, bFirstThenSend, bFirstThenFetch

  var testDescription: String { "\(self)" }

  /// The first device syncs; the second meets what it brought.
  func meet(_ a: Device, _ b: Device) throws {
    let isAFirst = self == .aFirstThenSend || self == .aFirstThenFetch
    let (first, second) = isAFirst ? (a, b) : (b, a)
    try first.sync()
    let isMetOnSend = self == .aFirstThenSend || self == .bFirstThenSend
    try second.sync(isMetOnSend ? .sendOnly : .fetchOnly)
  }
}

extension World {
  /// The server as another program sees it.
  func foreign() throws -> InMemoryCloud { try server.cloud(user: user, limits: CloudLimits(entriesPerRequest: 2_000)) }

  /// Deletes a record as a client without Cairn would. `seconds` is the time of the delete.
  func foreignDelete(_ name: String, at seconds: Int64) throws {
    let stub = Record(id: RecordID(name: name, zone: zone), type: String(name.prefix { $0 != ":" }))
    let outcomes = try foreign().modify(
      in: zone, [RecordOperation(.forceDelete, stub, deleteTime: World.start + seconds * 1_000)], atomic: false)
    guard case .deleted? = outcomes.first else { throw Unexpected(what: "\(outcomes)") }
  }

  /// Changes a record on the server as another client would.
  func foreignReplace(_ name: String, _ change: (inout Fields) -> Void) throws {
    guard var record = try serverRecords()[name] else { throw Unexpected(what: "\(name) is not on the server") }
    change(&record.fields)
    let outcomes = try foreign().modify(in: zone, [RecordOperation(.replace, record)], atomic: false)
    guard case .saved? = outcomes.first else { throw Unexpected(what: "\(outcomes)") }
  }

  struct Unexpected: Error { var what: String }

  /// The clocks of a record's fields on the server, in milliseconds after the world's start; life as `life`, cut as
  /// `cut`.
  func milliseconds(_ name: String) throws -> [String: Int64] {
    guard let fields = try serverRecords()[name]?.fields else { return [:] }
    var result: [String: Int64] = [:]
    if case .int64(let life)? = fields["cairn_life"] { result["life"] = life - World.start }
    if case .int64(let cut)? = fields["cairn_cut"] { result["cut"] = cut - World.start }
    guard case .string(let json)? = fields["cairn_clocks"] else { return result }
    let reader = try Connection(path: ":memory:", mode: .create)
    let rows = try reader.rows(
      "SELECT o.key, i.value FROM json_each('\(json)') o, json_each(o.value) i")
    for row in rows {
      if case .text(let clock) = row[0], case .text(let field) = row[1], let number = Int64(clock) {
        result[field] = number - World.start
      }
    }
    return result
  }

  /// Nothing is sent any more: a further sync of every device changes nothing (G2, M4).
  func expectQuiet(sourceLocation: SourceLocation = #_sourceLocation) throws {
    try expectConverged(sourceLocation: sourceLocation)
    for device in devices { _ = device.sentSinceLastAsked() }
    for device in devices { try device.sync() }
    for device in devices {
      #expect(device.sentSinceLastAsked().isEmpty, "\(device.name) sent again", sourceLocation: sourceLocation)
    }
    try expectSameMetadata(sourceLocation: sourceLocation)
  }

  /// What devices know of live records, clocks and tags, is the same (TS78).
  func expectSameMetadata(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let pictures = try devices.map { device in
      try device.picture(
        """
        SELECT t.name, coalesce(r.uuid, quote(r.key)), r.life, r.cut, r.clock,
          r.clocks, r.kept, r.tag
        FROM \(RecordView.sql) r JOIN cairn_table t ON t.number = r.tbl WHERE r.deleted IS NULL AND t.name IN (
          'lists', 'tags', 'slots')
        """)
    }
    for (device, picture) in zip(devices, pictures) {
      #expect(picture == pictures[0], "\(device.name) knows other clocks", sourceLocation: sourceLocation)
    }
  }
}

extension Device {
  /// Runs `body` once, after the next modify request reached the server and before its answer arrives, or the next
  /// request of another kind. Then every further modify request fails as offline until ``FaultInjector/heal()``, if
  /// `stops`.
  @discardableResult
  func meanwhile(
    stops: Bool = false, at isMoment: @escaping @Sendable (FaultInjector.Call) -> Bool = Device.isModify,
    _ body: @escaping (Device) throws -> Void
  ) -> Meanwhile {
    let meanwhile = Meanwhile()
    // The engine calls on the test's own thread, inside `sync`.
    nonisolated(unsafe) let (device, body, done) = (self, body, meanwhile)
    cloud.setAfter { call in
      guard isMoment(call) else { return }
      done.happened = true
      device.cloud.setAfter(nil)
      do { try body(device) } catch { Issue.record(error) }
      if stops { device.stopSending() }
    }
    return meanwhile
  }

  @Sendable static func isModify(_ call: FaultInjector.Call) -> Bool {
    if case .modify = call { true } else { false }
  }

  /// What ``meanwhile(stops:at:_:)`` came to.
  final class Meanwhile { var happened = false }

  /// Every further modify request fails as offline until ``FaultInjector/heal()``.
  func stopSending() {
    cloud.fail(.offline, times: .max) { if case .modify = $0 { true } else { false } }
  }

  /// The next modify request fails so.
  func failModify(_ fault: FaultInjector.Fault, times: Int = 1) {
    cloud.fail(fault, times: times) { if case .modify = $0 { true } else { false } }
  }

  /// Takes up what programs wrote.
  func fold() throws { try open().database.category.gatherLocalChanges(now: time.wallClock) }

  /// The state of a record of `lists` in the words of tables 3.2.
  func state(_ key: String) throws -> String {
    let rows = try rows(
      """
      SELECT r.pending, r.life_status, r.tag IS NULL, r.deleted IS NULL, r.reason
      FROM \(RecordView.sql) r JOIN cairn_table t ON t.number = r.tbl WHERE t.name = 'lists' AND r.key = '\(key)'
      """)
    guard let row = rows.first else { return "Absent" }
    let hasTag = row[2] == .integer(0)
    let reason = row[4] == .null ? "" : ", " + Device.text(row[4])
    let tag = hasTag ? "" : " without tag"
    if row[3] == .integer(0) { return (row[0] == .integer(0) ? "Gone" : "Deleted\(tag)") + reason }
    if row[0] == .integer(0) { return "Clean\(tag)" + reason }
    if row[1] == .integer(2) { return "Reinserted\(tag)" + reason }
    return (hasTag ? "Edited" : "New") + reason
  }

  /// Fields of a record of `lists` that are not confirmed; nil for all.
  func unconfirmed(_ key: String) throws -> String? {
    try texts(
      """
      SELECT r.dirty FROM \(RecordView.sql) r JOIN cairn_table t ON t.number = r.tbl
      WHERE t.name = 'lists' AND r.key = '\(key)' AND r.dirty IS NOT NULL
      """
    ).first
  }

  /// Full operations sent since the last call, of one record.
  func operations(_ name: String) -> [RecordOperation] {
    let operations = cloud.sentOperations.filter { $0.record.id.name == name }
    cloud.clearLog()
    return operations
  }
}
