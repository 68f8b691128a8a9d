import CairnRecords
import CairnSQLite
import CairnWire
import FuzzSupport
import Testing

@testable import CairnTables

/// Texts that another device, another program or a broken disk may have written.
@Suite("Damaged texts of the tables") struct TextFuzzTests {
  private func plan(_ sql: String) throws -> TablePlan { try planning(sql).plans[0] }

  @Test("tables 1.2: a name that is read is the name of what was read", .timeLimit(.minutes(10)))
  func names() throws {
    let plans = [
      try plan("CREATE TABLE notes(id INTEGER PRIMARY KEY, a)"), try plan("CREATE TABLE t(a TEXT PRIMARY KEY, b)"),
      try plan("CREATE TABLE t(a TEXT NOT NULL COLLATE NOCASE, b BLOB NOT NULL, c, PRIMARY KEY(a, b))"),
    ]
    let sound = [
      "notes:6b1f0c1e-0000-8abc-8def-000000000007", "t:abc", "t:~i42", "t:~r3ff8000000000000", "t:~b00ff,x",
      "t:a%20b,~i-1",
      "t:~ft%3Ax,~b", "t:,", "t:~h" + String(repeating: "0a", count: 32),
    ]
    try Fuzz.run("record names", count: 3_000) { mutator -> (name: String, plan: Int) in
      (mutator.mutant(of: mutator.one(of: sound), others: sound), mutator.index(plans.count))
    } _: { input in
      let plan = plans[input.plan]
      guard let decoded = RecordNameCodec.decode(input.name, plan) else { return }
      let name: String?
      switch decoded {
      case .uuid(let bytes): name = RecordNameCodec.mapped(table: plan.wireName, uuid: bytes)
      case .parts(let parts):
        name = RecordNameCodec.natural(
          table: plan.wireName, parts: parts, collations: plan.keyColumns.map { plan.columns[$0].collation })
      case .hashed: return
      }
      // Another client may spell a name in its own way; read again it must be the same row.
      guard let name, name != input.name else { return try Fuzz.demand(name != nil, "it has no name") }
      guard name.utf8.count < 240 else { return }
      let again = try #require(RecordNameCodec.decode(name, plan))
      let third: String? =
        switch again {
        case .uuid(let bytes): RecordNameCodec.mapped(table: plan.wireName, uuid: bytes)
        case .parts(let parts):
          RecordNameCodec.natural(
            table: plan.wireName, parts: parts, collations: plan.keyColumns.map { plan.columns[$0].collation })
        case .hashed: name
        }
      try Fuzz.demand(third == name, "\(name) is read as \(String(describing: third))")
    }
  }

  @Test("tables 1.4, TS86: cairn_clocks and cairn_values", .timeLimit(.minutes(10)))
  func bodies() throws {
    let codec = RecordBodyCodec(try plan("CREATE TABLE t(id TEXT PRIMARY KEY, b, a INTEGER)"))
    let clocks = [
      #"{"5":["a","b","id"]}"#, #"{"9":["b","zy"],"20":["id"],"100":["zz"]}"#, #"{"9":["a"]}"#, "{}",
    ]
    let values = [#"{"b":"i:1"}"#, #"{"b":"t:AAA=","zy":"r:3ff8000000000000"}"#, #"{"a":"b:AAA=","id":"f:x:1"}"#, "{}"]
    try Fuzz.run("cairn_clocks and cairn_values", count: 3_000) { mutator -> Fields in
      let number: (inout Mutator) -> Int64 = { Int64($0.one(of: Mutator.extremes)) ?? 5 }
      var fields: Fields = [
        "cairn_life": .int64(mutator.index(4) == 0 ? number(&mutator) : 5), "id": .string("k"), "zz": .int64(1),
        "cairn_clocks": .string(mutator.mutant(of: mutator.one(of: clocks), others: clocks)),
      ]
      if mutator.index(2) == 0 {
        fields.append("cairn_values", .string(mutator.mutant(of: mutator.one(of: values), others: values)))
      }
      if mutator.index(4) == 0 { fields.append("cairn_cut", .int64(number(&mutator))) }
      return fields
    } _: { fields in
      let content: RecordContent
      do { content = try codec.decode(fields, foreignClock: 0) } catch { return }
      try Fuzz.demand(
        content.life.isValidClock && content.clocks.allSatisfy { $0 == RecordContent.never || $0.isValidClock }
          && content.kept.allSatisfy { $0.clock.isValidClock }, "a clock is out of range: \(content)")
      let again = try codec.decode(codec.encode(content), foreignClock: 0)
      try Fuzz.demand(again == content, "\(content) is sent as \(again)")
    }
  }

  @Test("file-format.md: what a file remembers of a table", .timeLimit(.minutes(10)))
  func memory() throws {
    let sound = try planning(scenarioSchema).plans.prefix(4).map { plan in
      RememberedTable(
        number: 3, name: plan.name, wireName: plan.wireName, keyKind: plan.keyKind,
        columns: plan.columns.map {
          RememberedColumn(name: $0.name, wireName: $0.wireName, fieldType: $0.fieldType)
        }, generations: [.init(columns: Array(plan.columns.indices), keyColumns: plan.keyColumns)]
      ).json
    }
    try Fuzz.run("cairn_table.memory", count: 2_000) { mutator in
      mutator.mutant(of: mutator.one(of: sound), others: sound)
    } _: { text in
      let table: RememberedTable
      do { table = try RememberedTable(json: text) } catch { return }
      try Fuzz.demand(try RememberedTable(json: table.json) == table, "it is written as another table")
      // What the catalog makes of it may take no more memory than the text is worth.
      _ = TableCatalog(plans: [], remembered: [table])
    }
  }

  @Test("tables V1: fields without a column, as a file keeps them", .timeLimit(.minutes(10)))
  func kept() throws {
    var kept = KeptFields()
    kept.add(.init(name: "a", clock: 1, field: .string("x")))
    kept.add(.init(name: "b", clock: 1, field: nil, tagged: "i:1"))
    kept.add(.init(name: "c", clock: 1, asset: Asset(fileChecksum: "s", size: 1)))
    kept.add(.init(name: "d", clock: 1))
    let sound = kept.json()
    try Fuzz.run("kept fields", count: 1_000) { mutator in
      mutator.mutant(of: sound, others: [sound])
    } _: { text in
      let read: KeptFields
      do { read = try KeptFields(json: text) } catch { return }
      try Fuzz.demand(try KeptFields(json: read.json()) == read, "it is written as other fields")
    }
  }

  @Test("tables L3: a published table makes its own table or nothing", .timeLimit(.minutes(10)))
  func schemas() throws {
    let schema =
      scenarioSchema + """
        ; CREATE TABLE odd(id INTEGER PRIMARY KEY AUTOINCREMENT, d TEXT DEFAULT abc, a TEXT DEFAULT (lower('X'))
          CHECK(length(a) > 0), g TEXT AS (a || 'x') STORED) STRICT;
        CREATE UNIQUE INDEX i ON odd(lower(a) DESC, d COLLATE NOCASE) WHERE d IS NOT NULL;
        """
    let database = try DatabaseSchema.read(from: memoryDatabase(schema))
    let records = SchemaPlanner.plan(database).plans.compactMap { plan in
      database.table(plan.name).map { PublishedTable(plan, $0, clock: 5) }
    }.map { ($0.recordName, $0.fields) }
    let texts = ["columns", "statements"].flatMap { name in records.compactMap { Self.text($0.1, name) } }
    try Fuzz.run("published tables", count: 1_200) { mutator -> (name: String, fields: Fields) in
      var (name, fields) = mutator.one(of: records)
      if mutator.index(12) == 0 { name = mutator.mutant(of: name) }
      let damaged = mutator.one(of: ["columns", "statements", "statements", "statements", "table_name", "key_kind"])
      fields.set(damaged, .string(mutator.mutant(of: Self.text(fields, damaged) ?? "", others: texts)))
      return (name, fields)
    } _: { input in
      let table: PublishedTable
      do { table = try PublishedTable(recordName: input.name, fields: input.fields) } catch { return }
      let again = try PublishedTable(recordName: input.name, fields: table.fields)
      try Fuzz.demand(again == table, "it is published as another table")
      try Fuzz.demand(!table.merged(with: table).lacks(table), "merged with itself it is another")
      let connection = try memoryDatabase("CREATE TABLE secret(x); INSERT INTO secret VALUES(1)")
      do { try SchemaCreator.create([table], in: connection) } catch is SchemaCreator.Refusal {}
      let made = try connection.rows(
        "SELECT type, name, tbl_name FROM sqlite_master WHERE tbl_name NOT IN ('secret', 'sqlite_sequence')")
      for row in made {
        let isOwn = row[2].text.map { SQLName.equal($0, table.name) } ?? false
        try Fuzz.demand(isOwn && [.text("table"), .text("index")].contains(row[0]), "it made \(row)")
      }
      try Fuzz.demand(try connection.scalar("SELECT count(*) FROM secret") == .integer(1), "it changed a row")
      try Fuzz.demand(!connection.isInTransaction, "a transaction is open")
    }
  }

  private static func text(_ fields: Fields, _ name: String) -> String? {
    if case .string(let text)? = fields[name] { text } else { nil }
  }
}
