import CairnRecords
import CairnWire

/// The record of a published table: type `cairn_table`, name `cairn_table:<wire name>`.
///
/// | Field | Content |
/// |---|---|
/// | `table_name` | STRING: the table's name in SQL |
/// | `key_kind` | STRING: `mapped` or `natural` |
/// | `columns` | STRING: JSON, `[[name, wire name, field type, clock], …]` |
/// | `statements` | STRING: JSON, CREATE TABLE and then every CREATE INDEX |
/// | `statements_clock` | INT64: when the schema was changed to that |
/// | `cairn_format` | INT64: 1 |
extension PublishedTable {
  public static let recordType = "cairn_table"

  public static func recordName(wireName: String) -> String { "\(recordType):\(wireName)" }

  public var recordName: String { Self.recordName(wireName: wireName) }

  public var fields: Fields {
    var claims = JSONWriter(capacity: 1024)
    claims.beginArray()
    for column in columns {
      claims.beginArray()
      for text in [column.name, column.wireName, column.fieldType.rawValue] { claims.string(text) }
      claims.int64(column.clock)
      claims.endArray()
    }
    claims.endArray()
    var sql = JSONWriter(capacity: 1024)
    sql.beginArray()
    for statement in statements { sql.string(statement) }
    sql.endArray()
    return [
      "table_name": .string(name), "key_kind": .string(isMapped ? "mapped" : "natural"),
      "columns": .string(String(decoding: claims.bytes, as: UTF8.self)),
      "statements": .string(String(decoding: sql.bytes, as: UTF8.self)),
      "statements_clock": .int64(statementsClock), RecordField.format: .int64(RecordField.currentFormat),
    ]
  }

  /// Reads a record of type `cairn_table`.
  public init(recordName: String, fields: Fields) throws(RecordBodyError) {
    let prefix = Self.recordType + ":"
    guard recordName.hasPrefix(prefix), WireName.isValid(table: String(recordName.dropFirst(prefix.count))) else {
      throw .undecodable("\(recordName) names no table")
    }
    if case .int64(let format)? = fields[RecordField.format], format > RecordField.currentFormat {
      throw .newerFormat(format)
    }
    guard case .string(let name)? = fields["table_name"], case .string(let kind)? = fields["key_kind"],
      kind == "mapped" || kind == "natural", case .string(let claims)? = fields["columns"],
      case .string(let sql)? = fields["statements"], case .int64(let clock)? = fields["statements_clock"],
      clock.isValidClock
    else { throw .undecodable("a field of \(recordName) is missing or of a wrong type") }
    do {
      let columns = try Self.readClaims(claims)
      let statements = try JSONReader.parse(Array(sql.utf8)) { (reader) throws(WireError) in
        try reader.readStrings() ?? []
      }
      self.init(
        wireName: String(recordName.dropFirst(prefix.count)), name: name, isMapped: kind == "mapped", columns: columns,
        statements: statements, statementsClock: clock)
    } catch {
      throw .undecodable("\(recordName) is damaged: \(error)")
    }
  }

  /// The types that columns can have (tables 1.5).
  private static let types: [FieldType] = [.string, .int64, .double, .bytes, .reference]

  private static func readClaims(_ text: String) throws(WireError) -> [ColumnClaim] {
    try JSONReader.parse(Array(text.utf8)) { (reader) throws(WireError) in
      var result: [ColumnClaim] = []
      try reader.beginArray()
      while try reader.nextElement() {
        try reader.beginArray()
        var words: [String] = []
        while words.count < 3, try reader.nextElement() { words.append(try reader.readString()) }
        guard words.count == 3, WireName.isValid(column: words[1]),
          let type = FieldType(rawValue: words[2]), types.contains(type), try reader.nextElement()
        else {
          throw WireError(.value, "a column is its name, wire name, type and clock", at: 0)
        }
        let clock = try reader.readInt64()
        guard clock.isValidClock else { throw WireError(.value, "a clock is out of range", at: 0) }
        while try reader.nextElement() { try reader.skip() }
        result.append(ColumnClaim(name: words[0], wireName: words[1], fieldType: type, clock: clock))
      }
      return result
    }
  }
}
