import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Record bodies")
struct RecordBodyTests {
  private func codec(_ sql: String = "CREATE TABLE t(id TEXT PRIMARY KEY, b, a INTEGER)") throws -> RecordBodyCodec {
    RecordBodyCodec(try planning(sql).plans[0])
  }

  private func content(_ values: [Value], _ clocks: [FieldClock], life: FieldClock = 5) -> RecordContent {
    RecordContent(life: life, values: values.map { .value($0) }, clocks: clocks)
  }

  @Test("tables 1.4: one clock, names bytewise, NULL left out, format 1")
  func uniform() throws {
    let codec = try codec()
    let content = content([.text("k"), .null, .integer(1)], [5, 5, 5])
    let fields = codec.encode(content)
    #expect(fields["cairn_clocks"] == .string("{\"5\":[\"a\",\"b\",\"id\"]}"))
    #expect(fields["cairn_life"] == .int64(5) && fields["cairn_format"] == .int64(1))
    #expect(
      !fields.contains(name: "b") && !fields.contains(name: "cairn_values") && !fields.contains(name: "cairn_cut"))
    #expect(try codec.decode(fields, foreignClock: 0) == content)
  }

  @Test("mixed clocks ascend; never set is not listed; NULL is listed without a value")
  func mixed() throws {
    let codec = try codec()
    var content = content([.text("k"), .null, .null], [20, 9, RecordContent.never])
    content.cut = 3
    content.kept = [.init(name: "zz", clock: 100, field: .double(1)), .init(name: "zy", clock: 9, tagged: "i:1")]
      .sorted { $0.name < $1.name }
    let fields = codec.encode(content)
    #expect(fields["cairn_clocks"] == .string("{\"9\":[\"b\",\"zy\"],\"20\":[\"id\"],\"100\":[\"zz\"]}"))
    #expect(fields["cairn_values"] == .string("{\"zy\":\"i:1\"}"))
    #expect(try codec.decode(fields, foreignClock: 0) == content)
  }

  @Test("tables U2: an update sends dirty fields, explicit nulls, all clocks and all tagged values")
  func changes() throws {
    let codec = try codec()
    let content = content([.text("k"), .integer(7), .null], [5, 6, 7])
    let fields = codec.encodeChanges(content, released: ["b"]) { $0 == "a" }
    #expect(!fields.contains(name: "id"))
    #expect(fields.contains(name: "a") && fields["a"] == nil)
    #expect(!fields.contains(name: "b") && fields["cairn_values"] == .string("{\"b\":\"i:7\"}"))
    #expect(fields.contains(name: "cairn_a_b") && fields["cairn_a_b"] == nil)
    let cleared = codec.encodeChanges(self.content([.text("k"), .text("x"), .null], [5, 6, 7])) { $0 == "b" }
    #expect(cleared.contains(name: "cairn_values") && cleared["cairn_values"] == nil && cleared["b"] == .string("x"))
  }

  @Test("mapped tables: the key is a wish, not a field")
  func mapped() throws {
    let codec = try codec("CREATE TABLE notes(id INTEGER PRIMARY KEY, title)")
    var content = content([.null, .text("t")], [RecordContent.never, 5])
    content.key = 42
    let fields = codec.encode(content)
    #expect(fields["cairn_key"] == .int64(42) && !fields.contains(name: "id"))
    #expect(fields["cairn_clocks"] == .string("{\"5\":[\"title\"]}"))
    #expect(try codec.decode(fields, foreignClock: 0) == content)
  }

  @Test(
    "damaged records are undecodable, newer ones are named so (tables TS86, TS168)",
    arguments: [
      (["cairn_clocks": .string("{\"9007199254740992\":[\"a\"]}")], nil),
      (["cairn_clocks": .string("{\"-1\":[\"a\"]}")], nil),
      (["cairn_clocks": .string("{\"x\":[\"a\"]}")], nil),
      (["cairn_clocks": .string("{\"5\":[\"a\"]")], nil),
      (["cairn_clocks": .string("{\"5\":[\"a\"],\"6\":[\"a\"]}")], nil),
      (["cairn_clocks": .string("{\"5\":[\"a\"]}"), "cairn_life": .int64(-1)], nil),
      (["cairn_clocks": .string("{\"5\":[\"a\"]}"), "cairn_life": nil], nil),
      (["cairn_clocks": .int64(5)], nil),
      (["cairn_values": .string("{\"a\":5}")], nil),
      (["cairn_values": .string("{\"a\":\"q:5\"}")], nil),
      (["a": .list(.int64, [])], nil),
      (["cairn_format": .int64(2)], 2),
    ] as [([String: FieldValue?], Int64?)])
  func damaged(changes: [String: FieldValue?], newer: Int64?) throws {
    let codec = try codec()
    var fields = codec.encode(content([.text("k"), .null, .integer(1)], [5, 5, 5]))
    for (name, value) in changes { fields.set(name, value) }
    do {
      _ = try codec.decode(fields, foreignClock: 0)
      Issue.record("read")
    } catch {
      switch error {
      case .newerFormat(let format): #expect(format == newer)
      case .undecodable: #expect(newer == nil)
      }
    }
  }

  @Test("tables M14: without clocks every field counts as edited when the record was modified")
  func foreign() throws {
    let codec = try codec()
    let content = try codec.decode(["id": .string("k"), "a": .int64(4), "other": .double(1)], foreignClock: 77)
    #expect(!content.hasClocks && content.life == 77)
    #expect(content.clocks == [77, RecordContent.never, 77])
    #expect(content.kept == [.init(name: "other", clock: 77, field: .double(1))])
  }

  @Test("fields that another client added to a record are as old as the row, not lost")
  func unlisted() throws {
    let codec = try codec()
    var fields = codec.encode(content([.text("k"), .null, .null], [50, RecordContent.never, 60], life: 50))
    fields.set("b", .string("added"))
    fields.set("extra", .int64(1))
    let content = try codec.decode(fields, foreignClock: 99)
    #expect(content.clocks == [50, 50, 60] && content.values[1] == .value(.text("added")))
    #expect(content.kept.map(\.clock) == [50])
  }

  @Test("tables 1.5: values over 64 KiB are assets; else the largest until the record is small enough")
  func large() throws {
    let columns = (0..<20).map { "c\($0)" }.joined(separator: ", ")
    let plan = try planning("CREATE TABLE t(id TEXT PRIMARY KEY, \(columns))").plans[0]
    func sizes(_ sizes: [Int]) -> [Int] {
      let values = sizes.map { Value.text(String(repeating: "x", count: $0)) }
      return LargeValues.columns(content(values, values.map { _ in 5 }), plan)
    }
    #expect(sizes([10, 65_536, 65_537]) == [2])
    // 20 × 61,440 + 60,000 bytes: seven of the larger ones must go, the last ones.
    #expect(sizes(Array(repeating: 61_440, count: 20) + [60_000]) == [13, 14, 15, 16, 17, 18, 19])
  }

  @Test("any content comes back; seed 5")
  func property() throws {
    let codec = try codec("CREATE TABLE t(id TEXT PRIMARY KEY, b, a INTEGER, r REAL, t TEXT, x BLOB, d DATE)")
    var random = SplitMix(5)
    for _ in 0..<1_000 {
      var values: [FieldContent] = []
      var clocks: [FieldClock] = []
      for column in codec.plan.columns {
        let clock = Int64.random(in: -1...3, using: &random)
        clocks.append(clock)
        values.append(
          clock < 0 ? .null : .value(AffinityRules.stored(random.value(), in: column.affinity)))
      }
      if case .value(.real) = values[4] { values[4] = .null }
      let content = RecordContent(life: 3, cut: Bool.random(using: &random) ? 2 : nil, values: values, clocks: clocks)
      #expect(try codec.decode(codec.encode(content), foreignClock: 0) == content)
      let whole = codec.encodeChanges(content) { _ in true }
      #expect(try codec.decode(whole, foreignClock: 0) == content)
    }
  }
}
