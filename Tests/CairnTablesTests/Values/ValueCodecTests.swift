import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Values on the wire")
struct ValueCodecTests {
  private func column(_ affinity: Affinity, _ type: FieldType) -> ColumnPlan {
    ColumnPlan(
      name: "c", wireName: "c", fieldType: type, affinity: affinity, collation: "BINARY", isNotNull: false,
      defaultSQL: nil, isKey: false, localTarget: nil)
  }

  private func back(_ encoded: ValueCodec.Encoded, _ column: ColumnPlan) -> FieldContent? {
    switch encoded {
    case .null: .null
    case .field(let field): ValueCodec.decode(field, column)
    case .tagged(let text): ValueCodec.decode(tagged: text, asset: nil, column)
    case .asset(let asset, let tag): ValueCodec.decode(tagged: tag, asset: asset, column)
    }
  }

  @Test("tables TS43: a typeless column keeps storage class and bytes of everything")
  func typeless() {
    let plan = column(.blob, .string)
    let values: [Value] = [
      .integer(9_007_199_254_740_993), .integer(.max), .integer(.min), .real(0.1), .real(.infinity),
      .real(-.infinity), .real(-0.0), .real(1), .text(""), .blob([]), .null, .text("a\0b"), .malformedText([0xff, 0]),
      .text("🙂"),
    ]
    for value in values { #expect(back(ValueCodec.encode(.value(value), plan), plan) == .value(value)) }
    #expect(ValueCodec.encode(.value(.text("🙂")), plan) == .field(.string("🙂")))
    #expect(ValueCodec.encode(.value(.integer(5)), plan) == .tagged("i:5"))
    #expect(ValueCodec.encode(.value(.blob([])), plan) == .tagged("b:"))
    #expect(ValueCodec.encode(.value(.text("a\0b")), plan) == .tagged("t:YQBi"))
    #expect(ValueCodec.encode(.value(.real(0.5)), plan) == .tagged("r:3fe0000000000000"))
  }

  @Test("tables 1.5: values fit their own field and no other")
  func fits() {
    let boolean = column(.numeric, .int64)
    #expect(ValueCodec.encode(.value(.integer(1)), boolean) == .field(.int64(1)))
    #expect(ValueCodec.encode(.value(.real(0.5)), boolean) == .tagged("r:3fe0000000000000"))
    let decimal = column(.numeric, .double)
    #expect(ValueCodec.encode(.value(.integer(5)), decimal) == .field(.double(5)))
    #expect(ValueCodec.encode(.value(.integer(9_007_199_254_740_993)), decimal) == .tagged("i:9007199254740993"))
    #expect(ValueCodec.encode(.value(.real(.infinity)), decimal) == .tagged("r:7ff0000000000000"))
    let integer = column(.integer, .int64)
    #expect(ValueCodec.encode(.value(.text("abc")), integer) == .tagged("t:YWJj"))
    let text = column(.text, .string)
    #expect(ValueCodec.encode(.value(.blob([1])), text) == .tagged("b:AQ=="))
  }

  @Test("local foreign keys are references, tagged where the field is none")
  func references() {
    let reference = column(.integer, .reference)
    #expect(
      ValueCodec.encode(.reference("notes:x"), reference) == .field(.reference(Reference(recordName: "notes:x"))))
    #expect(ValueCodec.encode(.value(.integer(7)), reference) == .tagged("i:7"))
    let number = column(.integer, .int64)
    #expect(ValueCodec.encode(.reference("notes:x"), number) == .tagged("f:notes:x"))
    #expect(back(.tagged("f:notes:x"), number) == .reference("notes:x"))
  }

  @Test("tables TS170: a numeral sent by a TEXT column becomes the number that SQLite stores")
  func changedType() {
    #expect(ValueCodec.decode(.string("5"), column(.integer, .string)) == .value(.integer(5)))
    #expect(ValueCodec.decode(.string("5x"), column(.integer, .string)) == .value(.text("5x")))
    #expect(ValueCodec.decode(tagged: "i:5", asset: nil, column(.text, .string)) == .value(.text("5")))
  }

  @Test("large values carry storage class and hash; without their asset they can't be read")
  func large() {
    let plan = column(.text, .string)
    let value = LargeValue(isText: true, hash: LargeValue.hash(of: [1]), asset: Asset(fileChecksum: "f", size: 1))
    #expect(back(ValueCodec.encode(.large(value), plan), plan) == .large(value))
    #expect(ValueCodec.decode(tagged: "at:00", asset: nil, plan) == nil)
  }

  @Test("tables 1.5: normal forms are different values, in rows and on the wire")
  func normalForms() throws {
    let (composed, decomposed) = ("e\u{301}\u{323}", "e\u{323}\u{301}")
    #expect(composed == decomposed && Array(composed.utf8) != Array(decomposed.utf8))
    #expect(Value.text(composed) != Value.text(decomposed))
    #expect(Value.real(0) != Value.real(-0.0) && Value.integer(1) != Value.real(1))
    #expect(Set([Value.text(composed), .text(decomposed), .text(composed), .null, .blob([])]).count == 4)
    let name = { RecordNameCodec.natural(table: "t", parts: [.value(.text($0))], collations: ["BINARY"]) }
    #expect(name(composed) != name(decomposed))
  }

  @Test("damaged tags are refused", arguments: ["", "i", "i:", "i:x", "r:12", "b:%", "z:1", "f:", "t:A"])
  func damaged(text: String) {
    #expect(ValueCodec.decode(tagged: text, asset: nil, column(.blob, .string)) == nil)
  }

  @Test("affinities convert as SQLite does")
  func affinities() throws {
    let connection = try memoryDatabase(
      "CREATE TABLE t(i INTEGER, n NUMERIC, r REAL, b, x TEXT)")
    var random = SplitMix(7)
    var values: [Value] = [
      .text("5"), .text(" 5 "), .text("5.0"), .text("1e3"), .text("0x10"), .text("1e400"), .text("-.5"), .text("+7"),
      .text("1."), .text("1e"), .text("-"), .text("."), .text("nan"), .text("9223372036854775808"), .text("5\0"),
      .text("1 2"), .real(9_223_372_036_854_775_808), .real(-9_223_372_036_854_775_808), .real(0x1p60), .text("e5"),
      .text("--5"), .text("9007199254740993"), .text("9007199254740993.0"), .text(""), .text(" "), .null,
    ]
    for _ in 0..<300 { values.append(random.value()) }
    let affinities: [Affinity] = [.integer, .numeric, .real, .blob, .text]
    for value in values {
      try connection.run("DELETE FROM t")
      try connection.run("INSERT INTO t VALUES(?, ?, ?, ?, ?)", value, value, value, value, value)
      let row = try connection.rows("SELECT * FROM t")[0]
      for (affinity, stored) in zip(affinities, row) {
        // The digits of a real in TEXT are left to SQLite.
        if affinity == .text, case .real = value { continue }
        #expect(AffinityRules.stored(value, in: affinity) == stored, "\(value) in \(affinity)")
      }
    }
  }

  @Test("whatever a column of any declaration holds comes back with the same class and bytes; seed 11")
  func property() throws {
    let declarations = [
      "INTEGER", "BOOLEAN", "REAL", "TEXT", "DATE", "BLOB", "", "DECIMAL(5)", "ANY", "VARCHAR(5)", "DOUBLE",
    ]
    let names = declarations.indices.map { "c\($0)" }
    let columns = zip(names, declarations).map { "\($0) \($1)" }.joined(separator: ", ")
    let connection = try memoryDatabase("CREATE TABLE t(id TEXT PRIMARY KEY, \(columns))")
    let plan = SchemaPlanner.plan(try DatabaseSchema.read(from: connection)).plans[0]
    var random = SplitMix(11)
    for _ in 0..<500 {
      try connection.run("DELETE FROM t")
      try connection.run("INSERT INTO t(id) VALUES('a')")
      for name in names { try connection.run("UPDATE t SET \(name) = ?", random.value()) }
      let row = try connection.rows("SELECT * FROM t")[0]
      for (i, value) in row.enumerated() {
        let encoded = ValueCodec.encode(.value(value), plan.columns[i])
        #expect(back(encoded, plan.columns[i]) == .value(value), "\(value) in \(plan.columns[i]) by \(encoded)")
      }
    }
  }
}
