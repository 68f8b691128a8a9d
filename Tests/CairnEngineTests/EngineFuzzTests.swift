import CairnEngine
import CairnRecords
import CairnTesting
import FuzzSupport
import Testing

@testable import CairnEngine

/// The engine's stored rows, damaged.
@Suite("Damaged engine state") struct EngineFuzzTests {
  @Test("engine section 3: a stored queue is read whole or not at all", .timeLimit(.minutes(10)))
  func queue() throws {
    let zone = ZoneID(name: "z/%", owner: "_o/%")
    let prefix = "q/r/"
    let sound: [(key: String, value: String)] = [
      ("a", "p 1 s 1"), ("b", "p 2 d 7 throttled 1700"), ("c", "p 3 s 5;f 2 s 4 9"), ("d", "f 4 d 4 1;h"),
      ("e", "p 9 s 9 quota"),
    ].map { (prefix + RecordID(name: $0.0, zone: zone).queueKey, $0.1) }
    try Fuzz.run("stored queue", count: 2_000) { mutator -> [String: String] in
      var rows: [String: String] = [:]
      for row in sound where mutator.index(3) > 0 {
        let key = mutator.index(4) == 0 ? prefix + mutator.mutant(of: String(row.key.dropFirst(4))) : row.key
        rows[key] = mutator.index(2) == 0 ? mutator.mutant(of: row.value, others: sound.map(\.value)) : row.value
      }
      return rows
    } _: { rows in
      var queue: PendingQueue<RecordID>
      do { queue = try PendingQueue(prefix: prefix, rows: rows) } catch { return }
      try Fuzz.demand(queue.brokenInvariants().isEmpty, "\(queue.brokenInvariants())")
      queue.recover()
      try Fuzz.demand(queue.pending.count == rows.count, "\(queue.pending.count) pending of \(rows.count) rows")
      queue.add(.save, RecordID(name: "new", zone: zone))
      try Fuzz.demand(queue.pending.last?.id.name == "new" || queue.flightCount > 0, "a new change is not the last")
    }
  }

  @Test("engine section 3: numbers that can't be counted further, and rows that stand for one change, are unreadable")
  func unreadableQueue() {
    let id = RecordID(name: "a", zone: ZoneID(name: "z"))
    for rows in [
      ["q/r/\(id.queueKey)": "p 9223372036854775807 s 1"], ["q/r/\(id.queueKey)": "p 1 s -1"],
      ["q/r/\(id.queueKey)": "f 1 s 1 9223372036854775807"],
      ["q/r/\(id.queueKey)": "p 1 s 1", "q/r/\(id.queueKey)b": "p 1 s 1"], ["q/r/_defaultOwner/%zz/a": "p 1 s 1"],
    ] {
      #expect(throws: PendingQueue<RecordID>.Unreadable.self, "\(rows)") {
        try PendingQueue<RecordID>(prefix: "q/r/", rows: rows)
      }
    }
  }

  @Test("engine.md: a name that begins with a combining mark is another record's no more than its zone's")
  func combiningMark() {
    let id = RecordID(name: "\u{301}x", zone: ZoneID(name: "a/\u{301}"))
    #expect(RecordID(queueKey: id.queueKey[...]) == id)
  }

  @Test("engine section 6: a change that stays pending though it was confirmed ends the call with an error")
  func deafCategory() throws {
    let clock = ManualClock()
    let device = try Device(try InMemoryServer(clock: clock), clock)
    device.notes.maxBatch = 2
    device.notes.deaf = ["b", "c"]
    for key in ["a", "b", "c", "d", "e"] { device.notes.set(key, key, at: 1) }
    let result = try device.sync()
    #expect("\(result.failure.map { "\($0)" } ?? "")".contains("damaged"))
    #expect(device.cloud.sentOperations.count < 20)
  }

  @Test("engine.md: keys of zones and records are read as they were written", .timeLimit(.minutes(10)))
  func keys() throws {
    let sound = ["Notes", "a/b", "50%", "%2F", "/", "", "\u{301}x", "a\r\nb", "é"]
    try Fuzz.run("stored keys", count: 2_000) { mutator -> RecordID in
      func text(_ mutator: inout Mutator) -> String { mutator.mutant(of: mutator.one(of: sound), others: sound) }
      return RecordID(
        name: text(&mutator), zone: ZoneID(name: text(&mutator), owner: text(&mutator)))
    } _: { id in
      let record = RecordID(queueKey: id.queueKey[...])
      try Fuzz.demand(
        record.map { Array($0.name.utf8) } == Array(id.name.utf8)
          && record.map { Array($0.zone.name.utf8) } == Array(id.zone.name.utf8)
          && record.map { Array($0.zone.owner.utf8) } == Array(id.zone.owner.utf8),
        "read as \(String(describing: record))")
      try Fuzz.demand(ZoneID(queueKey: id.zone.queueKey[...]) == id.zone, "the zone is another")
    }
  }

  @Test("engine section 3: a sync on damaged rows ends, and no change of the user is lost", .timeLimit(.minutes(10)))
  func rows() throws {
    let clock = ManualClock()
    let server = try InMemoryServer(clock: clock)
    let other = try Device(server, clock)
    other.notes.set("there", "x", at: 1)
    try other.sync()
    let device = try Device(server, clock)
    device.notes.set("a", "1", at: 1)
    try device.sync()
    var sound = device.store.rows
    sound["db/backoff"] = "3 1700000000000 network"
    sound["db/quota"] = "2 1700000000000"
    sound["db/hold"] = "1700000000000"
    for (name, value) in [("hold", "1700000000000"), ("lastFetch", "5"), ("tries/Note:a", "2"), ("unfetched", "1")] {
      sound["z/" + StoredKeys.path(Device.zone) + "/" + name] = value
    }
    let keys = sound.keys.sorted()
    let values = sound.values.sorted()
    try Fuzz.run("engine rows", count: 250) { mutator -> [String: String] in
      var rows = sound
      for _ in 0...mutator.index(3) {
        let key = mutator.one(of: keys)
        switch mutator.index(6) {
        case 0: rows[key] = nil
        case 1: rows[mutator.mutant(of: key, others: keys)] = rows[key]
        case 2: rows[key] = mutator.one(of: values)
        case 3:
          rows[key] = mutator.one(of: Mutator.extremes) + mutator.one(of: ["", " 5", " -5", " 9223372036854775807"])
        default: rows[key] = mutator.mutant(of: rows[key] ?? "", others: values)
        }
      }
      return rows
    } _: { rows in
      let damaged = try Device(server, clock)
      try damaged.store.writeState(rows)
      damaged.notes.set("mine", "m", at: 5)
      var failure = ""
      do {
        damaged.relaunch()
        for _ in 0..<2 { failure = try damaged.sync().failure.map { "\($0)" } ?? "" }
      } catch { failure = "\(error)" }
      let isThere = try damaged.serverTexts["mine"] == "m"
      try Fuzz.demand(isThere || damaged.notes.pendingCount > 0, "the change is neither pending nor sent: \(failure)")
      try Fuzz.demand(damaged.notes.notes["mine"] == "m", "the note is gone: \(failure)")
    }
  }
}
