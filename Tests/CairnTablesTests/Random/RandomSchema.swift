import CairnEngine
import CairnTesting

/// A small schema made from a seed: natural, mapped and composite keys, every ON DELETE action, self-references and
/// circles, UNIQUE and CHECK.
struct RandomSchema {
  struct Table {
    var name: String
    var key: [String]
    var isMapped: Bool
    var collation = ""
    /// Plain columns, beside key and foreign keys.
    var plain: [String]
    /// Foreign-key columns that are no key, with the table and column that they refer to.
    var references: [(column: String, table: Int, target: String)]
    /// Key columns that are foreign keys.
    var keyParents: [(column: String, table: Int)]
    var sql = ""

    var columns: [String] { key + plain + references.map(\.column) }
  }

  private(set) var tables: [Table] = []
  var sql: String { tables.map { $0.sql + ";" }.joined(separator: "\n") }

  init(_ random: inout SeededNumbers) {
    let count = random.below(3) + 2
    // A table by parents refers to those before it that have one key column.
    for i in 0..<count {
      let single = tables.indices.filter { tables[$0].key.count == 1 }
      let kind = random.below(single.isEmpty ? 2 : 4)
      var table = Table(name: "t\(i)", key: ["id"], isMapped: kind == 1, plain: ["v"], references: [], keyParents: [])
      var lines: [String] = []
      switch kind {
      case 0:
        if random.below(4) == 0 { table.collation = " COLLATE NOCASE" }
        lines.append("id TEXT PRIMARY KEY NOT NULL\(table.collation)")
      case 1: lines.append("id INTEGER PRIMARY KEY\(random.below(4) == 0 ? " AUTOINCREMENT" : "")")
      default:
        let parent = single[random.below(single.count)]
        table.key = ["p", kind == 2 ? "q" : "n"]
        table.keyParents = [("p", parent)]
        lines.append("p \(keyType(of: parent)) NOT NULL REFERENCES t\(parent) ON DELETE CASCADE")
        if kind == 2 {
          let other = single[random.below(single.count)]
          table.keyParents.append(("q", other))
          lines.append(
            "q \(keyType(of: other)) NOT NULL REFERENCES t\(other) ON DELETE \(random.below(2) == 0 ? "CASCADE" : "RESTRICT")"
          )
        } else {
          lines.append("n TEXT NOT NULL")
        }
      }
      lines.append("v")
      if random.below(2) == 0 {
        table.plain.append("u")
        lines.append("u TEXT UNIQUE")
      }
      if random.below(3) == 0 {
        table.plain.append("c")
        lines.append("c INTEGER CHECK (c < 6)")
      }
      tables.append(table)
      addReferences(i, count, &random, &lines)
      if table.key.count > 1 { lines.append("PRIMARY KEY (\(table.key.joined(separator: ", ")))") }
      let without = !table.isMapped && random.below(4) == 0 ? " WITHOUT ROWID" : ""
      tables[i].sql = "CREATE TABLE t\(i)(\(lines.joined(separator: ", ")))\(without)"
    }
    // References to tables that turned out to have several key columns name no column.
    for i in tables.indices { tables[i].references.removeAll { $0.target.isEmpty } }
  }

  private func type(of table: Int) -> String { tables[table].isMapped ? "INTEGER" : "TEXT" }

  /// A part of a key that names a NOCASE parent is NOCASE too. If it told spellings apart, two rows could name one
  /// record and only one of them be synced: a known limit (docs/spec/tables.md, "Known limits").
  private func keyType(of table: Int) -> String { type(of: table) + tables[table].collation }

  private mutating func addReferences(_ i: Int, _ count: Int, _ random: inout SeededNumbers, _ lines: inout [String]) {
    for r in 0..<random.below(3) {
      // Itself, an earlier one, or by a circle of two: the table before refers to this one by ALTER TABLE-free luck.
      let target = random.below(i + 1)
      guard tables[target].key.count == 1 || tables[target].plain.contains("u") else { continue }
      let toUnique = tables[target].plain.contains("u") && (tables[target].key.count > 1 || random.below(4) == 0)
      let column = "r\(r)"
      let action = ["CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"][random.below(5)]
      let update =
        toUnique ? ["CASCADE", "NO ACTION", "SET NULL"][random.below(3)] : ["NO ACTION", "CASCADE"][random.below(2)]
      let unique = random.below(6) == 0 ? " UNIQUE" : ""
      let isText = toUnique || !tables[target].isMapped
      let def = action == "SET DEFAULT" && isText && random.below(2) == 0 ? " DEFAULT 'a'" : ""
      lines.append(
        "\(column) \(isText ? "TEXT" : "INTEGER")\(def)\(unique) REFERENCES t\(target)(\(toUnique ? "u" : "id")) "
          + "ON DELETE \(action) ON UPDATE \(update)")
      tables[i].references.append((column, target, toUnique ? "u" : "id"))
    }
  }
}

/// Numbers from a seed, alike on every platform.
struct SeededNumbers {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 0x1234_5678 }

  mutating func next() -> UInt64 {
    state = state &+ 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
