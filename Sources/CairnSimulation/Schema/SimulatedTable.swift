/// A table of a simulated database: its SQL, and what the generator of statements must know about it.
struct SimulatedTable: Hashable, Sendable {
  /// What names a row.
  enum Key: Hashable, Sendable {
    case text
    /// TEXT COLLATE NOCASE.
    case noCase
    case blob
    /// (TEXT, INTEGER).
    case composite
    /// INTEGER PRIMARY KEY: each row has a record name of its own.
    case mapped
    /// Like `mapped`, and its rows are told apart by a column `born` that is written once.
    case mappedBorn
    /// Made of references to the given tables.
    case parents([Int])
  }

  /// What a column holds.
  enum Column: Hashable, Sendable {
    /// Any value.
    case free
    case text
    case integer
    case real
    case blob
    /// A few small values, so that UNIQUE constraints are hit.
    case few
    /// The key of a row of the given table.
    case reference(Int)
  }

  struct Field: Hashable, Sendable {
    var name: String
    var column: Column
    var isNotNull = false
  }

  var name: String
  var key: Key
  var fields: [Field]
  /// CREATE TABLE and CREATE INDEX.
  var statements: [String]
  /// Whether no other row can change what becomes of its rows, so that the model tells every field.
  var isModelled: Bool

  var keyColumns: [String] {
    switch key {
    case .text, .noCase, .blob: ["k"]
    case .composite: ["k1", "k2"]
    case .mapped, .mappedBorn: ["id"]
    case .parents(let parents): parents.indices.map { "p\($0)" }
    }
  }
}

/// The schema that every device of a run has.
struct SimulatedSchema: Hashable, Sendable {
  var tables: [SimulatedTable]

  var sql: String { tables.flatMap(\.statements).map { $0 + ";" }.joined(separator: "\n") }
}
