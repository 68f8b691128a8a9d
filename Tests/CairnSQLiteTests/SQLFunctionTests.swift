import CairnSQLite
import Testing

/// SQL functions that this program defines.
@Suite struct SQLFunctionTests {
  /// How a value stands to the text `b`, and what class it has.
  private func define(_ connection: Connection) throws {
    try connection.define("class", arguments: 1) { $0.give(Int64($0.storageClass(0).rawValue)) }
    try connection.define("order_to_b", arguments: 1) { call in
      let order = "b".utf8.withContiguousStorageIfAvailable { call.compare(0, UnsafeRawBufferPointer($0)) } ?? 0
      call.give(Int64(order.signum()))
    }
  }

  @Test(arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func argumentsAndResults(encoding: String) throws {
    let connection = try memory("PRAGMA encoding = '\(encoding)'; CREATE TABLE t(v)")
    try define(connection)
    try connection.execute("INSERT INTO t VALUES (1), (1.5), ('a'), (x'00'), (NULL)")
    let classes: [StorageClass] = [.integer, .real, .text, .blob, .null]
    #expect(
      try connection.rows("SELECT class(v) FROM t ORDER BY rowid").map { $0[0] }
        == classes.map { .integer(Int64($0.rawValue)) })
    for (value, order) in [
      ("'b'", 0), ("'a'", -1), ("'c'", 1), ("''", -1), ("'b' || char(0)", 1), ("'bb'", 1), ("x'62'", 0), ("x''", -1),
      ("x'6200'", 1), ("'ключ'", 1),
    ] as [(String, Int64)] {
      try connection.run("DELETE FROM t")
      try connection.execute("INSERT INTO t VALUES (\(value))")
      #expect(try connection.scalar("SELECT order_to_b(v) FROM t") == .integer(order), "\(value)")
    }
    try connection.define("twice", arguments: 1) { $0.give($0.integer(0) * 2) }
    try connection.define("text", arguments: 0) { $0.give(text: Array("größe\0".utf8)) }
    try connection.define("no_result", arguments: 0) { _ in }
    #expect(
      try connection.rows("SELECT twice(21), text(), no_result(), class(-2.5)")
        == [[.integer(42), .text("größe\0"), .null, .integer(2)]])
  }

  @Test func aFailureEndsTheStatementWithItsMessage() throws {
    let connection = try memory("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2)")
    try connection.define("picky", arguments: 1) { call in
      call.integer(0) == 2 ? call.fail("two is too many") : call.give(call.real(0) == 1 ? 10 : 0)
    }
    #expect(sqliteError { try connection.run("UPDATE t SET v = picky(v)") }?.message == "two is too many")
    #expect(try connection.rows("SELECT v FROM t") == [[.integer(1)], [.integer(2)]])
  }

  @Test func theLastDefinitionCountsAndTheSchemaCallsNone() throws {
    let connection = try memory("CREATE TABLE t(v)")
    let statement = try { () throws -> Statement in
      try connection.define("answer", arguments: 0) { $0.give(1) }
      return try connection.prepare("SELECT answer()")
    }()
    try connection.define("answer", arguments: 0) { $0.give(2) }
    #expect(try statement.step() && statement.integer(0) == 2)
    statement.reset()
    try connection.execute("CREATE TRIGGER w AFTER INSERT ON t BEGIN UPDATE t SET v = answer(); END")
    #expect(sqliteError { try connection.run("INSERT INTO t VALUES (1)") }?.message.contains("answer") == true)
  }

  @Test func whatAFunctionHoldsGoesWithTheConnection() throws {
    final class Held {}
    weak var held: Held?
    do {
      let connection = try memory()
      let object = Held()
      held = object
      try connection.define("hold", arguments: 0) { [object] in $0.give(ObjectIdentifier(object).hashValue == 0 ? 0 : 1)
      }
      #expect(try connection.scalar("SELECT hold()") == .integer(1))
    }
    #expect(held == nil)
  }
}
