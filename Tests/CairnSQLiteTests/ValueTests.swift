import CairnSQLite
import Testing

/// Every storage class goes in and comes out with every byte.
@Suite struct ValueTests {
  private static let values: [Value] = [
    .null, .integer(0), .integer(.min), .integer(.max), .integer(-1), .real(0.1), .real(-1e308),
    .real(.leastNonzeroMagnitude),
    .real(.infinity), .real(-.infinity), .text(""), .text("a"), .text("a\u{0}b\u{0}"), .text("é🗿\r\n\u{FFFD}"),
    .malformedText([0xff]), .malformedText([0x61, 0x00, 0xc3]), .malformedText([0xed, 0xa0, 0x80]), .blob([]),
    .blob([0]), .blob([0xff, 0x00, 0x27]), .text(String(repeating: "x", count: 100_000)),
  ]

  @Test(arguments: values)
  func valuesComeBackAsTheyWere(value: Value) throws {
    let connection = try memory("CREATE TABLE t(v ANY) STRICT")
    try connection.run("INSERT INTO t VALUES (?)", value)
    #expect(try connection.scalar("SELECT v FROM t") == value)
    #expect(try connection.rows("SELECT typeof(v), v FROM t")[0][1].storageClass == value.storageClass)
    let statement = try connection.prepare("SELECT v FROM t")
    #expect(try statement.step())
    #expect(statement.storageClass(0) == value.storageClass)
    #expect(statement.isNull(0) == value.isNull)
    #expect(statement.row == [value])
  }

  @Test func notANumberIsBoundAsNull() throws {
    #expect(try memory().scalar("SELECT ?", .real(.nan)) == .null)
  }

  @Test func theEmptyBlobIsNotNullAndTheEmptyTextIsNotABlob() throws {
    let connection = try memory()
    #expect(try connection.scalar("SELECT typeof(?)", .blob([])) == .text("blob"))
    #expect(try connection.scalar("SELECT typeof(?)", .text("")) == .text("text"))
    #expect(try connection.scalar("SELECT length(CAST(? AS BLOB))", .text("a\u{0}b")) == .integer(3))
    #expect(try connection.scalar("SELECT hex(?)", .malformedText([])) == .text(""))
  }

  @Test func columnsAreReadByType() throws {
    let connection = try memory()
    let statement = try connection.prepare("SELECT 7, 2.5, 'é', x'0102', NULL, x'', CAST(x'61ff' AS TEXT)")
    #expect(try statement.step())
    #expect(statement.columnCount == 7)
    #expect(statement.integer(0) == 7)
    #expect(statement.optionalInteger(0) == 7)
    #expect(statement.real(1) == 2.5)
    #expect(statement.text(2) == "é")
    #expect(statement.optionalText(2) == "é")
    #expect(statement.blob(3) == [1, 2])
    #expect(statement.optionalText(4) == nil)
    #expect(statement.optionalInteger(4) == nil)
    #expect(statement.isNull(4) && !statement.isNull(5))
    #expect(statement.blob(5).isEmpty)
    #expect(statement.withText(2) { $0.count } == 2)
    #expect(statement.withBlob(3) { $0.count } == 2)
    #expect(statement.text(6) == "a\u{FFFD}")
    #expect(statement.value(6) == .malformedText([0x61, 0xff]))
  }

  @Test func textOfAUTF16DatabaseIsReadAsUTF8() throws {
    let connection = try memory("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(v); INSERT INTO t VALUES ('é🗿')")
    #expect(try connection.scalar("SELECT v FROM t") == .text("é🗿"))
  }

  @Test func bindingEachTypeByIndex() throws {
    let connection = try memory()
    let statement = try connection.prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6")
    try statement.bind(1, Int64.max)
    try statement.bind(2, 0.5)
    try statement.bind(3, "x")
    try statement.bindText(4, [0xfe])
    try statement.bind(5, [UInt8](arrayLiteral: 9))
    try statement.bindNull(6)
    #expect(try statement.step())
    #expect(statement.row == [.integer(.max), .real(0.5), .text("x"), .malformedText([0xfe]), .blob([9]), .null])
  }

  @Test func aWrongIndexIsAnError() throws {
    let connection = try memory()
    #expect(try connection.prepare("SELECT ?3, ?2").parameterCount == 3)
    #expect(try connection.prepare("SELECT 1").parameterCount == 0)
    let error = sqliteError { try connection.run("SELECT ?", .null, .null) }
    #expect(error?.code == 25)
    #expect(error?.sql == "SELECT ?")
  }
}
